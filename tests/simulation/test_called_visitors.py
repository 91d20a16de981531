"""Visitors who are called: how long before their turn the message *soon* comes, and what it costs
others when half of the called come late.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
from small_worlds import little, streams_of

from greenroom.calls.rules import LOOK_MS, Absent, drawn, step
from greenroom.model.call import EMAIL, NOW, SOON, TRAVEL_MINUTES, VisitorCall
from greenroom.model.record import replace as changed
from greenroom.model.visit import Outcome
from greenroom.simulator.checks import Watch, verdict
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.report import report
from greenroom.simulator.scenario import START_MS, Behaviour, Fault, Scenario
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
    """1,000 visitors in three minutes, in three data centers; thirty enter a minute."""
    return little(
        room=ROOM, centers=3, behaviour=HABITS, laws_every_s=60,
        arrivals=[(180 * number, number % 3) for number in range(1_000)], lasts_s=2_300,
    )  # fmt: skip


def steady() -> Scenario:
    """Three come for every two who may enter, for fifty minutes."""
    return little(
        room=ROOM, centers=1, behaviour=HABITS, laws_every_s=60,
        arrivals=[(1_333 * number, 0) for number in range(2_250)], lasts_s=4_700,
    )  # fmt: skip


DRAWS_S = 2_400


def draw() -> Scenario:
    """1,100 gather for half an hour, and are drawn ten minutes later; thirty enter a minute."""
    return little(
        room=ROOM, centers=1, behaviour=HABITS, laws_every_s=60,
        arrivals=[(1_600 * number, 0) for number in range(1_100)], lasts_s=DRAWS_S + 2_800,
        faults=(Fault("pre-queue", 0, DRAWS_S, amount=1),),
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
    """Looks at everybody who wants to be called, as the sender does. Before a draw, who is told to
    set out is back in time, but for those who are late; and closes the page again where the wait is
    long.
    """

    def __init__(self, world: World, share: float, late: float) -> None:
        faults = world.scenario.faults
        self.draws_ms = START_MS + int(faults[0].until_s * 1000) if faults else 0
        self.back: set[SimulatedVisitor] = set()
        assert isinstance(world.system, LeaseModel)
        self.world, self.share, self.late = world, share, late
        self.system, self.before = world.system, world.crowd.listener
        self.rows: dict[SimulatedVisitor, tuple[VisitorCall, int]] = {}
        self.soon_ms: dict[SimulatedVisitor, int] = {}
        self.turn_ms: dict[SimulatedVisitor, tuple[int, int]] = {}
        self.draw = streams_of(1)("calls")
        self.absent, self.keys = 0, Absent()
        self.stays: set[SimulatedVisitor] = set()
        self.wants: dict[SimulatedVisitor, bool] = {}
        self.idle = (0.0, 0.0)
        if self.draws_ms:
            world.agenda.at(self.draws_ms, self.opens)
        world.crowd.listener = self
        world.agenda.after(LOOK_MS, self.look)

    def answered(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None:
        if self.before is not None:
            self.before.answered(visitor, outcome, now_ms)
        estimate = outcome.estimate
        far = (estimate is not None and estimate.p50_s > CALL_FROM_S) or now_ms < self.draws_ms
        if visitor in self.back and now_ms > self.draws_ms and estimate:
            self.back.discard(visitor)
            if far:
                visitor.absent, visitor.returns = False, True
                return
            self.stays.add(visitor)
        known = visitor in self.rows or visitor in self.soon_ms or visitor in self.turn_ms
        if known or not outcome.position:
            return
        if far and self.wants.setdefault(visitor, self.draw.random() < self.share):
            travel_ms = 60_000 * self.draw.choice(TRAVEL_MINUTES[:2])
            call = VisitorCall(EMAIL, "", visitor.key, now_ms, "", "", travel_ms, confirmed=True)
            self.rows[visitor] = call, now_ms
            visitor.absent, visitor.returns = False, True
            self.absent += 1

    def opens(self) -> None:
        truth = self.world.ground_truth
        self.idle = truth.unused_ms, truth.waited_ms

    def left(self, visitor: SimulatedVisitor, now_ms: int) -> None:
        if self.before is not None:
            self.before.left(visitor, now_ms)

    def look(self) -> None:
        now_ms = self.world.agenda.now_ms
        for visitor, (call, again_ms) in list(self.rows.items()):
            there = visitor in self.back or visitor in self.stays
            if not there:  # the page is closed: no try until called
                visitor.plan += 1
                self.world.crowd._ground_truth.gone(visitor)
            if again_ms > now_ms:
                continue
            center = self.system.centers[visitor.center]
            ledger, local_ms = center.ledger, self.system.local_ms(center)
            bits = self.draw.getrandbits(64)
            key, draws_ms = visitor.key, self.draws_ms if now_ms < self.draws_ms else 0
            outcome = ledger.reclaim(visitor.id, key, local_ms, bits)
            if key != call.key:
                self.keys.note(call.key, False)
            self.keys.note(key, not outcome.position)
            ahead = self.keys.ahead(key)
            call = drawn(call, key, outcome, ahead)
            todo = step(call, outcome, True, now_ms, ahead, draws_ms)
            if todo.message:
                call = changed(call, sent=todo.message)
            if todo.message == SOON:
                self.soon_ms[visitor] = now_ms
                if draws_ms:
                    self.sets_out(visitor, draws_ms - now_ms)
            self.rows[visitor] = call, now_ms + todo.again_ms
            if todo.message == NOW or todo.ends:
                del self.rows[visitor]
                self.keys.note(key, False)
                self.turn_ms[visitor] = visitor.entered_ms or now_ms, call.travel_ms
                if there:
                    continue
                rest_ms = LATE_MS if self.draw.random() < self.late else COMES_MS
                self.world.agenda.after(rest_ms, self.world.crowd._tries, visitor, visitor.plan)
        self.world.agenda.after(LOOK_MS, self.look)

    def sets_out(self, visitor: SimulatedVisitor, left_ms: int) -> None:
        """Who is late comes after the draw, and has a place behind all who were drawn."""
        late = self.draw.random() < self.late / 5
        after_ms = left_ms + 120_000 if late else int(left_ms * self.draw.uniform(0.3, 0.95))

        def returns() -> None:
            if visitor in self.rows:
                self.back.add(visitor)
                self.world.crowd._tries(visitor, visitor.plan)

        self.world.agenda.after(after_ms, returns)


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
    truth, (unused_ms, waited_ms) = watch.world.ground_truth, caller.idle
    unused = (truth.unused_ms - unused_ms) / (truth.waited_ms - waited_ms)
    return Called(before, unused, found.entered, crowd.too_late, caller.absent)


@pytest.mark.parametrize("scenario", [flash_sale, steady, draw])
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
