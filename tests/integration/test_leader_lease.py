"""The leader lease in a real Redis: one leader at a time, nothing forgotten, nothing done by a
leader whose term is over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from redis_world import RedisServer

from greenroom.ledgers.coordination import TERM_MS, LeaseTerm
from greenroom.ledgers.redis import leases as module
from greenroom.ledgers.redis.leases import RedisLeaderLease, RedisSyncLock
from greenroom.ledgers.redis.link import Link

LONG_MS = 30_000
TIMEOUT_S = 30.0
"""Of answers, on a machine that stands still for seconds."""
Story = Callable[[RedisLeaderLease], Awaitable[None]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path / "redis", "--appendonly", "yes", "--appendfsync", "always")
    yield started
    started.kill()


def play(server: RedisServer, story: Story) -> None:
    async def run() -> None:
        client = Link(server.url).client(TIMEOUT_S)
        try:
            await asyncio.wait_for(story(RedisLeaderLease(client)), 60)
        finally:
            await client.aclose()

    asyncio.run(run())


async def acquire(leader_lease: RedisLeaderLease, holder: str) -> LeaseTerm:
    term = (await leader_lease.submit("fra", b"report", holder)).term
    assert term is not None
    return term


@pytest.fixture(autouse=True)
def long_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """That do not end by themselves on a machine that stands still for seconds."""
    monkeypatch.setattr(module, "TERM_MS", LONG_MS)


async def pass_term() -> None:
    await asyncio.sleep(TERM_MS / 1000 + 0.1)  # the server's own clock has to go on


def test_a_process_that_submits_a_report_leads_when_there_is_no_leader(server: RedisServer) -> None:
    async def story(leader_lease: RedisLeaderLease) -> None:
        term = await acquire(leader_lease, "one")
        second = await leader_lease.submit("nyc", b"report", "two")
        assert (second.term, second.holder) == (None, "one")
        assert await leader_lease.collect(term, 0.1) == [("fra", b"report"), ("nyc", b"report")]
        assert await leader_lease.collect(term, 0.1) == []

    play(server, story)


def test_a_newer_report_takes_the_place_of_an_older_one(server: RedisServer) -> None:
    async def story(leader_lease: RedisLeaderLease) -> None:
        term = await acquire(leader_lease, "one")
        await leader_lease.submit("fra", b"newer", "")
        assert await leader_lease.collect(term, 0.1) == [("fra", b"newer")]

    play(server, story)


def test_a_leader_that_was_paused_can_neither_collect_nor_write_nor_answer(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(leader_lease: RedisLeaderLease) -> None:
        paused = await acquire(leader_lease, "one")
        monkeypatch.setattr(module, "TERM_MS", TERM_MS)
        assert await leader_lease.commit(paused, {"row": b"by one"})
        monkeypatch.setattr(module, "TERM_MS", LONG_MS)
        await pass_term()
        term = await acquire(leader_lease, "two")
        assert term.number > paused.number
        assert await leader_lease.collect(paused, 0.0) is None
        assert not await leader_lease.commit(
            paused, {"row": b"too late"}, ["row"], [("fra", b"too late")]
        )
        assert await leader_lease.next_answer("fra", 0.05) is None
        await leader_lease.release(paused)
        assert (await leader_lease.submit("fra", b"", "three")).term is None
        saved = await leader_lease.load(term)
        assert saved is not None
        assert saved.rows == {"row": b"by one"}

    play(server, story)


def test_a_term_goes_on_as_long_as_it_is_renewed(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TERM_MS", 6_000)

    async def story(leader_lease: RedisLeaderLease) -> None:
        term = await acquire(leader_lease, "one")
        for _ in range(6):
            await asyncio.sleep(1.1)  # longer than a term, all together
            assert await leader_lease.commit(term, {})
        assert (await leader_lease.submit("fra", b"", "two")).term is None

    play(server, story)


def test_after_a_release_the_next_leader_need_not_wait(server: RedisServer) -> None:
    async def story(leader_lease: RedisLeaderLease) -> None:
        await leader_lease.release(await acquire(leader_lease, "one"))
        assert (await leader_lease.submit("fra", b"", "two")).term is not None

    play(server, story)


def test_rows_and_answers_go_together_and_the_next_leader_reads_them_all(
    server: RedisServer,
) -> None:
    async def story(leader_lease: RedisLeaderLease) -> None:
        term = await acquire(leader_lease, "one")
        rows = {
            f"room|dc{number}": b"%d" % number for number in range(3_000)
        }  # more than Lua takes at once
        assert await leader_lease.commit(
            term, rows, (), [("fra", b"granted"), ("nyc", b"granted too")]
        )
        assert await leader_lease.commit(term, {}, ["room|dc7"])
        assert (
            await leader_lease.next_answer("fra", 0.1),
            await leader_lease.next_answer("nyc", 0.1),
        ) == (b"granted", b"granted too")
        await leader_lease.release(term)
        saved = await leader_lease.load(await acquire(leader_lease, "two"))
        assert saved is not None
        del rows["room|dc7"]
        assert saved.rows == rows

    play(server, story)


def test_a_term_ends_with_the_life_of_the_server_and_the_next_one_knows_it(
    server: RedisServer,
) -> None:
    lives: list[str] = []

    async def before(leader_lease: RedisLeaderLease) -> None:
        term = await acquire(leader_lease, "one")
        assert await leader_lease.commit(term, {"row": b"kept"})
        saved = await leader_lease.load(term)
        assert saved is not None
        lives.append(saved.life)

    async def after(leader_lease: RedisLeaderLease) -> None:
        assert await leader_lease.collect(LeaseTerm("one", 1), 0.0) is None
        saved = await leader_lease.load(await acquire(leader_lease, "two"))
        assert saved is not None
        assert saved.rows == {"row": b"kept"}
        assert saved.life not in lives

    play(server, before)
    server.kill()
    server.start()
    play(server, after)


def test_a_server_that_lost_the_functions_gets_them_again(server: RedisServer) -> None:
    async def story(leader_lease: RedisLeaderLease) -> None:
        term = await acquire(leader_lease, "one")
        server.client().execute_command("FUNCTION", "FLUSH")
        assert await leader_lease.collect(term, 0.0) == [("fra", b"report")]

    play(server, story)


def test_answers_that_are_not_fetched_do_not_pile_up(server: RedisServer) -> None:
    async def story(leader_lease: RedisLeaderLease) -> None:
        term = await acquire(leader_lease, "one")
        for number in range(50):
            await leader_lease.commit(term, {}, (), [("fra", b"%d" % number)])
        assert server.client().llen("greenroom:{leader}:answers:fra") == 4
        assert server.client().pttl("greenroom:{leader}:answers:fra") > 0

    play(server, story)


def test_one_process_holds_the_sync_lock_of_its_data_center_and_permit_requests_of_others_reach_it(
    server: RedisServer,
) -> None:
    async def story(_: RedisLeaderLease) -> None:
        client = Link(server.url).client(TIMEOUT_S)
        one, two, elsewhere = (
            RedisSyncLock(client, name, place)
            for name, place in (("one", "fra"), ("two", "fra"), ("three", "nyc"))
        )
        try:
            assert [await lock.acquire() for lock in (one, two, elsewhere, one)] == [
                True,
                False,
                True,
                True,
            ]
            requesting = asyncio.create_task(two.request_permits("room", 3, 5.0))
            (request,) = await one.permit_requests(5.0)
            assert (request.process, request.room_id, request.want) == ("two", "room", 3)
            assert not requesting.done()
            await one.acknowledge({"two"})
            await asyncio.wait_for(requesting, 30)
            assert not await one.leave()
            assert await two.acquire()
        finally:
            await client.aclose()

    play(server, story)
