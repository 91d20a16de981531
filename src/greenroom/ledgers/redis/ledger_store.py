"""The ledgers of all rooms of one data center in Redis, and their reports and answers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import msgpack

from greenroom.admission.ledger.tally import STAYS_MAX, Taken
from greenroom.admission.messages.line_counts import AGE_CELL_MS
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.ledgers.coordination import Borrow
from greenroom.ledgers.memory import Gauges
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.ledger import RedisLedger, RequestBatcher
from greenroom.ledgers.redis.library import LEDGER_LIBRARY, Library
from greenroom.ledgers.redis.sync_batch import arguments_of, report_of
from greenroom.ledgers.redis.wire import Command, Unreachable, wire
from greenroom.model.room import Room
from greenroom.notifier import ended

TIMEOUT_S = 1.0

PAGE = 1_000
"""Under 2 ms."""

AGAIN_S = 1.0


class RedisLedgerStore:
    """Make it inside the event loop; `close` when done."""

    def __init__(
        self,
        client: Client,
        data_center: str,
        clock: ServerClock,
        getrandbits: Callable[[int], int],
        borrow: Borrow | None = None,
        *,
        on_failure: Callable[[Exception | None], None] = lambda _: None,
        library: Library = LEDGER_LIBRARY,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Every answer adjusts `clock`. `borrow` may be set later. `on_failure` gets every failure,
        and None when it is over.
        """
        self.data_center = data_center
        self.clock = clock
        self.borrow = borrow
        self.library = library
        self.getrandbits = getrandbits
        self._heard_ms = 0
        self._wire = wire(client, library, timeout_s)
        self._exchanging = asyncio.Lock()
        self.batcher = RequestBatcher(wire(client, library, timeout_s), self._on_trip, on_failure)
        self._ledgers: dict[str, RedisLedger] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def ledger(self, room: Room) -> RedisLedger:
        """Opens it; an open ledger keeps its settings."""
        found = self._ledgers.get(room.id)
        if found is None:
            found = self._ledgers[room.id] = RedisLedger(room, self._place(room.id), self)
        return found

    def forget(self, room_id: str) -> None:
        self._ledgers.pop(room_id, None)

    async def close(self) -> None:
        await ended(self._tasks)
        await self.batcher.close()
        async with self._exchanging:
            await self._wire.close()

    # -- LedgerStore -------------------------------------------------------------------------------

    async def sync_up(self, wants: Mapping[str, int]) -> dict[str, SyncUp]:
        ids = [room_id for room_id in wants if room_id in self._ledgers]
        ups = await self._reports(
            ids,
            [self._call("report", self._ledgers[one], self.data_center, wants[one]) for one in ids],
        )
        for room_id, up in ups.items():
            self._ledgers[room_id].hear_time(up.sent_ms)
        return ups

    async def farewell(self) -> dict[str, SyncUp]:
        ids = list(self._ledgers)
        ups = await self._reports(
            ids,
            [
                self._call("report", self._ledgers[one], self.data_center, 0, "farewell")
                for one in ids
            ],
        )
        return {room_id: msgspec.structs.replace(up, farewell=True) for room_id, up in ups.items()}

    async def _reports(self, ids: Sequence[str], calls: Sequence[Command]) -> dict[str, SyncUp]:
        replies = await self._exchange(calls)
        return {
            room_id: report_of(reply)
            for room_id, reply in zip(ids, replies, strict=True)
            if isinstance(reply, list)
        }

    async def sync_down(self, downs: Mapping[str, SyncDown]) -> None:
        ledgers = [
            (self._ledgers[room_id], down)
            for room_id, down in downs.items()
            if room_id in self._ledgers
        ]
        replies = await self._exchange(
            [self._call("apply", ledger, *arguments_of(down)) for ledger, down in ledgers]
        )
        for (ledger, _), reply in zip(ledgers, replies, strict=True):
            if isinstance(reply, int):
                ledger.hear_time(reply)

    # -- for the process around it -----------------------------------------------------------------

    async def gauges(self) -> dict[str, Gauges]:
        states = await self.states()
        return {
            room_id: Gauges(
                state["inside"],
                state["waiting"],
                state["called"],
                state["permits"],
                state["minute_rows"],
                False,
                state["confirm"],
            )
            for room_id, state in states.items()
        }

    async def tallies(self) -> dict[str, Taken]:
        """Takes from Redis what was counted since the last call in any process. Stays are in steps of
        five seconds.
        """
        ids = list(self._ledgers)
        replies = await self._exchange(
            [self._call("tally", self._ledgers[room_id]) for room_id in ids]
        )
        return {
            room_id: _taken(reply)
            for room_id, reply in zip(ids, replies, strict=True)
            if isinstance(reply, list)
        }

    async def states(self) -> dict[str, dict[str, Any]]:
        ids = list(self._ledgers)
        replies = await self._exchange(
            [self._call("inspect", self._ledgers[room_id]) for room_id in ids]
        )
        return {
            room_id: msgpack.decode(reply)
            for room_id, reply in zip(ids, replies, strict=True)
            if isinstance(reply, bytes)
        }

    # -- for the ledgers ---------------------------------------------------------------------------

    def heard(self, server_ms: int) -> None:
        self._heard_ms = server_ms

    def run_dry(self, room_id: str, want: Callable[[], int], then: Callable[[], None]) -> bool:
        borrow = self.borrow
        if borrow is None:
            return False

        async def ask() -> None:
            try:
                await borrow(room_id, want())
            finally:
                then()

        self._begin(ask())
        return True

    def later(self, rest_s: float, then: Callable[[], None]) -> None:
        async def rest() -> None:
            await asyncio.sleep(rest_s)
            then()

        self._begin(rest())

    def before(self, room_id: str, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        ledger = self._ledgers[room_id]

        async def ask() -> None:
            while (found := await self._line_before(ledger, key)) is None:
                await asyncio.sleep(AGAIN_S)
            then(found)

        self._begin(ask())

    def rekey(self, room_id: str, keys: Mapping[bytes, int], then: Callable[[bool], None]) -> None:
        ledger = self._ledgers[room_id]

        async def ask() -> None:
            pairs = [part for pair in keys.items() for part in pair]
            for start in range(0, len(pairs), 2 * PAGE):
                (reply,) = await self._exchange(
                    [self._call("rekey", ledger, *pairs[start : start + 2 * PAGE])]
                )
                if isinstance(reply, Exception):
                    then(False)
                    return
            then(True)

        self._begin(ask())

    # -- inside ------------------------------------------------------------------------------------

    async def _line_before(self, ledger: RedisLedger, key: int) -> list[bytes] | None:
        """None: no answer. Each page starts at the last key, because visitors ahead leave
        meanwhile.
        """
        found: dict[bytes, None] = {}
        since, size = b"-inf", PAGE
        while True:
            (reply,) = await self._exchange([self._call("before", ledger, key, since, size)])
            if not isinstance(reply, list):
                return None
            found |= dict.fromkeys(reply[::2])
            if len(reply) < 2 * size:
                return list(found)
            since, size = reply[-1], size if reply[-1] != since else 2 * size

    def _place(self, room_id: str) -> bytes:
        """A hash tag of its own for each room: all its keys are in one shard."""
        return (
            f"greenroom:{{{quote(self.data_center, safe='')}/{quote(room_id, safe='')}}}".encode()
        )

    def _call(self, name: str, ledger: RedisLedger, *arguments: bytes | str | int) -> Command:
        return ("FCALL", self.library.function(name), 1, ledger.place, ledger.settings, *arguments)

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if not commands:
            return []
        async with self._exchanging:
            try:
                return await self._wire.exchange(commands)
            except Unreachable as error:
                return [error] * len(commands)

    def _on_trip(self, took_s: float) -> None:
        if self._heard_ms:
            self.clock.hear(self._heard_ms, int(took_s * 1000) + 1)
            self._heard_ms = 0

    def _begin(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _taken(reply: Sequence[bytes]) -> Taken:
    counts = {field: int(count) for field, count in zip(reply[::2], reply[1::2], strict=True)}
    abandoned = counts.pop(b"abandoned", 0)
    stays = sorted((int(cell), count) for cell, count in counts.items())
    found = [cell * AGE_CELL_MS for cell, count in stays for _ in range(min(count, STAYS_MAX))]
    return Taken(found[:STAYS_MAX], abandoned, max(0, len(found) - STAYS_MAX))
