"""Trials of admission that single operations do not show: fair tries, prompt heads, everybody's
turn, and messages that go astray.

Each trial returns what went wrong, as lines; an empty list is a pass.
"""

from collections import deque
from heapq import heapify, heappop, heappush
from random import Random

from admission_laws import GroundTruth
from admission_walks import walk
from admission_world import START_MS, HandClock, answer_of, bits, small_room, ticket_id

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.laws import problems
from greenroom.admission.ledger.failing import fail, reenter
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.admission.queueing.methods import OVERTAKING_MS
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing, make_key


def fair_tries() -> list[str]:
    """Random: ten visitors who came within 20 seconds keep to their refreshes, two others throw
    their tickets away and come again every two seconds. Who enters when a unit becomes free is one
    of the ten, early or late.
    """
    rounds, early, again = 60, 0, 0
    room = small_room(
        total_active_users=1,
        new_users_per_minute=1000,
        queueing_method="random",
        session_duration=5,
    )
    for round_number in range(rounds):
        chance = Random(round_number)
        clock = HandClock()
        ledger = MemoryLedger(room, clock, bits(round_number))
        answer_of(ledger.arrive, ticket_id(1 << 40), 0)
        free_ms = START_MS + 40_000 + chance.randrange(20_000)
        due = [(START_MS + 2_000 * one + chance.randrange(2_000), one) for one in range(10)]
        due += [(START_MS + chance.randrange(2_000), 1_000 * one) for one in (1, 2)]
        heapify(due)
        keys: dict[int, int] = {}
        entered = -1
        while entered < 0:
            clock.ms, number = heappop(due)
            if clock.ms >= free_ms:
                ledger.leave(ticket_id(1 << 40), lambda _: None)
            ledger.tick()
            if number not in keys:
                keys[number] = make_key(clock.ms, number % 1_000)
                outcome = answer_of(ledger.arrive, ticket_id(number), 0)
            else:
                outcome = answer_of(ledger.poll, ticket_id(number), keys[number])
                entered = number if outcome.standing is Standing.ADMITTED else -1
                if number >= 1_000:
                    number += 2
                    heappush(due, (clock.ms + 100, number))
                    continue
            heappush(due, (clock.ms + outcome.refresh_ms, number))
        early += entered < 5
        again += entered >= 1_000
    found = []
    if again > rounds / 6:
        found.append(f"of {rounds} units {again} went to who threw tickets away")
    if abs(early - (rounds - again) / 2) > 1.75 * (rounds - again) ** 0.5:  # 3.5 deviations
        found.append(f"of {rounds - again} units {early} went to the five who came first")
    return found


def fair_room() -> list[str]:
    """The same, seen from outside: who comes in when one unit becomes free does not depend on who
    came first or tried more often.
    """
    won = [0] * 8
    rounds = 160
    for round_number in range(rounds):
        ground_truth = GroundTruth(
            small_room(total_active_users=1, new_users_per_minute=1000, queueing_method="random"),
            seed=round_number,
        )
        order = Random(round_number)
        ground_truth.arrive(ticket_id(100))
        waiting = [ticket_id(number) for number in range(8)]
        for one in waiting:
            ground_truth.arrive(one)
            ground_truth.advance(2_500)
            ground_truth.poll(one)
        for one in waiting:
            ground_truth.poll(one)
        ground_truth.advance(12_000)
        for one in waiting[:4] * 10:  # half of them try ten times as often
            ground_truth.peek(one)
        ground_truth.leave(ticket_id(100))
        ground_truth.tick()
        entered = [
            one
            for _ in range(3)
            for one in order.sample(waiting, 8)
            if ground_truth.poll(one).standing is Standing.ADMITTED
        ]
        won[int.from_bytes(entered[0], "big") if entered else 0] += 1
        if ground_truth.found:
            return ground_truth.found
    chi_square = sum((count - rounds / 8) ** 2 / (rounds / 8) for count in won)
    return (
        [f"who enters depends on the place in line or on the tries: {won}"]
        if chi_square > 35
        else []
    )


