"""What an arrival can show: a page, JSON or neither. It decides who may begin to wait, and what a
held request is answered.

The first row that fits decides:

| arrival | kind | may begin to wait, because |
|---|---|---|
| prefetch, prerender, preview (*-Purpose, X-Moz) | SPECULATION | no: not asked to see it yet |
| WebSocket upgrade (Upgrade or Sec-WebSocket-Key) | SOCKET | no: its page is a visitor already |
| CORS preflight (`request.cross_origin`) | PREFLIGHT | no: shows nothing, may not carry cookies |
| link preview (PREVIEW_AGENTS) | PREVIEW | no: a chat message with a link is not a visitor |
| our own page's update (UPDATE_HEADER) | UPDATE | yes: the visitor watches the page that sent it |
| Sec-Fetch-Mode navigate (service workers) | DOCUMENT | yes: a window shows it |
| Sec-Fetch-Dest document, frame, iframe | DOCUMENT | yes: a window shows it |
| Sec-Fetch-Dest empty | SCRIPT | if it prefers JSON and the room answers JSON: it can wait |
| any other Sec-Fetch-Dest | PART | no: image, script, style, font, media, worker |
| *below: no Sec-Fetch headers (plain http, old browsers, programs)* | | |
| Accept names text/html, application/xhtml+xml | DOCUMENT | yes: browsers do so for pages only |
| Accept begins with a part's type (_PART) | PART | no |
| asset extension (ASSETS) | PART | no |
| Origin, Referer or X-Requested-With | SCRIPT | as above: sent by a script in a page |
| everything else: curl, an API client | PROGRAM | yes: it can keep a ticket |

A frame on a page of another site begins to wait only where the room may be embedded
(`frame_ancestors`): a page could otherwise make its visitors fill the line, unseen. HEAD never
begins to wait. An arrival with a genuine ticket always may. Proxies that ask about a WebSocket keep
Upgrade to themselves, and pass on Sec-WebSocket-Key.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from greenroom.model.arrival_kind import ArrivalKind, HeaderSigns
from greenroom.model.visit import Arrival

UPDATE_HEADER = b"greenroom-update"

PREVIEW_AGENTS = (
    b"facebookexternalhit", b"facebot", b"twitterbot", b"linkedinbot", b"slackbot",
    b"slack-imgproxy", b"discordbot", b"telegrambot", b"whatsapp/", b"skypeuripreview",
    b"microsoftpreview", b"bingpreview", b"pinterestbot", b"pinterest/0.", b"redditbot", b"embedly",
    b"iframely", b"vkshare", b"kakaotalk-scrap", b"line-poker", b"snap url preview", b"mastodon/",
    b"bluesky cardyb", b"tumblr/", b"mattermost", b"rocket.chat", b"zulip", b"synapse",
    b"linkpreview", b"link preview", b"urlpreview", b"google-pagerenderer",
)  # fmt: skip
"""In lower case; iMessage and Signal borrow these names."""

CRAWLER_AGENTS = (
    b"googlebot", b"google-inspectiontool", b"googleother", b"adsbot-google", b"bingbot", b"slurp",
    b"duckduckbot", b"baiduspider", b"yandexbot", b"yandeximages", b"applebot", b"petalbot",
    b"sogou", b"seznambot", b"yeti/", b"naver", b"qwantbot", b"ahrefsbot", b"semrushbot",
    b"mj12bot", b"dotbot", b"ccbot", b"gptbot", b"oai-searchbot", b"claudebot", b"perplexitybot",
    b"amazonbot", b"bytespider", b"meta-externalagent", b"ia_archiver", b"archive.org_bot",
    b"mojeekbot", b"exabot",
)  # fmt: skip
"""In lower case, not verified: an impostor gets a 503 and no more."""

ASSETS = frozenset(
    "avi avif bmp css eot flac gif ico jpeg jpg js m3u8 m4a m4v map mjs mov mp3 mp4 mpd ogg opus"
    " otf png svg ts ttf wasm wav weba webm webmanifest webp woff woff2".split()
)
"""Documents that a window shows by themselves (pdf, txt, xml, json) are not here."""

DATA = frozenset(("json", "txt", "xml"))

AGENT_MAX = 256

AGENTS_CACHED, ACCEPT_CACHED_MAX = 2_048, 256
"""About 1 MB each."""

_PAGES = frozenset((b"document", b"frame", b"iframe"))
_FRAMES = frozenset((b"frame", b"iframe", b"embed", b"object", b"fencedframe"))
_PAGE_MARKS = frozenset((b"origin", b"referer", b"x-requested-with"))
_ASIDE = frozenset(
    (b"sec-purpose", b"purpose", b"x-purpose", b"x-moz", b"upgrade", b"sec-websocket-key")
)
_SPECULATION = (b"prefetch", b"prerender", b"preview", b"instant")
_JSON_TYPE = re.compile(rb"application/(json|[a-z0-9.+*-]*\+json)")
_QUALITY = re.compile(rb";?\s*q=([01](?:\.[0-9]{0,3})?)")
_PART = re.compile(
    rb"\s*(image/|audio/|video/|font/|text/css|text/event-stream|(text|application)/(x-)?(java|ecma)script)",
    re.IGNORECASE,
)


DOCUMENT, PROGRAM, UPDATE = ArrivalKind.DOCUMENT, ArrivalKind.PROGRAM, ArrivalKind.UPDATE


def signs_of(facts: Mapping[bytes, bytes]) -> HeaderSigns:
    agent = facts.get(b"user-agent", b"")[:AGENT_MAX]
    otherwise = ArrivalKind.PROGRAM if _PAGE_MARKS.isdisjoint(facts) else ArrivalKind.SCRIPT
    preflight = b"access-control-request-method" in facts
    embedded = (
        facts.get(b"sec-fetch-site") == b"cross-site" and facts.get(b"sec-fetch-dest") in _FRAMES
    )
    kind = _kind(facts, agent)
    document = kind is DOCUMENT and not preflight
    json = prefers_json(facts.get(b"accept"))
    return HeaderSigns(
        kind,
        otherwise,
        preflight,
        document,
        _is_crawler(agent),
        json,
        embedded,
        json or UPDATE_HEADER in facts,
    )


def _kind(facts: Mapping[bytes, bytes], agent: bytes) -> ArrivalKind | None:
    if not _ASIDE.isdisjoint(facts):
        purpose = (
            facts.get(b"sec-purpose")
            or facts.get(b"purpose")
            or facts.get(b"x-purpose")
            or facts.get(b"x-moz")
        )
        if purpose is not None and purpose.lower().startswith(_SPECULATION):
            return ArrivalKind.SPECULATION
        if facts.get(b"upgrade", b"").lower() == b"websocket" or b"sec-websocket-key" in facts:
            return ArrivalKind.SOCKET
    if _is_preview(agent):
        return ArrivalKind.PREVIEW
    if UPDATE_HEADER in facts:
        return ArrivalKind.UPDATE
    destination = facts.get(b"sec-fetch-dest")
    if facts.get(b"sec-fetch-mode") == b"navigate" or destination in _PAGES:
        return ArrivalKind.DOCUMENT
    if destination is not None:
        return ArrivalKind.SCRIPT if destination == b"empty" else ArrivalKind.PART
    accept = facts.get(b"accept", b"*/*")
    shown = (_cached if len(accept) <= ACCEPT_CACHED_MAX else _shows)(accept)
    return None if shown is None else ArrivalKind.DOCUMENT if shown else ArrivalKind.PART


def signs_in(arrival: Arrival) -> HeaderSigns:
    return arrival.signs or signs_of(arrival.facts or dict(arrival.headers))


def kind_of(arrival: Arrival) -> ArrivalKind:
    signs = arrival.signs or signs_in(arrival)
    if signs.document:  # as nearly always
        return DOCUMENT
    kind = signs.kind
    if (
        signs.preflight
        and arrival.method == "OPTIONS"
        and kind is not ArrivalKind.SPECULATION
        and kind is not ArrivalKind.SOCKET
    ):
        return ArrivalKind.PREFLIGHT
    if kind is not None:
        return kind
    return (
        ArrivalKind.PART
        if "." in arrival.path and _extension(arrival.path) in ASSETS
        else signs.otherwise
    )


def may_take_place(arrival: Arrival, json_enabled: bool, embeddable: bool = False) -> bool:
    """`embeddable`: also in a frame on another site."""
    signs = arrival.signs or signs_in(arrival)
    if arrival.method == "HEAD" or (signs.embedded and not embeddable):
        return False
    if signs.document:
        return True
    kind = kind_of(arrival)
    if kind is DOCUMENT or kind is PROGRAM or kind is UPDATE:
        return True
    return kind is ArrivalKind.SCRIPT and json_enabled and signs.prefers_json


def shows_page(arrival: Arrival) -> bool:
    kind = kind_of(arrival)
    return kind is DOCUMENT or (kind is PROGRAM and arrival.method in ("GET", "HEAD"))


def is_data(arrival: Arrival) -> bool:
    """A program that requests a file would take a page with 200 for it."""
    path = arrival.path
    return (
        path.startswith("/.well-known/") or ("." in path and _extension(path) in DATA)
    ) and kind_of(arrival) is PROGRAM


def is_part(arrival: Arrival) -> bool:
    return arrival.method in ("GET", "HEAD") and kind_of(arrival) is ArrivalKind.PART


def is_crawler(arrival: Arrival) -> bool:
    return signs_in(arrival).crawler


def speculative(arrival: Arrival) -> bool:
    """An error answer makes the browser drop the copy."""
    return signs_in(arrival).kind is ArrivalKind.SPECULATION


def prefers_json(accept: bytes | None) -> bool:
    """At least as much as anything else it names."""
    return accept is not None and (
        _prefers_json if len(accept) <= ACCEPT_CACHED_MAX else _prefers_json.__wrapped__
    )(accept)


@lru_cache(maxsize=256)
def _prefers_json(accept: bytes) -> bool:
    best, json = -1.0, -1.0
    for item in accept.lower().split(b","):
        kind, _, rest = item.strip().partition(b";")
        found = _QUALITY.search(rest)
        weight = float(found[1]) if found else 1.0
        if _JSON_TYPE.fullmatch(kind.strip()):
            json = max(json, weight)
        elif not (kind.strip() in (b"*/*", b"application/*") and json >= weight):
            best = max(best, weight)
    named_first = (
        _JSON_TYPE.fullmatch(accept.lower().split(b",")[0].partition(b";")[0].strip()) is not None
    )
    return json > 0 and (json > best or (json == best and named_first))


@lru_cache(maxsize=AGENTS_CACHED)
def _is_crawler(agent: bytes) -> bool:
    lower = agent.lower()
    return any(token in lower for token in CRAWLER_AGENTS)


@lru_cache(maxsize=AGENTS_CACHED)
def _is_preview(agent: bytes) -> bool:
    lower = agent.lower()
    return any(token in lower for token in PREVIEW_AGENTS)


def _shows(accept: bytes) -> bool | None:
    """None: it does not say."""
    lower = accept.lower()
    if b"text/html" in lower or b"application/xhtml+xml" in lower:
        return True
    return False if _PART.match(lower) else None


_cached = lru_cache(maxsize=AGENTS_CACHED)(_shows)


def _extension(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    return name[name.rfind(".") + 1 :].lower() if "." in name else ""
