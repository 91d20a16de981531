"""Sends to visitors who want to be called, in one process at a time, and ends rows whose place has
ended. A row says what is sent before it is sent: after a crash a message is missing, never doubled.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol
from urllib.parse import urlsplit

import structlog

from greenroom.calls.desk import SealedCalls
from greenroom.calls.messages import CallMessage, mail_of, message, push_body
from greenroom.calls.rules import LOOK_MS, Absent, drawn, step
from greenroom.calls.web_push import push_request, vapid_key
from greenroom.decision.calling import Calling
from greenroom.decision.room_schedule import CompiledRoom, RoomSchedule
from greenroom.errors import StorageFailed
from greenroom.model.call import CONFIRM, NOW, VisitorCall
from greenroom.model.record import replace
from greenroom.model.visit import Estimate, Outcome
from greenroom.outbound import Guard, OutboundFailed, OutboundRefused, RequestLimits, exchange
from greenroom.outbound.mail import MailRefused, MailServer, send

AT_ONCE = 16
MAIL_GAP_S = 0.05
"""At most 20 a second are handed to the mail server."""

RETRIES_S = (2.0, 10.0, 30.0)
LIMITS = RequestLimits(total_s=15.0, connect_s=5.0, body_max=4_096)
ANSWER_S = 10.0
UNUSABLE_MS = 60_000
"""Machines exchange keys every other second; rooms come late when a configuration is reloaded."""

DAY_MS = 86_400_000

log = structlog.get_logger(__name__)


class Tried(Enum):
    SENT = "sent"
    AGAIN = "again"
    NEVER = "never"


class SenderLease(Protocol):
    async def acquire(self) -> bool: ...


class CallSender:
    def __init__(
        self,
        calls: SealedCalls,
        calling: Calling,
        rooms: Callable[[], Mapping[str, RoomSchedule]],
        guard: Callable[[], Guard],
        mail_server: Callable[[], MailServer | None],
        now_ms: Callable[[], int],
        lease: SenderLease | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """No `lease`: this is the only process."""
        self._tls = tls
        self._calls = calls
        self._calling = calling
        self._rooms = rooms
        self._guard = guard
        self._mail_server = mail_server
        self._now_ms = now_ms
        self._lease = lease
        self._again: dict[tuple[str, bytes], int] = {}
        self._unusable: dict[tuple[str, bytes], int] = {}
        self._absent: defaultdict[str, Absent] = defaultdict(Absent)
        self._keys: dict[tuple[str, bytes], int] = {}
        self._busy: dict[tuple[str, bytes], asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
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
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)

    async def look(self) -> None:
        """At each row that is due. Raises StorageFailed."""
        rows, now_ms = await self._calls.store.ids(), self._now_ms()
        known = set(rows)
        for times in (self._again, self._unusable):
            for row in times.keys() - known:
                del times[row]
        for row in self._keys.keys() - known:
            self._absent[row[0]].note(self._keys.pop(row), False)
        for row in rows:
            if row not in self._busy and self._again.get(row, 0) <= now_ms:
                await self._look_at(*row)

    async def sent(self) -> None:
        """When what is being sent now has been tried."""
        await asyncio.gather(*self._busy.values())

    async def _look_at(self, room_id: str, ticket_id: bytes) -> None:
        schedule = self._rooms().get(room_id)
        found = await self._calls.get(room_id, ticket_id)
        if schedule is None or found is None:
            began_ms = self._unusable.setdefault((room_id, ticket_id), self._now_ms())
            if self._now_ms() - began_ms >= UNUSABLE_MS:
                await self._calls.store.drop(room_id, ticket_id)
            return
        (call, sealed), now_ms, room = found, self._now_ms(), schedule.now
        key = room.draw.key(ticket_id, call.key) if room.draw else call.key
        outcome = await _reclaimed(room, ticket_id, key)
        if outcome is None:
            return
        opened = room.calls and not room.effective.ledger_room.queue_all
        draws_at_ms = room.draws_at_ms if room.calls and not room.room.queue_all else 0
        ahead = self._absent_ahead(room_id, ticket_id, key, call.confirmed and not outcome.position)
        before, call = call, drawn(call, key, outcome, ahead)
        todo = step(call, outcome, opened, now_ms, ahead, draws_at_ms)
        self._again[room_id, ticket_id] = now_ms + todo.again_ms
        call = replace(call, sent=todo.message or call.sent)
        kept = call == before or await self._calls.put(room_id, ticket_id, call, sealed)
        if todo.message and kept:
            estimate = _until(draws_at_ms - now_ms) if draws_at_ms else outcome.estimate
            sending = self._send(room, ticket_id, call, todo.message, estimate, draws_at_ms > 0)
            self._busy[room_id, ticket_id] = asyncio.create_task(sending)
        elif todo.ends and not todo.message:
            await self._calls.store.drop(room_id, ticket_id)

    def _absent_ahead(self, room_id: str, ticket_id: bytes, key: int, absent: bool) -> int:
        known, row = self._absent[room_id], (room_id, ticket_id)
        if (before := self._keys.get(row, key)) != key:  # a draw
            known.note(before, False)
        self._keys[row] = key
        known.note(key, absent)
        return known.ahead(key)

    async def _send(
        self,
        room: CompiledRoom,
        ticket_id: bytes,
        call: VisitorCall,
        kind: str,
        estimate: Estimate | None,
        draws: bool,
    ) -> None:
        room_id = room.room.id
        try:
            for rest_s in (*RETRIES_S, 0.0):
                async with self._places:
                    tried = await self._attempt(room, ticket_id, call, kind, estimate, draws)
                if tried is not Tried.AGAIN or not rest_s:
                    break
                await asyncio.sleep(rest_s)
            if tried is not Tried.SENT:
                log.warning("call_not_sent", room=room.room.name, channel=call.channel)
            if kind == NOW or tried is Tried.NEVER or (kind == CONFIRM and tried is Tried.AGAIN):
                await self._calls.store.drop(room_id, ticket_id)
        except StorageFailed:
            pass  # the row ends at the next look
        except Exception as error:  # neither its words nor its traceback: they may name the address
            log.error("call_not_made", room=room.room.name, error=type(error).__name__)
        finally:
            self._busy.pop((room_id, ticket_id), None)

    async def _attempt(
        self,
        room: CompiledRoom,
        ticket_id: bytes,
        call: VisitorCall,
        kind: str,
        estimate: Estimate | None,
        draws: bool,
    ) -> Tried:
        """What went wrong is not kept: it may name the address."""
        now_ms, claim_min = self._now_ms(), room.room.claim_minutes
        address = self._calls.hashed(call.to)
        stop = self._calling.confirm_link(room, ticket_id, call, now_ms, address)
        url = stop
        if kind != CONFIRM:
            wait_s = max(estimate.most_s, estimate.p75_s) if estimate else 0.0
            lasts_ms = int(wait_s * 1000) + (claim_min + 10) * 60_000
            url = self._calling.place_link(room, ticket_id, call, now_ms, min(lasts_ms, DAY_MS))
        host = urlsplit(call.url).hostname or ""
        brand = room.page.brand_in(call.language)
        offers = room.offers or ()
        made = message(
            kind, call, brand, host, url, f"{stop}.stop", estimate, claim_min, offers, draws
        )
        return await (self._mail if call.channel == "email" else self._push)(call, made, claim_min)

    async def _mail(self, call: VisitorCall, made: CallMessage, _claim_min: int) -> Tried:
        server = self._mail_server()
        if server is None:
            return Tried.NEVER
        async with self._mailing:
            await asyncio.sleep(MAIL_GAP_S)
        try:
            await send(server, mail_of(made, server, call.to, self._now_ms()))
        except MailRefused as refused:
            return Tried.NEVER if refused.permanent else Tried.AGAIN
        return Tried.SENT

    async def _push(self, call: VisitorCall, made: CallMessage, claim_min: int) -> Tried:
        server = self._mail_server()
        contact = f"mailto:{server.address}" if server else "/".join(call.url.split("/")[:3])
        try:
            key = vapid_key(self._calls.push_secret(call.vapid)[1])
            request = push_request(
                call.to, call.p256dh, call.auth, push_body(made), key, contact,
                claim_min * 60, self._now_ms(),
            )  # fmt: skip
            answer = await exchange(self._guard(), request, LIMITS, self._tls)
        except OutboundFailed:
            return Tried.AGAIN
        except (OutboundRefused, StorageFailed, ValueError):
            return Tried.NEVER
        if 200 <= answer.status < 300:
            return Tried.SENT
        return Tried.AGAIN if answer.status == 429 or answer.status >= 500 else Tried.NEVER


def _until(left_ms: int) -> Estimate:
    left_s = max(0, left_ms) / 1000
    return Estimate(left_s, left_s, left_s)


async def _reclaimed(room: CompiledRoom, ticket_id: bytes, key: int) -> Outcome | None:
    answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def known(outcome: Outcome) -> None:
        if not answer.done():
            answer.set_result(outcome)

    room.ledger.reclaim(ticket_id, key, known)
    try:
        return await asyncio.wait_for(answer, ANSWER_S)
    except TimeoutError:
        return None
