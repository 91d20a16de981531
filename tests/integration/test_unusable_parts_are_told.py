"""What of a configuration cannot be used is named on the dashboard and in the alert, with what is
wrong with it.
"""

from pathlib import Path

from dashboard_rig import DashboardRig, dashboard_in

from greenroom.alerts.picture import PictureTaker
from greenroom.alerts.rules.conditions import conditions
from greenroom.configuration.state import ConfigState, ProcessState
from greenroom.errors import Problem
from greenroom.model.configuration import Configuration

FAULT = Problem("room shop", "cookie_suffix: must differ from that of waiting room other")
STATE = ProcessState(
    version="1",
    phase="serving",
    now_ms=1,
    started_ms=1,
    listen="127.0.0.1:8080",
    data="/data",
    config=ConfigState(),
    rooms=(),
    gateway=(),
    faults=(FAULT,),
)


def page_of(rig: DashboardRig, state: ProcessState) -> str:
    rig.shown.state = lambda *_: state
    return rig.person("admin").get("/problems").text


def test_the_dashboard_names_what_cannot_be_used(tmp_path: Path) -> None:
    with dashboard_in(tmp_path) as rig:
        page = page_of(rig, STATE)
        assert FAULT.pointer in page
        assert FAULT.reason in page
        assert "the rest runs" in page


def test_an_alert_names_what_cannot_be_used() -> None:
    taken = PictureTaker().take(STATE, Configuration(), "127.0.0.1:8081", "")
    (found,) = [one for one in conditions(taken) if one.type == "greenroom_config_refused"]
    assert str(FAULT) in found.data["problems"]