def prompt_heads() -> list[str]:
    """The visitor at the head gets in within two syncs of a unit becoming free; a ghost blocks no
    longer than its refresh and grace.
    """
    found = []
    for method in ("fifo", "random"):
        for ghost in (False, True):
            ground_truth = GroundTruth(
                small_room(total_active_users=1, queueing_method=method), seed=7
            )
            crowd = Crowd(ground_truth)
            ground_truth.arrive(ticket_id(0))  # sits inside and does nothing more
            free_ms = ground_truth.now_ms + ground_truth.life_ms
            for number in (1, 2):
                crowd.comes(ticket_id(number), at_ms=30_000 + 500 * number)
            if ghost and method == "fifo":
                crowd.run(until_ms=free_ms - START_MS - 100)
                crowd.gone.add(ticket_id(1))
                blocked_ms = ground_truth.places[ticket_id(1)].refresh_ms + 3_000
            else:
                blocked_ms = 0
            crowd.run(until_ms=200_000)
            wanted = (
                [ticket_id(2)]
                if blocked_ms
                else [ticket_id(1)]
                if method == "fifo"
                else [ticket_id(1), ticket_id(2)]
            )
            entered = [(at_ms, one) for at_ms, one in crowd.entered if one != ticket_id(0)]
            own_try_ms = 22_000 if method == "random" else 4_400 if blocked_ms else 2_500
            allowed_ms = 256 + 2 * 1_500 + own_try_ms + blocked_ms
            if not entered or entered[0][1] not in wanted or entered[0][0] - free_ms > allowed_ms:
                when = [(at_ms - free_ms, one[-1]) for at_ms, one in entered]
                found.append(
                    f"{method}, ghost {ghost}: entered {when} ms after a unit was free, allowed {allowed_ms}"
                )
            found += ground_truth.found
    return found


def everybodys_turn() -> list[str]:
    """Who stays gets in, in order; no visitor waits while both limits have room."""
    for limits in ((1, 1), (1, 30), (5, 6), (40, 20)):
        ground_truth = GroundTruth(
            small_room(
                total_active_users=limits[0],
                new_users_per_minute=limits[1],
                disable_session_renewal=True,
            ),
            seed=3,
        )
        crowd = Crowd(ground_truth)
        visitors = min(60, 8 * min(limits))
        for number in range(visitors):
            crowd.comes(ticket_id(number), at_ms=number * 300)
        minutes = visitors / min(limits) * 1.1 + 3
        crowd.run(until_ms=int(minutes * 60_000))
        found = [f"limits {limits}: {problem}" for problem in ground_truth.found[:3]]
        if len(crowd.entered) != visitors:
            found.append(
                f"limits {limits}: {len(crowd.entered)} of {visitors} got in within {minutes:.0f} minutes"
            )
        if found:
            return found
    return []


class Crowd:
    """Visitors with cookies, in virtual time: each tries when told to."""

    def __init__(self, ground_truth: GroundTruth) -> None:
        self.ground_truth = ground_truth
        self.entered: list[tuple[int, bytes]] = []
        self.gone: set[bytes] = set()
        self._due: list[tuple[int, int, bytes, bool]] = []
        self._number = 0
        self._push(START_MS, b"", False)

    def comes(self, one: bytes, at_ms: int) -> None:
        self._push(START_MS + at_ms, one, True)

    def run(self, until_ms: int) -> None:
        while self._due and self._due[0][0] <= START_MS + until_ms:
            at_ms, _, one, new = heappop(self._due)
            self.ground_truth.clock.ms = max(self.ground_truth.clock.ms, at_ms)
            if not one:
                self.ground_truth.tick()
                self._push(self.ground_truth.ledger._tick_ms, b"", False)
                continue
            if one in self.gone:
                continue
            outcome = self.ground_truth.arrive(one) if new else self.ground_truth.poll(one)
            if outcome.standing is Standing.ADMITTED:
                self.entered.append((self.ground_truth.now_ms, one))
            else:
                self._push(self.ground_truth.now_ms + max(1, outcome.refresh_ms), one, False)

    def _push(self, at_ms: int, one: bytes, new: bool) -> None:
        self._number += 1
        heappush(self._due, (at_ms, self._number, one, new))


