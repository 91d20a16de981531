"""What a room shows to visitors it holds: compiled once when the configuration changes, then a few microseconds each."""

import msgspec

from greenroom.model.answer import AnswerHeaders
from greenroom.model.room import Room
from greenroom.model.visit import Held
from greenroom.pages.accept_encoding import takes_gzip
from greenroom.pages.accept_language import asked_for
from greenroom.pages.builtin import CONTENT_SECURITY_POLICY, alone, built_in
from greenroom.pages.language import FALLBACK
from greenroom.pages.template import Template, parse
from greenroom.pages.variables import facts_of, ours, published

UNCACHEABLE = ((b"Cache-Control", b"private, no-store"), (b"Vary", b"Accept, Cookie, Greenroom-Update"))
"""Every answer here belongs to one visitor and one moment; the three headers decide which answer it is."""

_COMMON = (*UNCACHEABLE, (b"X-Robots-Tag", b"noindex"), (b"X-Content-Type-Options", b"nosniff"))
_HTML = (b"Content-Type", b"text/html; charset=utf-8")

JSON_HEADERS = AnswerHeaders((b"Content-Type", b"application/json"), *_COMMON)

BUILT_IN_HEADERS = AnswerHeaders(
    _HTML, *_COMMON, (b"Referrer-Policy", b"same-origin"), (b"Content-Security-Policy", CONTENT_SECURITY_POLICY.encode())
)
"""For the built-in page, the farewell and the pages for an origin that fails."""

CUSTOM_HEADERS = AnswerHeaders(_HTML, *_COMMON)
"""A custom page loads and embeds what its author wants, so greenroom sets no policy."""

ORIGIN_ERRORS = {502: "unreachable", 503: "busy", 504: "slow"}

_encode = msgspec.json.Encoder().encode


class Page:
    """One room's page. The caller adds Refresh, Retry-After and Set-Cookie to the headers."""

    __slots__ = ("_built_in", "_packed_headers", "_spoken", "_template", "follows", "html_headers", "json_headers", "language")

    def __init__(self, language: str, template: Template | None, follows: bool = False) -> None:
        """`language` is that of the built-in page; `follows`: visitors get their browser's language instead."""
        self.language = language
        self._built_in = built_in(language)
        self._template = template
        self.follows = follows
        self._spoken: dict[str, Page] = {}
        shown = CUSTOM_HEADERS if template else _varying(BUILT_IN_HEADERS, b"Accept-Encoding")
        self.html_headers, self.json_headers = shown, JSON_HEADERS
        if follows:
            self.html_headers, self.json_headers = (_varying(one, b"Accept-Language") for one in (shown, JSON_HEADERS))
        self._packed_headers = self.html_headers.plus((b"Content-Encoding", b"gzip"))

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

    def shown(self, held: Held, accept_encoding: bytes | None) -> tuple[AnswerHeaders, bytes]:
        """Headers and body of the page for one visitor, compressed when both sides can."""
        if self._template:
            return self.html_headers, self._template.render(facts_of(held))
        page, packed = self._built_in.html(held)
        return (self._packed_headers, packed) if packed and takes_gzip(accept_encoding) else (self.html_headers, page)

    def update(self, held: Held, shown: bytes) -> bytes:
        """What a page's own update is answered with. The script of the built-in page says which view it shows and is told what is new;

        for every other value of the header it is the same as `json`.
        """
        return self._built_in.news(held, shown) or self.json(held)

    def json(self, held: Held) -> bytes:
        """`{"cfWaitingRoom": {...}, "greenroom": {...}}`: what is published, exactly, and our own beside it."""
        facts = facts_of(held)
        shown = _encode({"cfWaitingRoom": published(facts), "greenroom": ours(facts)})
        return b'%b,"words":%b}}' % (shown[:-2], self._built_in.words(facts))


def _varying(headers: AnswerHeaders, name: bytes) -> AnswerHeaders:
    """The same, where the answer depends on one more request header."""
    return AnswerHeaders(*[(key, name + b", " + value if key == b"Vary" else value) for key, value in headers.pairs])


def compile_page(room: Room) -> Page:
    """The page of one room. A template that cannot be used (see template_problems) gives the built-in page, never an error."""
    template = parse(room.custom_page_html) if room.custom_page_html else None
    return Page(room.default_template_language, template if isinstance(template, Template) else None, room.follow_accept_language)


def left_page(language: str = FALLBACK) -> bytes:
    """The goodbye to a visitor without JavaScript who left the line. Send it with BUILT_IN_HEADERS and no Refresh."""
    return alone("left", language, href="?")


def origin_error_page(status: int, language: str = FALLBACK, repeatable: bool = True) -> bytes:
    """For a let-in visitor whose origin is unreachable (502), busy (503) or too slow (504), ready-made bytes.

    Send it with BUILT_IN_HEADERS, and with Refresh only when `repeatable`: a request that may have acted is not sent again by
    itself, and the page says so.
    """
    name = ORIGIN_ERRORS[status]
    return alone(name, language, href="", after="again") if repeatable else alone(name, language, after="by_hand")
