"""Processes that share a Redis: one of a data center reads all rooms every second, the others when
an operator asks.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from admission_world import small_room
from redis_world import RedisServer

from greenroom.config_file.shared import SharedLedgers
from greenroom.ledgers.redis import leases
from greenroom.ledgers.redis.clock import ServerClock
from greenroom.ledgers.redis.link import Link
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.shared_ledger_store import SharedLedgerStore

PATIENCE_S = 60.0


class Reads:
    """One process, and how often it has read its rooms. Its machine's clock is `ahead_ms` ahead."""

    def __init__(self, url: str, data: Path, ahead_ms: int = 0) -> None:
        own = MonotonicClock()
        own.catch_up(int(time.time() * 1000) + ahead_ms)
        shared = SharedLedgers(Link(url), Link(url), "here", ("here",))
        self.store = SharedLedgerStore(
            shared,
            lambda: ("here",),
            data,
            ServerClock(own),
            lambda _: None,
            lambda _: None,
        )
        self.number = 0
        self._read = self.store._ledgers.gauges
        self.store._ledgers.gauges = self._counted  # type: ignore[method-assign]

    async def _counted(self) -> dict:
        self.number += 1
        return await self._read()

    @property
    def syncs(self) -> bool:
        state = self.store.sync_state()
        return state is not None and state.syncing

    @property
    def knows(self) -> bool:
        state = self.store.sync_state()
        return state is not None and state.figures_known


async def until(condition: Callable[[], object], otherwise: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, otherwise
        await asyncio.sleep(0.05)  # the processes read by themselves; nothing tells when


@asynccontextmanager
async def two_processes(server: RedisServer, folder: Path) -> AsyncIterator[tuple[Reads, Reads]]:
    """The one that syncs, and the other."""
    found = []
    for name in ("one", "other"):
        (folder / name).mkdir()
        found.append(Reads(server.url, folder / name))
        await found[-1].store.restore(lambda _: (small_room(),))
    running = [asyncio.create_task(one.store.run()) for one in found]
    try:
        await until(lambda: any(one.syncs for one in found), "no process syncs")
        found.sort(key=lambda one: not one.syncs)
        yield found[0], found[1]
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for one in found:
            await one.store.close()


def test_only_the_process_that_syncs_reads_rooms_until_an_operator_asks_another(
    server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LOCK_MS", 60_000)  # a machine may stand still for seconds

    async def scene() -> None:
        async with two_processes(server, tmp_path) as (syncing, other):
            await until(lambda: syncing.knows, "it never knows its figures")
            read, before = syncing.number, other.number
            assert before == 1, "once at its start"
            await until(lambda: syncing.number > read + 2, "it does not go on reading")
            other.store.open["r"].figures(0)
            assert other.number == before
            assert not other.knows or not other.syncs, "alerts would be raised from old figures"
            other.store.keep_figures_fresh()
            await until(
                lambda: other.knows and other.number >= 3,
                "it does not read although an operator has asked",
            )

    asyncio.run(scene())


def test_a_process_that_reads_nothing_notices_all_the_same_that_redis_is_gone_and_back(
    server: RedisServer, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with two_processes(server, tmp_path) as (_, other):
            server.kill()
            await until(lambda: other.store.failing, "it does not notice")
            server.start()
            await until(lambda: not other.store.failing, "it does not notice the end")

    asyncio.run(scene())


def test_figures_are_known_after_two_reads_not_one(server: RedisServer, tmp_path: Path) -> None:
    """A process that takes over has no estimates after the first: alerts wait for the second, so
    that none ends that goes on.
    """

    async def scene() -> None:
        (tmp_path / "one").mkdir()
        one = Reads(server.url, tmp_path / "one")
        await one.store.restore(lambda _: (small_room(),))
        assert (one.number, one.knows) == (1, False)
        await one.store._look()
        assert one.knows
        await one.store.close()

    asyncio.run(scene())


def test_a_process_whose_machine_is_an_hour_ahead_begins_no_event_early(
    server: RedisServer, tmp_path: Path
) -> None:
    async def begin() -> None:
        one, asked = Reads(server.url, tmp_path, 3_600_000), list[int]()
        await one.store.exchange_keys()
        await one.store.restore(lambda now_ms: (asked.append(now_ms), small_room())[1:])
        assert abs(asked[0] - time.time() * 1000) < 60_000
        await one.store.close()

    asyncio.run(begin())
