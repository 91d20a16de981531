"""A disk that is full, read-only or limited: nothing half-written is ever read, and all goes on as
soon as the disk does.

The disks are real: small tmpfs mounts in a mount namespace of their own, where every scenario runs
as a process (this file itself). Without the right to make one, the scenario of the limited file
size still runs.
"""

import errno
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_disk import fill, mount, run_beside, small_disk

from greenroom.errors import StorageFailed
from greenroom.keys.ticket_keys import KEY_AGE_MAX_MS, RETRY_MS, KeyRing
from greenroom.ledgers.journal import FileJournal

NOW = 1_700_000_000_000


def refused(use: Callable[[], object], reason: str) -> None:
    with pytest.raises(StorageFailed, match=reason):
        use()


def frame(number: int) -> bytes:
    return b"%06d" % number * 2000


def append_until_refused(journal: FileJournal, number: int) -> int:
    try:
        while True:
            journal.append(frame(number))
            number += 1
    except StorageFailed:
        return number


def numbers(journal: FileJournal) -> list[int]:
    found = [int(payload[:6]) for payload in journal.replay()]
    assert [frame(number) for number in found] == list(journal.replay())
    return found


def a_disk_that_fills_up(disk: Path) -> None:
    small_disk(disk, "1m")
    path = disk / "data" / "journal"
    journal = FileJournal(path)
    journal.append(frame(0))
    filler = fill(disk, 300_000)
    count = append_until_refused(journal, 1)
    assert 20 < count < 30
    for _ in range(3):
        refused(lambda: journal.append(frame(count)), "journal: cannot be written")
        assert numbers(journal) == list(range(count))
        assert path.stat().st_size == journal.size, "half a frame was left"
    refused(
        lambda: journal.compact(frame(number) for number in range(count)),
        "cannot be compacted: No space left",
    )
    assert not path.with_name("journal.new").exists()
    assert numbers(journal) == list(range(count))
    filler.unlink()
    journal.append(frame(count))
    journal.compact(frame(number) for number in range(count + 1))
    journal.append(frame(count + 1))
    journal.close()
    assert numbers(FileJournal(path)) == list(range(count + 2))


def a_start_on_a_full_disk(disk: Path) -> None:
    small_disk(disk, "1m")
    path = disk / "journal"
    journal = FileJournal(path)
    journal.append(frame(0))
    journal.close()
    with path.open("ab") as file:
        file.write(b"\0\0\x20\0torn")
    filler = fill(disk)
    journal = FileJournal(path)
    assert numbers(journal) == [0]
    while append_until_refused(journal, 1) > 1:
        raise AssertionError("there was room")
    filler.unlink()
    journal.append(frame(1))
    journal.close()
    assert numbers(FileJournal(path)) == [0, 1]


def a_damaged_journal_on_a_full_disk(disk: Path) -> None:
    """No room for a clean file: everything intact is still there, and so is what comes after."""
    small_disk(disk, "1m")
    path = disk / "journal"
    journal = FileJournal(path)
    for number in range(30):
        journal.append(frame(number))
    journal.close()
    with path.open("r+b") as file:
        file.seek(20_000)
        file.write(b"!")
    fill(disk, 40_000)
    journal = FileJournal(path)
    assert numbers(journal) == [0, *range(2, 30)]
    assert len(journal.damage) == 1
    journal.append(frame(30))
    journal.close()
    assert numbers(FileJournal(path)) == [0, *range(2, 31)]


def a_read_only_disk(disk: Path) -> None:
    small_disk(disk, "1m")
    path = disk / "journal"
    mount("-o", "remount,ro", str(disk))
    refused(lambda: FileJournal(path), "journal: cannot be opened: Read-only file system")
    mount("-o", "remount,rw", str(disk))
    journal = FileJournal(path)
    journal.append(frame(0))
    journal.close()
    with path.open("ab") as file:
        file.write(b"\0\0\x80\0" + b"torn" * 5000)
    survives_a_read_only_time(disk, path)
    path.with_name("journal.lock").unlink()
    survives_a_read_only_time(disk, path)
    assert numbers(FileJournal(path)) == [0, 1, 2]


