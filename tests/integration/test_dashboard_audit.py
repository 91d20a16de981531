"""The audit log in the dashboard: what happened in words, to the second, found by person, room,
kind and time.
"""

import html
import re
from datetime import UTC, datetime

import pytest
from config_material import HOUR_MS, event, room
from dashboard_rig import DashboardRig

from greenroom.configuration import operations, rooms
from greenroom.configuration.dashboard.audit import words
from greenroom.model.change import AuditEntry
from greenroom.model.configuration import Configuration

AT = "/audit"


def lines(text: str) -> list[str]:
    found = re.findall(r"<summary>(.*?)</summary>", text.partition("</header>")[2], re.S)
    plain = [html.unescape(re.sub(r"<[^>]+>", "", one)).strip() for one in found]
    return [re.sub(r"\s+", " ", one) for one in plain if "revision" in one]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"total_active_users": 5},
            {"total_active_users": 1200},
            "raised Active visitors at once from 5 to 1,200",
        ),
        (
            {"new_users_per_minute": 9},
            {"new_users_per_minute": 3},
            "lowered New visitors per minute from 9 to 3",
        ),
        ({"queue_all": False}, {"queue_all": True}, "switched on Hold all new visitors"),
        ({"description": "a"}, {"description": ""}, "cleared Note"),
        ({"description": ""}, {"description": "x" * 61}, "changed Note"),
        ({"event_end_ms": 1}, {"event_end_ms": 2}, "moved End"),
        (
            {"a": "", "b": 1, "c": None, "d": 1},
            {"a": "x", "b": 2, "c": 3, "d": 0},
            "set a to “x”, raised b from 1 to 2, set c to 3 and 1 more",
        ),
    ],
)
def test_a_change_is_said_in_words(before: dict, after: dict, said: str) -> None:
    entry = AuditEntry(
        number=1,
        revision=1,
        at_ms=0,
        author="mia",
        action="changed",
        kind="room",
        id="r",
        parent="z",
        name="shop",
        before=before,
        after=after,
    )
    assert words(entry, Configuration()) == f"{said} in room shop"


def test_entries_are_found_by_person_room_kind_and_time(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("viewer")
    dashboard.put((room("shop", host="shop.z1.example"), "z1"))
    dashboard.clock.at_ms += HOUR_MS
    change = rooms.change("z1", "shop", {"total_active_users": 220}, whole=False)
    dashboard.config.change("mia (dashboard)", change)
    dashboard.config.change("tom", operations.begin("z1", "shop", "hold", "tom"))
    dashboard.put((event("sale", dashboard.clock.at_ms + HOUR_MS), "shop"))
    raised = "raised Active visitors at once from 200 to 220 in room shop"
    found = lines(visitor.get(AT).text)
    assert "created event sale" in found[0]
    assert raised in found[2]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", found[0])

    def told(query: str) -> list[str]:
        return lines(visitor.get(f"{AT}?{query}").text)

    assert [raised in one for one in told("who=MIA")] == [True]
    assert len(told("room=shop")) == 4
    assert ["put shop on hold" in one for one in told("room=shop&kind=operation")] == [True]
    assert told("who=100%25") == told("kind=room&who=nobody") == told("room=none") == []
    assert "Nothing matches" in visitor.get(f"{AT}?room=none").text
    later = dashboard.clock.at_ms // 1000 + 1
    moment = f"{datetime.fromtimestamp(later, UTC):%Y-%m-%dT%H:%M:%S}"
    assert told(f"from={moment}") == []
    assert told(f"to={moment}") == found
    assert told("from=soon&kind=what") == found
