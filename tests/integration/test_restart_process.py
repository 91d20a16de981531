"""Nothing is lost: `kill -9` and a restart, a disk that is full, a clock that was set back, a
hundred thousand visitors.
"""

import random
import re
import time
from pathlib import Path

import pytest
from small_disk import OWN_MOUNTS

from greenroom.admission.records import ADMIT, PLACE, pack
from greenroom.config_file.documents import room_id
from greenroom.ledgers.journal import FileJournal
from greenroom.model.visit import TICKET_ID_BYTES, make_key


def test_kill_9_loses_no_session_and_no_place(greenroom, origin, free_port) -> None:
    ours = f"127.0.0.1:{free_port()}"
    first = greenroom.room(origin.url, 2, 100, "--listen", ours)
    inside = [first.visitor(), first.visitor()]
    for visitor in inside:
        assert not visitor.get().waiting
    line = [first.visitor(), first.visitor(), first.visitor()]
    for visitor in line:
        assert visitor.get().waiting
    time.sleep(2.6)  # until the refresh that all three were told
    for visitor in line:
        assert visitor.get().waiting
    assert first.room()["waiting_users"] == 3
    moved_from, moved_to = [inside[0], line[2]], [first.visitor(), first.visitor()]
    for old, new in zip(moved_from, moved_to, strict=True):
        link = re.search(
            r'<a href="http://[^"?]+/(\?greenroom=move\.[^"]+)"', old.get("/?greenroom=move").text
        )
        assert link is not None
        assert new.get(f"/{link[1]}", "POST").status == 303
    inside[0], line[2] = moved_to
    first.kill()
    second = greenroom.room(origin.url, 2, 100, "--listen", ours)
    assert "room main: 2 sessions, 3 in line" in second.output
    assert second.room()["waiting_users"] == 3
    assert second.room()["active_users"] == 2
    assert second.room()["admitted_last_minute"] == 2
    for visitor in inside:
        assert not visitor.get().waiting
    for visitor in line:
        assert visitor.get().waiting
    assert second.visitor().get().waiting
    for old in moved_from:
        assert "Your place is on another device" in old.get().text
    assert second.room()["waiting_users"] == 3


def test_the_line_goes_in_in_order_after_kill_9(greenroom, origin, free_port) -> None:
    config = (
        f'origin = "{origin.url}"\n[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 100\n'
        'enabled_origin_commands = ["revoke"]\n'
    )
    ours = f"127.0.0.1:{free_port()}"
    running = greenroom.config(config, "--listen", ours)
    inside, early, late = running.visitor(), running.visitor(), running.visitor()
    inside.get()
    early.get()
    time.sleep(0.01)  # who come in the same millisecond are put in order at random
    late.take_place()
    early.get()
    running.kill()
    running = greenroom.config(config, "--listen", ours)
    assert not inside.get("/revoke").waiting
    assert not early.wait_until_in().waiting
    assert late.get().waiting


def test_a_clean_stop_and_a_start_keep_everything_too(greenroom, origin, free_port) -> None:
    ours = f"127.0.0.1:{free_port()}"
    first = greenroom.room(origin.url, 1, 100, "--listen", ours)
    inside = first.visitor()
    inside.get()
    assert first.stop() == 0
    second = greenroom.room(origin.url, 1, 100, "--listen", ours)
    assert not inside.get().waiting
    assert second.visitor().get().waiting


def write_journal(data: Path, records: list[bytes]) -> None:
    journal = FileJournal(data / "rooms" / f"{room_id('main')}.journal")
    for start in range(0, len(records), 1000):
        journal.append(b"".join(records[start : start + 1000]))
    journal.close()


def test_no_visitor_is_let_in_twice_because_the_clock_was_set_back(greenroom, origin) -> None:
    ahead_ms = int(time.time() * 1000) + 3_600_000
    write_journal(
        greenroom.data, [pack(ADMIT, random.randbytes(TICKET_ID_BYTES), ahead_ms) for _ in range(2)]
    )
    running = greenroom.room(origin.url, 2)
    assert running.room()["active_users"] == 2
    assert running.visitor().get().waiting


def test_a_hundred_thousand_visitors_are_back_within_a_second(greenroom, origin) -> None:
    empty = greenroom.room(origin.url, 5_000)
    without_s = empty.cpu_s
    empty.stop()
    now_ms = int(time.time() * 1000)
    places = [
        pack(
            PLACE,
            random.randbytes(TICKET_ID_BYTES),
            make_key(now_ms - random.randrange(600_000), 0),
        )
        for _ in range(95_000)
    ]
    sessions = [
        pack(ADMIT, random.randbytes(TICKET_ID_BYTES), now_ms - random.randrange(50_000))
        for _ in range(5_000)
    ]
    write_journal(greenroom.data, places + sessions)
    running = greenroom.room(origin.url, 5_000)
    restoring_s = running.cpu_s - without_s
    room = running.room()
    assert (room["active_users"], room["waiting_users"]) == (5_000, 95_000)
    assert running.visitor().get().waiting
    assert restoring_s < 1, f"restoring took {restoring_s} s of CPU"


@pytest.mark.needs("mount")
def test_a_full_disk_stops_admissions_and_nothing_else_and_heals(greenroom, origin) -> None:
    """The disk is a tmpfs of 256 KB in a mount namespace of the process; this test reaches it
    through /proc.
    """
    data = greenroom.data
    data.mkdir()
    mount = 'mount -t tmpfs -o size=256k tmpfs "$0" && exec "$@"'
    options = [
        "--origin",
        origin.url,
        "--total-active-users",
        "5000",
        "--new-users-per-minute",
        "5000",
    ]
    running = greenroom.run(
        "serve",
        *("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(data), *options),
        within=[*OWN_MOUNTS, "sh", "-c", mount, str(data)],
    ).wait_until_ready()
    inside = running.visitor()
    assert not inside.get().waiting
    disk = Path(f"/proc/{running.process.pid}/root{data}")
    with (
        (disk / "filler").open("wb", buffering=0) as filler,
        pytest.raises(OSError, match="No space"),
    ):
        while True:
            filler.write(bytes(4096))
    late = running.visitor()
    while not late.get().waiting:  # the last page of the journal still takes some
        late = running.visitor()
    assert re.search(r"\S", late.get().text)
    assert not inside.get().waiting
    assert running.room()["storage_failed"] is True
    assert running.metric('greenroom_room_storage_failed{room="main"}') == 1
    assert running.ask("/readyz").status == 200
    running.wait_until_printed("admissions_stopped")
    (disk / "filler").unlink()
    assert not late.wait_until_in().waiting
    assert running.metric('greenroom_room_storage_failed{room="main"}') == 0
    running.wait_until_printed("admissions_resumed")


def test_a_lost_key_file_does_not_keep_journals_from_the_disk(greenroom, origin) -> None:
    running = greenroom.room(origin.url, 2)
    visitor = running.visitor()
    visitor.wait_until_in()
    journal = next((greenroom.data / "rooms").glob("*.journal"))
    journal.unlink()
    (greenroom.data / "keys.json").unlink()
    greenroom.eventually(journal.exists, lambda: f"the journal is written again: {running.output}")
    running.wait_until_printed("keys.json: cannot read the ticket keys")
    assert not visitor.get().waiting
