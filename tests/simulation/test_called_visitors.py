"""Visitors who are called: how long before their turn the message *soon* comes, and what it costs
others when half of the called come late. Lines of one data center in order of arrival, where calls
are offered.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
from small_worlds import little, streams_of

from greenroom.calls.rules import LOOK_MS, Absent, step
from greenroom.model.call import EMAIL, NOW, SOON, TRAVEL_MINUTES, VisitorCall
from greenroom.model.record import replace as changed
from greenroom.model.visit import Outcome
from greenroom.simulator.checks import Watch, verdict
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Behaviour, Scenario
from greenroom.simulator.traces import room
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import World

CALL_FROM_S = 1_200
"""The room's setting, twenty minutes; everybody whose wait is longer asks to be called."""

COMES_MS, LATE_MS = 20_000, 540_000
"""How long after *now* somebody is back at the page: at once, or near the end of `claim_minutes`."""

HABITS = Behaviour(visit_s=20, leaving=1.0)
ROOM = replace(room(75, 30), call_after_minutes=20, claim_minutes=10)


def flash_sale() -> Scenario:
    """1,200 visitors in three minutes; thirty enter a minute."""
    return little(
        room=ROOM, centers=1, behaviour=HABITS, laws_every_s=60,
        arrivals=[(150 * number, 0) for number in range(1_200)], lasts_s=2_700,
    )  # fmt: skip


def steady() -> Scenario:
    """Three come for every two who may enter, for an hour."""
    return little(
        room=ROOM, centers=1, behaviour=HABITS, laws_every_s=60,
        arrivals=[(1_333 * number, 0) for number in range(2_700)], lasts_s=6_000,
    )  # fmt: skip


class Called(NamedTuple):
    """By travel time in minutes: those of each called visitor from *soon* to the turn. Then the
    share of unused capacity, and how many enter, return too late, and are called.
    """

    before: dict[int, list[float]]
    unused: float
    entered: int
    too_late: int
    absent: int


class Caller:
    """Looks at everybody who wants to be called, as the sender does."""

    def __init__(self, world: World, share: float, late: float) -> None:
        assert isinstance(world.system, LeaseModel)
        self.world, self.share, self.late = world, share, late
        self.system, self.before = world.system, world.crowd.listener
        self.rows: dict[SimulatedVisitor, tuple[VisitorCall, int]] = {}
        self.soon_ms: dict[SimulatedVisitor, int] = {}
        self.turn_ms: dict[SimulatedVisitor, tuple[int, int]] = {}
        self.draw = streams_of(1)("calls")
        self.absent, self.keys = 0, Absent()
        world.crowd.listener = self
        world.agenda.after(LOOK_MS, self.look)

    def answered(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None:
        if self.before is not None:
            self.before.answered(visitor, outcome, now_ms)
        estimate = outcome.estimate
        if visitor in self.rows or not outcome.position or visitor in self.soon_ms:
            return
        if estimate and estimate.p50_s > CALL_FROM_S and self.draw.random() < self.share:
            travel_ms = 60_000 * self.draw.choice(TRAVEL_MINUTES[:2])
            call = VisitorCall(EMAIL, "", visitor.key, now_ms, "", "", travel_ms, confirmed=True)
            self.rows[visitor] = call, now_ms
            visitor.absent, visitor.returns = False, True
            self.absent += 1

    def left(self, visitor: SimulatedVisitor, now_ms: int) -> None:
        if self.before is not None:
            self.before.left(visitor, now_ms)

    def look(self) -> None:
        center, now_ms = self.system.centers[0], self.world.agenda.now_ms
        ledger, local_ms = center.ledger, self.system.local_ms(center)
        for visitor, (call, again_ms) in list(self.rows.items()):
            if visitor.plan >= 0:  # the page is closed: no try until called
                visitor.plan += 1
                self.world.crowd._ground_truth.gone(visitor)
            if again_ms > now_ms:
                continue
            bits = self.draw.getrandbits(64)
            outcome = ledger.reclaim(visitor.id, visitor.key, local_ms, bits)
            self.keys.note(visitor.key, not outcome.position)
            todo = step(call, outcome, True, now_ms, self.keys.ahead(visitor.key))
            if todo.message:
                call = changed(call, sent=todo.message)
            if todo.message == SOON:
                self.soon_ms[visitor] = now_ms
            self.rows[visitor] = call, now_ms + todo.again_ms
            if todo.message == NOW or todo.ends:
                del self.rows[visitor]
                self.keys.note(visitor.key, False)
                self.turn_ms[visitor] = now_ms, call.travel_ms
                rest_ms = LATE_MS if self.draw.random() < self.late else COMES_MS
                self.world.agenda.after(rest_ms, self.world.crowd._tries, visitor, visitor.plan)
        self.world.agenda.after(LOOK_MS, self.look)


def called(scenario: Scenario, share: float = 0.5, late: float = 0.5) -> Called:
    watch = Watch(World(scenario, streams_of(1)))
    caller = Caller(watch.world, share, late)
    watch.world.run()
    assert verdict(watch) == []
    found, crowd = report(watch.world), watch.world.crowd
    before: dict[int, list[float]] = {}
    for visitor, (turn_ms, travel_ms) in caller.turn_ms.items():
        minutes = (turn_ms - caller.soon_ms.get(visitor, turn_ms)) / 60_000
        before.setdefault(travel_ms // 60_000, []).append(minutes)
    return Called(before, found.unused or 0.0, found.entered, crowd.too_late, caller.absent)


@pytest.mark.parametrize("scenario", [flash_sale, steady])
def test_soon_comes_in_time_and_absent_visitors_cost_nothing(
    scenario: Callable[[], Scenario],
) -> None:
    present, absent = called(scenario(), share=0.0), called(scenario())
    for travel_min, found in sorted(absent.before.items()):
        print(scenario.__name__, travel_min, sorted(found)[:: max(1, len(found) // 10)])
    print(present[1:], absent[1:])
    found = absent.before[TRAVEL_MINUTES[0]]
    assert len(found) > 50
    assert sum(minutes >= 5 for minutes in found) >= 0.9 * len(found)
    assert sum(minutes > 20 for minutes in found) <= 0.2 * len(found)
    assert absent.unused <= present.unused + 0.005
    assert absent.too_late <= absent.absent * 0.01