class Astray:
    """Several data centers with clocks of their own, and a network that loses, delays, repeats and
    reorders.
    """

    def __init__(self, seed: int, room: Room, centers: int) -> None:
        self.draw = Random(seed)
        self.room = room
        self.now_ms = START_MS
        names = [f"center-{number}" for number in range(centers)]
        self.coordinator = Coordinator(names, room, self.now_ms)
        self.skews = [self.draw.randrange(-30_000, 30_001) for _ in names]
        self.ledgers = [
            Ledger(room, name, 1, self.now_ms + skew)
            for name, skew in zip(names, self.skews, strict=True)
        ]
        self.flying: list[tuple[int, int, int, SyncUp | SyncDown]] = []
        self.entries: deque[int] = deque()
        self.inside: list[dict[bytes, int]] = [{} for _ in names]
        self.waiting: list[dict[bytes, int]] = [{} for _ in names]
        self.silent_until = [0] * centers
        self.lost: list[int] = []
        self.admitted = 0
        self.found: list[str] = []
        self._number = 0

    def run(self, steps: int) -> list[str]:
        for _ in range(steps):
            self.now_ms += self.draw.choice((0, 5, 50, 200, 400))
            self._deliver()
            index = self.draw.randrange(len(self.ledgers))
            self.draw.choice((self._visit, self._visit, self._visit, self._report, self._browse))(
                index
            )
            if self.draw.random() < 0.001:
                self._crash(index)
            self.found += self._problems()
            if self.found:
                break
        return self.found

    def _problems(self) -> list[str]:
        return problems(self.coordinator, self.ledgers)

    def _crash(self, index: int) -> None:
        """A data center loses its books. Its visitors are gone, but their sessions are not over
        yet.
        """
        self.lost += [ends_ms - self.skews[index] for ends_ms in self.inside[index].values()]
        self.inside[index].clear()
        old = self.ledgers[index]
        self.ledgers[index] = Ledger(self.room, old.data_center, old.epoch + 1, self._local(index))

    def _local(self, index: int) -> int:
        return self.now_ms + self.skews[index]

    def _visit(self, index: int) -> None:
        ledger, local_ms, random_bits = (
            self.ledgers[index],
            self._local(index),
            self.draw.getrandbits(64),
        )
        waiting = self.waiting[index]
        if waiting and self.draw.random() < 0.6:
            one = self.draw.choice(list(waiting))
            outcome = ledger.poll(one, waiting[one], local_ms, random_bits)
        else:
            self._number += 1
            one = ticket_id(self._number)
            waiting[one] = make_key(local_ms, random_bits)
            outcome = ledger.arrive(one, local_ms, random_bits)
        if outcome.standing is Standing.ADMITTED:
            self._entered(index, one, waiting.pop(one), outcome)
        ledger.log.clear()

    def _entered(self, index: int, one: bytes, key: int, outcome: Outcome) -> None:
        self.inside[index][one] = outcome.expires_ms
        self.entries.append(self.now_ms)
        while self.now_ms - self.entries[0] > 60_000:
            self.entries.popleft()
        active = self._active()
        self.admitted += 1
        if (
            active > self.room.total_active_users
            or len(self.entries) > self.room.new_users_per_minute
        ):
            self.found.append(f"{active} active, {len(self.entries)} in the last minute")

    def _active(self) -> int:
        active = sum(
            sum(1 for ends_ms in inside.values() if ends_ms > self._local(number))
            for number, inside in enumerate(self.inside)
        )
        return active + sum(1 for ends_ms in self.lost if ends_ms > self.now_ms)

    def _browse(self, index: int) -> None:
        inside = self.inside[index]
        if inside:
            one = self.draw.choice(list(inside))
            outcome = self.ledgers[index].view(one, self._local(index))
            if outcome.standing is Standing.GONE:
                del inside[one]
            else:
                inside[one] = outcome.expires_ms
            if self.draw.random() < 0.2 and one in inside:
                self.ledgers[index].leave(one, self._local(index))
                del inside[one]

    def _report(self, index: int) -> None:
        ledger = self.ledgers[index]
        if self.draw.random() < 0.05:
            self.silent_until[index] = self.now_ms + 20_000
        ledger.sweep(self._local(index))
        up = ledger.report(self._local(index), self.draw.choice((0, 0, 0, 3)))
        self._send(index, up)

    def _send(self, index: int, message: SyncUp | SyncDown) -> None:
        if self.now_ms < self.silent_until[index] or self.draw.random() < 0.1:
            return
        for _ in range(self.draw.choice((1, 1, 1, 2, 3))):
            self._number += 1
            heappush(
                self.flying,
                (
                    self.now_ms + self.draw.choice((1, 20, 20, 150, 3_000, 9_000)),
                    self._number,
                    index,
                    message,
                ),
            )

    def _deliver(self) -> None:
        while self.flying and self.flying[0][0] <= self.now_ms:
            _, _, index, message = heappop(self.flying)
            if isinstance(message, SyncUp):
                self._send(
                    index, self.coordinator.sync(message, self.now_ms, self.draw.getrandbits(64))
                )
            else:
                self.ledgers[index].apply(message, self._local(index))


