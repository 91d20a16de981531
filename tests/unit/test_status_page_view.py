"""What a status page says: plain words, nothing that is the operators' business alone, and three
forms of the same facts.
"""

import re
from dataclasses import replace
from math import inf
from typing import Any
from xml.etree import ElementTree

import pytest

from greenroom.admission.schedule import Effective, Phase
from greenroom.decision.room_view import Figures, RoomView
from greenroom.model.alert import Incident
from greenroom.model.alert_types import ALERTS, make
from greenroom.model.branding import Branding
from greenroom.model.event import Event
from greenroom.model.room import Room
from greenroom.model.status_page import StatusPage
from greenroom.model.visit import Estimate
from greenroom.status_page.render import CSP, STYLE, atom, document, html
from greenroom.status_page.view import DAYS, CheckFacts, NoteFacts, RoomFacts, StatusFacts, view

NOW = 1_900_000_000_000  # 17 March 2030
DAY = 86_400_000
EVERYTHING = StatusPage(title="Shop <status>", rooms=("*",), health_checks=("*",))


def incident(
    correlation_id: str = "i1",
    began_ms: int = NOW - DAY,
    ended_ms: int | None = NOW - DAY + 5_400_000,
    kind: str = "",
) -> Incident:
    kind = kind or "health_check_status_notification"
    row = ALERTS[kind]
    start = make(
        kind,
        "start",
        began_ms,
        correlation_id,
        row.example,
        subject_id="c1",
        subject_name="secret-name",
    )
    end = (
        None
        if ended_ms is None
        else make(kind, "end", ended_ms, correlation_id, row.example, subject_id="c1")
    )
    return Incident(start, end)


CHECK = CheckFacts(
    "c1",
    "Payments",
    "healthy",
    days={"2030-03-17": (99, 100), "2030-03-16": (50, 100)},
    response_ms=41.6,
)


def words(*rooms: RoomFacts, checks: tuple[CheckFacts, ...] = ()) -> list[tuple[str, str]]:
    return [
        (line.state, line.words) for line in view(EVERYTHING, StatusFacts(NOW, rooms, checks)).lines
    ]


ROOM = Room(id="r1", name="shop", host="a", path="/", total_active_users=9, new_users_per_minute=9)
OPENS = Event(
    id="e1", name="sale", event_start_ms=NOW, event_end_ms=NOW + DAY, prequeue_start_ms=NOW - DAY
)


def room_facts(
    id: str = "r1", name: str = "shop", zone: str = "", suspended: bool = False, **changed: Any
) -> RoomFacts:
    figures = {name: changed.pop(name) for name in ("waiting", "storage_failed") if name in changed}
    wait_s = changed.pop("wait_s", None)
    estimate = None if wait_s is None else Estimate(wait_s, wait_s, wait_s)
    stage = {
        name: changed.pop(name) for name in ("phase", "event", "origin_down") if name in changed
    }
    view = RoomView(
        Effective(replace(ROOM, **changed), **stage),
        Figures(estimate=estimate, **figures),
        suspended,
    )
    return RoomFacts(id, name, view, zone)


PREQUEUE = {"phase": Phase.PREQUEUE, "event": OPENS}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ("good", "Open")),
        ({"waiting": 3, "wait_s": 61.0}, ("busy", "New visitors wait about 2 minutes")),
        ({"waiting": 3, "wait_s": 5.0}, ("busy", "New visitors wait about 1 minute")),
        ({"waiting": 3}, ("busy", "Visitors are waiting")),
        ({"waiting": 3, "wait_s": inf}, ("busy", "Visitors are waiting")),
        ({"waiting": 3, "suspended": True}, ("good", "Open")),
        ({"waiting": 3, "queueing_method": "passthrough"}, ("good", "Open")),
        ({"queueing_method": "reject"}, ("busy", "Closed to new visitors at the moment")),
        ({"queue_all": True}, ("busy", "All new visitors wait at the moment")),
        ({"origin_down": True}, ("busy", "All new visitors wait at the moment")),
        (
            {"queue_all": True, "waiting": 3, "wait_s": 61.0},
            ("busy", "All new visitors wait at the moment"),
        ),
        (PREQUEUE, ("busy", "Lets visitors in from 17 March 2030, 17:46 UTC")),
        ({**PREQUEUE, "queue_all": True}, ("busy", "All new visitors wait at the moment")),
        (
            {"queue_all": True, "storage_failed": True},
            ("bad", "Entry is paused; places in line are kept"),
        ),
        (
            {"storage_failed": True, "waiting": 3},
            ("bad", "Entry is paused; places in line are kept"),
        ),
    ],
)
def test_a_room_in_plain_words(changed: dict, expected: tuple) -> None:
    assert words(room_facts(**changed)) == [expected]


@pytest.mark.parametrize(
    ("status", "state"),
    [("healthy", "good"), ("unhealthy", "bad"), ("unknown", "unknown"), ("suspended", "unknown")],
)
def test_a_check_in_plain_words(status: str, state: str) -> None:
    assert words(checks=(CheckFacts("c1", "a", status),))[0][0] == state


def test_the_worst_line_is_the_headline() -> None:
    bad, good = CheckFacts("c1", "a", "unhealthy"), CheckFacts("c2", "b", "healthy")
    busy = room_facts(waiting=3)
    assert view(EVERYTHING, StatusFacts(NOW, (busy,), (bad, good))).words == "Some systems are down"
    assert (
        view(EVERYTHING, StatusFacts(NOW, (busy,), (good,))).words
        == "All systems operational. Expect a wait."
    )
    assert view(EVERYTHING, StatusFacts(NOW, (), (good,))).words == "All systems operational"
    assert view(EVERYTHING, StatusFacts(NOW)).words == "Status unknown"


