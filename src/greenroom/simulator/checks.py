"""The invariants of admission as checks of any simulated world (CHECKS), some during the run
(`Watch`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from greenroom.admission.laws import problems
from greenroom.admission.ledger.newcomers import PART
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.model.visit import Outcome, Standing
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.progress import LineProgress, calm_s
from greenroom.simulator.scenario import START_MS
from greenroom.simulator.visitor import Center, SimulatedVisitor
from greenroom.simulator.world import World


@dataclass(frozen=True, slots=True)
class Fairness:
    """Of a random room, among all who waited when the last visitor came; winners are the half
    admitted first.
    """

    distance: float
    """Kolmogorov-Smirnov distance of the winners' ranks by arrival from an even spread; 0 is fair."""
    advantage: float
    """Of visitors who tried ten times as often; 1 is fair."""
    waited: int
    winners: int


def fairness(world: World) -> Fairness | None:
    if not world.scenario.arrivals:
        return None
    last_ms = START_MS + world.scenario.arrivals[-1][0]
    visitors = [
        visitor
        for visitor in world.crowd.visitors
        if not visitor.once and visitor.came_ms <= last_ms
    ]
    waited = sorted(
        (one for one in visitors if not one.entered_ms or one.entered_ms > last_ms),
        key=lambda one: one.key,
    )
    entered = sorted((one.entered_ms, place) for place, one in enumerate(waited) if one.entered_ms)
    winners = sorted(place for _, place in entered[: len(waited) // 2])
    if not winners:
        return None
    ranks = [(place + 0.5) / len(waited) for place in winners]
    distance = max(
        max(abs(rank - index / len(ranks)), abs(rank - (index + 1) / len(ranks)))
        for index, rank in enumerate(ranks)
    )
    won = set(winners)
    chances = []
    for eager in (True, False):
        group = [place for place, one in enumerate(waited) if one.reloads is eager]
        chances.append(sum(place in won for place in group) / len(group) if group else 0.0)
    return Fairness(
        distance, chances[0] / chances[1] if chances[1] else 0.0, len(waited), len(winners)
    )


TOLD_MOST = 3

ENOUGH_FOR_FAIRNESS = 300
ENOUGH_WINNERS = 150
UNFAIR = 0.2

WATCHED_MOST = 200


class Watch:
    def __init__(self, world: World) -> None:
        self.world = world
        self.found: dict[str, list[str]] = {}
        self.progress = LineProgress(world, lambda problem: self.note("I5", problem))
        self._ahead: tuple[int, int, int] | None = None
        self._fenced_ms: dict[str, int] = {}
        self._in_touch_since: dict[int, int] = {}
        if isinstance(world.system, LeaseModel):
            world.system.before_poll, world.system.after_poll = self._polled, self._answered
        world.on_sample = self._lookahead

    def note(self, law: str, problem: str) -> None:
        told = self.found.setdefault(law, [])
        if len(told) < TOLD_MOST:
            told.append(f"{(self.world.agenda.now_ms - START_MS) / 1000:.1f} s: {problem}")
            self.world.broken_laws.append(f"{law}, {told[-1]}")

    def _lookahead(self, now_ms: int) -> None:
        system = self.world.system
        self.progress.sample(now_ms)
        if isinstance(system, LeaseModel) and self.world.scenario.fence_s:
            self._note_fenced(system, now_ms)
        if isinstance(system, LeaseModel):
            self._spread_turns(system, now_ms)
        if (now_ms - START_MS) % (self.world.scenario.laws_every_s * 1000) or not isinstance(
            system, LeaseModel
        ):
            return
        for problem in problems(
            system.coordinator, [center.ledger for center in system.centers if center.listed]
        ):
            self.note("I1", problem)
        leases = [
            one.ledger.lease
            for one in system.centers
            if one.listed and not one.ledger.lease.fenced(system.local_ms(one))
        ]
        spendable = sum(
            lease.permits + min(lease.freed, lease.disconnected_rate) for lease in leases
        )
        in_use = self.world.ground_truth.in_use - self.world.ground_truth.on_trust
        largest = max(self.world.ground_truth.limits.most_active, system.coordinator.total)
        if spendable and spendable + in_use > largest:  # the last page of some was on trust
            in_use -= sum(
                one.uses and one.trusted and not one.on_trust for one in self.world.crowd.visitors
            )
        if spendable and spendable + in_use > largest:
            self.note(
                "I7", f"{spendable} units could be spent and {in_use} are in use, of {largest}"
            )
        for center in system.centers:
            self._keys(center)

    def _note_fenced(self, system: LeaseModel, now_ms: int) -> None:
        """Where messages are always being lost, a fence may pass even after the last fault."""
        coordinator_ms = system.coordinator_ms()
        for center in system.coordinator.data_centers.values():
            silent_ms = coordinator_ms - (center.contact_ms or coordinator_ms)
            if silent_ms >= self.world.scenario.fence_s * 1000:
                self._fenced_ms[center.name] = now_ms

    def orphans(self, now_ms: int) -> int:
        """Units kept for sessions that must be over, without those of a fence that has just passed."""
        scenario, system = self.world.scenario, self.world.system
        if not isinstance(system, LeaseModel):
            return 0
        kept_ms = 1_000 * calm_s(scenario.room, scenario.faults)
        return sum(
            center.orphans
            for center in system.coordinator.data_centers.values()
            if now_ms - self._fenced_ms.get(center.name, -kept_ms) > kept_ms
        )

    def _spread_turns(self, system: LeaseModel, now_ms: int) -> None:
        """Data centers that were connected for long enough know each other's used turns."""
        since = self._in_touch_since
        for number, center in enumerate(system.centers):
            if center.down or system.coordinator_down or self.world.links.is_cut(number):
                since[number] = now_ms + 1
            since.setdefault(number, now_ms)
        visitors, told_ms = self.world.crowd.visitors, now_ms - self.progress.told_within_ms
        heard = [number for number in since if since[number] <= told_ms]
        for number, knows in self.world.crowd.turns_known.items():
            if visitors[number - 1].taken_ms <= told_ms and not knows.isdisjoint(heard):
                knows.update(heard)

    def _polled(self, center: Center, visitor: SimulatedVisitor, now_ms: int) -> None:
        """Reads private state: the ledger exposes neither its expectation nor its method."""
        ledger, key = center.ledger, visitor.key
        line = ledger.line
        if ledger._method != "fifo" or len(line) > WATCHED_MOST:
            return
        due_ms = now_ms - GRACE_MS  # later ones may be swept by this very try
        keys, attempted, refresh = line.keys, line.attempted, line.refresh
        ahead = len(
            [
                slot
                for slot in line.slots.values()
                if keys[slot] < key and attempted[slot] + refresh[slot] > due_ms
            ]
        )
        self._ahead = (
            visitor.number,
            ahead,
            ledger.lease.spendable(now_ms) + int(ledger.lookahead.permits),
        )

    def _answered(
        self, center: Center, visitor: SimulatedVisitor, now_ms: int, outcome: Outcome
    ) -> None:
        """Capacity may have grown during the try, which sweeps too."""
        if (
            self._ahead
            and outcome.standing is Standing.ADMITTED
            and self._ahead[0] == visitor.number
        ):
            _, ahead, permits = self._ahead
            permits = max(
                permits,
                center.ledger.lease.spendable(now_ms) + 1 + int(center.ledger.lookahead.permits),
            )
            if ahead >= permits:
                self.note(
                    "I4",
                    f"visitor {visitor.number} entered with {permits} permits there or expected,"
                    f" and {ahead} ahead",
                )
        self._ahead = None

    def _keys(self, center: Center) -> None:
        line, visitors = center.ledger.line, self.world.crowd.visitors
        for ticket_id, slot in line.slots.items():
            visitor = visitors[int.from_bytes(ticket_id, "big") - 1]
            if line.keys[slot] != visitor.key:
                self.note(
                    "I8",
                    f"visitor {visitor.number} stands by {line.keys[slot]}, not by {visitor.key}",
                )


def _active(watch: Watch) -> list[str]:
    ground_truth = watch.world.ground_truth
    found = [f"{ground_truth.over_beyond_trust} too many active"] * (
        ground_truth.over_beyond_trust > 0
    )
    if watch.world.scenario.room.strong_sessions and ground_truth.most_on_trust:
        found.append(f"{ground_truth.most_on_trust} served on trust in strong mode")
    return found


def _minute(watch: Watch) -> list[str]:
    over = watch.world.ground_truth.over_minute
    return [f"{over} too many within 60 s"] * (over > 0)


def _fair(watch: Watch) -> list[str]:
    world = watch.world
    if (
        world.scenario.room.queueing_method != "random"
        or world.scenario.faults
        or len(world.scenario.arrivals) < ENOUGH_FOR_FAIRNESS
    ):
        return []
    found = fairness(world)
    return (
        [f"winners' ranks are {found.distance:.2f} off"]
        if found and found.winners >= ENOUGH_WINNERS and found.distance > UNFAIR
        else []
    )


FORGETFUL = {"crash", "old disk", "coordinator loss", "removed"}


def _sent_back(watch: Watch) -> list[str]:
    scenario, sent_back = watch.world.scenario, watch.world.crowd.sent_back
    forgotten = FORGETFUL & {fault.kind for fault in scenario.faults}
    return [f"{sent_back} who had been let in were told to wait"] * (
        sent_back > 0 and not forgotten
    )


def _kept(watch: Watch) -> list[str]:
    crowd, kinds = watch.world.crowd, {fault.kind for fault in watch.world.scenario.faults}
    if FORGETFUL & kinds:
        return []
    found = [f"{crowd.cut_short} sessions ended before their time"] * (crowd.cut_short > 0)
    lost = crowd.places_lost + (0 if CUTTING & kinds else crowd.places_untold)
    return found + [f"{lost} places were lost"] * (lost > 0)


def living_sessions(system: LeaseModel) -> Iterator[int]:
    for center in system.centers:
        ledger, now_ms = center.ledger, system.local_ms(center)
        yield sum(
            renewed_ms + ledger.life_ms > now_ms
            for renewed_ms in ledger.sessions.renewals().values()
        )


def _calm(watch: Watch) -> list[str]:
    world, system = watch.world, watch.world.system
    if not isinstance(system, LeaseModel) or not watch.progress.calm:
        return []
    coordinator = system.coordinator
    orphans = watch.orphans(world.agenda.now_ms)
    closing = sum(center.ledger.lease.closing for center in system.centers)
    idle = {
        f"{orphans} units are kept for sessions that must be over": orphans,
        f"{closing} units are kept for sessions that an operator has ended": closing,
        "the coordinator still waits for data centers to report": coordinator.doubting,
    }
    sessions, in_use = sum(living_sessions(system)), world.ground_truth.in_use
    idle[f"{sessions} sessions of {in_use} visitors"] = (
        not world.scenario.behaviour.moving and sessions > in_use
    )
    return [problem for problem, held in idle.items() if held]


def _provisional(watch: Watch) -> list[str]:
    scenario, over = watch.world.scenario, watch.world.provisional.over_share
    restarted = {"crash", "old disk"} & {fault.kind for fault in scenario.faults}
    return [f"provisional sessions used {over} more than their share of a limit"] * (
        over > 0 and not restarted
    )


NO_SHARE = {
    "confirm newcomers",
    "end sessions",
    "follow",
    "limits",
    "passthrough",
    "session duration",
}
"""After these a flood may rightly hold more."""


def _unconfirmed(watch: Watch) -> list[str]:
    scenario, crowd = watch.world.scenario, watch.world.crowd
    kinds = {fault.kind for fault in scenario.faults}
    if scenario.room.confirm_newcomers != "auto" or (FORGETFUL | NO_SHARE) & kinds:
        return []
    used = zip(
        (crowd.most_flood, crowd.most_flood_minute), watch.world.ground_truth.largest, strict=True
    )
    parts = PART * scenario.centers
    return [
        f"requests without cookies used {most} of {limit}"
        for most, limit in used
        if most > scenario.centers * max(1, limit // parts)
    ]


def _followed(watch: Watch) -> list[str]:
    followed = watch.world.followed
    return followed.problems[:TOLD_MOST] if followed else []


NO_TURN = FORGETFUL | {"end sessions", "session duration", "suspended"}
CUTTING = {"partition", "outage", "stop", "coordinator down", "loss"}
"""Faults in which a turn cannot follow its visitor, because its data center cannot be reached."""


def _turns(watch: Watch) -> list[str]:
    scenario, crowd = watch.world.scenario, watch.world.crowd
    kinds = {fault.kind for fault in scenario.faults}
    found = [] if FORGETFUL & kinds else crowd.wrongly_kept[:TOLD_MOST]
    at_home, elsewhere = (0, 0) if NO_TURN & kinds else crowd.turns_lost
    if lost := at_home + (0 if CUTTING & kinds else elsewhere):
        found.append(f"{lost} turns that were called safe were lost")
    return found


def _nothing(_: Watch) -> list[str]:
    return []


class Check(NamedTuple):
    law: str
    at_the_end: Callable[[Watch], list[str]]


CHECKS: dict[str, Check] = {
    "I1": Check(
        "units in the pool, held and orphaned add up to total_active_users, in all ledgers at any"
        " moment",
        _nothing,
    ),
    "I2": Check(
        "active visitors are never more than total_active_users, but for counted movers outside"
        " strong mode",
        _active,
    ),
    "I3": Check("admissions of any 60 seconds are never more than new_users_per_minute", _minute),
    "I4": Check(
        "in a fifo line a visitor enters only when there is a permit for everyone ahead", _nothing
    ),
    "I5": Check(
        "no visitor waits long while both limits have room, in touch or behind a cut, or after all"
        " faults",
        _nothing,
    ),
    "I6": Check("in a random room early and late comers have the same chance", _fair),
    "I7": Check(
        "no message that is lost, late, doubled or out of order lets ledgers hold more than"
        " total_active_users",
        _nothing,
    ),
    "I8": Check("a place keeps its key through pauses and changes of method", _nothing),
    "I9": Check("all of it with limits of 1", _nothing),
    "I10": Check(
        "who was let in is not told to wait, but for movers in strong mode, lost ledgers, and while a"
        " session is searched whose ticket is over",
        _sent_back,
    ),
    "I11": Check(
        "provisional sessions use a quarter of either limit at most, and one for each data center,"
        " but for lost ledgers",
        _provisional,
    ),
    "I12": Check(
        "a session lasts as long as was said, and a ticket that is in time keeps its place, but for"
        " lost ledgers, and the place of a kept turn where a cut hides that it was given",
        _kept,
    ),
    "I13": Check(
        "when nothing has gone wrong for a session no unit is held for what may have been lost",
        _calm,
    ),
    "I14": Check(
        "by itself a room gives a quarter of either limit, and one for each data center, to"
        " requests whose tickets never come back",
        _unconfirmed,
    ),
    "I15": Check(
        "a limit that follows the origin never exceeds the operator's, and does not grow while"
        " nothing is measured, whoever runs the law",
        _followed,
    ),
    "I16": Check(
        "a turn that the origin's failure kept is given once, in whichever data center, to a visitor"
        " whom it failed, and if a page called it safe it is given, but for lost ledgers and where the"
        " data center that gave or keeps it cannot be reached",
        _turns,
    ),
}


def verdict(watch: Watch) -> list[str]:
    found = [f"{law}: {problem}" for law, told in watch.found.items() for problem in told]
    for law, check in CHECKS.items():
        found += [f"{law}: {problem}" for problem in check.at_the_end(watch)]
    return found
