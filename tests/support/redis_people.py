"""Visitors of rooms in a real Redis, asked from an event loop: the ledgers of one process, their
coordinator beside it, and real time.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Any, TypeVar

from admission_world import small_room

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.ledger_store import RedisLedgerStore
from greenroom.ledgers.redis.link import Link
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, make_key
from greenroom.runtime.clock import MonotonicClock

Result = TypeVar("Result")

TIMEOUT_S = 10.0
"""How long Redis may take for an answer: a busy machine makes nobody held."""
LONG_S = 45.0
"""As TIMEOUT_S, where a test says that nobody waits for it: longer than a busy machine stands
still.
"""


class House:
    """One process with its ledgers; `coordinator` grants, in this test, regardless of what its
    Redis says.
    """

    def __init__(
        self,
        url: str,
        rooms: Iterable[Room] = (small_room(total_active_users=3, new_users_per_minute=100),),
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.clock = ServerClock(MonotonicClock())
        self.troubles: list[Exception | None] = []
        self.rooms = {room.id: room for room in rooms}
        self._random_bits = Random(7)
        self.ledgers = RedisLedgerStore(
            Link(url).client(timeout_s),
            "here",
            self.clock,
            self._random_bits.getrandbits,
            on_failure=self.troubles.append,
            timeout_s=timeout_s,
        )
        self.coordinators = {
            room.id: Coordinator(["here"], room, self.clock.now_ms()) for room in rooms
        }
        for room in rooms:
            self.ledgers.ledger(room)

    async def sync(self) -> int:
        """Syncs every room that can be reached; how many."""
        ups = await self.ledgers.sync_up(dict.fromkeys(self.rooms, 0))
        now_ms = self.clock.now_ms()
        downs = {
            room_id: self.coordinators[room_id].sync(up, now_ms, self._random_bits.getrandbits(64))
            for room_id, up in ups.items()
        }
        await self.ledgers.sync_down(downs)
        return len(ups)

    async def until_synced(self) -> None:
        """Until every room has been synced twice, so that permits are there."""
        synced = 0
        while synced < 2:
            synced = synced + 1 if await self.sync() == len(self.rooms) else 0
            await asyncio.sleep(0.02)  # the server is a real process

    async def ask(self, operation: str, *arguments: Any, room: str = "r") -> Outcome:
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        getattr(self.ledgers.ledger(self.rooms[room]), operation)(*arguments, answered.set_result)
        return await asyncio.wait_for(answered, 60)

    async def arrive(self, one: bytes, room: str = "r") -> Outcome:
        return await self.ask("arrive", one, make_key(self.clock.now_ms(), 0), room=room)

    async def poll(self, one: bytes, room: str = "r") -> Outcome:
        return await self.ask("poll", one, make_key(self.clock.now_ms() - 1_000, 0), room=room)

    async def crowd(self, count: int, room: str = "r") -> tuple[dict[bytes, Outcome], Counter[str]]:
        """Newcomers all at once, and how many were answered how."""
        ids = [os.urandom(12) for _ in range(count)]
        outcomes = await asyncio.gather(*(self.arrive(one, room) for one in ids))
        return dict(zip(ids, outcomes, strict=True)), Counter(
            outcome.standing.name for outcome in outcomes
        )

    async def epoch(self) -> int:
        """Of the first room."""
        while not (states := await self.ledgers.states()):
            await asyncio.sleep(0.05)  # the server is a real process
        return int(next(iter(states.values()))["epoch"])

    async def until_answered(self, one: bytes, room: str = "r") -> Outcome:
        """Looks until Redis answers again."""
        while True:
            outcome = await self.ask("peek", one, make_key(self.clock.now_ms(), 0), room=room)
            if not outcome.storage_failed:
                return outcome
            await asyncio.sleep(0.05)  # the server is a real process


def in_house(url: str, story: Callable[[House], Awaitable[Result]], **settings: Any) -> Result:
    """Runs a story with a house, and closes it."""

    async def run() -> Result:
        house = House(url, **settings)
        try:
            return await asyncio.wait_for(story(house), 150)
        finally:
            await house.ledgers.close()

    return asyncio.run(run())
