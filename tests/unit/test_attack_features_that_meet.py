"""Attacks by visitors where two features meet: a limit that follows the origin, moves to another
device, shares of the origin and commands of the origin.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from decision_sites import full, link_of, pressed, sites_in
from visitors import NAVIGATES, Browser

from greenroom.capacity.histogram import Histogram
from greenroom.capacity.law import CapacityLaw
from greenroom.capacity.window import CapacityTarget, OperatorLimits, Window
from greenroom.decision.verdict import Forward
from greenroom.gateway.documents import Documents, JudgedDocuments, ages_of
from greenroom.gateway.origin.shares import ticket_of
from greenroom.model.visit import Ticket, make_key

WINDOW_S, INSIDE = 5, 60
LIMITS = OperatorLimits(
    total_active_users=100, new_users_per_minute=100, floor=5, objective_ms=1_000
)
ATTACKER = 1 << 40


def judged(others_s: float, attack: Callable[[JudgedDocuments, float], None]) -> CapacityTarget:
    """What the law says after three minutes with INSIDE visitors, who load a page every six seconds,
    and an attacker.
    """
    law, documents, before = CapacityLaw(LIMITS, INSIDE), JudgedDocuments(), (Histogram(), 0)
    for window in range(36):
        for tenth in range(10 * WINDOW_S):
            now_s = 1_000.0 + window * WINDOW_S + tenth / 10
            documents.judge(int(10 * now_s) % INSIDE, 200, others_s, now_s)
            attack(documents, now_s)
        counts = [
            now - then
            for now, then in zip(documents.histogram.counts, before[0].counts, strict=True)
        ]
        seen = Histogram(tuple(counts), documents.histogram.sum_ms - before[0].sum_ms)
        failed, before = documents.failed - before[1], (documents.histogram, documents.failed)
        told = law.step(Window(documents=seen, failed=failed, active=INSIDE), int(1_000 * now_s))
    return told


@pytest.mark.parametrize("status", [200, 500])
def test_one_visitor_with_a_page_that_is_slow_or_fails_never_lowers_the_limit(status: int) -> None:
    def attack(documents: JudgedDocuments, now_s: float) -> None:
        for _ in range(10):
            documents.judge(ATTACKER, status, 20.0, now_s)

    assert judged(0.1, attack).sessions >= INSIDE


def test_one_visitor_with_a_fast_page_does_not_hide_that_the_others_wait() -> None:
    def attack(documents: JudgedDocuments, now_s: float) -> None:
        for _ in range(100):
            documents.judge(ATTACKER, 200, 0.001, now_s)

    assert judged(3.0, attack).per_minute == 0


def test_what_fails_for_many_stops_admissions() -> None:
    def attack(documents: JudgedDocuments, now_s: float) -> None:
        documents.judge(int(10 * now_s) % INSIDE, 500, 0.0, now_s)

    assert judged(0.1, attack).per_minute == 0


def test_a_visitor_who_moves_to_another_device_keeps_the_same_shares(tmp_path: Path) -> None:
    """Of the origin's connections, of its documents, and of those that it has not answered."""
    site = sites_in(tmp_path)(new_users_per_minute=5)
    device = full(site)
    documents = Documents()
    counted = documents.judged("r")
    forwards = []
    for _ in range(4):
        forward = device.visit()
        assert isinstance(forward, Forward)
        forwards.append(forward)
        documents.answered(forward, device.arrival(headers=NAVIGATES), 500, 0.1)
        other = Browser(site)
        assert pressed(other, link_of(device))
        device = other
    assert len({forward.ticket.id for forward in forwards if forward.ticket}) == 4
    assert len({ticket_of(forward) for forward in forwards}) == 1
    assert counted.failed == 1
    room = documents.of("r")
    assert room is not None
    assert room.failed == 4, "metrics show them all"
    pending = ages_of((forward, 1.0 + at) for at, forward in enumerate(forwards))
    assert (pending["r"].total, pending["r"].sum_ms) == (1, 4_000)


def test_two_visitors_have_a_share_each() -> None:
    one, other = (Forward(ticket=Ticket(bytes(12), make_key(1_790_000_000_000, tie), 1, 1, 0))
                  for tie in (1, 2))  # fmt: skip
    assert ticket_of(one) != ticket_of(other) != b""


def test_who_moves_while_the_origin_answers_does_not_escape_its_revoke(tmp_path: Path) -> None:
    site = sites_in(tmp_path)(enabled_origin_commands=("revoke",), new_users_per_minute=5)
    device = full(site)
    ordered = device.visit()
    assert isinstance(ordered, Forward)
    for _ in range(3):
        other = Browser(site)
        assert pressed(other, link_of(device))
        device = other
    assert site.decisions.obey(ordered, b"revoke")
    again = device.visit()
    assert isinstance(again, Forward), "the unit is free"
    assert again.ticket is not None
    assert ordered.ticket is not None
    assert again.ticket.key != ordered.ticket.key, "as somebody new"
    assert site.counted.of("r")["revoked"] == 1
    assert site.counted.of("r").get("not_here", 0) == 0
