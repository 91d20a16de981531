"""Renders verdicts, separately from deciding, so it can happen later and elsewhere."""

from collections.abc import Sequence
from functools import lru_cache

from greenroom.decision.verdict import Hold, SharedPages
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.arrival_kind import HeaderSigns
from greenroom.model.record import replace
from greenroom.model.visit import Arrival, Held
from greenroom.pages import (
    UNCACHEABLE,
    Page,
    asked_for,
    error_headers_of,
    headers_of,
    left_page,
    origin_error_page,
)
from greenroom.pages.brand import NO_BRAND
from greenroom.pages.language import FALLBACK
from greenroom.pages.variables import iso
from greenroom.request.admissible import (
    UPDATE_HEADER,
    is_data,
    shows_page,
    signs_in,
    speculative,
)
from greenroom.request.canonical import Refusal
from greenroom.request.cross_origin import listed_origin
from greenroom.request.form_replay import form_of, may_keep_form, sent_by_form

UPDATE_LET_IN = b'{"cfWaitingRoom":{"inWaitingRoom":false}}'
LEFT = b'{"greenroom":{"left":true}}'

SHOWN_MAX = 64

CORS_HEADERS_CACHED = 1_024
"""About 1 MB."""

EXPOSED = b"Retry-After, Refresh"

OUTAGE_RETRY_S = 10
PLACELESS_RETRY_S = 20

ORIGIN_RETRY_S = 10
"""Retry interval for a failing origin: slow enough not to add load."""

_JSON = (b"Content-Type", b"application/json")
_PLAIN = AnswerHeaders(
    (b"Content-Type", b"text/plain; charset=utf-8"), *UNCACHEABLE, (b"X-Robots-Tag", b"noindex")
)
_PLACELESS_TEXT = (
    b"There is a waiting room in front of this. Open the page itself to take a place in line.\n"
)
_FORM_TEXT = (
    b"There is a waiting room in front of this, and what you sent was not kept. Please go back, and"
    b" send it again later.\n"
)
_PROBLEM_JSON = (
    b'{"type":"about:blank","title":"Waiting room","status":503,"detail":"Open the page itself to'
    b' wait.","retryAfter":%d}'
)
_ORIGIN_JSON = AnswerHeaders(_JSON, *UNCACHEABLE, (b"X-Robots-Tag", b"noindex"))
_ORIGIN_ERRORS = {502: b"bad gateway", 503: b"service unavailable", 504: b"gateway timeout"}

OUTAGE = Answer(
    503,
    _PLAIN.plus((b"Retry-After", b"%d" % OUTAGE_RETRY_S), (b"Refresh", b"%d" % OUTAGE_RETRY_S)),
    b"Please wait a moment. This page tries again by itself.\n",
)
"""Held, never passed on."""


ONWARD = Answer(303, AnswerHeaders((b"Location", b"?"), *UNCACHEABLE), b"")
"""To the page itself."""

SEVERAL_ROOMS = Answer(
    400,
    _PLAIN,
    b"400 Bad Request: the path can be read in several ways, which belong to different waiting"
    b" rooms\n",
)


def refused(why: object) -> Answer:
    reason = why.reason if isinstance(why, Refusal) else "the path can be read in several ways"
    return Answer(400, _PLAIN, f"400 Bad Request: {reason}\n".encode())


UNKNOWN_HOST = Answer(421, _PLAIN, b"421 Misdirected Request: this host is not configured\n")


