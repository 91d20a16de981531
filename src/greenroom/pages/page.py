"""What a room shows to visitors it holds: compiled once when the configuration changes, then a few microseconds each."""

import msgspec

from greenroom.model.room import Room
from greenroom.model.visit import Held
from greenroom.pages.accept_encoding import takes_gzip
from greenroom.pages.accept_language import asked_for
from greenroom.pages.builtin import CONTENT_SECURITY_POLICY, alone, built_in
from greenroom.pages.language import FALLBACK
from greenroom.pages.template import Template, parse
from greenroom.pages.variables import facts_of, ours, published

UNCACHEABLE = b"Cache-Control: private, no-store\r\nVary: Accept, Cookie, Greenroom-Update\r\n"
"""Every answer here belongs to one visitor and one moment; the three headers decide which answer it is."""

_COMMON = UNCACHEABLE + b"X-Robots-Tag: noindex\r\nX-Content-Type-Options: nosniff\r\n"

JSON_HEAD = b"Content-Type: application/json\r\n" + _COMMON

BUILT_IN_HEAD = (
    b"Content-Type: text/html; charset=utf-8\r\n"
    + _COMMON
    + b"Referrer-Policy: same-origin\r\nContent-Security-Policy: "
    + CONTENT_SECURITY_POLICY.encode()
    + b"\r\n"
)
"""For the built-in page, the goodbye and the two pages for a silent origin."""

CUSTOM_HEAD = b"Content-Type: text/html; charset=utf-8\r\n" + _COMMON
"""A custom page loads what it likes and embeds what it likes, so no policy of ours stands in its way."""

ORIGIN_ERRORS = {502: "unreachable", 503: "busy", 504: "slow"}

_encode = msgspec.json.Encoder().encode


class Page:
    """One room's page. The caller adds Refresh, Retry-After and Set-Cookie behind the ready header lines."""

    __slots__ = ("_built_in", "_packed_head", "_spoken", "_template", "follows", "html_head", "json_head", "language")

    def __init__(self, language: str, template: Template | None, follows: bool = False) -> None:
        """`language` is that of the built-in page; `follows`: another one is shown to whoever asks for it."""
        self.language = language
        self._built_in = built_in(language)
        self._template = template
        self.follows = follows
        self._spoken: dict[str, Page] = {}
        self.html_head = CUSTOM_HEAD if template else BUILT_IN_HEAD.replace(b"Vary: ", b"Vary: Accept-Encoding, ")
        self.json_head = JSON_HEAD
        if follows:
            self.html_head, self.json_head = (
                head.replace(b"Vary: ", b"Vary: Accept-Language, ") for head in (self.html_head, self.json_head)
            )
        self._packed_head = self.html_head + b"Content-Encoding: gzip\r\n"

    def speaking(self, accept_language: bytes | None) -> "Page":
        """The page for a visitor with this Accept-Language header: the same unless the room follows it and we speak another one."""
        wanted = asked_for(accept_language) if self.follows and accept_language else ""
        if not wanted or wanted == self.language:
            return self
        if wanted not in self._spoken:
            self._spoken[wanted] = Page(wanted, self._template, self.follows)
        return self._spoken[wanted]

    @property
    def custom(self) -> bool:
        """Whether the operator's own template is shown."""
        return self._template is not None

    def html(self, held: Held) -> bytes:
        """The page for one visitor, UTF-8."""
        return self._template.render(facts_of(held)) if self._template else self._built_in.html(held)[0]

    def shown(self, held: Held, accept_encoding: bytes | None) -> tuple[bytes, bytes]:
        """Header lines and body of the page for one visitor, compressed when both sides can."""
        if self._template:
            return self.html_head, self._template.render(facts_of(held))
        page, packed = self._built_in.html(held)
        return (self._packed_head, packed) if packed and takes_gzip(accept_encoding) else (self.html_head, page)

    def json(self, held: Held) -> bytes:
        """`{"cfWaitingRoom": {...}, "greenroom": {...}}`: what is published, exactly, and our own beside it."""
        facts = facts_of(held)
        shown = _encode({"cfWaitingRoom": published(facts), "greenroom": ours(facts)})
        return b'%b,"words":%b}}' % (shown[:-2], self._built_in.words(facts))


def compile_page(room: Room) -> Page:
    """The page of one room. A template that cannot be used (see template_problems) gives the built-in page, never an error."""
    template = parse(room.custom_page_html) if room.custom_page_html else None
    return Page(room.default_template_language, template if isinstance(template, Template) else None, room.follow_accept_language)


def left_page(language: str = FALLBACK) -> bytes:
    """The goodbye to a visitor without JavaScript who left the line. Send it with BUILT_IN_HEAD and no Refresh."""
    return alone("left", language, href="?")


def origin_error_page(status: int, language: str = FALLBACK, repeatable: bool = True) -> bytes:
    """For a let-in visitor whose origin is unreachable (502), busy (503) or too slow (504), ready-made bytes.

    Send it with BUILT_IN_HEAD, and with Refresh only when `repeatable`: a request that may have acted is not sent again by
    itself, and the page says so.
    """
    name = ORIGIN_ERRORS[status]
    return alone(name, language, href="", after="again") if repeatable else alone(name, language, after="by_hand")
