"""An operator gives a silent data center up: what the page says that frees, the confirmation, and
the audit log.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_rig import DashboardRig, dashboard_in

from greenroom.configuration.state import LostState, SyncState

AT_ONE = "/processes/nyc/give-up"


def synced(leader: bool = True, silent_s: float = 75.0) -> SyncState:
    return SyncState(
        "fra",
        syncing=True,
        leader=leader,
        holder="x",
        answered_s=0.1,
        cut_off=False,
        batches=7,
        unanswered=0,
        answers=7,
        silent_s={"fra": 0.1, "nyc": silent_s} if leader else {},
        data_centers=("fra", "nyc"),
        lost={"nyc": LostState(420, 0, 0.0)} if leader and silent_s >= 4 else {},
    )


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        found.fill()
        found.shown.sync = synced()
        yield found


def test_the_page_shows_what_a_silent_data_center_holds_and_who_may_give_it_up(
    rig: DashboardRig,
) -> None:
    text = rig.person("operator").get("/processes").text
    for shown in ("silent", "for 75 seconds", "holds 420 units", AT_ONE):
        assert shown in text
    assert AT_ONE not in rig.person("viewer").get("/processes").text
    assert rig.person("viewer").get(AT_ONE).status_code == 403


def test_it_is_given_up_after_a_confirmation_and_the_audit_log_has_it(rig: DashboardRig) -> None:
    operator = rig.person("operator")
    assert "frees 420 units" in operator.get(AT_ONE).text
    assert operator.post(AT_ONE).status_code == 400
    assert rig.shown.given_up == []
    assert operator.post(AT_ONE, sure="true").status_code == 303
    assert rig.shown.given_up == ["nyc"]
    (entry, *_) = rig.store.audit(10)
    assert (entry.kind, entry.id) == ("data_center", "nyc")
    assert entry.author.startswith("operator")


def test_one_that_is_heard_and_that_of_the_process_are_not_given_up(rig: DashboardRig) -> None:
    operator = rig.person("operator")
    rig.clock.at_ms += 1_000
    rig.shown.sync = synced(silent_s=0.5)
    answer = operator.post(AT_ONE, sure="true")
    assert (answer.status_code, rig.shown.given_up) == (400, [])
    assert "stop its processes first" in answer.text
    assert operator.post("/processes/fra/give-up", sure="true").status_code == 400
    assert operator.post("/processes/sin/give-up", sure="true").status_code == 404
    assert rig.shown.given_up == []


def test_a_process_that_is_not_the_coordinator_passes_the_word_on(rig: DashboardRig) -> None:
    rig.shown.sync = synced(leader=False)
    operator = rig.person("operator")
    assert AT_ONE in operator.get("/processes").text
    assert "known to the process that is the coordinator" in operator.get(AT_ONE).text
    assert operator.post(AT_ONE, sure="true").status_code == 303
    assert rig.shown.given_up == ["nyc"]
