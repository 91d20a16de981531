"""Sends messages to visitors who want to be called, in one process at a time, and ends rows whose
place has ended. A row is marked as sent before the message is handed over, and unmarked if that
fails: a killed process loses at most what it is handing over, and sends nothing twice.
"""

import asyncio
import contextlib
import ssl
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import structlog

from greenroom.calls.desk import SealedCalls
from greenroom.calls.messages import CallMessage, mail_of, message, push_body
from greenroom.calls.rules import LOOK_MAX_MS, LOOK_MS, Absent, drawn, rekeyed, step, stocked
from greenroom.calls.web_push import push_request, vapid_key
from greenroom.decision.calling import Calling
from greenroom.decision.moving_place import has_place, successor
from greenroom.decision.room_schedule import CompiledRoom, RoomSchedule
from greenroom.errors import StorageFailed
from greenroom.model.call import CONFIRM, NOW, PUSH, RETURNED, VisitorCall
from greenroom.model.offer import left_of
from greenroom.model.record import replace
from greenroom.model.visit import Estimate, Outcome, Standing
from greenroom.notifier import LAST_WORK_S, ended
from greenroom.outbound import Guard, OutboundFailed, OutboundRefused, RequestLimits, exchange
from greenroom.outbound.mail import MailRefused, MailServer, send

if TYPE_CHECKING:
    from greenroom.ledgers.redis.leases import RedisLease

AT_ONCE, STRANGERS_AT_ONCE = 16, 4
"""Anybody can leave an endpoint that never answers, so those of no browser vendor have fewer."""

BROWSERS = (
    "fcm.googleapis.com", "push.services.mozilla.com", "push.apple.com", "notify.windows.com",
)  # fmt: skip

MAIL_GAP_S = 0.05
"""At most 20 a second are handed to the mail server."""

RETRIES_S = (2.0, 10.0, 30.0)
LIMITS = RequestLimits(total_s=15.0, connect_s=5.0, body_max=4_096)
ANSWER_S = 10.0
UNUSABLE_MS = 60_000
"""Longer than a key exchange or a reload of the configuration takes."""

SEALED_MS = 3_600_000
"""For rows sealed with a key of another data center that is unreachable."""

DAY_MS = 86_400_000

log = structlog.get_logger(__name__)


class Handover(NamedTuple):
    """`call`, `sealed`: the row without this message. `looked_ms`: when it was found due. `draws`:
    places are still to be drawn.
    """

    room: CompiledRoom
    ticket_id: bytes
    call: VisitorCall
    sealed: bytes
    kind: str
    looked_ms: int
    estimate: Estimate | None
    draws: bool


class Tried(Enum):
    SENT = "sent"
    AGAIN = "again"
    NEVER = "never"
    CHANGED = "changed"
    """The row has changed, and the message was not handed over."""


