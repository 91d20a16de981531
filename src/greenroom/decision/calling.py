"""Notifying a visitor when the turn comes: the visitor leaves an e-mail address or a push endpoint,
and may close the page. The page's script sends it in a header, because not every proxy passes a
body on, and queries appear in logs. A link in the first mail confirms or refuses the address.
"""

import re
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from greenroom.admission.decide import CALL_QUERY, MOVE_QUERY, asked_by_own_page
from greenroom.decision.inquiry import Inquiry
from greenroom.decision.moving_place import CODE_MS, LONGEST_CODE_MS, code_of
from greenroom.decision.observer import Decided, DecisionEvent
from greenroom.decision.own_page import OwnPage
from greenroom.decision.render import ONWARD, OUTAGE, for_scripts
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.tickets import marked
from greenroom.decision.verdict import Verdict
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.call import EMAIL, PUSH, TRAVEL_MINUTES, VisitorCall
from greenroom.model.record import replace
from greenroom.model.visit import AWAY, AWAY_MAX_MS, Arrival, Outcome, Standing, Ticket
from greenroom.pages.call_page import (
    answer_page,
    ask_page,
    call_json,
    call_page,
    call_page_headers,
    worker_script,
)
from greenroom.pages.move_page import notice_page
from greenroom.pages.page import UNCACHEABLE
from greenroom.request.admissible import prefers_json

T = TypeVar("T")

CALL_HEADER = b"greenroom-call"
HEADER_MAX = 3_000

_ASSOCIATED = b"call "
_WORKER = AnswerHeaders(
    (b"Content-Type", b"text/javascript; charset=utf-8"),
    (b"Content-Security-Policy", b"default-src 'none'"),
    *UNCACHEABLE,
    (b"X-Content-Type-Options", b"nosniff"),
)

_EMAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9-]{2,63}"
)
"""As browsers check `type=email`; a domain of other letters comes as they send it, in ASCII."""
EMAIL_MAX = 254

_ENDPOINT = re.compile(r"https://[!-~]{4,1000}")
_KEYS = re.compile(r"[A-Za-z0-9_-]{87}"), re.compile(r"[A-Za-z0-9_-]{22}")
"""65 and 16 bytes in base64url."""


class CallRequest(msgspec.Struct, frozen=True):
    """What the page sends; without `channel`: not to be called any more."""

    channel: str = ""
    to: str = ""
    travel: int = TRAVEL_MINUTES[0]
    p256dh: str = ""
    auth: str = ""
    vapid: str = ""


class Channels(msgspec.Struct, frozen=True):
    """`key`: the public key for push, and `vapid` its id."""

    email: bool = False
    key: str = ""
    vapid: str = ""


class CallDesk(Protocol):
    """Stores the requests. Awaitables may raise StorageFailed."""

    def channels(self) -> Channels: ...

    def run(
        self, work: Coroutine[Any, Any, T], failed: T, then: Callable[[T], None] | None = None
    ) -> None:
        """Calls `then` once, later, with what `work` returns, or with `failed`."""

    async def put(self, room_id: str, ticket_id: bytes, call: VisitorCall, client: str) -> str:
        """A state of the page: `on`, `check` (the mail), `many`, `invalid`."""

    async def find(self, room_id: str, ticket_id: bytes) -> VisitorCall | None: ...

    async def confirm(self, room_id: str, ticket_id: bytes, asked_ms: int) -> bool: ...

    async def refuse(self, room_id: str, ticket_id: bytes, address: bytes) -> bool:
        """Blocks the address for a while. `address`: as in `confirm_link`."""

    async def drop(self, room_id: str, ticket_id: bytes) -> bool: ...

    async def move(self, room_id: str, old: bytes, new: bytes, drawn: Callable[[int], int]) -> None:
        """`drawn`: the key by which a place of the old id counts."""


