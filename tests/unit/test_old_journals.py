"""The journal of a removed room goes a week after its last change; every other file stays."""

import asyncio
import os
import time
from pathlib import Path

from config_material import room

from greenroom.admission.records import NOBODY, NOTE, pack
from greenroom.ledgers.journal import FileJournal
from greenroom.runtime.clock import MonotonicClock
from greenroom.runtime.data_dir import JOURNAL_FILES, JOURNAL_KEPT_S, DataDir
from greenroom.runtime.ledger_store import LocalLedgerStore


def journal(rooms: Path, room_id: str, age_s: float) -> None:
    """As a room leaves it, with a damaged copy and a compaction that was killed beside it."""
    found = FileJournal(rooms / f"{room_id}.journal")
    found.append(pack(NOTE, NOBODY, 0))
    found.close()
    for suffix in (*JOURNAL_FILES, ".journal.corrupt-1"):
        path = rooms / f"{room_id}{suffix}"
        path.touch()
        os.utime(path, (time.time() - age_s,) * 2)


def test_only_the_journals_of_rooms_that_were_removed_long_ago_go(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    rooms = tmp_path / "rooms"
    for room_id in ("r1", "gone", "back.soon"):
        journal(
            rooms, room_id, JOURNAL_KEPT_S + 60 if room_id != "back.soon" else JOURNAL_KEPT_S - 3600
        )
    (rooms / "notes.txt").touch()
    kept = {path.name for path in rooms.iterdir()} - {f"gone{suffix}" for suffix in JOURNAL_FILES}

    async def start() -> None:
        store = LocalLedgerStore(data, MonotonicClock(), lambda _: None, lambda _: None)
        await store.restore(lambda _: [room("r1")])
        left = {path.name for path in rooms.iterdir()}
        await store.close()
        assert left == kept - {"r1.journal.new"}, (
            "only what the room itself clears away is missing besides"
        )

    asyncio.run(start())
    data.release()