class OriginFails(Astray):
    """While documents fail everywhere: clocks of sessions stand still, and visitors re-enter."""

    def __init__(self, seed: int, room: Room, centers: int) -> None:
        super().__init__(seed, room, centers)
        self.failing = Random(f"{seed} failing")
        self.keys: dict[bytes, int] = {}
        self.failed: list[set[bytes]] = [set() for _ in range(centers)]
        self.reentered = 0

    def _visit(self, index: int) -> None:
        super()._visit(index)
        self.now_ms += self.failing.choice((0, 0, 300, 2_000))
        self._fail(index)
        self._return(index)
        self.ledgers[index].log.clear()

    def _crash(self, index: int) -> None:
        super()._crash(index)
        self.failed[index].clear()

    def _entered(self, index: int, one: bytes, key: int, outcome: Outcome) -> None:
        self.keys[one] = key
        super()._entered(index, one, key, outcome)

    def _fail(self, index: int) -> None:
        ledger, inside = self.ledgers[index], self.inside[index]
        if not inside:
            return
        one = self.failing.choice(list(inside))
        if one in self.failed[index] and self.failing.random() < 0.97:
            return  # has gone away
        outcome = fail(ledger, one, self._local(index))
        if outcome.standing is Standing.ACTIVE:
            inside[one] = outcome.expires_ms
            self.failed[index].add(one)

    def _browse(self, index: int) -> None:
        inside = self.inside[index]
        away = {one: inside.pop(one) for one in self.failed[index] & inside.keys()}
        super()._browse(index)
        inside.update(away)

    def _return(self, index: int) -> None:
        ledger, local_ms = self.ledgers[index], self._local(index)
        for one in self.failing.sample(sorted(self.failed[index]), min(2, len(self.failed[index]))):
            if ledger.view(one, local_ms).kept_ms and one in self.keys:
                key, bits = self.keys[one], self.failing.getrandbits(64)
                outcome = reenter(ledger, one, key, local_ms, bits)
                self.inside[index].pop(one, None)
                if outcome.standing is Standing.ADMITTED:
                    self.reentered += 1
                    self.failed[index].discard(one)
                    self.waiting[index].pop(one, None)
                    self._entered(index, one, key, outcome)
                elif outcome.standing is Standing.WAITING:
                    self.waiting[index][one] = key


def while_the_origin_fails(seeds: range = range(5), steps: int = 1_200) -> list[str]:
    """As `messages_astray`, and visitors whom the origin failed do re-enter."""
    found, reentered = [], 0
    for seed in seeds:
        draw = Random(seed)
        room = small_room(
            total_active_users=draw.choice((1, 4, 20)),
            new_users_per_minute=draw.choice((3, 10, 40)),
            queueing_method=draw.choice(("fifo", "random")),
            session_duration=1,
            disable_session_renewal=draw.random() < 0.5,
            confirm_newcomers=False,
        )
        trial = OriginFails(seed, room, draw.choice((1, 2, 3)))
        found += [f"seed {seed}: {problem}" for problem in trial.run(steps)]
        reentered += trial.reentered
    return found if reentered >= 2 else [*found, f"{reentered} visitors re-entered"]


def messages_astray(seeds: range = range(44, 60), steps: int = 1_500) -> list[str]:
    """No loss, delay, repetition or reordering of messages ever lets in one too many, regardless of
    the clocks.
    """
    for seed in seeds:
        draw = Random(seed)
        room = small_room(
            total_active_users=draw.choice((1, 4, 20, 60)),
            new_users_per_minute=draw.choice((1, 5, 40)),
            queueing_method=draw.choice(("fifo", "random")),
        )
        found = Astray(seed, room, draw.choice((1, 2, 3))).run(steps)
        if found:
            return [f"seed {seed}: {problem}" for problem in found]
    return []


def first_in_line() -> list[str]:
    """The next permit is for the first, who has tried in vain, or for one who came less than two
    seconds later; however many are expected.
    """
    found = []
    for late_ms in (1_500, 2_500):
        ledger = Ledger(small_room(), "here", 1, START_MS)
        first, other = (
            (ticket_id(1), make_key(START_MS, 0)),
            (ticket_id(2), make_key(START_MS + late_ms, 0)),
        )
        now_ms = START_MS + 4_000
        for one in (first, other):
            ledger.poll(*one, now_ms, 0)
        ledger.lease.permits, ledger.lookahead.permits = 1, 5.0
        passes = ledger.poll(*other, now_ms, 0).standing is Standing.ADMITTED
        if passes != (late_ms < OVERTAKING_MS):
            found.append(
                f"who came {late_ms} ms later was {'' if passes else 'not '}let in before the first"
            )
        if not passes and ledger.poll(*first, now_ms, 0).standing is not Standing.ADMITTED:
            found.append("the first in line was not let in")
    return found


def walks(seeds: range = range(40), steps: int = 400) -> list[str]:
    """Random stretches of life of small rooms; the first that breaks a law."""
    for seed in seeds:
        found = walk(seed, steps)
        if found:
            return found
    return []


def two_restarts() -> list[str]:
    """A session that was over at one restart is over at the next one, even if sessions have been
    made longer in between.
    """
    ground_truth = GroundTruth(small_room(), seed=1)
    ground_truth.arrive(ticket_id(1))
    ground_truth.advance(120_000)
    ground_truth.restart()
    ground_truth.configure(session_duration=5)
    ground_truth.restart()
    ground_truth.view(ticket_id(1))
    return ground_truth.found