def render(hold: Hold, arrival: Arrival, body: bytes | None = None, *, cors: bool = True) -> Answer:
    """What shows no page (an image, a preflight, a WebSocket) never gets a success, or it would be
    taken for the real thing. `body`: of a form that may be kept, None where it was not read to its
    end.
    """
    held, page = hold.held, hold.page
    if hold.applied or (cors and page.cors_origins):
        return _with_headers(hold, arrival, body, cors)
    header = arrival.header if arrival.facts is None else arrival.facts.get
    if page.follows:
        page = page.speaking(header(b"accept-language"))
    update = header(UPDATE_HEADER)
    if update is not None and held is not None:
        headers = _held_headers(page.json_headers, held.next_try_s, 200)
        return Answer(200, headers, page.update(held, update), hold.set_cookie)
    signs = arrival.signs or signs_in(arrival)
    in_json = hold.json and signs.prefers_json
    if held is None or not (in_json or hold.uniform or signs.document or shows_page(arrival)):
        return _without_page(hold, arrival)
    status = hold.status if hold.uniform else _status(hold, arrival, signs, in_json)
    if in_json:
        headers, shows = page.json_headers, page.json(held)
    elif arrival.method == "POST" and sent_by_form(arrival):
        return _after_form(hold, held, page, arrival, body, status)
    elif hold.shown is not None:
        headers, shows = _shown_to_all(hold.shown, page, held, header(b"accept-encoding"), status)
        return Answer(status, headers, shows, hold.set_cookie)
    else:
        headers, shows = page.shown(held, header(b"accept-encoding"))
    return Answer(status, _held_headers(headers, held.next_try_s, status), shows, hold.set_cookie)


def _status(hold: Hold, arrival: Arrival, signs: HeaderSigns, in_json: bool) -> int:
    if signs.crawler or (not (in_json or signs.document) and is_data(arrival)):
        return 503  # a success would put the waiting page into the index
    return hold.status


def _with_headers(hold: Hold, arrival: Arrival, body: bytes | None, cors: bool) -> Answer:
    answer = render(replace(hold, applied=b""), arrival, body, cors=False)
    if cors and hold.page.cors_origins:
        answer = with_cors(answer, hold.page.cors_origins, arrival)
    if not hold.applied:
        return answer
    return replace(answer, headers=answer.headers.plus((b"Preference-Applied", hold.applied)))


def _after_form(
    hold: Hold, held: Held, page: Page, arrival: Arrival, body: bytes | None, status: int
) -> Answer:
    form = form_of(arrival, body) if body is not None and may_keep_form(arrival) else None
    headers, shows, kept = page.after_form(held, form)
    if not kept:
        headers = _held_headers(headers, held.next_try_s, status)
    elif status != 200:  # a kept form has no Refresh: that would be a GET and lose it
        headers = _patient(headers, held.next_try_s)
    return Answer(status, headers, shows, hold.set_cookie)


def _shown_to_all(
    shown: SharedPages, page: Page, held: Held, accept_encoding: bytes | None, status: int
) -> tuple[AnswerHeaders, bytes]:
    found = shown.get((page, accept_encoding, status))
    if found is None:
        headers, body = page.shown(held, accept_encoding)
        found = _held_headers(headers, held.next_try_s, status), body
        if len(shown) < SHOWN_MAX:
            shown[page, accept_encoding, status] = found
    return found


def _without_page(hold: Hold, arrival: Arrival) -> Answer:
    status = hold.status if hold.uniform and not speculative(arrival) else 503
    retry_s = (hold.held.next_try_s if hold.held is not None else 0) or PLACELESS_RETRY_S
    if status == 503 and b"json" in (arrival.header(b"accept") or b""):
        return Answer(503, _problem(retry_s), _PROBLEM_JSON % retry_s, hold.set_cookie)
    text = _FORM_TEXT if sent_by_form(arrival) else _PLACELESS_TEXT
    return Answer(status, _PLAIN if status == 200 else _retrying(retry_s), text, hold.set_cookie)


@lru_cache(maxsize=256)
def _retrying(seconds: int) -> AnswerHeaders:
    return _PLAIN.plus((b"Retry-After", b"%d" % seconds))


@lru_cache(maxsize=256)
def _problem(seconds: int) -> AnswerHeaders:
    return AnswerHeaders(
        (b"Content-Type", b"application/problem+json"),
        *_PLAIN.pairs[1:],
        (b"Retry-After", b"%d" % seconds),
    )


@lru_cache(maxsize=256)
def _patient(headers: AnswerHeaders, next_try_s: int) -> AnswerHeaders:
    return headers.plus((b"Retry-After", b"%d" % next_try_s)) if next_try_s else headers


@lru_cache(maxsize=1_024)
def _held_headers(headers: AnswerHeaders, next_try_s: int, status: int) -> AnswerHeaders:
    if not next_try_s:
        return headers
    seconds = b"%d" % next_try_s
    refreshing = headers.plus((b"Refresh", seconds))
    return refreshing if status == 200 else refreshing.plus((b"Retry-After", seconds))