def test_ninety_days_ending_today_and_their_sum() -> None:
    (line,) = view(EVERYTHING, StatusFacts(NOW, (), (CHECK,))).lines
    assert len(line.days) == DAYS
    assert (line.days[-1].day, line.days[-1].part, line.days[-2].part, line.days[0].part) == (
        "2030-03-17",
        0.99,
        0.5,
        None,
    )
    assert (line.uptime, line.response_ms) == (149 / 200, 42)


def test_a_page_shows_what_was_chosen_for_it() -> None:
    facts = StatusFacts(
        NOW,
        (
            room_facts(zone="a.example", branding=Branding(site_name="Ticket shop")),
            room_facts("r2", "blog", "b.example", host="b.example", path="/news/"),
        ),
        (CHECK,),
        [incident()],
    )

    def names(**settings) -> list[str]:
        return [line.name for line in view(StatusPage(**settings), facts).lines]

    assert names() == []
    assert names(rooms=("blog",)) == ["b.example/news"]
    assert names(rooms=("*",), zone="a.example") == ["Ticket shop"]
    assert names(rooms=("*",), health_checks=("Payments",)) == [
        "Payments",
        "Ticket shop",
        "b.example/news",
    ]
    assert view(StatusPage(rooms=("*",)), facts).stories == ()


def test_incidents_have_their_times_from_alerts_and_their_notes_from_operators() -> None:
    notes = (
        NoteFacts("n2", "i1", "", "It is fixed.", NOW - DAY + 60),
        NoteFacts("n1", "i1", "", "We are on it.", NOW - DAY + 30),
        NoteFacts("n3", "", "Maintenance on Sunday", "From 2 to 4.", NOW - 5),
        NoteFacts("n4", "", "Old", "Long ago.", NOW - 100 * DAY),
        NoteFacts("n5", "other", "", "Of an incident that is not shown.", NOW),
    )
    found = view(
        EVERYTHING,
        StatusFacts(NOW, (), (CHECK,), [incident(), incident("i2", NOW - 60_000, None)], notes),
    )
    assert [(story.title, story.open) for story in found.stories] == [
        ("Payments is not working", True),
        ("Maintenance on Sunday", False),
        ("Payments was not working", False),
    ]
    assert [note.text for note in found.stories[2].notes] == ["We are on it.", "It is fixed."]


def test_what_is_the_operators_business_alone_is_not_on_the_page() -> None:
    row = ALERTS["health_check_status_notification"]
    facts = StatusFacts(
        NOW,
        (room_facts("c1", "secret-name", waiting=3), room_facts("r2", "secret-name", host="*")),
        (CHECK,),
        [incident(), incident("i3", kind="greenroom_queueing")],
    )
    found = view(EVERYTHING, facts)
    forms = [
        html(found, "/feed.atom", "/status.json"),
        str(document(found)),
        atom(found, "http://a/", "http://a/feed.atom"),
    ]
    for hidden in (
        row.example["reason"],
        row.example["origin_ip"],
        "secret-name",
        "health_check",
        "queueing",
    ):
        assert all(hidden not in form for form in forms), hidden


def test_the_page_needs_no_script_and_cannot_be_made_to_run_one() -> None:
    nasty = '"><script>alert(1)</script>'
    notes = (NoteFacts("n1", "", nasty, nasty + "\x01\n\nSecond paragraph", NOW),)
    check = CheckFacts("c1", nasty, "healthy", days=CHECK.days)
    found = view(
        StatusPage(title=nasty, health_checks=("*",)),
        StatusFacts(NOW, (), (check,), [incident()], notes),
    )
    page = html(found, "/feed.atom", "/status.json")
    assert "<script" not in page
    assert not re.search(r"\son\w+=|style=|javascript:", page.replace(STYLE, ""))
    assert page.count("<rect ") == DAYS
    assert CSP.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in CSP
    feed = ElementTree.fromstring(
        atom(found, "http://status.example.com/", "http://status.example.com/feed.atom")
    )
    assert [
        entry.findtext("{*}title") for entry in feed.iter("{http://www.w3.org/2005/Atom}entry")
    ] == [nasty, f"{nasty} was not working"]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ({"2030-03-17": (99_999, 100_000)}, "99.99 % uptime today"),  # never rounded up to 100 %
        ({"2030-03-17": (5, 5)}, "100 % uptime today"),
        ({"2030-03-17": (5, 5), "2030-03-02": (1, 1)}, "100 % uptime since 2 March 2030"),
        ({"2030-03-17": (5, 5), "2029-12-18": (1, 1)}, "100 % uptime in 90 days"),
        ({"2030-03-17": (5, 5), "2029-12-17": (0, 1)}, "100 % uptime today"),
    ],
)
def test_uptime_names_no_period_longer_than_is_known(days: dict, expected: str) -> None:
    check = CheckFacts("c1", "a", "healthy", days=days)
    assert expected in html(view(EVERYTHING, StatusFacts(NOW, (), (check,))), "", "")


def test_the_document_for_programs() -> None:
    found = document(
        view(
            EVERYTHING,
            StatusFacts(NOW, (room_facts(),), (CHECK,), [incident("i2", NOW - 60_000, None)]),
        )
    )
    assert found["status"] == "good"
    assert found["updated_at"] == "2030-03-17T17:46:40Z"
    assert [component["name"] for component in found["components"]] == ["Payments", "a"]
    assert found["incidents"][0] == {
        "id": "i2",
        "title": "Payments is not working",
        "started_at": "2030-03-17T17:45:40Z",
        "ended_at": None,
        "notes": [],
    }
