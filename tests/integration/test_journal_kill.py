"""kill -9 at any instant: every acknowledged frame is there afterwards, in order, and the journal
goes on.
"""

import contextlib
import os
import random
import signal
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from greenroom.ledgers.journal import FileJournal

NUMBER = struct.Struct(">Q")
ROUNDS = 60


def numbered(number: int) -> bytes:
    """A frame that proves itself: sizes from a few bytes to 300 KB, so that kills also hit the
    middle of a write.
    """
    size = 20 + number * 7919 % 200 if number % 5 else 40_000 + number * 104_729 % 260_000
    return NUMBER.pack(number) + zlib.crc32(NUMBER.pack(number)).to_bytes(4, "big") * (size // 4)


def number_of(payload: bytes) -> int:
    number: int = NUMBER.unpack_from(payload)[0]
    assert payload == numbered(number)
    return number


def appends_for_ever(path: Path, acknowledge: Callable[[int], None]) -> None:
    journal = FileJournal(path)
    number = sum(1 for _ in journal.replay())
    while True:
        journal.append(numbered(number))
        acknowledge(number)
        number += 1


def snapshot(number: int) -> Iterator[bytes]:
    """State that includes every frame up to this number, in several frames as a real one would be."""
    for part in range(5):
        yield b"state" + NUMBER.pack(number) + bytes([part]) * 30_000


def read_state(path: Path) -> tuple[FileJournal, int]:
    """The journal and the last number in it; asserts that snapshot and frames fit together without
    a gap.
    """
    journal = FileJournal(path)
    last, parts = -1, 0
    for payload in journal.replay():
        if payload.startswith(b"state"):
            number = NUMBER.unpack_from(payload, 5)[0]
            assert parts < 5, "two snapshots"
            assert parts == 0 or number == last
            last, parts = number, parts + 1
        else:
            assert parts in (0, 5), "half a snapshot"
            assert number_of(payload) == last + 1
            last += 1
    assert parts in (0, 5), "half a snapshot"
    assert journal.damage == ()
    return journal, last


def compacts_for_ever(path: Path, acknowledge: Callable[[int], None], threaded: bool) -> None:
    journal, last = read_state(path)
    compaction = threading.Thread()
    while True:
        last += 1
        journal.append(numbered(last))
        acknowledge(last)
        if last % 7 == 0 and not compaction.is_alive():
            state, since = list(snapshot(last)), journal.size
            compaction = threading.Thread(target=journal.compact, args=(state, since))
            compaction.start()
            if not threaded:
                compaction.join()


def killed(work: Callable[[Callable[[int], None]], None], after: int, lag_s: float) -> int:
    """Runs `work` in a process, lets it acknowledge `after` numbers and a little more, kills it;
    the last number it acknowledged.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(reading)
            work(lambda number: os.write(writing, NUMBER.pack(number)) and None)
        os._exit(1)
    os.close(writing)
    last = -1
    with os.fdopen(reading, "rb") as pipe:
        for _ in range(after):
            got = pipe.read(NUMBER.size)
            assert len(got) == NUMBER.size, "the child died by itself"
            last = NUMBER.unpack(got)[0]
        threading.Event().wait(lag_s)
        os.kill(child, signal.SIGKILL)
        while got := pipe.read(
            NUMBER.size
        ):  # what it still said before it died was acknowledged too
            last = NUMBER.unpack(got)[0]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    return last


def test_every_acknowledged_frame_survives_a_kill_at_any_instant(tmp_path: Path) -> None:
    path, chance = tmp_path / "journal", random.Random(1)
    for _ in range(ROUNDS):
        last = killed(
            lambda say: appends_for_ever(path, say),
            chance.randrange(1, 30),
            chance.random() * 0.003,
        )
        journal = FileJournal(path)
        found = [number_of(payload) for payload in journal.replay()]
        assert found == list(range(len(found)))
        assert len(found) > last
        assert journal.damage == ()
        journal.append(numbered(len(found)))
        journal.close()
        if path.stat().st_size > 20_000_000:
            path.unlink()


@pytest.mark.parametrize(
    "threaded", [False, True], ids=["one after the other", "appending meanwhile"]
)
def test_a_kill_during_compaction_leaves_the_old_journal_or_the_new_one_whole(
    tmp_path: Path, threaded: bool
) -> None:
    path, chance = tmp_path / "journal", random.Random(2)
    for _ in range(ROUNDS):
        acknowledged = killed(
            lambda say: compacts_for_ever(path, say, threaded),
            chance.randrange(1, 20),
            chance.random() * 0.004,
        )
        journal, last = read_state(path)
        assert last >= acknowledged
        assert not path.with_name("journal.new").exists()
        journal.close()


def test_a_kill_frees_the_lock_for_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    last = killed(lambda say: appends_for_ever(path, say), 5, 0)
    journal = FileJournal(path)
    assert sum(1 for _ in journal.replay()) > last
