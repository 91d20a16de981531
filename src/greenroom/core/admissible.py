"""Decides which arrivals may take a place in line: those that can show the waiting page or read its JSON, so one page load is one visitor.

An arrival that brings a ticket is not judged here. Without one, the first row that fits decides:

| arrival | place | because |
|---|---|---|
| prefetch, prerender, preview (Sec-Purpose, Purpose, X-Purpose, X-Moz) | no | the visitor has not asked to see it yet |
| WebSocket upgrade | no | has no page to show, its page is a visitor already |
| CORS preflight; HEAD | no | the browser (or monitor) shows nothing, and a preflight may not carry cookies |
| link preview (PREVIEW_AGENTS) | no | a chat message with a link is not a visitor |
| our own page's update (UPDATE_HEADER) | yes | the visitor watches the page that sent it |
| Sec-Fetch-Mode navigate, or Sec-Fetch-Dest document, frame, iframe | yes | a window shows it (mode: through a service worker) |
| Sec-Fetch-Dest empty (fetch, XHR), exactly `Accept: application/json`, room answers JSON | yes | its script can wait |
| any other Sec-Fetch-Dest | no | image, script, style, font, media, worker, other fetch: part of some page |
| *from here on no Sec-Fetch headers: plain http, old browsers, programs* | | |
| Accept names text/html or application/xhtml+xml | yes | browsers do so for pages, and only for pages |
| Accept begins with image, text/css, font, audio, video, JavaScript, text/event-stream | no | part of a page |
| asset extension (ASSETS) | no | part of a page |
| Origin, Referer or X-Requested-With | as Sec-Fetch-Dest empty | sent by a script in a page |
| everything else: curl, an API client, a POST from an app | yes | it is a visitor of its own and can keep a ticket |
"""

import re
from functools import lru_cache

from greenroom.model.visit import Arrival

UPDATE_HEADER = b"greenroom-update"
"""Sent by the built-in page when it fetches its own news; never forwarded to an origin."""

PREVIEW_AGENTS = (
    b"facebookexternalhit", b"facebot", b"twitterbot", b"linkedinbot", b"slackbot", b"slack-imgproxy", b"discordbot", b"telegrambot",
    b"whatsapp/", b"skypeuripreview", b"microsoftpreview", b"bingpreview", b"pinterestbot", b"pinterest/0.", b"redditbot", b"embedly",
    b"iframely", b"vkshare", b"kakaotalk-scrap", b"line-poker", b"snap url preview", b"mastodon/", b"bluesky cardyb", b"tumblr/",
    b"mattermost", b"rocket.chat", b"zulip", b"synapse", b"linkpreview", b"link preview", b"urlpreview", b"google-pagerenderer",
)  # fmt: skip
"""What programs that fetch a link to show a card of it call themselves, in lower case (iMessage and Signal borrow these names)."""

ASSETS = frozenset(
    "avi avif bmp css eot flac gif ico jpeg jpg js m3u8 m4a m4v map mjs mov mp3 mp4 mpd ogg opus otf png svg ts ttf wasm wav weba webm "
    "webmanifest webp woff woff2".split()
)
"""File extensions of what pages are made of. Documents that a window shows by themselves (pdf, txt, xml, json) are not here."""

AGENT_MAX = 256
"""Bytes of a User-Agent that are looked at: real ones are shorter, and what is remembered must stay small."""

AGENTS_REMEMBERED, ACCEPT_REMEMBERED_MAX = 2_048, 256
"""User-Agents and Accept headers whose judgement is remembered, about 1 MB each: a site's visitors bring some hundred."""

_PAGES = frozenset((b"document", b"frame", b"iframe"))
_PAGE_MARKS = frozenset((b"origin", b"referer", b"x-requested-with"))
_ASIDE = frozenset((b"sec-purpose", b"purpose", b"x-purpose", b"x-moz", b"upgrade"))
_SPECULATION = (b"prefetch", b"prerender", b"preview", b"instant")
_PART = re.compile(rb"\s*(image/|audio/|video/|font/|text/css|text/event-stream|(text|application)/(x-)?(java|ecma)script)", re.IGNORECASE)


def may_take_place(arrival: Arrival, json_enabled: bool) -> bool:
    """Whether this arrival, which brings no ticket, may begin to wait as a new visitor. The table above, row by row."""
    facts = arrival.facts or dict(arrival.headers)
    if arrival.method == "HEAD" or (arrival.method == "OPTIONS" and b"access-control-request-method" in facts):
        return False
    if not _ASIDE.isdisjoint(facts) and (_speculative(facts) or facts.get(b"upgrade", b"").lower() == b"websocket"):
        return False
    agent = facts.get(b"user-agent")
    if agent and _is_preview(agent[:AGENT_MAX]):
        return False
    if UPDATE_HEADER in facts or facts.get(b"sec-fetch-mode") == b"navigate":
        return True
    destination = facts.get(b"sec-fetch-dest")
    accept = facts.get(b"accept", b"*/*")
    reads_json = json_enabled and accept == b"application/json"
    if destination is not None:
        return destination in _PAGES or (destination == b"empty" and reads_json)
    shown = (_remembered if len(accept) <= ACCEPT_REMEMBERED_MAX else _shows)(accept)
    if shown is not None:
        return shown
    return not ("." in arrival.path and _extension(arrival.path) in ASSETS) and (reads_json or _PAGE_MARKS.isdisjoint(facts))


def speculative(arrival: Arrival) -> bool:
    """Whether a browser asks ahead of the visitor (prefetch, prerender, preview): an error answer makes it drop the copy."""
    return _speculative(dict(arrival.headers))


def _speculative(facts: dict[bytes, bytes]) -> bool:
    purpose = facts.get(b"sec-purpose") or facts.get(b"purpose") or facts.get(b"x-purpose") or facts.get(b"x-moz")
    return purpose is not None and purpose.lower().startswith(_SPECULATION)


@lru_cache(maxsize=AGENTS_REMEMBERED)
def _is_preview(agent: bytes) -> bool:
    lower = agent.lower()
    return any(token in lower for token in PREVIEW_AGENTS)


def _shows(accept: bytes) -> bool | None:
    """Whether a window shows what is asked for with this Accept header, when there are no Sec-Fetch headers; None: it does not say."""
    lower = accept.lower()
    if b"text/html" in lower or b"application/xhtml+xml" in lower:
        return True
    return False if _PART.match(lower) else None


_remembered = lru_cache(maxsize=AGENTS_REMEMBERED)(_shows)


def _extension(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    return name[name.rfind(".") + 1 :].lower() if "." in name else ""
