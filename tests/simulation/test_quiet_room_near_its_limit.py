"""A quiet room of many data centers, each with few permits: who has only to show the ticket finds a
permit when it comes back.
"""

from dataclasses import replace
from random import Random

import pytest

from greenroom.admission.ledger.ledger import Ledger
from greenroom.simulator.arrivals import arrivals
from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.scenario import Behaviour, Scenario
from greenroom.simulator.traces import level, room
from greenroom.simulator.world import World

CENTERS, PER_S = 20, 3.0
MOST = 0.001


def quiet(seed: int = 1) -> SimulationReport:
    def streams(part: str) -> Random:
        return Random(f"{seed}/{part}")

    found = arrivals(streams("trace"), 200, lambda _: level([1 / CENTERS] * CENTERS, PER_S))
    asks = replace(room(450, 240), confirm_newcomers=True)
    world = World(Scenario("quiet", asks, CENTERS, found, 200, Behaviour(parts=True)), streams)
    world.run()
    assert world.broken_laws == []
    return report(world)


def test_a_newcomer_who_shows_the_ticket_finds_a_permit() -> None:
    found = quiet()
    assert found.asked_for_ticket > 0.9
    assert found.queued_early <= MOST


def test_a_ledger_that_borrows_only_for_who_is_let_in_at_once_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    borrows = Ledger.borrows
    monkeypatch.setattr(
        Ledger,
        "borrows",
        lambda ledger, now_ms: 0 if ledger.confirms_newcomers(now_ms) else borrows(ledger, now_ms),
    )
    assert quiet().queued_early > MOST
