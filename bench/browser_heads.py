"""Requests as browsers write them, for the benches: the lines of real browsers, and cookies that no
two requests share.
"""

import base64
import itertools
import random
from collections.abc import Iterator

HOST = b"shop.example.com"
TICKET_BYTES = 81
"""Bytes of a sealed ticket: 108 characters in its cookie."""

CHROME = (
    b'Host: %(host)b\r\nConnection: keep-alive\r\nsec-ch-ua-platform: "%(platform)b"\r\nUser-Agent:'
    b" Mozilla/5.0 (%(system)b) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%(version)d.0.0.0"
    b' Safari/537.36\r\nAccept: application/json\r\nsec-ch-ua: "Chromium";v="%(version)d", "Google'
    b' Chrome";v="%(version)d", "Not)A;Brand";v="99"\r\ngreenroom-update:'
    b" %(update)b\r\nsec-ch-ua-mobile: ?0\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode:"
    b" cors\r\nSec-Fetch-Dest: empty\r\nReferer: https://%(host)b/sale\r\nAccept-Encoding: gzip,"
    b" deflate, br, zstd\r\nAccept-Language: %(language)b,en;q=0.9\r\n"
)
"""What Chrome sends when the waiting page asks for news, but for the request line and the Cookie
line, which comes last.
"""

SYSTEMS = {
    b"Windows": b"Windows NT 10.0; Win64; x64",
    b"macOS": b"Macintosh; Intel Mac OS X 10_15_7",
    b"Linux": b"X11; Linux x86_64",
}
VERSIONS = range(128, 144)
LANGUAGES = (b"en-US", b"en-GB", b"de-DE", b"fr-FR", b"es-ES", b"pt-BR", b"ja", b"tr-TR")

SHOP_COOKIES = "_ga=GA1.1.123456789.1712345678; theme=dark"

LINE = b"GET /sale HTTP/1.1\r\n"

NAVIGATION = {
    b"Accept: application/json\r\n": (
        b"Upgrade-Insecure-Requests: 1\r\n"
        b"Accept:"
        b" text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
        b"application/signed-exchange;v=b3;q=0.7\r\n"
    ),
    b"greenroom-update: fifo\r\n": b"",
    b"Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty": (
        b"Sec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document"
    ),
}
"""What is different in a request for a page."""


def browsers(update: bytes = b"fifo") -> list[bytes]:
    """Header lines of all kinds of browser, without a cookie: 384 of them. `update` is the view
    that the page shows.
    """
    kinds = itertools.product(SYSTEMS.items(), VERSIONS, LANGUAGES)
    return [
        CHROME
        % {
            b"host": HOST,
            b"platform": platform,
            b"system": system,
            b"version": version,
            b"language": language,
            b"update": update,
        }
        for (platform, system), version, language in kinds
    ]


def navigating() -> list[bytes]:
    """The same browsers when somebody opens a page."""
    found = browsers()
    for update, page in NAVIGATION.items():
        found = [lines.replace(update, page) for lines in found]
    return found


def as_chrome(head: str) -> str:
    """A bare GET (`awake.request`) as Chrome sends it for a page of a shop: all its lines, the
    shop's cookies before ours.
    """
    first, host, *own = head.removesuffix("\r\n\r\n").split("\r\n")
    cookies = [
        SHOP_COOKIES,
        *(line.removeprefix("Cookie: ") for line in own if line.startswith("Cookie: ")),
    ]
    lines = navigating()[0].decode().replace(f"Host: {HOST.decode()}", host)
    return f"{first}\r\n{lines}Cookie: {'; '.join(cookies)}\r\n\r\n"


def cookie_line(chance: random.Random, ticket: bytes = b"") -> bytes:
    """A Cookie line as a shop's visitor has it: two of an analytics script, one of the shop, and
    the ticket.
    """
    ticket = ticket or base64.urlsafe_b64encode(chance.randbytes(TICKET_BYTES))
    numbers = (chance.randrange(10**9), chance.randrange(10**9, 2 * 10**9))
    return b"Cookie: _ga=GA1.1.%d.%d; theme=dark; __cfwaitingroom=%b\r\n" % (*numbers, ticket)


def update_heads(chance: random.Random, extra: bytes = b"") -> Iterator[bytes]:
    """Heads of update requests for ever, each of another visitor; `extra` may have a `%d` for a
    number that never comes again.
    """
    kinds = browsers()
    for number in itertools.count():
        more = extra % number if b"%d" in extra else extra
        yield LINE + chance.choice(kinds) + more + cookie_line(chance) + b"\r\n"