class Calling(OwnPage):
    desk: CallDesk | None = None
    """None: this process calls nobody."""

    def verdict(self, asked: Inquiry) -> Verdict | None:
        arrival, desk = asked.arrival, self.desk
        ticket = asked.found[0][0] if asked.found else None
        self._observe(
            DecisionEvent(asked.now_ms, Decided.CALL, asked.room.effective, arrival, ticket)
        )
        if desk is None:
            return ONWARD
        behind = arrival.query[len(CALL_QUERY) + 1 :]
        if behind == "worker":
            return for_scripts(Answer(200, _WORKER, worker_script()), asked.room.page, arrival)
        if behind:
            return self._by_code(desk, asked, *behind.partition(".")[::2])
        if ticket is None or ticket.accepted_ms:
            return ONWARD
        if arrival.method == "POST" and asked_by_own_page(arrival):
            return self._left(desk, asked, ticket)
        work = desk.find(asked.room.room.id, ticket.id)
        desk.run(work, None, self._later(asked, self._shown(desk, asked)))
        return None

    def place_link(
        self, room: CompiledRoom, ticket_id: bytes, call: VisitorCall, now_ms: int, lasts_ms: int
    ) -> str:
        """Links to a place that can be taken now."""
        away = Ticket(ticket_id, call.key, 0, now_ms, 0, AWAY)
        lasts_ms = min(lasts_ms, LONGEST_CODE_MS + CODE_MS)
        return f"{call.url}?{MOVE_QUERY}.{code_of(self._sealer, room.id, away, now_ms, lasts_ms)}"

    def confirm_link(
        self, room: CompiledRoom, ticket_id: bytes, call: VisitorCall, now_ms: int, address: bytes
    ) -> str:
        """The page on which the address is confirmed; with `.stop` behind it, refused, also when the
        row is gone: `address` is HOME_BYTES of a hash.
        """
        named = Ticket(ticket_id, call.key, now_ms, call.asked_ms, 0, address)
        return f"{call.url}?{CALL_QUERY}.{self._sealer.seal(named, _ASSOCIATED + room.id).decode()}"

    # -- the page ----------------------------------------------------------------------------------

    def _shown(self, desk: CallDesk, asked: Inquiry) -> Callable[[VisitorCall | None], Verdict]:
        arrival, room = asked.arrival, asked.room

        def shown(call: VisitorCall | None) -> Verdict:
            channels = desk.channels()
            page = room.page.speaking(arrival.header(b"accept-language"))
            state = "" if call is None else "on" if call.confirmed else "check"
            email = channels.email and _names_host(room, arrival.host)
            if prefers_json(arrival.header(b"accept")):
                body = call_json(page.language, state, email, channels.key, channels.vapid)
                return for_scripts(Answer(200, page.json_headers, body), room.page, arrival)
            body = call_page(
                page.language,
                page.brand,
                room.room.claim_minutes,
                state,
                email,
                channels.key,
                channels.vapid,
                room.draws_at_ms > 0,
            )
            headers = call_page_headers(page.farewell_headers(), page.brand)
            return for_scripts(Answer(200, headers, body), room.page, arrival)

        return shown

    def _left(self, desk: CallDesk, asked: Inquiry, ticket: Ticket) -> Verdict | None:
        arrival, room = asked.arrival, asked.room
        left = read_request(arrival.header(CALL_HEADER) or b"")
        if left is None:
            return self._said(asked, "invalid")
        if not left.channel:

            def dropped(done: bool) -> Verdict:
                return self._said(asked, "off") if done else for_scripts(OUTAGE, room.page, arrival)

            desk.run(desk.drop(room.room.id, ticket.id), False, self._later(asked, dropped))
            return None
        if left.channel == EMAIL and not (
            desk.channels().email and _names_host(room, arrival.host)
        ):
            return self._said(asked, "invalid")
        call = VisitorCall(
            left.channel,
            left.to,
            ticket.key,
            asked.now_ms,
            room.page.speaking(arrival.header(b"accept-language")).language,
            _page_url(arrival),
            left.travel * 60_000,
            left.p256dh,
            left.auth,
            left.vapid,
            confirmed=left.channel == PUSH,
        )

        def kept(state: str) -> Answer:
            return self._said(asked, state, ticket)

        def known(outcome: Outcome) -> Verdict | None:
            if outcome.storage_failed:
                return for_scripts(OUTAGE, room.page, arrival)
            if outcome.standing is not Standing.WAITING or not (
                outcome.position or ticket.home >= AWAY
            ):
                return self._said(asked, "gone")
            work = desk.put(room.room.id, ticket.id, call, arrival.client)
            desk.run(work, "invalid", self._later(asked, kept))
            return None

        room.ledger.reclaim(ticket.id, ticket.key, self._later(asked, known))
        return None

    def _said(self, asked: Inquiry, state: str, ticket: Ticket | None = None) -> Answer:
        arrival, room = asked.arrival, asked.room
        page = room.page.speaking(arrival.header(b"accept-language"))
        answer = for_scripts(
            Answer(200, page.json_headers, call_json(page.language, state)), room.page, arrival
        )
        if ticket is None or state not in ("on", "check"):
            return answer
        sealed = self._sealer.seal(marked(ticket), room.id)
        cookies = room.cookies.of(arrival.scheme, arrival.prefix)
        cookie = cookies.set(sealed, AWAY_MAX_MS // 1000, asked.now_ms)
        return replace(answer, set_cookie=cookie)

    # -- the links in mails ------------------------------------------------------------------------

    def _by_code(self, desk: CallDesk, asked: Inquiry, value: str, refuses: str) -> Verdict | None:
        room, now_ms = asked.room, asked.now_ms
        code = self._sealer.open(value.encode(), _ASSOCIATED + room.id, now_ms)
        if (
            code is None
            or now_ms - code.accepted_ms > LONGEST_CODE_MS
            or refuses not in ("", "stop")
        ):
            return self._page(asked, notice_page)
        if asked.arrival.method != "POST":
            return self._page(asked, ask_page, f"?{CALL_QUERY}.{value}", bool(refuses))

        def confirmed(done: bool) -> Answer:
            return self._page(asked, answer_page, "on") if done else self._page(asked, notice_page)

        def refused(done: bool) -> Verdict:
            if done:
                return self._page(asked, answer_page, "off")
            return for_scripts(OUTAGE, room.page, asked.arrival)

        if refuses:  # as RFC 8058 wants it, the mail program may press
            work = desk.refuse(room.room.id, code.id, code.home)
            desk.run(work, False, self._later(asked, refused))
        elif asked_by_own_page(asked.arrival):
            work = desk.confirm(room.room.id, code.id, code.checked_ms)
            desk.run(work, False, self._later(asked, confirmed))
        else:
            return self._page(asked, ask_page, f"?{CALL_QUERY}.{value}", False)
        return None


def read_request(value: bytes) -> CallRequest | None:
    if not 0 < len(value) <= HEADER_MAX:
        return None
    try:
        left = msgspec.json.decode(value, type=CallRequest)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if left.travel not in TRAVEL_MINUTES:
        return None
    if left.channel == EMAIL:
        known = len(left.to) <= EMAIL_MAX and _EMAIL.fullmatch(left.to) is not None
    elif left.channel == PUSH:
        forms = (_ENDPOINT, *_KEYS)
        known = all(map(re.Pattern.fullmatch, forms, (left.to, left.p256dh, left.auth)))
    else:
        known = not left.channel
    return left if known else None


def _names_host(room: CompiledRoom, host: str) -> bool:
    """Whether the host is one of the room's: mails must not link to a host that a client made up."""
    return any(route.host == host for route in room.room.routes)


def _page_url(arrival: Arrival) -> str:
    named = (arrival.header(b"host") or b"").decode("latin-1")
    host, _, port = named.rpartition(":")
    where = f"{arrival.host}:{port}" if host == arrival.host and port.isdecimal() else arrival.host
    return f"{arrival.scheme}://{where}{quote(arrival.prefix + arrival.path)}"
