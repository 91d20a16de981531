"""The key ring: made once, guarded, rotated in time, shared by several processes, never guessed at
and never shown.
"""

import json
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from greenroom.decision.tickets import Sealer
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.keys.key_file import KEYS_MAX, KeysOnDisk
from greenroom.keys.ticket_keys import (
    ACTIVATION_DELAY_MS,
    KEY_AGE_MAX_MS,
    KEY_OVERLAP_MS,
    RETRY_MS,
    SEALS_MAX,
    KeyRing,
    exchange,
)
from greenroom.model.visit import Ticket, make_key

NOW = 1_700_000_000_000
ROOM = b"room"
TICKET = Ticket(b"t" * 12, make_key(NOW, 1), 0, NOW, 20_000)


def rewrite(path: Path, text: str | bytes, mode: int = 0o600) -> None:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)


def opens(ring: KeyRing, sealed: bytes) -> bool:
    return Sealer(ring).open(sealed, ROOM, NOW + 10 * KEY_AGE_MAX_MS) == TICKET


def test_the_first_start_makes_one_key_that_only_its_owner_can_read(tmp_path: Path) -> None:
    data = tmp_path / "deep" / "data"
    ring = KeyRing(data, NOW)
    assert stat.S_IMODE((data / "keys.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert list(ring.opening) == [ring.current.id]
    assert ring.current.active_ms == NOW
    assert sorted(path.name for path in data.iterdir()) == ["keys.json", "keys.lock"]


def test_the_file_is_never_open_to_others_not_even_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the most careless umask, every file that appears has mode 600 when it is opened."""
    modes = []
    real = os.open

    def watched(path: str, flags: int, mode: int = 0o777) -> int:
        file = real(path, flags, mode)
        if flags & os.O_CREAT:
            modes.append(stat.S_IMODE(os.fstat(file).st_mode))
        return file

    monkeypatch.setattr(os, "open", watched)
    before = os.umask(0)
    try:
        KeyRing(tmp_path / "data", NOW)
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]


def test_a_restart_opens_what_was_sealed_before(tmp_path: Path) -> None:
    sealed = Sealer(KeyRing(tmp_path, NOW)).seal(TICKET, ROOM)
    assert opens(KeyRing(tmp_path, NOW + 5_000), sealed)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o660, 0o602, 0o601])
def test_a_file_that_others_can_touch_stops_the_start(tmp_path: Path, mode: int) -> None:
    KeyRing(tmp_path, NOW)
    (tmp_path / "keys.json").chmod(mode)
    with pytest.raises(
        InvalidConfig,
        match=f"keys.json: holds secrets and must not be open to others: its mode is {mode:04o}, do chmod 600",
    ):
        KeyRing(tmp_path, NOW)


def _row(**changes: object) -> dict[str, object]:
    return {"id": "00" * 6, "secret": "11" * 32, "created_ms": NOW, "active_ms": NOW, **changes}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        b"\xff\xfe",
        "[" * 50_000,
        "{}" + " " * 70_000,
        json.dumps({"format": 2, "keys": [_row()]}),
        json.dumps({"format": 1}),
        json.dumps({"format": 1, "keys": []}),
        json.dumps({"format": 1, "keys": "x"}),
        json.dumps({"format": 1, "keys": [7]}),
        json.dumps({"format": 1, "keys": [_row(id="00" * 5)]}),
        json.dumps({"format": 1, "keys": [_row(id="zz" * 6)]}),
        json.dumps({"format": 1, "keys": [_row(id=7)]}),
        json.dumps({"format": 1, "keys": [_row(secret="11" * 16)]}),
        json.dumps({"format": 1, "keys": [_row(secret=None)]}),
        json.dumps({"format": 1, "keys": [_row(active_ms=1.5)]}),
        json.dumps({"format": 1, "keys": [_row(active_ms=True)]}),
        json.dumps({"format": 1, "keys": [_row(active_ms=-1)]}),
        json.dumps({"format": 1, "keys": [_row(active_ms=NOW - 1)]}),
        json.dumps({"format": 1, "keys": [_row(), _row()]}),
        json.dumps({"format": 1, "keys": [_row(id=f"{n:012x}") for n in range(KEYS_MAX + 1)]}),
    ],
    ids=lambda text: repr(text)[:40],
)
def test_a_malformed_file_stops_the_start_and_is_left_as_it_is(
    tmp_path: Path, text: str | bytes
) -> None:
    path = tmp_path / "keys.json"
    rewrite(path, text)
    before = path.read_bytes()
    with pytest.raises(
        InvalidConfig, match=r"keys\.json: .*; restore it, or remove it to begin with new keys"
    ):
        KeyRing(tmp_path, NOW)
    assert path.read_bytes() == before


def test_a_folder_in_place_of_the_file_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "keys.json").mkdir()
    with pytest.raises((InvalidConfig, StorageFailed), match=r"keys\.json"):
        KeyRing(tmp_path, NOW)


def test_a_dangling_link_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "keys.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageFailed, match=r"keys\.json"):
        KeyRing(tmp_path, NOW)


def test_a_place_where_nothing_can_be_made_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageFailed, match="cannot write the ticket keys"):
        KeyRing(tmp_path / "file" / "data", NOW)


def test_no_secret_shows_in_reprs_errors_or_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ring = KeyRing(tmp_path, NOW)
    secret = ring.current.secret
    shown = (
        repr(ring)
        + str(ring)
        + repr(ring.current)
        + str(ring.current)
        + f"{[getattr(ring, name) for name in dir(ring)]}"
        + caplog.text
    )
    text = (tmp_path / "keys.json").read_text()
    for broken in (
        text[:-3],
        text.replace('"format": 1', '"format": 9'),
        text.replace(secret.hex(), secret.hex()[:-2]),
    ):
        rewrite(tmp_path / "keys.json", broken)
        with pytest.raises(InvalidConfig) as caught:
            KeyRing(tmp_path, NOW)
        error: BaseException | None = caught.value
        while error is not None:
            shown += repr(error) + str(vars(error))
            error = error.__context__
    assert secret.hex()[:-2] not in shown
    assert repr(secret) not in shown


def test_a_new_key_is_published_before_it_seals(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, NOW)
    first = ring.current.id
    ring.rotate(NOW)
    assert not ring.tend(NOW + ACTIVATION_DELAY_MS - 1)
    assert ring.current.id == first
    assert len(ring.opening) == 2
    assert ring.tend(NOW + ACTIVATION_DELAY_MS)
    assert ring.current.id != first
    assert not ring.tend(NOW + ACTIVATION_DELAY_MS + 1)


def test_a_replaced_key_opens_until_every_ticket_was_renewed_and_then_leaves_memory_and_file(
    tmp_path: Path,
) -> None:
    ring = KeyRing(tmp_path, NOW)
    old = ring.current
    sealed = Sealer(ring).seal(TICKET, ROOM)
    ring.rotate(NOW)
    replaced_ms = NOW + ACTIVATION_DELAY_MS
    ring.tend(replaced_ms + KEY_OVERLAP_MS - 1)
    assert opens(ring, sealed)
    assert KEY_OVERLAP_MS >= (24 * 60 + 5) * 60_000
    ring.tend(replaced_ms + KEY_OVERLAP_MS)
    assert not opens(ring, sealed)
    assert old.secret.hex() not in (tmp_path / "keys.json").read_text()
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600


def test_a_key_rotates_after_a_day(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, NOW)
    first = ring.current.id
    ring.tend(NOW + KEY_AGE_MAX_MS - 1)
    assert len(ring.opening) == 1
    ring.tend(NOW + KEY_AGE_MAX_MS)
    assert len(ring.opening) == 2
    ring.tend(NOW + KEY_AGE_MAX_MS + 1_000)
    assert len(ring.opening) == 2, "one rotation is enough"
    ring.tend(NOW + KEY_AGE_MAX_MS + ACTIVATION_DELAY_MS)
    assert ring.current.id != first


def test_a_key_goes_on_beyond_its_day_while_other_machines_could_not_hear_of_a_new_one(
    tmp_path: Path,
) -> None:
    ring = KeyRing(tmp_path, NOW)
    later = NOW + KEY_AGE_MAX_MS + 3_600_000
    ring.tend(later, rotates=False)
    assert len(ring.opening) == 1
    ring.tend(later + 1_000)
    assert len(ring.opening) == 2


def test_a_key_rotates_long_before_random_nonces_could_meet(tmp_path: Path) -> None:
    assert SEALS_MAX * 16 <= 2**32
    ring = KeyRing(tmp_path, NOW)
    ring.seals += SEALS_MAX - 1
    ring.tend(NOW + 1_000)
    assert len(ring.opening) == 1
    ring.seals += 1
    ring.tend(NOW + 2_000)
    assert len(ring.opening) == 2
    ring.tend(NOW + 2_000 + ACTIVATION_DELAY_MS)
    assert ring.seals == 0
    ring.tend(NOW + 3_000 + ACTIVATION_DELAY_MS)
    assert len(ring.opening) == 2


def test_a_key_of_a_machine_whose_clock_is_a_year_ahead_delays_no_rotation(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, NOW)
    first = ring.current
    year_ms = 365 * KEY_AGE_MAX_MS
    strange = {
        "id": "0" * 12,
        "secret": "11" * 32,
        "created_ms": year_ms,
        "active_ms": NOW + year_ms,
    }
    exchange(tmp_path, [strange], NOW)
    for later_ms in (1_000, KEY_AGE_MAX_MS, KEY_AGE_MAX_MS + ACTIVATION_DELAY_MS):
        ring.tend(NOW + later_ms)
    assert ring.current.id not in (first.id, bytes(6))
    count = len(ring.opening)
    ring.tend(NOW + KEY_AGE_MAX_MS + ACTIVATION_DELAY_MS + 1_000)
    assert len(ring.opening) == count


def test_a_rotation_in_one_process_reaches_the_others_before_it_counts(tmp_path: Path) -> None:
    one, two = KeyRing(tmp_path, NOW), KeyRing(tmp_path, NOW)
    one.rotate(NOW)
    two.tend(NOW + 1_000)
    one.tend(NOW + ACTIVATION_DELAY_MS)
    assert opens(two, Sealer(one).seal(TICKET, ROOM))
    two.tend(NOW + ACTIVATION_DELAY_MS + 1_000)
    assert one.current.id == two.current.id


def test_when_the_day_is_over_only_one_of_several_processes_makes_a_key(tmp_path: Path) -> None:
    rings = [KeyRing(tmp_path, NOW) for _ in range(4)]
    for ring in rings:
        ring.tend(NOW + KEY_AGE_MAX_MS)
    for ring in rings:
        ring.tend(NOW + KEY_AGE_MAX_MS + ACTIVATION_DELAY_MS)
    assert len({ring.current.id for ring in rings}) == 1
    assert {len(ring.opening) for ring in rings} == {2}


def test_processes_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    code = "import sys, pathlib; from greenroom.keys.ticket_keys import KeyRing; print(KeyRing(pathlib.Path(sys.argv[1]), 1).current.id)"
    started = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path / "data"], stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    ids = {process.communicate()[0] for process in started}
    assert {process.returncode for process in started} == {0}
    assert len(ids) == 1


@pytest.mark.parametrize("text", ["", "{", '{"format": 1, "keys": []}'])
def test_a_file_broken_while_running_is_reported_and_changes_nothing(
    tmp_path: Path, text: str
) -> None:
    ring = KeyRing(tmp_path, NOW)
    sealed, good = Sealer(ring).seal(TICKET, ROOM), (tmp_path / "keys.json").read_bytes()
    rewrite(tmp_path / "keys.json", text)
    with pytest.raises(InvalidConfig):
        ring.tend(NOW + 1_000)
    assert opens(ring, sealed)
    rewrite(tmp_path / "keys.json", good)
    ring.tend(NOW + 2_000)
    assert opens(ring, sealed)


def test_a_file_removed_while_running_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, NOW)
    sealed = Sealer(ring).seal(TICKET, ROOM)
    (tmp_path / "keys.json").unlink()
    with pytest.raises(StorageFailed, match="cannot read the ticket keys"):
        ring.tend(NOW + 1_000)
    assert opens(ring, sealed)
    with pytest.raises(StorageFailed):
        ring.tend(NOW + 2_000)


def test_rotating_after_the_file_was_removed_keeps_the_old_key_valid(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, NOW)
    sealed = Sealer(ring).seal(TICKET, ROOM)
    (tmp_path / "keys.json").unlink()
    ring.rotate(NOW)
    assert opens(KeyRing(tmp_path, NOW + 1_000), sealed)


def test_when_a_new_key_cannot_be_written_the_old_one_goes_on_and_it_is_tried_again_later(
    tmp_path: Path,
) -> None:
    """A folder in the way of the file that is written beside: the disk refuses, really."""
    ring = KeyRing(tmp_path, NOW)
    first = ring.current.id
    (tmp_path / "keys.new").mkdir()
    late = NOW + KEY_AGE_MAX_MS
    with pytest.raises(StorageFailed, match="cannot write the ticket keys"):
        ring.tend(late)
    assert not ring.tend(late + RETRY_MS - 1), "not every second, or the log overflows"
    with pytest.raises(StorageFailed):
        ring.tend(late + RETRY_MS)
    (tmp_path / "keys.new").rmdir()
    ring.tend(late + 2 * RETRY_MS)
    assert ring.tend(late + 2 * RETRY_MS + ACTIVATION_DELAY_MS)
    assert ring.current.id != first


def test_what_a_process_that_died_while_writing_left_behind_does_no_harm(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, NOW)
    rewrite(tmp_path / "keys.new", "half a fi", 0o644)
    ring.rotate(NOW)
    assert len(KeyRing(tmp_path, NOW).opening) == 2
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    assert not (tmp_path / "keys.new").exists()


def test_a_process_that_holds_the_lock_stops_no_other_from_serving(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, NOW)
    with (
        KeysOnDisk(tmp_path / "keys.json", "ticket", "").alone(wait=True),
        pytest.raises(StorageFailed),
    ):
        ring.tend(NOW + KEY_AGE_MAX_MS)
    ring.tend(NOW + KEY_AGE_MAX_MS + RETRY_MS)
    assert len(ring.opening) == 2


def test_rotating_in_a_loop_ends_with_an_error_and_a_file_that_can_still_be_read(
    tmp_path: Path,
) -> None:
    ring = KeyRing(tmp_path, NOW)
    for _ in range(KEYS_MAX - 1):
        ring.rotate(NOW)
    with pytest.raises(StorageFailed, match=f"holds {KEYS_MAX} keys"):
        ring.rotate(NOW)
    assert len(KeyRing(tmp_path, NOW).opening) == KEYS_MAX


def test_a_clock_set_back_before_every_key_seals_with_the_oldest(tmp_path: Path) -> None:
    first = KeyRing(tmp_path, NOW).current.id
    ring = KeyRing(tmp_path, NOW - 10_000_000)
    assert ring.current.id == first


@pytest.mark.needs("root")
def test_a_rotation_by_root_leaves_the_file_to_the_service(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, NOW)
    os.chown(tmp_path / "keys.json", 12_345, 54_321)
    ring.rotate(NOW)
    found = (tmp_path / "keys.json").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12_345, 54_321, 0o600)
