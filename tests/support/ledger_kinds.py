"""The kinds of ledgers that keep the contract of `LedgerPort`, each in a room with its
coordinator and time set by hand.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from admission_world import FlakyJournal, HandClock, bits
from redis_world import TRIAL_LIBRARY, RedisServer

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.ledgers.memory import Gauges, MemoryLedger
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.ledger_store import RedisLedgerStore
from greenroom.ledgers.redis.link import Link
from greenroom.model.room import Room
from greenroom.model.visit import Outcome


class InMemory:
    """One ledger in this process."""

    def __init__(self, room: Room, _server: RedisServer) -> None:
        self.clock = HandClock()
        self.ledger: Any = MemoryLedger(room, self.clock, bits(1), FlakyJournal())

    def pass_time(self, ms: int) -> None:
        self.clock.ms += ms
        self.ledger.tick()

    def ask(self, operation: str, *arguments: Any) -> Any:
        answers: list[Any] = []
        getattr(self.ledger, operation)(*arguments, answers.append)
        (answer,) = answers
        return answer

    def tell(self, operation: str, *arguments: Any) -> None:
        getattr(self.ledger, operation)(*arguments)
        self.ledger.tick()

    def gauges(self) -> Gauges:
        found: Gauges = self.ledger.gauges()
        return found

    def close(self) -> None:
        pass


class InRedis:
    """One ledger in Redis, synced whenever time passes."""

    def __init__(self, room: Room, server: RedisServer) -> None:
        self.clock = HandClock()
        self._server = server.client()
        self._server.flushall()
        self._runner = asyncio.Runner()
        self._random_bits = Random(1)
        self.room = room
        self.coordinator = Coordinator(["here"], room, self.clock.ms)

        async def make() -> RedisLedgerStore:
            clock = ServerClock(self.clock)
            return RedisLedgerStore(
                Link(server.url).client(5.0),
                "here",
                clock,
                self._random_bits.getrandbits,
                self._sync_all,
                library=TRIAL_LIBRARY,
                timeout_s=5.0,
            )

        self.ledgers = self._runner.run(make())
        self._set_clock()
        self.ledger = self.ledgers.ledger(room)
        self._run(self._sync())

    def pass_time(self, ms: int) -> None:
        self.clock.ms += ms
        self._set_clock()
        self._run(self._sync())

    def ask(self, operation: str, *arguments: Any) -> Any:
        async def asked() -> Any:
            answers: list[Any] = []
            answered = asyncio.Event()

            def then(answer: Any) -> None:
                answers.append(answer)
                answered.set()

            getattr(self.ledger, operation)(*arguments, then)
            await asyncio.wait_for(answered.wait(), 60)
            await asyncio.sleep(0)
            (answer,) = answers
            return answer

        return self._run(asked())

    def tell(self, operation: str, *arguments: Any) -> None:
        async def told() -> None:
            getattr(self.ledger, operation)(*arguments)
            if operation == "configure":
                self.room = arguments[0]
                self.coordinator.configure(arguments[0])
            self.ledger.view(bytes(12), lambda _: None)
            while not self.ledger.idle:
                await asyncio.sleep(0.001)  # the answer comes over a socket
            await asyncio.sleep(0.01)  # as above
            await self._sync()

        self._run(told())

    def gauges(self) -> Gauges:
        return self._run(self.ledgers.gauges())[self.room.id]

    def close(self) -> None:
        self._run(self.ledgers.close())
        self._runner.close()

    def _run(self, work: Any) -> Any:
        return self._runner.run(work)

    def _set_clock(self) -> None:
        self._server.set(f"{self.ledgers._place(self.room.id).decode()}:clock", self.clock.ms)

    async def _sync_all(self, room_id: str, want: int) -> None:
        await self._sync(want)

    async def _sync(self, want: int = 0) -> None:
        for _ in range(3):
            ups = await self.ledgers.sync_up({self.room.id: want})
            down = self.coordinator.sync(
                ups[self.room.id], self.clock.ms, self._random_bits.getrandbits(64)
            )
            await self.ledgers.sync_down({self.room.id: down})


Kind = Callable[[Room, RedisServer], InMemory | InRedis]
KINDS: dict[str, Kind] = {"memory": InMemory, "redis": InRedis}
Answer = Outcome
