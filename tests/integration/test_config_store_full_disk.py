"""A full disk: a change that cannot be written changes nothing, what was written is still there,
and all goes on when there is room.

The disk is a small tmpfs in a mount namespace of its own, where every scenario runs as a process
(this file itself).
"""

import os
import sys
from pathlib import Path

import pytest
from config_material import room, zone
from small_disk import fill, run_beside, small_disk

from greenroom.configuration.copy import ConfigCopy
from greenroom.configuration.store import SqlStore, default_url
from greenroom.errors import StorageFailed
from greenroom.model.change import Put
from greenroom.model.configuration import Configuration


def until_refused(store: SqlStore) -> Configuration:
    """Writes large rooms until the disk is full; the last configuration that was written."""
    known = store.read()
    for number in range(100):
        big = room(f"r{number}", custom_page_html=f"{number:06d}" * 30_000)
        try:
            known = store.write([Put(big, "z1")], expected=known.revision, author="me", now_ms=1)
        except StorageFailed:
            return known
    raise AssertionError("the disk was never full")


def a_disk_that_fills_up(disk: Path) -> None:
    small_disk(disk, "2m")
    filler = disk / "filler"
    filler.write_bytes(bytes(600_000))
    store = SqlStore(default_url(disk))
    store.write([Put(zone())], expected=0, author="me", now_ms=1)
    known = until_refused(store)
    assert known.rooms
    for _ in range(3):
        with pytest.raises(StorageFailed):
            store.write(
                [Put(room("more", custom_page_html="x" * 500_000), "z1")],
                expected=known.revision,
                author="me",
                now_ms=1,
            )
        assert store.read() == known
        assert store.revision() == known.revision
    filler.unlink()
    after = store.write([Put(room("more"), "z1")], expected=known.revision, author="me", now_ms=1)
    store.close()
    again = SqlStore(default_url(disk))
    assert list(again.read().entries()) == list(after.entries())
    assert len(again.audit(100)) == len(list(after.entries()))


def a_first_start_on_a_full_disk(disk: Path) -> None:
    small_disk(disk, "2m")
    filler = fill(disk)
    store = SqlStore(default_url(disk))
    with pytest.raises(StorageFailed):
        store.read()
    filler.unlink()
    assert store.write([Put(zone())], expected=0, author="me", now_ms=1).revision == 1


def a_copy_on_a_full_disk(disk: Path) -> None:
    small_disk(disk, "2m")
    store = SqlStore(default_url(disk))
    first = store.write([Put(zone()), Put(room("r1"), "z1")], expected=0, author="me", now_ms=1)
    copy = ConfigCopy(disk / "copy")
    copy.save(first)
    second = store.write([Put(room("r2"), "z1")], expected=1, author="me", now_ms=1)
    filler = fill(disk)
    with pytest.raises(StorageFailed, match="copy: cannot be written: No space left"):
        copy.save(second)
    loaded = copy.load()
    assert loaded is not None
    assert list(loaded.entries()) == list(first.entries())
    assert sorted(path.name for path in disk.iterdir() if path.name.startswith("copy")) == ["copy"]
    filler.unlink()
    copy.save(second)
    loaded = copy.load()
    assert loaded is not None
    assert list(loaded.entries()) == list(second.entries())


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (a_disk_that_fills_up, a_first_start_on_a_full_disk, a_copy_on_a_full_disk)
}


@pytest.mark.needs("mount")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_is_lost_on(scenario: str, tmp_path: Path) -> None:
    run_beside(__file__, scenario, tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: b"0" + data[1:],
        lambda data: b"",
        lambda data: data.replace(b'"version":1', b'"version":9'),
    ],
)
def test_a_copy_that_is_not_whole_counts_as_none(spoil, tmp_path: Path) -> None:
    copy = ConfigCopy(tmp_path / "copy")
    copy.save(Configuration(revision=4))
    assert copy.load().revision == 4
    copy.path.write_bytes(spoil(copy.path.read_bytes()))
    assert copy.load() is None
    assert ConfigCopy(tmp_path / "none").load() is None


if __name__ == "__main__":
    os.chdir("/")
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
