"""The page of ticket keys: what it shows, and a rotation that loses no ticket and is told in the
audit log.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_rig import DashboardRig, dashboard_in

from greenroom.keys.key_file import KEYS_MAX
from greenroom.keys.ticket_keys import (
    ACTIVATION_DELAY_MS,
    KEY_FILE,
    KEY_OVERLAP_MS,
    KeyRing,
)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        yield found


def test_keys_are_shown_by_id_and_age_without_their_secrets(
    rig: DashboardRig, tmp_path: Path
) -> None:
    ring = KeyRing(tmp_path, rig.clock.at_ms)
    rig.clock.at_ms += 7 * 3_600_000
    text = rig.person("admin").get("/keys").text
    for shown in (ring.current.id.hex(), "7 h", "seals"):
        assert shown in text
    assert ring.current.secret.hex() not in text


def test_a_new_key_needs_a_confirmation_is_used_soon_and_the_old_one_still_opens(
    rig: DashboardRig, tmp_path: Path
) -> None:
    admin, ring, before = rig.person("admin"), KeyRing(tmp_path, rig.clock.at_ms), rig.store.read()
    old = ring.current.id
    assert admin.post("/keys").status_code == 400
    assert len(rig.ticket_keys.every() if rig.ticket_keys else []) == 1
    assert admin.post("/keys", sure="true").status_code == 303
    newest = rig.ticket_keys.every()[0] if rig.ticket_keys else None
    assert newest is not None
    assert not newest.seals
    rig.clock.at_ms += ACTIVATION_DELAY_MS
    ring.tend(rig.clock.at_ms)
    assert ring.current.id.hex() == newest.id
    assert set(ring.opening) == {old, ring.current.id}
    (entry, *_) = rig.store.audit(10)
    assert (entry.kind, entry.id, entry.author) == (
        "ticket_key",
        newest.id,
        "admin-all (dashboard)",
    )
    assert newest.id in admin.get("/audit").text
    assert ring.current.secret.hex() not in repr(rig.store.audit(10))
    assert rig.store.read().revision == before.revision
    rig.add_account("ada")  # who reads only what changed is not confused by the entry
    assert {one.name for one in rig.store.read().accounts.records()} == {"ada", "admin-all"}
    rig.clock.at_ms += KEY_OVERLAP_MS
    assert [key.id for key in rig.ticket_keys.every()] == [newest.id]


def test_a_file_that_cannot_be_used_and_too_many_keys_are_told(
    rig: DashboardRig, tmp_path: Path
) -> None:
    admin = rig.person("admin")
    for _ in range(KEYS_MAX - 1):
        KeyRing(tmp_path, rig.clock.at_ms).rotate(rig.clock.at_ms)
    full = admin.post("/keys", sure="true")
    assert (full.status_code, "rotate later" in full.text) == (503, True)
    (tmp_path / KEY_FILE).write_text("no keys")
    for answer in (admin.get("/keys"), admin.post("/keys", sure="true")):
        assert answer.status_code == 503
        assert "Traceback" not in answer.text
    assert (tmp_path / KEY_FILE).read_text() == "no keys"