class CallSender:
    def __init__(
        self,
        calls: SealedCalls,
        calling: Calling,
        rooms: Callable[[], Mapping[str, RoomSchedule]],
        guard: Callable[[], Guard],
        mail_server: Callable[[], MailServer | None],
        now_ms: Callable[[], int],
        center: str = "",
        lease_of: "Callable[[str], RedisLease] | None" = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`lease_of` a data center, `center` being this one; None: this is the only process."""
        self._tls = tls
        self._center = center
        self._lease_of = lease_of
        self._taken: dict[str, RedisLease | None] = {}
        self._calls = calls
        self._calling = calling
        self._rooms = rooms
        self._guard = guard
        self._mail_server = mail_server
        self._now_ms = now_ms
        self._lease = lease_of(center) if lease_of else None
        self._again: dict[tuple[str, bytes], int] = {}
        self._unusable: dict[tuple[str, bytes], int] = {}
        self._absent: defaultdict[str, Absent] = defaultdict(Absent)
        self._keys: dict[tuple[str, bytes], int] = {}
        self._busy: dict[tuple[str, bytes], asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._strangers = asyncio.Semaphore(STRANGERS_AT_ONCE)
        self._mailing = asyncio.Lock()

    async def run(self, rest_s: Callable[[], float] = lambda: LOOK_MS / 1000) -> None:
        failing = False
        try:
            while True:
                await asyncio.sleep(rest_s())
                try:
                    if self._lease is None or await self._lease.acquire():
                        await self.look()
                    failing = False
                except StorageFailed as error:
                    if not failing:
                        log.warning("calls_waiting", reason=str(error))
                    failing = True
        finally:
            await ended(list(self._busy.values()), LAST_WORK_S)

    async def look(self) -> None:
        """Handles each row that is due. Raises StorageFailed."""
        rows, now_ms = await self._calls.store.ids(), self._now_ms()
        known = set(rows)
        for times in (self._again, self._unusable):
            for row in times.keys() - known:
                del times[row]
        for row in self._keys.keys() - known:
            self._absent[row[0]].note(self._keys.pop(row), False)
        for row in known - self._keys.keys():  # so that the first estimate counts all who are away
            await self._count(*row)
        self._rekey()
        try:
            for row in rows:
                if row not in self._busy and self._again.get(row, 0) <= now_ms:
                    await self._look_at(*row)
        finally:
            taken, self._taken = self._taken, {}
            for lease in taken.values():
                if lease is not None:
                    with contextlib.suppress(StorageFailed):
                        await lease.release()

    async def sent(self) -> None:
        """Returns when all current messages have been tried."""
        await asyncio.gather(*self._busy.values())

    async def _look_at(self, room_id: str, ticket_id: bytes) -> None:
        schedule = self._rooms().get(room_id)
        found = await self._calls.get(room_id, ticket_id)
        if found is not None and not await self._is_ours(found[0].center):
            self._again[room_id, ticket_id] = self._now_ms() + LOOK_MAX_MS
            return
        if schedule is None or found is None:
            theirs = found is None and self._lease_of is not None
            await self._drop_in_time(room_id, ticket_id, SEALED_MS if theirs else UNUSABLE_MS)
            return
        (call, sealed), now_ms, room = found, self._now_ms(), schedule.now
        key = room.draw.key(ticket_id, call.key) if room.draw else call.key
        outcome = await _asked(room.ledger.reclaim, ticket_id, key)
        if outcome is None or await self._has_moved(room, ticket_id, found, key, outcome):
            return
        opened = room.calls and not room.effective.ledger_room.queue_all
        draws_at_ms = room.draws_at_ms if room.calls and not room.room.queue_all else 0
        ahead = self._absent_ahead(room_id, ticket_id, key, call.confirmed and not outcome.position)
        # what is not known (yet) is no news
        sold_out = left_of(room.offers) == 0 if room.offers else call.sold_out
        before, call = call, stocked(drawn(call, key, outcome, ahead), sold_out, now_ms)
        todo = step(call, outcome, opened, now_ms, ahead, draws_at_ms, sold_out)
        self._again[room_id, ticket_id] = now_ms + todo.again_ms
        if call != before:
            changed = await self._calls.put(room_id, ticket_id, call, sealed)
            if changed is None:
                return
            sealed = changed
        if todo.message:
            draws = draws_at_ms > 0
            estimate = _until(draws_at_ms - now_ms) if draws else outcome.estimate
            sending = Handover(room, ticket_id, call, sealed, todo.message, now_ms, estimate, draws)
            self._busy[room_id, ticket_id] = asyncio.create_task(self._send(sending))
        elif todo.ends:
            await self._calls.store.drop(room_id, ticket_id)

    async def _drop_in_time(self, room_id: str, ticket_id: bytes, after_ms: int) -> None:
        """Drops a row that has been unusable for that long."""
        began_ms = self._unusable.setdefault((room_id, ticket_id), self._now_ms())
        if self._now_ms() - began_ms >= after_ms:
            await self._calls.store.drop(room_id, ticket_id)

    async def _is_ours(self, center: str) -> bool:
        """Also for a data center where nobody sends now."""
        if center in ("", self._center) or self._lease_of is None:
            return True
        if center not in self._taken:
            lease = self._lease_of(center)
            self._taken[center] = lease if await lease.acquire() else None
        return self._taken[center] is not None

    async def _has_moved(
        self,
        room: CompiledRoom,
        ticket_id: bytes,
        found: tuple[VisitorCall, bytes],
        key: int,
        outcome: Outcome,
    ) -> bool:
        """Moves the row with its place, if the process that moved the place has not (yet)."""
        if outcome.standing is not Standing.GONE or not room.moves:
            return False
        new = successor(ticket_id)
        there = await _asked(room.ledger.peek, new, key)
        if not (outcome.moved or (there is not None and has_place(there))):
            return False
        row, (call, sealed) = (room.room.id, ticket_id), found
        if key != call.key:  # the new id was not drawn
            changed = await self._calls.put(*row, rekeyed(call, key), sealed)
            if changed is None:
                return True
        await self._calls.store.move(*row, new)
        return True

    async def _count(self, room_id: str, ticket_id: bytes) -> None:
        found, schedule = await self._calls.get(room_id, ticket_id), self._rooms().get(room_id)
        if found is not None and schedule is not None:
            call, draw = found[0], schedule.now.draw
            key = draw.key(ticket_id, call.key) if draw else call.key
            self._absent_ahead(room_id, ticket_id, key, call.confirmed)

    def _absent_ahead(self, room_id: str, ticket_id: bytes, key: int, absent: bool) -> int:
        known, row = self._absent[room_id], (room_id, ticket_id)
        if self._keys.get(row, key) != key:
            known.note(self._keys[row], False)
        self._keys[row] = key
        known.note(key, absent)
        return known.ahead(key)

    def _rekey(self) -> None:
        """After a draw all at once, so that estimates count all who are away."""
        rooms = self._rooms()
        for row, key in self._keys.items():
            schedule = rooms.get(row[0])
            draw = schedule.now.draw if schedule else None
            if draw is not None and (drawn_key := draw.key(row[1], key)) != key:
                self._absent[row[0]].rekey(key, drawn_key)
                self._keys[row] = drawn_key

    async def _send(self, sending: Handover) -> None:
        room, ticket_id, kind = sending.room, sending.ticket_id, sending.kind
        channel = sending.call.channel
        try:
            for rest_s in (*RETRIES_S, 0.0):
                async with self._strangers if _is_stranger(sending.call) else self._places:
                    tried = await self._attempt(sending)
                if tried is not Tried.AGAIN or not rest_s:
                    break
                found = await self._calls.get(room.room.id, ticket_id)
                if found is None or found[0] != _marked(sending):
                    return
                sealed = await self._calls.put(room.room.id, ticket_id, sending.call, found[1])
                if sealed is None:
                    return
                sending = sending._replace(sealed=sealed)
                await asyncio.sleep(rest_s)
            if tried is Tried.CHANGED:
                return
            if tried is not Tried.SENT:
                log.warning("call_not_sent", room=room.room.name, channel=channel)
            if kind == NOW or tried is Tried.NEVER or (kind == CONFIRM and tried is Tried.AGAIN):
                await self._calls.store.drop(room.room.id, ticket_id)
        except StorageFailed:
            pass  # the next look sees what the row says
        except Exception as error:  # neither its words nor its traceback: they may name the address
            log.error("call_not_made", room=room.room.name, error=type(error).__name__)
            with contextlib.suppress(StorageFailed):
                await self._mark(sending)  # or it would fail again, for ever
        finally:
            self._busy.pop((room.room.id, ticket_id), None)

    async def _attempt(self, sending: Handover) -> Tried:
        """Keeps no error text: it may name the address."""
        room, ticket_id, call, kind = sending.room, sending.ticket_id, sending.call, sending.kind
        estimate, now_ms, claim_min = sending.estimate, self._now_ms(), room.room.claim_minutes
        address = self._calls.owner(call)
        stop = self._calling.confirm_link(room, ticket_id, call, now_ms, address)
        url = stop
        if kind != CONFIRM:
            wait_s = max(estimate.most_s, estimate.p75_s) if estimate else 0.0
            lasts_ms = int(wait_s * 1000) + (claim_min + 10) * 60_000
            url = self._calling.place_link(room, ticket_id, call, now_ms, min(lasts_ms, DAY_MS))
        host = urlsplit(call.url).hostname or ""
        brand = room.page.brand_in(call.language)
        offers = room.offers or ()
        draws = sending.draws
        made = message(
            kind, call, brand, host, url, f"{stop}.stop", estimate, claim_min, offers, draws
        )
        told = f"{kind} {call.key} {call.asked_ms} {call.returned_ms}"
        name = self._calls.hashed(f"{ticket_id.hex()} {told}").hex()
        way = self._mail if call.channel == "email" else self._push
        return await way(sending, made, name)

    async def _mark(self, sending: Handover) -> bool:
        """Marks the message as sent. False: the row has changed."""
        row = sending.room.room.id, sending.ticket_id
        return await self._calls.put(*row, _marked(sending), sending.sealed) is not None

    async def _mail(self, sending: Handover, made: CallMessage, name: str) -> Tried:
        server = self._mail_server()
        if server is None:
            return Tried.NEVER
        async with self._mailing:
            await asyncio.sleep(MAIL_GAP_S)
        mail = mail_of(made, server, sending.call.to, self._now_ms(), name)
        if not await self._mark(sending):
            return Tried.CHANGED
        try:
            await send(server, mail)
        except MailRefused as refused:
            return Tried.NEVER if refused.permanent else Tried.AGAIN
        return Tried.SENT

    async def _push(self, sending: Handover, made: CallMessage, _name: str) -> Tried:
        call, server = sending.call, self._mail_server()
        contact = f"mailto:{server.address}" if server else "/".join(call.url.split("/")[:3])
        try:
            key = vapid_key(self._calls.push_secret(call.vapid)[1])
        except StorageFailed:
            return Tried.NEVER
        try:
            lasts_s = sending.room.room.claim_minutes * 60
            request = push_request(call, push_body(made), key, contact, lasts_s, self._now_ms())
            if not await self._mark(sending):
                return Tried.CHANGED
            answer = await exchange(self._guard(), request, LIMITS, self._tls)
        except OutboundFailed:
            return Tried.AGAIN
        except (OutboundRefused, ValueError):
            return Tried.NEVER
        if 200 <= answer.status < 300:
            return Tried.SENT
        return Tried.AGAIN if answer.status == 429 or answer.status >= 500 else Tried.NEVER


def _marked(sending: Handover) -> VisitorCall:
    if sending.kind == RETURNED:
        return replace(sending.call, sold_out=False, returned_ms=sending.looked_ms)
    return replace(sending.call, sent=sending.kind)


def _is_stranger(call: VisitorCall) -> bool:
    host = f".{urlsplit(call.to).hostname}"
    return call.channel == PUSH and not host.endswith(tuple(f".{one}" for one in BROWSERS))


def _until(left_ms: int) -> Estimate:
    left_s = max(0, left_ms) / 1000
    return Estimate(left_s, left_s, left_s)


async def _asked(
    ask: Callable[[bytes, int, Callable[[Outcome], None]], None], ticket_id: bytes, key: int
) -> Outcome | None:
    answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def known(outcome: Outcome) -> None:
        if not answer.done():
            answer.set_result(outcome)

    ask(ticket_id, key, known)
    try:
        async with asyncio.timeout(ANSWER_S):
            return await answer
    except TimeoutError:
        return None
