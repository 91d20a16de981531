"""The journal as a file: who may use it, how it is made, compacted, kept aside when damaged, and
how fast it is read.
"""

import os
import resource
import shutil
import stat
import threading
import time
from pathlib import Path

import pytest

from greenroom.admission.records import NOBODY, PLACE, RESET, SESSION, pack, remember
from greenroom.errors import StorageFailed
from greenroom.ledgers.journal import (
    CORRUPT_COPIES_MAX,
    HEADER_SIZE,
    MAGIC,
    PAYLOAD_MAX,
    FileJournal,
    header,
)


def contents(path: Path) -> list[bytes]:
    journal = FileJournal(path)
    found = list(journal.replay())
    journal.close()
    return found


def test_file_and_folder_belong_to_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "data" / "journal"
        journal = FileJournal(path)
        journal.append(b"x")
        journal.compact([b"y"])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {name.name: stat.S_IMODE(name.stat().st_mode) for name in path.parent.iterdir()} == {
        "journal": 0o600,
        "journal.lock": 0o600,
    }


def test_a_second_process_is_told_who_uses_the_journal(tmp_path: Path) -> None:
    first = FileJournal(tmp_path / "journal")
    with pytest.raises(
        StorageFailed, match=rf"journal: is in use by another greenroom \(process {os.getpid()}\)"
    ):
        FileJournal(tmp_path / "journal")
    first.append(b"one")
    first.compact([b"all"])
    with pytest.raises(StorageFailed, match="is in use"):
        FileJournal(tmp_path / "journal")
    first.close()
    first.close()
    assert contents(tmp_path / "journal") == [b"all"]


def test_a_closed_journal_refuses_everything(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"one")
    journal.close()
    for use in (
        lambda: journal.append(b"two"),
        lambda: list(journal.replay()),
        lambda: journal.compact([]),
    ):
        with pytest.raises(StorageFailed, match="is closed"):
            use()
    journal.sync()
    assert contents(tmp_path / "journal") == [b"one"]


def test_a_journal_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(header(2))
    with pytest.raises(
        StorageFailed, match="is a journal of version 2, but this greenroom reads version 1"
    ):
        FileJournal(path)
    assert path.read_bytes() == header(2)


def test_a_place_where_nothing_can_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageFailed, match="cannot be opened"):
        FileJournal(tmp_path / "file" / "journal")


@pytest.mark.parametrize("payload", [b"", bytes(PAYLOAD_MAX + 1)], ids=["empty", "too long"])
def test_a_payload_that_is_no_frame_is_the_callers_mistake(tmp_path: Path, payload: bytes) -> None:
    journal = FileJournal(tmp_path / "journal")
    with pytest.raises(ValueError, match="a frame holds 1 to"):
        journal.append(payload)
    with pytest.raises(ValueError, match="a frame holds 1 to"):
        journal.compact([b"good", payload])
    journal.append(bytes(PAYLOAD_MAX))
    assert list(journal.replay()) == [bytes(PAYLOAD_MAX)]
    assert not (tmp_path / "journal.new").exists()


def test_an_append_before_the_replay_comes_after_what_is_there(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"one")
    journal.close()
    with (tmp_path / "journal").open("ab") as file:
        file.write(b"\x00\x00\x00\x09torn")
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"two")
    assert list(journal.replay()) == [b"one", b"two"]


