"""A room's page, compiled when the configuration changes."""

from functools import lru_cache

import msgspec

from greenroom.admission.decide import LINE_TABLE_QUERY
from greenroom.model.answer import AnswerHeaders
from greenroom.model.room import Room
from greenroom.model.visit import Held
from greenroom.pages.accept_headers import HEADER_MAX, HEADERS_CACHED, asked_for, takes_gzip
from greenroom.pages.brand import NO_BRAND, Brand, brand_of
from greenroom.pages.builtin import (
    CONTENT_SECURITY_POLICY,
    FORM_GOES_BEFORE,
    LAYOUTS,
    PageFeatures,
    alone,
    built_in,
    content_security_policy,
    same_for_all,
    source,
    view_of,
)
from greenroom.pages.form_on_page import (
    at_the_end,
    form_on_own_page,
    form_on_page,
    policy_with_form,
)
from greenroom.pages.language import FALLBACK
from greenroom.pages.language import language as words_of
from greenroom.pages.template import Template, parse
from greenroom.pages.variables import facts_of, ours, published
from greenroom.request.form_replay import KeptForm

UNCACHEABLE = (
    (b"Cache-Control", b"private, no-store"),
    (b"Vary", b"Accept, Cookie, Greenroom-Update"),
)
"""Every answer belongs to one visitor and one moment."""

_COMMON = (*UNCACHEABLE, (b"X-Robots-Tag", b"noindex"), (b"X-Content-Type-Options", b"nosniff"))
_POLICY = b"Content-Security-Policy"
_HTML = (b"Content-Type", b"text/html; charset=utf-8")

JSON_HEADERS = AnswerHeaders((b"Content-Type", b"application/json"), *_COMMON)

BUILT_IN_HEADERS = AnswerHeaders(
    _HTML,
    *_COMMON,
    (b"Referrer-Policy", b"same-origin"),
    (b"Content-Security-Policy", CONTENT_SECURITY_POLICY.encode()),
)

CUSTOM_HEADERS = AnswerHeaders(_HTML, *_COMMON)

ORIGIN_ERRORS = {502: "unreachable", 503: "busy", 504: "slow"}

_encode = msgspec.json.Encoder().encode


class Page:
    """The caller adds Refresh, Retry-After and Set-Cookie to the headers."""

    __slots__ = (
        "_asked", "_built_in", "_features", "_packed_headers", "_room", "_spoken", "_template", "brand", "cors_origins",
        "follows", "html_headers", "json_headers", "language",
    )  # fmt: skip

    def __init__(
        self, room: Room, template: Template | None, language: str, features: PageFeatures
    ) -> None:
        self.language = language
        self._room = room
        brand = self.brand = brand_of(room, language)
        self._built_in = built_in(language, brand, features)
        self._features = features
        self._template = template
        self.follows = room.follow_accept_language
        self._spoken: dict[str, Page] = {}
        self._asked: dict[bytes | None, Page] = {}  # by the header
        self.cors_origins = room.cors_origins
        own = (
            CUSTOM_HEADERS
            if template
            else _varying(headers_of(brand, bool(features.table)), b"Accept-Encoding")
        )
        shown = _framed(own, room)
        self.html_headers, self.json_headers = shown, JSON_HEADERS
        if self.follows:
            self.json_headers = _varying(JSON_HEADERS, b"Accept-Language")
            self.html_headers = shown if template else _varying(shown, b"Accept-Language")
        self._packed_headers = _packed(self.html_headers)

    def speaking(self, accept_language: bytes | None) -> "Page":
        known = self._asked.get(accept_language)
        return known if known is not None else self._answering(accept_language)

    def _answering(self, accept_language: bytes | None) -> "Page":
        wanted = asked_for(accept_language) if self.follows and accept_language else ""
        page = self if not wanted or wanted == self.language else self._spoken.get(wanted)
        if page is None:
            page = self._spoken[wanted] = Page(self._room, self._template, wanted, self._features)
        if accept_language is None or len(accept_language) <= HEADER_MAX:
            if len(self._asked) >= HEADERS_CACHED:
                self._asked.clear()
            self._asked[accept_language] = page
        return page

    def brand_in(self, language: str) -> Brand:
        return self.brand if language == self.language else brand_of(self._room, language)

    def farewell_headers(self) -> AnswerHeaders:
        return _framed(headers_of(self.brand), self._room)

    def framed_by_its_site(self) -> AnswerHeaders:
        """Headers of another page that the site may show in a frame."""
        sites = f"'self' {self._room.frame_ancestors}".rstrip()
        return _framed_by(headers_of(self.brand), sites)

    @property
    def custom(self) -> bool:
        return self._template is not None

    def html(self, held: Held) -> bytes:
        return (
            self._template.render(facts_of(held))
            if self._template
            else self._built_in.html(held)[0]
        )

    def same_for_all(self, held: Held) -> bool:
        return self._template is None and same_for_all(held)

    def shown(self, held: Held, accept_encoding: bytes | None) -> tuple[AnswerHeaders, bytes]:
        if self._template:
            return self.html_headers, self._template.render(facts_of(held))
        page, packed = self._built_in.html(held)
        return (
            (self._packed_headers, packed)
            if packed and takes_gzip(accept_encoding)
            else (self.html_headers, page)
        )

    def after_form(self, held: Held, form: KeptForm | None) -> tuple[AnswerHeaders, bytes, bool]:
        """Also returns whether the form is kept: then the page must not refresh. Never compressed:
        a visitor's data would stand beside secrets of the application.
        """
        words = words_of(self.language)
        if self._template:
            block, kept = form_on_own_page(form, words, held.next_try_s)
            return self.html_headers, at_the_end(self.html(held), block), kept
        block, kept = form_on_page(form, words, LAYOUTS[view_of(held)].looks == "end")
        before, mark, after = self.html(held).partition(FORM_GOES_BEFORE)
        return _with_form(self.html_headers, kept), before + block + mark + after, kept

    def update(self, held: Held, shown: bytes) -> bytes:
        """`shown`: a view, or `json`."""
        return self._built_in.news(held, shown) or self.json(held)

    def json(self, held: Held) -> bytes:
        facts = facts_of(held)
        shown = _encode({"cfWaitingRoom": published(facts), "greenroom": ours(facts)})
        return b'%b,"words":%b}}' % (shown[:-2], self._built_in.words(facts))


