"""The journal of a busy room is rewritten when most of it is history, while visitors come, and
nothing of it is lost.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from admission_world import small_room

from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing, make_key
from greenroom.runtime import ledger_store
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.ledger_store import JOURNAL_GROWTH, LocalLedgerStore

LEAST_BYTES = 20_000


def rooms(_now_ms: int) -> list[Room]:
    return [small_room(id="shop", total_active_users=40, new_users_per_minute=10_000)]


async def opened(folder: Path) -> tuple[LocalLedgerStore, Callable[[], None]]:
    data = DataDir(folder)
    store = LocalLedgerStore(
        data, MonotonicClock(), lambda _: None, lambda error: pytest.fail(repr(error))
    )
    await store.restore(rooms)
    return store, data.release


def admitted(store: LocalLedgerStore, ticket_id: bytes) -> bool:
    found: list[Outcome] = []
    store.open["shop"].ledger.poll(ticket_id, make_key(store._clock.now_ms(), 0), found.append)
    return found[0].standing is Standing.ADMITTED


async def test_a_journal_of_history_is_rewritten_when_it_is_flushed_and_restored_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_store, "JOURNAL_LEAST_BYTES", LEAST_BYTES)
    store, release = await opened(tmp_path)
    room = store.open["shop"]
    room.ledger.tick()
    inside = [os.urandom(12) for _ in range(30)]
    assert all(admitted(store, visitor) for visitor in inside)
    while (
        room.journal.size < 3 * LEAST_BYTES
    ):  # a record says what holds now, so old ones are history
        for payload in room.ledger.snapshot():
            room.journal.append(payload)
    before = room.journal.size
    flushing = asyncio.create_task(store.flush())
    late = os.urandom(12)
    await asyncio.sleep(0)
    room.ledger.tick()
    assert admitted(store, late), "visitors are let in while it is rewritten"
    await flushing
    assert room.journal.size < before / 2
    assert room.journal.size <= max(LEAST_BYTES, JOURNAL_GROWTH * room.ledger.live_bytes())
    await store.close()
    release()

    store, release = await opened(tmp_path)
    for visitor in (*inside, late):
        found: list[Outcome] = []
        store.open["shop"].ledger.view(visitor, found.append)
        assert found[0].standing is Standing.ACTIVE
    assert store.open["shop"].ledger.gauges().active == len(inside) + 1
    await store.close()
    release()
