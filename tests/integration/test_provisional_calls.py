"""Two data centers with a Redis each: a request that cannot wait, where the lease ran dry, waits
for permits of the other one.
"""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from admission_world import HandClock, small_room, ticket_id
from redis_world import TRIAL_LIBRARY, RedisServer

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.ledger_store import RedisLedgerStore
from greenroom.ledgers.redis.link import Link
from greenroom.model.visit import Outcome, Standing, make_key

ANSWERED_S = 50
"""On a slow machine."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RedisServer, RedisServer]]:
    here, there = (RedisServer(tmp_path_factory.mktemp("redis")) for _ in range(2))
    yield here, there
    here.kill()
    there.kill()


class Pair:
    """A room with its coordinator and two data centers, `here` and `there`, in virtual time."""

    def __init__(self, servers: tuple[RedisServer, RedisServer], **room: Any) -> None:
        self.room = small_room(**{"pace_admissions": False, **room})
        self.clock, self.draw = HandClock(), Random(1)
        self.coordinator = Coordinator(["here", "there"], self.room, self.clock.ms)
        self.servers = {
            name: server.client() for name, server in zip(("here", "there"), servers, strict=True)
        }
        self.stores = {
            name: self._store(name, server)
            for name, server in zip(("here", "there"), servers, strict=True)
        }
        self.wants: list[int] = []
        """Of each call to the coordinator."""
        self.reached = asyncio.Event()
        self.reached.set()
        self.number = 0

    def _store(self, name: str, server: RedisServer) -> RedisLedgerStore:
        server.client().flushall()
        client, clock = Link(server.url).client(5.0), ServerClock(self.clock)

        async def borrow(_room_id: str, want: int) -> None:
            self.wants.append(want)
            await self.reached.wait()
            await self.sync(name, want)

        return RedisLedgerStore(
            client, name, clock, self.draw.getrandbits, borrow, library=TRIAL_LIBRARY, timeout_s=5.0
        )

    async def open(self) -> None:
        """All visitors come here, so next to nothing is leased there ahead of need; and visitors
        there have just taken that.
        """
        for name in self.stores:
            self._set_clock(name)
            self.stores[name].ledger(self.room)
        for _ in range(4):
            await self.pass_time(1_000)
        assert (await self.ask("here", "arrive")).standing is Standing.ADMITTED
        for _ in range(4):
            await self.pass_time(1_000)
        for _ in range(await self.permits("there")):
            assert (await self.ask("there", "arrive")).standing is Standing.ADMITTED
        assert await self.permits("there") == 0
        assert self.wants == []

    async def close(self) -> None:
        for store in self.stores.values():
            await store.close()

    async def permits(self, name: str) -> int:
        return int((await self.stores[name].states())[self.room.id]["permits"])

    async def pass_time(self, ms: int) -> None:
        self.clock.ms += ms
        for name in self.stores:
            self._set_clock(name)
        for name in self.stores:
            await self.sync(name)

    def _set_clock(self, name: str) -> None:
        self.servers[name].set(
            f"{self.stores[name]._place(self.room.id).decode()}:clock", self.clock.ms
        )

    async def sync(self, name: str, want: int = 0) -> None:
        store = self.stores[name]
        ups = await store.sync_up({self.room.id: want})
        down = self.coordinator.sync(ups[self.room.id], self.clock.ms, self.draw.getrandbits(64))
        await store.sync_down({self.room.id: down})

    def begin(self, name: str, operation: str) -> "asyncio.Future[Outcome]":
        self.number += 1
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        ledger = self.stores[name].ledger(self.room)
        getattr(ledger, operation)(
            ticket_id(self.number), make_key(self.clock.ms, self.number), answer.set_result
        )
        return answer

    async def ask(self, name: str, operation: str) -> Outcome:
        return await asyncio.wait_for(self.begin(name, operation), ANSWERED_S)

    async def passing(self, count: int) -> int:
        """How many of so many requests that cannot wait pass there."""
        answers = await asyncio.wait_for(
            asyncio.gather(*[self.begin("there", "arrive_provisionally") for _ in range(count)]),
            ANSWERED_S,
        )
        return sum(answer.standing is Standing.ADMITTED for answer in answers)


def play(story: Any, servers: tuple[RedisServer, RedisServer], **room: Any) -> None:
    for server in servers:
        server.client().function_load(TRIAL_LIBRARY.source, replace=True)

    async def run() -> None:
        pair = Pair(servers, **room)
        await pair.open()
        await asyncio.wait_for(story(pair), 3 * ANSWERED_S)
        await pair.close()

    asyncio.run(run())


def test_they_pass_where_the_lease_ran_dry(servers: tuple[RedisServer, RedisServer]) -> None:
    async def story(pair: Pair) -> None:
        assert await pair.passing(1) == 1
        assert pair.wants == [1]
        found = await pair.passing(20)
        assert found == 20, pair.wants
        assert len(pair.wants) <= 3
        await pair.pass_time(1_000)
        assert (await pair.ask("here", "arrive")).standing is Standing.ADMITTED

    play(story, servers, total_active_users=200, new_users_per_minute=1_000)


def test_no_more_permits_are_asked_for_than_their_part_of_the_quarter(
    servers: tuple[RedisServer, RedisServer],
) -> None:
    async def story(pair: Pair) -> None:
        assert await pair.passing(60) == 5, "of a quarter of 40 one half"
        assert max(pair.wants) <= 5
        asked = len(pair.wants)
        for _ in range(5):
            await pair.pass_time(1_000)
            assert await pair.passing(10) == 0
        assert len(pair.wants) == asked, "once they have all that they may have no one is asked"
        await pair.pass_time(6_000)
        assert await pair.passing(10) == 5, "and again when those sessions have ended"

    play(story, servers, total_active_users=40, new_users_per_minute=1_000)


def test_one_that_comes_while_the_coordinator_is_being_asked_has_a_call_of_its_own(
    servers: tuple[RedisServer, RedisServer],
) -> None:
    async def story(pair: Pair) -> None:
        pair.reached.clear()
        first = pair.begin("there", "arrive_provisionally")
        while not pair.wants:
            await asyncio.sleep(0.01)  # the answer comes over a socket
        others = [pair.begin("there", "arrive_provisionally") for _ in range(7)]
        newcomer = pair.begin("there", "arrive")
        while not pair.stores["there"].ledger(pair.room).idle:
            await asyncio.sleep(0.01)  # as above
        assert not first.done()
        pair.reached.set()
        answers = await asyncio.wait_for(asyncio.gather(first, newcomer, *others), ANSWERED_S)
        assert [answer.standing for answer in answers] == [Standing.ADMITTED] * 9
        assert len(pair.wants) <= 2

    play(story, servers, total_active_users=200, new_users_per_minute=1_000)


def test_where_no_permit_is_to_be_had_one_call_is_all(
    servers: tuple[RedisServer, RedisServer],
) -> None:
    async def story(pair: Pair) -> None:
        for _ in range(7):
            await pair.ask("here", "arrive")
        pair.wants.clear()
        assert await pair.passing(6) == 0
        assert await pair.passing(6) == 0
        assert pair.wants == [1]
        assert (await pair.ask("there", "arrive")).standing is Standing.WAITING

    play(story, servers, total_active_users=8, new_users_per_minute=1_000)


def test_none_is_asked_for_while_a_visitor_waits(servers: tuple[RedisServer, RedisServer]) -> None:
    async def story(pair: Pair) -> None:
        for _ in range(9):
            answer = await pair.ask("here", "arrive")
        assert answer.standing is Standing.WAITING
        ledger = pair.stores["here"].ledger(pair.room)
        polled: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        ledger.poll(ticket_id(pair.number), make_key(pair.clock.ms, pair.number), polled.set_result)
        assert (await asyncio.wait_for(polled, ANSWERED_S)).standing is Standing.WAITING
        await pair.pass_time(1_000)
        pair.wants.clear()
        assert await pair.passing(6) == 0
        assert pair.wants == []

    play(story, servers, total_active_users=8, new_users_per_minute=1_000)
