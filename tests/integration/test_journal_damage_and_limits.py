"""A damaged or emptied journal forgets visitors who are inside: the log says so, the others stay,
and the limits hold all the same.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from admission_world import small_room
from structlog.testing import capture_logs

from greenroom.ledgers.journal import FRAME_HEAD, HEADER_SIZE
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing, make_key
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import DataDir
from greenroom.runtime.ledger_store import LocalLedgerStore

LIMIT = 40


def rooms(_now_ms: int) -> list[Room]:
    return [small_room(id="shop", total_active_users=LIMIT, new_users_per_minute=10_000)]


class Shop:
    """The room of one start."""

    def __init__(self, store: LocalLedgerStore) -> None:
        self.room = store.open["shop"]
        self._now_ms = store._clock.now_ms

    def standing(self, ask: Callable, *about: object) -> Standing:
        found: list[Outcome] = []
        ask(*about, found.append)
        return found[0].standing

    def let_in(self, at_most: int) -> list[bytes]:
        """As many of so many visitors as there is room for."""
        self.room.ledger.tick()
        ids = [os.urandom(12) for _ in range(at_most)]
        return [
            one
            for one in ids
            if self.standing(self.room.ledger.poll, one, make_key(self._now_ms(), 0))
            is Standing.ADMITTED
        ]

    def inside(self, ids: list[bytes]) -> int:
        return sum(self.standing(self.room.ledger.view, one) is Standing.ACTIVE for one in ids)


@contextmanager
def started(folder: Path):
    """A start, until its end; in between the journal is closed."""
    with asyncio.Runner() as runner:
        data = DataDir(folder)
        store = LocalLedgerStore(
            data, MonotonicClock(), lambda _: None, lambda error: pytest.fail(repr(error))
        )
        runner.run(store.restore(rooms))
        yield Shop(store)
        runner.run(store.close())
        data.release()


def journal_of(folder: Path) -> Path:
    return folder / "rooms" / "shop.journal"


def hit(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def let_in_after(folder: Path) -> int:
    """By two more starts, because the second finds a journal without damage."""
    found = 0
    for _ in range(2):
        with started(folder) as shop:
            found += len(shop.let_in(2 * LIMIT))
    return found


def test_a_damaged_snapshot_forgets_no_one_who_came_after_it_and_lets_none_in_for_those_who_are_forgotten(
    tmp_path: Path,
) -> None:
    with started(tmp_path) as shop:
        before = shop.let_in(20)
        shop.room.journal.compact(shop.room.ledger.snapshot())
        end = shop.room.journal.size
        after = shop.let_in(10)
        shop.room.journal.append(
            b"".join(shop.room.ledger.snapshot())[:24]
        )  # a snapshot begins, and its rest is lost
        rest = shop.room.journal.size
        shop.room.journal.append(b"".join(shop.room.ledger.snapshot())[24:])
        late = shop.let_in(2)
    assert (len(before), len(after), len(late)) == (20, 10, 2)
    path = journal_of(tmp_path)
    hit(path, rest + FRAME_HEAD.size)
    with capture_logs() as logs, started(tmp_path) as shop:
        assert shop.inside([*before, *after, *late]) == 32, "what could be read is kept"
        assert len(shop.let_in(2 * LIMIT)) <= LIMIT - 32
    assert end < rest
    (told,) = [log for log in logs if log["event"] == "journal_damaged"]
    assert (told["file"], told["offset"]) == (str(path), rest)


def test_those_that_a_damaged_frame_has_forgotten_keep_their_units_until_their_sessions_would_have_ended(
    tmp_path: Path,
) -> None:
    with started(tmp_path) as shop:
        inside = shop.let_in(LIMIT)
        assert len(inside) == LIMIT
    hit(journal_of(tmp_path), HEADER_SIZE + FRAME_HEAD.size)
    with capture_logs() as logs, started(tmp_path) as shop:
        kept = shop.inside(inside)
        assert LIMIT - 2 <= kept < LIMIT, "one frame is lost and no other"
    assert next(log["units"] for log in logs if log["event"] == "units_held") == LIMIT - kept
    assert let_in_after(tmp_path) == 0


def test_an_emptied_journal_is_told_and_lets_none_in_before_all_sessions_would_have_ended(
    tmp_path: Path,
) -> None:
    with started(tmp_path) as shop:
        assert len(shop.let_in(LIMIT)) == LIMIT
    os.truncate(journal_of(tmp_path), 0)
    with capture_logs() as logs, started(tmp_path) as shop:
        assert shop.let_in(LIMIT) == []
    assert [log["event"] for log in logs] == ["journal_emptied", "units_held"]
    assert let_in_after(tmp_path) == 0


def test_a_journal_without_damage_holds_nothing_back(tmp_path: Path) -> None:
    with started(tmp_path) as shop:
        assert len(shop.let_in(10)) == 10
    with capture_logs() as logs, started(tmp_path) as shop:
        assert len(shop.let_in(2 * LIMIT)) == LIMIT - 10
    assert logs == []