@lru_cache(maxsize=256)
def headers_of(brand: Brand, table: bool = False) -> AnswerHeaders:
    """The policy names script and style by hash, and an accent colour is part of the style."""
    policy = content_security_policy(brand, table).encode()
    return AnswerHeaders(
        *[
            (key, policy if key == b"Content-Security-Policy" else value)
            for key, value in BUILT_IN_HEADERS.pairs
        ]
    )


@lru_cache(maxsize=256)
def error_headers_of(brand: Brand) -> AnswerHeaders:
    """For a page that shows until when the turn is kept, in local time."""
    policy = content_security_policy(brand, script=source("safe.js")).encode()
    return AnswerHeaders(
        *[
            (key, policy if key == b"Content-Security-Policy" else value)
            for key, value in BUILT_IN_HEADERS.pairs
        ]
    )


@lru_cache(maxsize=256)
def _varying(headers: AnswerHeaders, name: bytes) -> AnswerHeaders:
    return AnswerHeaders(
        *[(key, name + b", " + value if key == b"Vary" else value) for key, value in headers.pairs]
    )


@lru_cache(maxsize=256)
def _packed(headers: AnswerHeaders) -> AnswerHeaders:
    return headers.plus((b"Content-Encoding", b"gzip"))


def _framed(headers: AnswerHeaders, room: Room) -> AnswerHeaders:
    return _framed_by(headers, room.frame_ancestors or "'none'")


@lru_cache(maxsize=256)
def _framed_by(headers: AnswerHeaders, sites: str) -> AnswerHeaders:
    allowed = b"frame-ancestors " + sites.encode()
    policy = headers.get(_POLICY)
    if policy is None:
        return headers.plus((_POLICY, allowed))
    return AnswerHeaders(
        *[
            (key, value + b"; " + allowed if key == _POLICY else value)
            for key, value in headers.pairs
        ]
    )


@lru_cache(maxsize=256)
def _with_form(headers: AnswerHeaders, kept: bool) -> AnswerHeaders:
    policy = policy_with_form(headers.get(_POLICY) or b"", kept)
    return AnswerHeaders(
        *[(key, policy if key == _POLICY else value) for key, value in headers.pairs]
    )


def compile_page(
    room: Room, offers: bool = False, moves: bool = False, calls: bool = False
) -> Page:
    """A template that cannot be used gives the built-in page."""
    template = parse(room.custom_page_html) if room.custom_page_html else None
    own = template if isinstance(template, Template) else None
    features = PageFeatures(
        _table_of(room),
        offers,
        moves,
        room.calendar_after_minutes,
        room.call_after_minutes if calls else 0,
    )
    return Page(room, own, room.default_template_language, features)


def _table_of(room: Room) -> str:
    """One URL for a room with one route, so that a shared cache keeps one copy."""
    if not room.line_table:
        return ""
    return f"?{LINE_TABLE_QUERY}" if room.additional_routes else f"{room.path}?{LINE_TABLE_QUERY}"


def left_page(language: str = FALLBACK, brand: Brand = NO_BRAND) -> bytes:
    """Without Refresh."""
    return alone("left", language, href="?", brand=brand)


def origin_error_page(
    status: int,
    language: str = FALLBACK,
    repeatable: bool = True,
    brand: Brand = NO_BRAND,
    safe_ms: int = 0,
) -> bytes:
    """Send it with Refresh only when `repeatable`: a request that may have acted is not sent
    again. With `safe_ms`, until when the turn is safe, send `error_headers_of` the brand.
    """
    name = ORIGIN_ERRORS[status]
    href, after = ("", "again") if repeatable else (None, "by_hand")
    return alone(name, language, href, after, brand, safe_ms)