def test_compaction_replaces_everything_and_appends_go_on(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    for number in range(1000):
        journal.append(b"%d" % number)
    before = journal.size
    journal.compact([b"state"])
    assert journal.size == (tmp_path / "journal").stat().st_size < before
    journal.append(b"more")
    journal.close()
    assert contents(tmp_path / "journal") == [b"state", b"more"]


def test_compaction_to_nothing_is_an_empty_journal(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"x")
    journal.compact([])
    assert journal.size == HEADER_SIZE
    journal.append(b"y")
    assert list(journal.replay()) == [b"y"]


def test_frames_appended_while_a_thread_compacts_are_carried_over(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"old")
    started, go_on = threading.Event(), threading.Event()

    def slowly() -> object:
        yield b"state"
        started.set()
        go_on.wait(60)
        yield b"rest of the state"

    since = journal.size
    journal.append(b"between")
    thread = threading.Thread(target=journal.compact, args=(slowly(), since))
    thread.start()
    assert started.wait(60)
    for number in range(100):
        journal.append(b"meanwhile %d" % number)
    go_on.set()
    thread.join()
    journal.append(b"after")
    expected = [
        b"state",
        b"rest of the state",
        b"between",
        *(b"meanwhile %d" % number for number in range(100)),
        b"after",
    ]
    assert list(journal.replay()) == expected
    journal.close()
    assert contents(tmp_path / "journal") == expected


def test_a_compaction_whose_source_fails_changes_nothing(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"one")

    def broken() -> object:
        yield b"x" * 3_000_000
        raise KeyError("state")

    with pytest.raises(KeyError):
        journal.compact(broken())
    journal.append(b"two")
    assert list(journal.replay()) == [b"one", b"two"]
    assert not (tmp_path / "journal.new").exists()


def test_what_a_killed_compaction_left_behind_is_removed(tmp_path: Path) -> None:
    (tmp_path / "journal.new").write_bytes(b"half")
    journal = FileJournal(tmp_path / "journal")
    assert not (tmp_path / "journal.new").exists()
    assert list(journal.replay()) == []


def test_damage_is_reported_with_its_place_and_the_damaged_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = FileJournal(path)
    for number in range(5):
        journal.append(b"frame %d" % number)
    journal.close()
    damaged = bytearray(path.read_bytes())
    damaged[HEADER_SIZE + 15 + 10] ^= 1
    path.write_bytes(damaged)
    journal = FileJournal(path)
    assert list(journal.replay()) == [b"frame 0", b"frame 2", b"frame 3", b"frame 4"]
    kept = tmp_path / "journal.corrupt-1"
    assert [str(damage) for damage in journal.damage] == [
        f"15 bytes at offset {HEADER_SIZE + 15} are damaged and were left out; the damaged file is kept as {kept}"
    ]
    journal.append(b"frame 5")
    assert kept.read_bytes() == damaged
    journal.close()
    assert contents(path)[-1] == b"frame 5"


def test_a_disk_that_damages_every_night_is_not_filled_with_copies(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for night in range(CORRUPT_COPIES_MAX + 3):
        journal = FileJournal(path)
        journal.append(b"%d" % night)
        journal.append(b"end")
        journal.close()
        content = bytearray(path.read_bytes())
        content[-4] ^= 1
        path.write_bytes(content)
    assert len(list(tmp_path.glob("journal.corrupt-*"))) == CORRUPT_COPIES_MAX


def test_a_journal_removed_while_in_use_is_noticed_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = FileJournal(path)
    journal.append(b"one")
    path.unlink()
    journal.append(b"two")
    with pytest.raises(StorageFailed, match="was removed while in use and has been written again"):
        journal.sync()
    journal.sync()
    journal.append(b"three")
    journal.close()
    assert contents(path) == [b"one", b"two", b"three"]


def test_a_journal_removed_with_its_folder_takes_nothing_until_the_folder_is_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data" / "journal"
    journal = FileJournal(path)
    journal.append(b"one")
    shutil.rmtree(path.parent)
    for _ in range(2):
        with pytest.raises(StorageFailed, match="cannot be compacted: No such file"):
            journal.sync()
        with pytest.raises(StorageFailed, match="cannot be written: No such file"):
            journal.append(b"two")
    path.parent.mkdir()
    path.write_bytes(header())
    with pytest.raises(StorageFailed, match="was replaced by another file"):
        journal.append(b"two")
    with pytest.raises(StorageFailed, match="written again"):
        journal.sync()
    journal.append(b"two")
    journal.close()
    assert contents(path) == [b"one", b"two"]


def test_a_process_without_free_file_descriptors_is_told_so_and_goes_on_when_it_has_some(
    tmp_path: Path,
) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"one")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)  # the lowest number that is free
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        journal.append(b"two")  # the file is open
        with pytest.raises(StorageFailed, match="journal: cannot be flushed: Too many open files"):
            journal.sync()
        with pytest.raises(StorageFailed, match="journal: cannot be read: Too many open files"):
            list(journal.replay())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    journal.sync()
    journal.close()
    assert contents(tmp_path / "journal") == [b"one", b"two"]


def test_syncing_while_another_thread_compacts_is_never_taken_for_a_removal(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.append(b"one")
    problems: list[StorageFailed] = []
    done = threading.Event()

    def sync_often() -> None:
        while not done.is_set():
            try:
                journal.sync()
            except StorageFailed as error:
                problems.append(error)

    thread = threading.Thread(target=sync_often)
    thread.start()
    for number in range(150):
        journal.compact([b"state"])
        journal.append(b"%d" % number)
    done.set()
    thread.join()
    assert problems == []
    assert list(journal.replay()) == [b"state", b"149"]


def test_a_hundred_thousand_frames_are_read_in_a_fraction_of_a_second(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.compact(b"%050d" % number for number in range(100_000))
    journal.close()
    best = 9.0
    for _ in range(3):
        journal = FileJournal(tmp_path / "journal")
        begun = time.process_time()
        assert sum(1 for _ in journal.replay()) == 100_000
        best = min(best, time.process_time() - begun)
        journal.close()
    assert best < 0.3


def test_what_stood_before_a_damaged_snapshot_is_joined_in_a_fraction_of_a_second() -> None:
    many, ids = 30_000, (number.to_bytes(12, "big") for number in range(90_000))
    records = [pack(SESSION, next(ids), 1) for _ in range(many)]
    records += [pack(PLACE, next(ids), 1) for _ in range(many)]
    records += [pack(RESET, NOBODY, 0), *(pack(SESSION, next(ids), 2) for _ in range(many))]
    begun = time.process_time()
    memory = remember(records, holes=True)
    assert time.process_time() - begun < 2
    assert (len(memory.sessions), len(memory.places)) == (2 * many, many)


def test_the_name_of_the_format_is_in_the_file(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    assert journal.size == 0
    journal.append(b"x")
    assert (tmp_path / "journal").read_bytes().startswith(MAGIC)
