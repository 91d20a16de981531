"""The order of decision: which question an arrival comes to, and that nothing further down is
looked at before.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenroom.admission.decide import (
    RECEIPT_QUERY,
    ArrivalQuestion,
    Found,
    decide,
    decide_among,
    rank,
)
from greenroom.model.room import Room
from greenroom.model.rule import Rule
from greenroom.model.visit import PLACE_KEPT_MS, Arrival, Ticket, make_key

NOW = 1_800_000_000_000
SOURCE = Path(__file__).resolve().parents[2] / "src" / "greenroom"
DOCUMENTED = ast.get_docstring(ast.parse((SOURCE / "admission" / "decide.py").read_text())) or ""


def ticket(*, arrived=NOW - 60_000, accepted=0, checked=NOW - 20_000, refresh=20_000, name=b"t"):
    return Ticket(name.ljust(12, b"-"), make_key(arrived, 0), accepted, checked, refresh)


@dataclass
class Covered:
    room: Room
    holding: Rule | None = None
    holds_nobody: bool = False
    receipts: bool | None = None
    looked: int = 0
    passes_well_known: bool = True
    crosses_sites: bool = False
    moves: bool = False
    calls: bool = False
    extensions: int = 0

    def ticket_crosses_sites(self, _scheme: str) -> bool:
        return self.crosses_sites

    def bypass(self, _arrival: Arrival, _now_ms: int) -> Rule | None:
        self.looked += 1
        return self.holding

    @property
    def draw(self):
        return None if self.receipts is None else self

    def has_receipt(self, _ticket_id: bytes) -> bool:
        return bool(self.receipts)


def covered(holding=None, holds_nobody=False, receipts=None, **changes):
    room = Room(name="r", host="a.example", total_active_users=5, new_users_per_minute=5, **changes)
    return Covered(room, holding, holds_nobody, receipts)


def arrival(method="GET", query="", headers=((b"accept", b"text/html"),)):
    return Arrival(method, "http", "a.example", "/", query, headers, "192.0.2.1")


def asked(tickets, room=None, sent=None):
    opened = []

    def open_tickets(*_) -> Found:
        opened.append(True)
        return [(one, b"spelled") for one in tickets]

    question, found = decide(room or covered(), sent or arrival(), NOW, open_tickets)
    return question, [one for one, _ in found], bool(opened)


RULE = Rule(id="a", expression="true")
INSIDE = ticket(accepted=NOW - 5_000, name=b"i")
LEAVES = arrival("POST", headers=((b"greenroom-update", b"leave"),))
BLIND = arrival("HEAD")


def test_an_arrival_that_no_room_covers_is_asked_nothing() -> None:
    assert decide(None, arrival(), NOW, lambda *_: pytest.fail("opened tickets")) == (
        ArrivalQuestion.UNCOVERED,
        (),
    )


def test_a_suspended_room_asks_nothing_and_looks_at_no_rule_and_no_ticket() -> None:
    room = covered(suspended=True, holding=RULE)
    assert asked([INSIDE], room) == (ArrivalQuestion.SUSPENDED, [], False)
    assert room.looked == 0


def test_a_rule_that_holds_lets_by_before_any_ticket_is_opened() -> None:
    assert asked([INSIDE], covered(holding=RULE)) == (ArrivalQuestion.BYPASSED, [], False)
    assert asked([INSIDE], covered())[0] is ArrivalQuestion.VIEW


def test_a_newcomer_that_can_show_a_page_arrives() -> None:
    assert asked([])[0] is ArrivalQuestion.ARRIVE


def test_a_newcomer_that_cannot_show_a_page_passes_provisionally_or_gets_no_place_unless_the_room_holds_no_visitor() -> (
    None
):
    assert asked([], sent=BLIND)[0] is ArrivalQuestion.PROVISIONAL
    assert (
        asked([], covered(provisional_sessions=False), sent=BLIND)[0] is ArrivalQuestion.PLACELESS
    )
    assert asked([], covered(holds_nobody=True), sent=BLIND)[0] is ArrivalQuestion.ARRIVE
    assert asked([ticket()], sent=BLIND)[0] is ArrivalQuestion.POLL, (
        "a ticket proves that it has a place already"
    )


@pytest.mark.parametrize("kind", ["iframe", "frame", "embed", "object", "fencedframe"])
def test_a_frame_on_another_site_takes_no_place_unless_the_room_may_be_embedded(kind: str) -> None:
    def framed(site: bytes) -> Arrival:
        marks = (
            (b"sec-fetch-dest", kind.encode()),
            (b"sec-fetch-mode", b"navigate"),
            (b"sec-fetch-site", site),
        )
        return arrival(headers=((b"accept", b"text/html"), *marks))

    closed, partner = (
        covered(provisional_sessions=False),
        covered(provisional_sessions=False, frame_ancestors="https://partner.example"),
    )
    assert asked([], closed, framed(b"cross-site"))[0] is ArrivalQuestion.PLACELESS
    assert asked([], covered(), framed(b"cross-site"))[0] is ArrivalQuestion.PROVISIONAL
    assert asked([], partner, framed(b"cross-site"))[0] is ArrivalQuestion.ARRIVE
    for site in (b"same-origin", b"same-site"):
        assert asked([], closed, framed(site))[0] is ArrivalQuestion.ARRIVE
    window = (
        (b"accept", b"text/html"),
        (b"sec-fetch-dest", b"document"),
        (b"sec-fetch-mode", b"navigate"),
        (b"sec-fetch-site", b"cross-site"),
    )
    assert asked([], closed, arrival(headers=window))[0] is ArrivalQuestion.ARRIVE, (
        "a link on another site"
    )
    assert asked([INSIDE], closed, framed(b"cross-site"))[0] is ArrivalQuestion.VIEW, (
        "a ticket proves that its bearer waits already"
    )


def test_leaving_comes_before_a_session_or_a_place_is_looked_at() -> None:
    for tickets in ([], [INSIDE], [ticket()]):
        assert asked(tickets, sent=LEAVES) == (ArrivalQuestion.LEAVE, tickets, True)
    assert asked([INSIDE], sent=arrival("POST", "greenroom=leave"))[0] is ArrivalQuestion.LEAVE
    foreign = arrival(
        "POST", "greenroom=leave", ((b"sec-fetch-site", b"cross-site"), (b"accept", b"text/html"))
    )
    assert asked([INSIDE], sent=foreign)[0] is ArrivalQuestion.VIEW, (
        "another site must not throw a visitor out"
    )
    assert asked([], sent=arrival("GET", "greenroom=leave"))[0] is ArrivalQuestion.ARRIVE


def test_a_receipt_is_saved_only_by_a_visitor_who_has_one() -> None:
    wants = arrival(query=RECEIPT_QUERY)
    assert asked([INSIDE], covered(receipts=True), wants)[0] is ArrivalQuestion.RECEIPT
    assert asked([INSIDE], covered(receipts=False), wants)[0] is ArrivalQuestion.VIEW
    assert asked([INSIDE], covered(), wants)[0] is ArrivalQuestion.VIEW
    assert asked([], covered(receipts=True), wants)[0] is ArrivalQuestion.ARRIVE


def test_an_accepted_ticket_is_looked_up_and_when_it_is_gone_the_next_one_is_asked_about() -> None:
    question, found, _ = asked([ticket(), INSIDE])
    assert (question, found) == (ArrivalQuestion.VIEW, [INSIDE, ticket()])
    rest = [(ticket(), b"")]
    assert decide_among(covered(), arrival(), NOW, rest, True) == (ArrivalQuestion.POLL, rest)
    assert decide_among(covered(), arrival(), NOW, (), True)[0] is ArrivalQuestion.ARRIVE


def test_a_genuine_ticket_however_old_proves_that_its_bearer_may_wait_with_any_kind_of_request() -> (
    None
):
    old = ticket(checked=NOW - PLACE_KEPT_MS - 1)
    assert asked([old], sent=BLIND)[0] is ArrivalQuestion.ARRIVE
    assert decide_among(covered(), BLIND, NOW, (), True)[0] is ArrivalQuestion.ARRIVE, (
        "after a session that is over"
    )


@pytest.mark.parametrize(
    ("age", "question"),
    [
        (20_000, ArrivalQuestion.POLL),
        (19_900, ArrivalQuestion.POLL),
        (19_899, ArrivalQuestion.PEEK),
        (0, ArrivalQuestion.PEEK),
    ],
)
def test_a_waiting_ticket_is_an_attempt_only_when_its_interval_has_passed(age, question) -> None:
    assert asked([ticket(checked=NOW - age)])[0] is question


def test_a_place_is_kept_five_minutes_after_the_last_check_in() -> None:
    assert asked([ticket(checked=NOW - PLACE_KEPT_MS)])[0] is ArrivalQuestion.POLL
    assert asked([ticket(checked=NOW - PLACE_KEPT_MS - 1)])[0] is ArrivalQuestion.ARRIVE


def test_of_several_tickets_an_accepted_one_goes_first_then_the_earliest_place() -> None:
    early, late = ticket(arrived=NOW - 90_000, name=b"e"), ticket(arrived=NOW - 30_000, name=b"l")
    inside, fresher = (
        ticket(accepted=NOW - 9, checked=NOW - 9, name=b"i"),
        ticket(accepted=NOW - 9, checked=NOW - 3, name=b"f"),
    )
    found = rank([(one, b"") for one in (late, inside, early, fresher)], NOW)
    assert [one for one, _ in found] == [fresher, inside, early, late]


def test_the_documented_table_names_every_question_in_the_order_of_the_code() -> None:
    rows = [line.split("|")[2].strip() for line in DOCUMENTED.splitlines() if line.startswith("|")][
        2:
    ]
    named = [ArrivalQuestion[name] for name in rows]
    assert set(named) == set(ArrivalQuestion)
    assert [question for question in named if question < ArrivalQuestion.VIEW] == sorted(
        question for question in ArrivalQuestion if question < ArrivalQuestion.VIEW
    )


def test_only_the_decision_service_and_explain_ask_what_to_do() -> None:
    """The order is known once: no one else imports `may_take_place`, which is a step of it."""
    users = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and any(
                alias.name == "may_take_place" for alias in node.names
            ):
                users.append(str(path.relative_to(SOURCE)))
    assert users == ["admission/decide.py"]
