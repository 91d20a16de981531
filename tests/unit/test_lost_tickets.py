"""Tickets that do not come back are noticed and explained; those that are merely new are not."""

from typing import Any

import pytest
from admission_world import small_room

from greenroom.admission.schedule import effective
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.lost_tickets import (
    CLIENTS_MAX,
    TELL_AGAIN_MS,
    WITHIN_MS,
    LostTickets,
    probable_cause,
)
from greenroom.decision.observer import Decided, DecisionEvent
from greenroom.model.route import CookieAttributes
from greenroom.model.visit import Arrival, Ticket, make_key

UPDATE = ((b"greenroom-update", b"1"),)
NOW_MS = 1_893_456_000_000
TICKET = Ticket(b"twelve bytes", make_key(NOW_MS, 1), 0, NOW_MS, 5_000)


def arrival(client: str = "192.0.2.1", headers: Any = UPDATE, **changes: Any) -> Arrival:
    facts = {"scheme": "https", "host": "a.example", "path": "/", **changes}
    return Arrival("GET", query="", headers=headers, client=client, **facts)


class Watch:
    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []
        self.heard: list[DecisionEvent] = []
        self.lost = LostTickets(lambda room, came, loud: self.told.append((came.client, loud)))
        self.observe = self.lost.behind(self.heard.append)
        self.room = effective(small_room(), (), 0)

    def see(self, came: Arrival, at_ms: int = 0, ticket: Ticket | None = None) -> None:
        self.observe(DecisionEvent(NOW_MS + at_ms, Decided.HELD, self.room, came, ticket))


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_three_updates_of_a_client_without_a_ticket_are_told_once(watch: Watch) -> None:
    for second in range(10):
        watch.see(arrival(), second * 1_000)
    assert watch.told == [("192.0.2.1", True)]


def test_who_observes_first_hears_of_every_decision(watch: Watch) -> None:
    events = [
        DecisionEvent(NOW_MS, Decided.HELD, watch.room, arrival(), ticket)
        for ticket in (TICKET, None, None, None)
    ]
    for event in events:
        watch.observe(event)
    assert watch.heard == events
    assert watch.told == [("192.0.2.1", True)]


def test_a_second_client_is_counted_and_not_logged_until_ten_minutes_later(watch: Watch) -> None:
    for client in ("192.0.2.1", "192.0.2.2"):
        for _ in range(3):
            watch.see(arrival(client))
    for _ in range(3):
        watch.see(arrival("192.0.2.3"), TELL_AGAIN_MS)
    assert watch.told == [("192.0.2.1", True), ("192.0.2.2", False), ("192.0.2.3", True)]


@pytest.mark.parametrize("came", ["newcomers", "with tickets", "rarely"])
def test_nothing_is_said_of_honest_visitors(watch: Watch, came: str) -> None:
    for number in range(20):
        if came == "newcomers":  # as many behind one address
            watch.see(arrival(headers=()))
        elif came == "with tickets":
            watch.see(arrival(), ticket=TICKET)
        else:  # a new ticket key costs each browser one update
            watch.see(arrival(), number * WITHIN_MS // 2)
    assert watch.told == []


def test_a_flood_of_clients_is_bounded(watch: Watch) -> None:
    for number in range(3 * CLIENTS_MAX):
        watch.see(arrival(f"client {number}"))
    assert len(watch.lost._clients) <= CLIENTS_MAX


@pytest.mark.parametrize(
    ("room", "changes", "word"),
    [
        ({"cookie_attributes": CookieAttributes(secure="always")}, {"scheme": "http"}, "Proto"),
        ({"path": "/checkout"}, {"path": "/checkout"}, "Prefix"),
        ({"path": "/checkout"}, {"prefix": "/gw"}, "Set-Cookie"),
        ({}, {}, "Set-Cookie"),
    ],
)
def test_the_cause_is_guessed(room: Any, changes: Any, word: str) -> None:
    assert word in probable_cause(small_room(**room), arrival(**changes))


def test_they_are_counted_for_the_metric_until_the_room_is_gone() -> None:
    counts = DecisionCounts()
    counts.ticket_lost("a")
    assert counts.of("a") == {"ticket_lost": 1}
    counts.keep(set())
    assert counts.of("a") == {}