def for_scripts(answer: Answer, page: Page, arrival: Arrival) -> Answer:
    return with_cors(answer, page.cors_origins, arrival) if page.cors_origins else answer


def let_in_update(page: Page, arrival: Arrival, cookie: bytes) -> Answer:
    return for_scripts(Answer(200, page.json_headers, UPDATE_LET_IN, cookie), page, arrival)


def receipt_answer(receipt: bytes, draw_id: str) -> Answer:
    disposition = b'attachment; filename="receipt-%b.json"' % draw_id[:8].encode()
    return Answer(
        200,
        AnswerHeaders(
            _JSON,
            (b"Content-Disposition", disposition),
            *UNCACHEABLE,
            (b"X-Content-Type-Options", b"nosniff"),
        ),
        receipt,
    )


def left_answer(page: Page, arrival: Arrival, cookie: bytes) -> Answer:
    """Without Refresh, or the page would take a new place."""
    if arrival.header(UPDATE_HEADER) is not None:
        return for_scripts(Answer(200, page.json_headers, LEFT, cookie), page, arrival)
    spoken = page.speaking(arrival.header(b"accept-language"))
    return for_scripts(
        Answer(200, spoken.farewell_headers(), left_page(spoken.language, spoken.brand), cookie),
        page,
        arrival,
    )


def origin_error(
    status: int,
    arrival: Arrival,
    cookie: bytes,
    page: Page | None = None,
    safe_ms: int = 0,
    retry_s: int = ORIGIN_RETRY_S,
) -> Answer:
    """For 502, 503 or 504: sends the ticket, and refreshes only what is safe to repeat. `safe_ms`:
    until when the visitor's turn is safe; 0: not said.
    """
    answer = _origin_error(status, arrival, cookie, page, safe_ms, retry_s)
    return for_scripts(answer, page, arrival) if page is not None else answer


def _origin_error(
    status: int, arrival: Arrival, cookie: bytes, page: Page | None, safe_ms: int, retry_s: int
) -> Answer:
    repeatable = arrival.method in ("GET", "HEAD")
    wanted = arrival.header(b"accept") or b""
    if b"json" in wanted and b"text/html" not in wanted:
        safe = b',"turnSafeUntil":"%b"' % iso(safe_ms).encode() if safe_ms else b""
        body = b'{"error":"%b","status":%d,"retryAfter":%d%b}' % (
            _ORIGIN_ERRORS[status],
            status,
            retry_s,
            safe,
        )
        return Answer(status, _later(_ORIGIN_JSON, retry_s, repeatable), body, cookie)
    language = asked_for(arrival.header(b"accept-language") or b"") or (
        page.language if page else FALLBACK
    )
    brand = page.brand_in(language) if page else NO_BRAND
    return Answer(
        status,
        _later(error_headers_of(brand) if safe_ms else headers_of(brand), retry_s, repeatable),
        origin_error_page(status, language, repeatable, brand, safe_ms),
        cookie,
    )


@lru_cache(maxsize=256)
def _later(headers: AnswerHeaders, retry_s: int, repeatable: bool) -> AnswerHeaders:
    later = headers.plus((b"Retry-After", b"%d" % retry_s))
    return later.plus((b"Refresh", b"%d" % retry_s)) if repeatable else later


def with_cors(answer: Answer, origins: Sequence[str], arrival: Arrival) -> Answer:
    """Lets scripts of a listed origin (`Room.cors_origins`) read that the visitor waits."""
    return replace(answer, headers=_with_cors(answer.headers, listed_origin(arrival, origins)))


@lru_cache(maxsize=CORS_HEADERS_CACHED)
def _with_cors(headers: AnswerHeaders, origin: bytes) -> AnswerHeaders:
    varies = headers.get(b"Vary")
    pairs = [
        (key, value + b", Origin" if key == b"Vary" else value) for key, value in headers.pairs
    ]
    if varies is None:
        pairs.append((b"Vary", b"Origin"))
    if origin:
        pairs += [
            (b"Access-Control-Allow-Origin", origin),
            (b"Access-Control-Allow-Credentials", b"true"),
            (b"Access-Control-Expose-Headers", EXPOSED),
        ]
    return AnswerHeaders(*pairs)