def survives_a_read_only_time(disk: Path, path: Path) -> None:
    mount("-o", "remount,ro", str(disk))
    journal = FileJournal(path)
    start = len(numbers(journal))
    for _ in range(2):
        refused(
            lambda: journal.append(frame(1)), "journal: cannot be written: Read-only file system"
        )
    refused(lambda: journal.compact([]), "cannot be compacted: Read-only file system")
    assert len(numbers(journal)) == start
    journal.sync()
    mount("-o", "remount,rw", str(disk))
    journal.append(frame(start))
    assert path.stat().st_size == journal.size
    refused(lambda: FileJournal(path), "is in use")
    assert numbers(journal) == list(range(start + 1))
    journal.close()


def keys_on_a_read_only_disk(disk: Path) -> None:
    small_disk(disk, "1m")
    mount("-o", "remount,ro", str(disk))
    refused(
        lambda: KeyRing(disk, NOW), "keys.json: cannot write the ticket keys: Read-only file system"
    )
    mount("-o", "remount,rw", str(disk))
    first = KeyRing(disk, NOW).current.id
    mount("-o", "remount,ro", str(disk))
    ring = KeyRing(disk, NOW)
    late = NOW + KEY_AGE_MAX_MS
    refused(lambda: ring.tend(late), "cannot write the ticket keys: Read-only file system")
    assert ring.current.id == first
    mount("-o", "remount,rw", str(disk))
    ring.tend(late + RETRY_MS)
    ring.tend(late + 2 * RETRY_MS)
    assert ring.current.id != first


def keys_on_a_full_disk(disk: Path) -> None:
    small_disk(disk, "1m")
    filler = fill(disk)
    refused(lambda: KeyRing(disk, NOW), "keys.json: cannot write the ticket keys: No space left")
    assert not (disk / "keys.json").exists()
    filler.unlink()
    ring = KeyRing(disk, NOW)
    before = (disk / "keys.json").read_bytes()
    fill(disk)
    refused(lambda: ring.rotate(NOW), "cannot write the ticket keys: No space left")
    assert (disk / "keys.json").read_bytes() == before
    assert sorted(path.name for path in disk.iterdir()) == ["filler", "keys.json", "keys.lock"]


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        a_disk_that_fills_up,
        a_start_on_a_full_disk,
        a_damaged_journal_on_a_full_disk,
        a_read_only_disk,
        keys_on_a_read_only_disk,
        keys_on_a_full_disk,
    )
}


@pytest.mark.needs("mount")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_is_lost_on(scenario: str, tmp_path: Path) -> None:
    run_beside(__file__, scenario, tmp_path)


def a_limited_file_size(path: Path) -> None:
    journal = FileJournal(path)
    journal.append(frame(0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    count = append_until_refused(journal, 1)
    assert count == 100_000 // (len(frame(0)) + 8)
    refused(lambda: journal.append(frame(count)), "journal: cannot be written")
    refused(lambda: journal.compact([bytes(200_000)]), "cannot be compacted: File too large")
    assert path.stat().st_size == journal.size
    journal.append(b"%06d" % count * 3)  # a small one still fits
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.append(frame(count + 1))
    assert [int(payload[:6]) for payload in journal.replay()] == list(range(count + 2))


def test_nothing_is_lost_at_a_limited_file_size(tmp_path: Path) -> None:
    run_beside(__file__, "a_limited_file_size", tmp_path / "journal", within=())


def test_a_cut_that_the_disk_refuses_is_made_before_the_next_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that takes half a frame and then not even the cut: no real one does so on demand."""
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"one")

    def half(file: int, data: bytes, offset: int) -> int:
        written: int = real(file, data[: len(data) // 2], offset)
        return written

    def broken(file: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", half)
    monkeypatch.setattr(os, "ftruncate", broken)
    for _ in range(2):
        with pytest.raises(StorageFailed, match="cannot be written"):
            journal.append(b"lost " * 1000)
        assert list(journal.replay()) == [b"one"]
    monkeypatch.undo()
    journal.append(b"two")
    assert (tmp_path / "journal").stat().st_size == journal.size
    journal.close()
    assert list(FileJournal(tmp_path / "journal").replay()) == [b"one", b"two"]


if __name__ == "__main__":
    scenarios = {**SCENARIOS, a_limited_file_size.__name__: a_limited_file_size}
    scenarios[sys.argv[1]](Path(sys.argv[2]))
