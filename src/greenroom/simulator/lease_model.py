"""greenroom's protocol under simulation; decides nothing. Like a process it syncs by
`admission.sync_schedule`, and at once when the lease is empty and visitors wait.
"""

from collections.abc import Callable

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.ledger.failing import fail, reenter
from greenroom.admission.ledger.keeping import AGAIN_MS, HELD_MS, is_due
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.provisional import CALLS as PROVISIONAL_CALLS
from greenroom.admission.ledger.visiting import is_outlived, visit
from greenroom.admission.ledger_time import STEP_MS
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.admission.records import LedgerMemory
from greenroom.admission.sync_schedule import (
    ANSWER_MS,
    BORROW_MS,
    SLOT_MS,
    SLOTS_MOST,
    SyncSchedule,
)
from greenroom.model.line_table import FRESH_MS, LineTable
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing, make_key
from greenroom.simulator.chance import Streams, between
from greenroom.simulator.links import Agenda, Links
from greenroom.simulator.scenario import START_MS, Scenario
from greenroom.simulator.visitor import (
    NEVER_READ,
    Behind,
    Center,
    CenterLook,
    OutcomeHandler,
    SimulatedVisitor,
)

DISK_EVERY_MS = 20_000
ROOM = "room"
DOWN_MS = 250
SYNC_MOST_MS = SLOT_MS * SLOTS_MOST
HEARS_MOST_MS = 1_000
NEVER_MS = 1 << 60


