"""The overview of a room: the settings that make it what it is are seen at once, the others are
folded and readable without a script.
"""

import re

from config_material import room
from dashboard_rig import DashboardRig

FOLDED = re.compile(
    r'<details class="kept-settings"><summary>Default settings \((\d+)\)</summary>(.*?)</details>',
    re.S,
)


def settings(rig: DashboardRig, room_id: str) -> tuple[list[str], list[str]]:
    """Labels of the settings that are seen at once, and of those that are folded."""
    text = rig.person("viewer").get(f"/zones/z1/rooms/{room_id}").text
    folded = FOLDED.search(text)
    assert folded
    labels = re.findall(r"<dt>([^<]+)</dt>", folded[2])
    assert len(labels) == int(folded[1])
    return re.findall(r"<dt>([^<]+)</dt>", FOLDED.sub("", text)), labels


def test_settings_that_still_have_their_default_are_folded(dashboard: DashboardRig) -> None:
    dashboard.put(
        (room("plain"), "z1"),
        (room("own", session_duration=7, queueing_method="random", description="sale"), "z1"),
    )
    seen, folded = settings(dashboard, "plain")
    assert seen == ["Name", "Host", "Active visitors at once", "New visitors per minute"]
    assert {
        "Session length",
        "Queueing method",
        "Note",
        "More hosts and paths",
        "Hold all new visitors",
    } <= set(folded)
    changed, rest = settings(dashboard, "own")
    assert set(changed) - set(seen) == {"Session length", "Queueing method", "Note"}
    assert sorted(changed + rest) == sorted(seen + folded)