class LeaseModel:
    def __init__(self, scenario: Scenario, agenda: Agenda, links: Links, streams: Streams) -> None:
        self._room = scenario.room
        self._agenda, self._links = agenda, links
        self._random_bits = streams("random_bits")
        clocks = streams("clocks")
        most_ms = scenario.network.skew_ms
        self.global_calls = self.messages = 0
        self.before_poll: Callable[[Center, SimulatedVisitor, int], None] | None = None
        self.after_poll: Callable[[Center, SimulatedVisitor, int, Outcome], None] | None = None
        self.on_configured: Callable[[int, bool], None] | None = None
        self.coordinator_down = 0
        self.draw_until_ms = 0
        self._coordinator_skew_ms = between(clocks, -most_ms, most_ms)
        names = [f"dc{number:03}" for number in range(scenario.centers)]
        self._fence_ms = scenario.fence_s * 1000
        self.centers: list[Center] = []
        for number, name in enumerate(names):
            skew_ms = between(clocks, -most_ms, most_ms)
            phase_ms = between(clocks, 0, SYNC_MOST_MS - 1)  # servers start at any moment
            ledger = Ledger(self._room, name, 1, agenda.now_ms + skew_ms)
            self.centers.append(Center(name, ledger, skew_ms, SyncSchedule(phase_ms)))
            agenda.after(phase_ms, self._sync, number, 0)
        self.coordinator = self._make_coordinator()
        if any(fault.kind == "old disk" for fault in scenario.faults):
            agenda.after(DISK_EVERY_MS, self._save)

    # -- what visitors ask -------------------------------------------------------------------------

    def skew_ms(self, center: int) -> int:
        return self.local_ms(self.centers[center]) - self._agenda.now_ms

    def step_clock(self, center: int, step_ms: int) -> None:
        self.centers[center].skew_ms += step_ms

    def open(self, center: int) -> bool:
        return not self.centers[center].down

    def arrive(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        center = self.centers[visitor.center]
        ledger, now_ms = center.ledger, self.local_ms(center)
        came_ms = START_MS if self._agenda.now_ms < self.draw_until_ms else ledger.line_ms(now_ms)
        visitor.key = make_key(came_ms, self._random_bits.getrandbits(22))
        visitor.latency_ms = between(self._random_bits, 1, 10)
        if any(not one.calls for one in center.behind) or ledger.borrows(now_ms):
            self._wait_behind(visitor.center, Behind(visitor, then, self._agenda.now_ms))
        else:
            then(
                visitor,
                self._done(
                    visitor, ledger.arrive(visitor.id, now_ms, self._random_bits.getrandbits(64))
                ),
            )

    def arrive_provisionally(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        center = self.centers[visitor.center]
        ledger, now_ms = center.ledger, self.local_ms(center)
        visitor.key = make_key(ledger.line_ms(now_ms), self._random_bits.getrandbits(22))
        self._pass(Behind(visitor, then, self._agenda.now_ms, PROVISIONAL_CALLS))

    def _pass(self, one: Behind) -> None:
        center = self.centers[one.visitor.center]
        ledger, now_ms = center.ledger, self.local_ms(center)
        outcome = self._done(one.visitor, ledger.arrive_provisionally(one.visitor.id, now_ms))
        if outcome.standing is Standing.WAITING and one.calls and not center.down:
            passing = sum(other.calls > 0 for other in center.behind)
            if passing < ledger.borrows_provisionally(now_ms):
                self._wait_behind(one.visitor.center, one)
                return
        one.then(one.visitor, outcome)

    def _wait_behind(self, number: int, one: Behind) -> None:
        center = self.centers[number]
        center.behind.append(one)
        if len(center.behind) == 1:
            self.global_calls += 1
            if one.calls:
                self._agenda.after(
                    0, self._call, number
                )  # for all that are answered at this moment
            else:
                self._call(number)

    def poll(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        gap_ms = self._agenda.now_ms - visitor.attempted_ms
        outcome = self._try(visitor)
        if is_due(outcome) and gap_ms - visitor.refresh_ms > GRACE_MS:
            self._agenda.after(
                AGAIN_MS, self._again, visitor, then, gap_ms, outcome, HELD_MS // AGAIN_MS
            )
        else:
            then(visitor, outcome)

    def _try(self, visitor: SimulatedVisitor) -> Outcome:
        center = self.centers[visitor.center]
        now_ms = self.local_ms(center)
        if self.before_poll:
            self.before_poll(center, visitor, now_ms)
        bits = self._random_bits.getrandbits(64)
        if visitor.returns:
            known = center.ledger.reclaim(visitor.id, visitor.key, now_ms, bits)
            if known.standing is Standing.GONE:
                return self._done(visitor, known)
            visitor.returns = False
        outcome = center.ledger.poll(visitor.id, visitor.key, now_ms, bits)
        if visitor.absent:  # takes a calendar entry
            center.ledger.reclaim(visitor.id, visitor.key, now_ms, 0)
        if self.after_poll:
            self.after_poll(center, visitor, now_ms, outcome)
        return self._done(visitor, outcome)

    def _again(
        self,
        visitor: SimulatedVisitor,
        then: OutcomeHandler,
        gap_ms: int,
        outcome: Outcome,
        tries: int,
    ) -> None:
        """Retries like the gateway with a late visitor who is due (`gateway.visitor.long_poll`)."""
        center = self.centers[visitor.center]
        if center.down:
            then(visitor, outcome)
        elif not tries or 0 < visitor.drops_ms <= self._agenda.now_ms:
            if outcome.called:
                center.ledger.keep(visitor.id, gap_ms, self.local_ms(center))
            then(visitor, outcome)
        elif (outcome := self._try(visitor)).standing is Standing.WAITING:
            self._agenda.after(AGAIN_MS, self._again, visitor, then, gap_ms, outcome, tries - 1)
        else:
            then(visitor, outcome)

    def peek(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        center = self.centers[visitor.center]
        then(
            visitor,
            center.ledger.peek(
                visitor.id, visitor.key, self.local_ms(center), self._random_bits.getrandbits(64)
            ),
        )

    def line_table(self, center: int) -> LineTable | None:
        one, now_ms = self.centers[center], self._agenda.now_ms
        if one.table is None or now_ms >= one.table[0] + FRESH_MS:
            one.table = (now_ms, one.ledger.line_table(self.local_ms(one)))
            one.ledger.log.clear()
        return one.table[1]

    def view(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        center = self.centers[visitor.center]
        ledger, now_ms = center.ledger, self.local_ms(center)
        renewed_ms = visitor.checked_ms - ledger.lease.line_ahead_ms
        outcome = ledger.view(visitor.id, now_ms)
        at_home = visitor.home == visitor.center
        if is_outlived(outcome, at_home, renewed_ms):  # the ticket stays
            ledger.log.clear()
            visitor.trusted = False
            then(visitor, outcome)
            return
        if outcome.standing is Standing.GONE and not (outcome.kept_ms and at_home):
            served_ms = visitor.served_ms - ledger.lease.line_ahead_ms
            home = self.centers[visitor.home].name
            outcome = visit(
                ledger,
                visitor.id,
                visitor.key,
                home,
                renewed_ms,
                served_ms,
                now_ms,
                self._random_bits.getrandbits(64),
            )
        if outcome.standing is Standing.GONE and outcome.kept_ms:
            bits = self._random_bits.getrandbits(64)
            waits = visitor.id in ledger.line.slots
            outcome = reenter(ledger, visitor.id, visitor.key, now_ms, bits)
            visitor.reenters |= outcome.standing is not Standing.GONE and not waits
        then(visitor, self._done(visitor, outcome))

    def fail(self, visitor: SimulatedVisitor) -> Outcome:
        center = self.centers[visitor.center]
        outcome = fail(center.ledger, visitor.id, self.local_ms(center))
        return self._done(visitor, outcome) if outcome.standing is Standing.ACTIVE else outcome

    def leave(self, visitor: SimulatedVisitor) -> None:
        center = self.centers[visitor.center]
        center.ledger.leave(visitor.id, self.local_ms(center))
        center.ledger.log.clear()

    def look(self, center: int) -> CenterLook:
        ledger, now_ms = self.centers[center].ledger, self.local_ms(self.centers[center])
        return CenterLook(len(ledger.sessions.inside), len(ledger.line), ledger.tally(now_ms))

    # -- what goes wrong ---------------------------------------------------------------------------

    def shut(self, center: int, change: int) -> None:
        self.centers[center].down += change
        self._answer_those_behind(center)

    def part(self, center: int) -> None:
        one = self.centers[center]
        if not one.down:
            up = one.ledger.farewell(self.local_ms(one))
            one.ledger.log.clear()
            if up is not None:
                self._links.send(center, self._coordinator_hears, center, up, 0)

    def lose_ledger(self, center: int) -> None:
        one = self.centers[center]
        now_ms = self.local_ms(one)
        one.ledger = Ledger(self._room, one.name, max(now_ms, one.ledger.epoch + 1), now_ms)

    def restore_old(self, center: int) -> None:
        one = self.centers[center]
        old, now_ms, fence_ms = one.disk, self.local_ms(one), one.ledger.lease.fence_ms
        self.lose_ledger(center)
        if old:
            one.ledger.restore(old, now_ms, older=True)
            one.ledger.lease.fence_ms = fence_ms
            one.ledger.log.clear()

    def silence(self, change: int) -> None:
        self.coordinator_down += change

    def lose_coordinator(self) -> None:
        self.coordinator = self._make_coordinator()

    def forecast_nothing(self) -> None:
        self.coordinator.forecaster.due_ms = NEVER_MS

    def _make_coordinator(self) -> Coordinator:
        coordinator = Coordinator(self._listed, self._room, self.coordinator_ms())
        coordinator.fence_ms = self._fence_ms
        return coordinator

    def worker_dies(self, number: int) -> None:
        self._answer_those_behind(number)

    def configure(self, room: Room) -> None:
        self._room = room
        self._agenda.after(
            between(self._random_bits, 0, HEARS_MOST_MS), self._configure_coordinator
        )
        for number in range(len(self.centers)):
            self._agenda.after(
                between(self._random_bits, 0, HEARS_MOST_MS), self._configure, number
            )

    def _configure_coordinator(self) -> None:
        self.coordinator.configure(self._room)

    def _configure(self, number: int) -> None:
        ledger, before_ms = self.centers[number].ledger, self.centers[number].ledger.all_ended_ms
        ledger.configure(self._room, self.local_ms(self.centers[number]))
        ledger.log.clear()
        if self.on_configured:
            self.on_configured(number, ledger.all_ended_ms > before_ms)

    @property
    def _listed(self) -> list[str]:
        return [one.name for one in self.centers if one.listed]

    def enlist(self, center: int, listed: bool) -> None:
        self.centers[center].listed = listed
        self.coordinator.enlist(self._listed, self.coordinator_ms())

    def follows(self, since_ms: int) -> bool:
        listed = [one for one in self.centers if one.listed]
        return all(
            one.contacts[0] > since_ms + HEARS_MOST_MS and not one.ledger.lease.debt
            for one in listed
        )

    def draw(self) -> tuple[dict[bytes, int], int]:
        floor_key = make_key(self.coordinator_ms(), 0)
        drawn = sorted(
            {
                one
                for center in self.centers
                for one, key in center.ledger.line.in_order()
                if key < floor_key
            }
        )
        places = list(range(len(drawn)))
        for place in range(len(drawn) - 1, 0, -1):
            other = between(self._random_bits, 0, place)
            places[place], places[other] = places[other], places[place]
        keys = {
            one: floor_key - len(drawn) + place for one, place in zip(drawn, places, strict=True)
        }
        for center in self.centers:
            center.ledger.rekey(
                {one: key for one, key in keys.items() if one in center.ledger.line.slots}
            )
            center.ledger.log.clear()
        return keys, floor_key

    # -- syncs -------------------------------------------------------------------------------------

    def local_ms(self, center: Center) -> int:
        steady_ms, time = self._agenda.now_ms, center.time
        if center.read_at != (steady_ms, center.skew_ms, time.shift_ms):
            now_ms = time.read(steady_ms + center.skew_ms, *center.expectation.at(steady_ms))
            center.expectation.hear(now_ms, steady_ms)
            center.read_at = steady_ms, center.skew_ms, time.shift_ms
        center.ledger.lease.later_ms = time.later_ms
        return time.latest_ms

    def _put_time_right(self, center: Center, down: SyncDown) -> None:
        steady_ms, lease = self._agenda.now_ms, center.ledger.lease
        round_trip_ms = self.local_ms(center) - down.sent_ms
        if lease.answered_ms is None or round_trip_ms > 2 * STEP_MS:
            return
        line_ms = down.time_ms + round_trip_ms // 2 - lease.line_ahead_ms
        expected_ms, _ = center.expectation.at(steady_ms)
        center.expectation.hear(
            center.time.put_right(steady_ms + center.skew_ms, expected_ms, line_ms), steady_ms
        )
        center.read_at = NEVER_READ

    def coordinator_ms(self) -> int:
        return self._agenda.now_ms + self._coordinator_skew_ms

    def _done(self, visitor: SimulatedVisitor, outcome: Outcome) -> Outcome:
        center = self.centers[visitor.center]
        center.ledger.log.clear()
        held_ms = center.ledger.sessions.renewed(visitor.id)
        visitor.trusted = outcome.standing is Standing.ACTIVE and held_ms != outcome.renewed_ms
        if outcome.renewed_ms and not visitor.trusted:
            visitor.home = visitor.center
            visitor.checked_ms = center.ledger.line_ms(outcome.renewed_ms)
        if outcome.renewed_ms:
            visitor.served_ms = visitor.checked_ms + outcome.refresh_ms // 1000 * 1000
        return outcome

    def _sync(self, number: int, turn: int) -> None:
        """One turn of a data center's loop (`DataCenterSync._sync`)."""
        center, now_ms = self.centers[number], self._agenda.now_ms
        if turn != center.turn or center.awaits:
            return
        if center.down:
            self._turn_after(number, DOWN_MS)
        elif due := center.schedule.due(now_ms, (ROOM,)):
            self._report(number, due[ROOM])
        else:
            self._turn_after(number, center.schedule.rest_ms(now_ms, (ROOM,)))

    def _turn_after(self, number: int, rest_ms: int) -> None:
        center = self.centers[number]
        center.turn += 1
        self._agenda.after(rest_ms, self._sync, number, center.turn)

    def _report(self, number: int, want: int) -> None:
        center = self.centers[number]
        now_ms = self.local_ms(center)
        center.ledger.sweep(now_ms)
        up = center.ledger.report(now_ms, want)
        center.ledger.log.clear()
        center.schedule.record(ROOM, up, self._agenda.now_ms)
        center.batch, center.awaits = center.batch + 1, True
        self.messages += 1
        self._links.send(number, self._coordinator_hears, number, up, center.batch)
        self._agenda.after(ANSWER_MS, self._exchanged, number, center.batch)

    def _exchanged(self, number: int, batch: int) -> None:
        center = self.centers[number]
        if center.awaits and center.batch == batch:
            center.awaits = False
            self._turn_after(number, 0)

    def _coordinator_hears(self, number: int, up: SyncUp, batch: int) -> None:
        if not self.coordinator_down and self.centers[number].listed:
            down = self.coordinator.sync(
                up, self.coordinator_ms(), self._random_bits.getrandbits(64)
            )
            self._links.send(number, self._center_hears, number, down, batch, up.want > 0)

    def _center_hears(self, number: int, down: SyncDown, batch: int, called: bool) -> None:
        """Applies late answers too, which a process drops: that must do no harm."""
        center = self.centers[number]
        if center.down:
            return
        if down.epoch == center.ledger.epoch:
            self._put_time_right(center, down)
        applied = center.ledger.lease.applied
        center.ledger.apply(down, self.local_ms(center))
        if down.unknown_ms >= 0:  # else the coordinator does not know yet what is to be recalled
            center.hear(applied, (down.epoch, down.answers), self._agenda.now_ms)
        if batch == center.batch:
            center.schedule.answered(ROOM, down)
        self._exchanged(number, batch)
        if called:
            self._answer_those_behind(number)

    def _save(self) -> None:
        self._agenda.after(DISK_EVERY_MS, self._save)
        for center in self.centers:
            kept = center.ledger.memory(self.local_ms(center))
            center.disk = LedgerMemory(
                dict(kept.sessions),
                dict(kept.places),
                dict(kept.spent),
                list(kept.window),
                kept.latest_ms,
                failures=dict(kept.failures),
            )

    def _call(self, number: int) -> None:
        center = self.centers[number]
        center.called_until_ms = self._agenda.now_ms + BORROW_MS
        self._agenda.after(BORROW_MS, self._call_ended, number, center.called_until_ms)
        passing = sum(one.calls > 0 for one in center.behind)
        center.for_newcomers = not passing or passing < len(center.behind)
        want = max(1, passing, center.ledger.borrows(self.local_ms(center)))
        center.schedule.request(ROOM, want)
        self._turn_after(number, 0)

    def _call_ended(self, number: int, until_ms: int) -> None:
        if self.centers[number].called_until_ms == until_ms:
            self._answer_those_behind(number)

    def _answer_those_behind(self, number: int) -> None:
        center = self.centers[number]
        behind, center.behind = center.behind, []
        center.called_until_ms = 0
        now_ms = self.local_ms(center)
        for one in behind:
            one.visitor.latency_ms += self._agenda.now_ms - one.since_ms
        for one in (
            behind
        ):  # newcomers first: where they met a call that was made for others, it costs them nothing
            if (
                not one.calls
                and not center.for_newcomers
                and not center.down
                and center.ledger.borrows(now_ms)
            ):
                self._wait_behind(number, one._replace(since_ms=self._agenda.now_ms))
            elif not one.calls:
                random_bits = self._random_bits.getrandbits(64)
                one.then(
                    one.visitor,
                    self._done(
                        one.visitor, center.ledger.arrive(one.visitor.id, now_ms, random_bits)
                    ),
                )
        for one in behind:
            if one.calls:
                self._pass(one._replace(since_ms=self._agenda.now_ms, calls=one.calls - 1))
