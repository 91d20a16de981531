"""The laws of admission, checked from outside on every single operation.

`GroundTruth` stands before a ledger, asks it what visitors ask, and keeps its own books from the
answers alone: who is inside, who is present, who came in when. A contradiction of a law becomes a
line in `found`. It judges nothing by the ledger's own counts except where a law speaks about them
(conservation, look-ahead, permits).
"""

from collections import deque
from dataclasses import dataclass, replace

from admission_world import FlakyJournal, HandClock, bits

from greenroom.admission.ledger.provisional import PROVISIONAL_MS
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.admission.queueing.methods import OVERTAKING_MS
from greenroom.admission.records import remember
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.room import Room
from greenroom.model.visit import (
    PLACE_KEPT_MS,
    TIE_BITS,
    Outcome,
    Standing,
    arrival_ms_of,
    make_key,
)

LATE_MS = 2 * 256
"""Ends of sessions and ghosts may be noticed this late."""


@dataclass
class Place:
    """A visitor in line, as the answers said."""

    key: int
    attempted_ms: int
    refresh_ms: int

    def due_ms(self, patience_ms: int) -> int:
        return self.attempted_ms + self.refresh_ms + GRACE_MS + patience_ms


class GroundTruth:
    """Asks and keeps books."""

    def __init__(self, room: Room, seed: int = 0, journal: FlakyJournal | None = None) -> None:
        self.clock = HandClock()
        self.pardoned_ms = 0
        self.journal = journal or FlakyJournal()
        self.bits = bits(seed)
        self.room = room
        self.ledger = MemoryLedger(room, self.clock, self.bits, self.journal)
        self.found: list[str] = []
        self.inside: dict[bytes, int] = {}
        self.places: dict[bytes, Place] = {}
        self.admitted: dict[bytes, int] = {}
        self.over: dict[
            bytes, int
        ] = {}  # ids that had their session or left: until when they must be refused
        self.entries: deque[int] = deque()
        self.from_line: deque[int] = deque()
        self.tickets: dict[bytes, int] = {}
        self.halted = False
        self.provisional: dict[
            bytes, int
        ] = {}  # sessions of requests that cannot wait, until their ticket comes back
        self.passed: deque[int] = deque()
        self.unshown: dict[
            bytes, int
        ] = {}  # admitted at once: when, until the ticket comes back or the minute and the session are over
        self.ended: dict[
            bytes, int
        ] = {}  # sessions that an operator ended: until when a proof may still let their visitors by

    # -- what is true, by our own books --

    @property
    def now_ms(self) -> int:
        return self.clock.ms

    @property
    def life_ms(self) -> int:
        return self.room.session_ms + (
            0 if self.room.disable_session_renewal else self.room.renewal_age_ms
        )

    @property
    def rejecting(self) -> bool:
        return self.room.queueing_method == "reject" and not self.room.queue_all

    @property
    def closed(self) -> bool:
        return self.room.queue_all or self.room.queueing_method == "reject"

    def active(self) -> int:
        return sum(
            1 for renewed_ms in self.inside.values() if self.now_ms < renewed_ms + self.life_ms
        )

    def using(self) -> int:
        """Visitors who may use the origin now: those inside, and those whose session an operator
        ended a moment ago.
        """
        return self.active() + sum(1 for until_ms in self.ended.values() if self.now_ms < until_ms)

    def living(self, one: bytes) -> bool:
        return one in self.inside and self.now_ms < self.inside[one] + self.life_ms

    def present(self, late_ms: int = 0) -> list[tuple[bytes, Place]]:
        """Those who are certainly in line; with `late_ms` those who may still be."""
        patience_ms = PLACE_KEPT_MS if self.rejecting else 0
        since_ms = self.now_ms - late_ms
        return [
            (one, place)
            for one, place in self.places.items()
            if max(self.pardoned_ms, place.due_ms(patience_ms)) > since_ms
        ]

    def minute(self) -> int:
        """Admissions of the last 60 s, the edge included."""
        while self.entries and self.now_ms - self.entries[0] > 60_000:
            self.entries.popleft()
        return len(self.entries)

    # -- operations --

    def advance(self, ms: int) -> None:
        self.clock.ms += ms

    def arrive(self, one: bytes) -> Outcome:
        key = self.tickets.setdefault(one, make_key(self.now_ms, self.bits(TIE_BITS)))
        line_before = dict(self.ledger.ledger.line.slots)
        waiting = len(self.present())
        room_left = self._room_left()
        outcome = self._ask(self.ledger.arrive, one, key)
        if outcome.standing is Standing.ADMITTED:
            self.law(self.room.confirm_newcomers is not True, "a newcomer was not confirmed")
            self._unconfirmed(one, room_left - waiting)
            if self.room.queueing_method != "passthrough":
                self.law(
                    waiting < room_left,
                    f"a newcomer passed {waiting} waiting people with room for {room_left}",
                )
            self._entered(one)
        elif outcome.standing is Standing.WAITING:
            self.law(outcome.position == 0, "a place without a ticket that came back")
            line = self.ledger.ledger.line.slots
            self.law(
                one not in line and line.keys() <= line_before.keys(),
                "a held newcomer changed the line",
            )
            self._estimated(outcome)
        else:
            self.law(False, f"a newcomer is {outcome.standing!r}")
        self._after()
        return outcome

    def arrive_provisionally(self, one: bytes) -> Outcome:
        room_left, waiting = self._room_left(), self.present()
        active = sum(
            1 for begun_ms in self.provisional.values() if self.now_ms < begun_ms + PROVISIONAL_MS
        )
        minute = sum(1 for passed_ms in self.passed if self.now_ms - passed_ms < 60_000)
        outcome = self._ask(self.ledger.arrive_provisionally, one, 0)
        if outcome.standing is Standing.ADMITTED:
            self.law(
                not waiting and not self.closed and self.room.confirm_newcomers is not True,
                "a request passed waiting visitors, or a shut room",
            )
            self.law(
                room_left > 0 or self.room.queueing_method == "passthrough",
                f"a request passed with room for {room_left}",
            )
            self.law(
                active < max(1, self.room.total_active_users // 4),
                f"a request passed beside {active} provisional sessions",
            )
            self.law(
                minute < max(1, self.room.new_users_per_minute // 4),
                f"a request passed after {minute} in this minute",
            )
            self.entries.append(self.now_ms)
            self.passed.append(self.now_ms)
            self.provisional[one] = self.admitted[one] = self.now_ms
            self.inside[one] = self.now_ms + PROVISIONAL_MS - self.life_ms
            self.law(
                outcome.expires_ms == self.now_ms + PROVISIONAL_MS,
                "a provisional session lasts longer, or not so long",
            )
        else:
            self.law(
                (outcome.standing, outcome.position) == (Standing.WAITING, 0),
                f"a request that cannot wait is {outcome!r}",
            )
        self._after()
        return outcome

    def poll(self, one: bytes, key: int | None = None) -> Outcome:
        key = self.tickets[one] if key is None else key
        ledgers = self.ledger.ledger
        room_left = self._room_left()
        before = [place.key for other, place in self.present() if place.key < key and other != one]
        ahead = len(before)
        has_turn = (
            self.room.queueing_method == "random"
            and one in ledgers.line.slots
            and ledgers.lease.spendable(self.now_ms) > 0
            and not self.closed
            and not ledgers.halted
        )
        outcome = self._ask(self.ledger.poll, one, key)
        if self._claims(one, outcome):
            pass
        elif outcome.standing is Standing.ADMITTED:
            if self.room.queueing_method == "fifo":
                look = int(ledgers.lookahead.permits)
                self.law(
                    ahead < room_left + look,
                    f"{ahead} waited ahead, with room for {room_left} and {look} more expected",
                )
                late_ms = arrival_ms_of(key) - arrival_ms_of(min(before, default=key))
                self.law(
                    ahead < room_left or late_ms <= OVERTAKING_MS,
                    f"the first in line was overtaken by {late_ms} ms",
                )
                self.law(
                    look <= 3 * len(self.from_line) + 1,
                    f"looks {look} ahead after {len(self.from_line)} admissions from the line",
                )
            if one in self.places:
                self.from_line.append(self.now_ms)
            self.unshown.pop(one, None)
            self._entered(one)
        elif outcome.standing is Standing.WAITING:
            self.law(
                not has_turn or ledgers.halted,
                "in a random room who was in line and found a permit was not let in",
            )
            self._waits(one, key, outcome)
        else:
            self.law(
                False, f"a waiting ticket is {outcome.standing!r} without having had a session"
            )
        self._after()
        return outcome

    def peek(self, one: bytes) -> Outcome:
        before = repr(self.ledger.ledger.memory(self.now_ms))
        outcome = self._ask(self.ledger.peek, one, self.tickets[one])
        if not self._claims(one, outcome, peeked=True):
            self.law(outcome.standing is Standing.WAITING, f"an early try is {outcome.standing!r}")
            self._estimated(outcome)
        self.law(repr(self.ledger.ledger.memory(self.now_ms)) == before, "a look changed the books")
        self._after()
        return outcome

    def view(self, one: bytes) -> Outcome:
        if self.living(one):
            self.unshown.pop(one, None)
        outcome = self._ask(self.ledger.view, one)
        if not self.living(one):
            self.law(
                outcome.standing is Standing.GONE, f"a session that is over is {outcome.standing!r}"
            )
        else:
            renewed_ms = self.inside[one]
            if self.now_ms - renewed_ms > self.room.renewal_age_ms:
                begun_ms = self.provisional.pop(one, None)
                if begun_ms is not None and self.room.disable_session_renewal:
                    renewed_ms = self.inside[one] = begun_ms
            if (
                not self.room.disable_session_renewal
                and self.now_ms - renewed_ms > self.room.renewal_age_ms
            ):
                renewed_ms = self.inside[one] = self.now_ms
            self.law(
                outcome.standing is Standing.ACTIVE, f"a living session is {outcome.standing!r}"
            )
            told = (outcome.renewed_ms, outcome.expires_ms)
            self.law(
                told == (renewed_ms, renewed_ms + self.life_ms),
                f"a session was told {told}, not {renewed_ms} + {self.life_ms}",
            )
        self._after()
        return outcome

    def leave(self, one: bytes) -> None:
        certain = self.living(one) or one in dict(self.present())
        self.ledger.leave(one)
        if self.inside.pop(one, None):
            self.over[one] = self.admitted.get(one, 0) + PLACE_KEPT_MS if certain else 0
        elif self.places.pop(one, None):
            self.over[one] = self.now_ms + PLACE_KEPT_MS if certain else 0
        self._after()

    def tick(self) -> None:
        self.ledger.tick()
        self._after()

    def configure(self, **changes: object) -> None:
        was_rejecting = self.rejecting
        self._end_sessions()
        stay = self.present(LATE_MS)
        self.places = dict(stay)
        self.room = replace(self.room, **changes)  # type: ignore[arg-type]
        self.ledger.configure(self.room)
        if self.room.confirm_newcomers != "auto" or self.room.queueing_method == "passthrough":
            self.unshown.clear()
        for one in self.places.keys() - self.ledger.ledger.line.slots.keys():
            self.law(
                self.places[one].due_ms(0) <= self.now_ms, "new settings cost somebody a place"
            )
            del self.places[one]
        if was_rejecting and not self.rejecting:
            self.pardoned_ms = self.now_ms + self.room.refresh_max_seconds * 1100 + GRACE_MS
        self._after()

    def end_all_sessions(self) -> None:
        """An operator's word. A native pass lives for q from the last renewal, at most five
        seconds.
        """
        self.clock.ms = max(self.now_ms, self.room.sessions_ended_ms + 1)
        self._end_sessions()
        for one, renewed_ms in self.inside.items():
            self.over[one] = self.admitted.get(one, 0) + PLACE_KEPT_MS
            self.ended[one] = renewed_ms + 5_000
        self.inside.clear()
        self.provisional.clear()
        self.configure(sessions_ended_ms=self.now_ms)

    def restart(self) -> None:
        """kill -9, and up again from what the journal has."""
        was_halted = self.halted or self.journal.failing
        self.provisional.clear()  # they end in time, and are not told apart any more
        self.passed.clear()
        self.pardoned_ms = 0
        self.ledger = MemoryLedger.restore(
            self.room, self.clock, self.bits, self.journal, list(self.journal.payloads)
        )
        self.unshown = {one: ms for one, ms in self.unshown.items() if self.living(one)}
        ledgers = self.ledger.ledger
        kept = remember(self.ledger.snapshot())
        self._end_sessions()
        if was_halted:  # what could not be written may be forgotten; take over what is remembered
            self.inside = dict(kept.sessions)
            self.over = dict.fromkeys(self.admitted, 0) | {
                one: until_ms if one in kept.spent else 0 for one, until_ms in self.over.items()
            }
            self.halted = False
        living = {one: renewed_ms for one, renewed_ms in self.inside.items() if self.living(one)}
        self.law(
            kept.sessions == living,
            f"a restart lost or invented sessions: {kept.sessions.items() ^ living.items()}",
        )
        for one, place in self.present():
            self.law(was_halted or kept.places.get(one) == place.key, "a restart lost a place")
        self.law(
            was_halted or len(ledgers.lease.window) == self.minute(),
            "a restart forgot the sliding minute",
        )
        longest_ms = self.room.refresh_max_seconds * 1100
        self.places = {one: Place(key, self.now_ms, longest_ms) for one, key in kept.places.items()}
        self.law(
            len(ledgers.line) == len(kept.places), "a restart remembers places that are not in line"
        )
        self._after()

    # -- laws --

    def law(self, holds: bool, problem: str) -> None:
        if not holds:
            self.found.append(problem)

    def _ask(self, operation: object, *arguments: object) -> Outcome:
        written = len(self.journal.payloads)
        line_before = set(self.ledger.ledger.line.slots)
        refused = self.halted or self.journal.failing

        def at_the_answer(outcome: Outcome) -> None:
            one = arguments[0]
            new = b"".join(self.journal.payloads[written:])
            if outcome.standing is Standing.ADMITTED:
                self.law(not refused, "let in although it cannot be written down")
                self.law(one in new, "let in before it was written down")
            elif outcome.position and one not in line_before and not refused:
                self.law(one in new, "a place was promised before it was written down")
            elif (
                outcome.standing is Standing.ACTIVE
                and outcome.renewed_ms == self.now_ms
                and self.inside.get(one) != self.now_ms
                and not refused
            ):  # type: ignore[call-overload]
                self.law(one in new, "a session was renewed before it was written down")

        answers: list[Outcome] = []

        def then(outcome: Outcome) -> None:
            at_the_answer(outcome)
            answers.append(outcome)

        operation(*arguments, then)  # type: ignore[operator]
        (outcome,) = answers
        return outcome

    def _end_sessions(self) -> None:
        """Takes those whose time is over off our books."""
        over = [one for one in self.inside if not self.living(one)]
        for one in over:
            del self.inside[one]
            self.over[one] = (
                self.admitted.get(one, 0) + PLACE_KEPT_MS
            )  # no check-in as a waiter can be later than that

    def _room_left(self) -> int:
        """How many permits there can be at most."""
        return min(
            self.room.total_active_users - self.using(),
            self.room.new_users_per_minute - self.minute(),
        )

    def _entered(self, one: bytes) -> None:
        self.law(not self.closed, "let in although nobody may")
        room_left = self._room_left()
        self.entries.append(self.now_ms)
        self.inside[one] = self.admitted[one] = self.now_ms
        self.places.pop(one, None)
        if self.room.queueing_method != "passthrough":
            self.law(
                room_left > 0,
                f"let in with room for {room_left}: {self.using()} active, {self.minute()} in the last minute",
            )

    def _unconfirmed(self, one: bytes, free: int) -> None:
        """A newcomer enters without having shown a ticket."""
        total, per_minute = self.room.total_active_users, self.room.new_users_per_minute
        if self.room.confirm_newcomers == "auto" and self.room.queueing_method != "passthrough":
            active = sum(self.living(other) for other in self.unshown)
            minute = sum(self.now_ms - ms <= 60_000 for ms in self.unshown.values())
            self.law(active < max(1, total // 4), f"{active} unconfirmed of {total} are active")
            self.law(minute < max(1, per_minute // 4), f"{minute} unconfirmed in this minute")
            self.law(free > 1 or 1 in (total, per_minute), "the last place without a ticket")
            self.unshown[one] = self.now_ms

    def _claims(self, one: bytes, outcome: Outcome, peeked: bool = False) -> bool:
        """Whether this id has or had its session (or left), and the answer says so."""
        if self.living(one):
            if outcome.standing is Standing.ACTIVE and not peeked:
                self.unshown.pop(one, None)
            self.law(
                outcome.standing is Standing.ACTIVE,
                f"a waiting ticket with a living session is {outcome.standing!r}",
            )
            if outcome.renewed_ms == self.now_ms:
                self.inside[one] = self.now_ms
            return True
        self._end_sessions()
        if self.over.get(one, 0) > self.now_ms:
            self.law(outcome.standing is Standing.GONE, f"a spent ticket is {outcome.standing!r}")
            return True
        return outcome.standing is Standing.GONE and one in self.over

    def _waits(self, one: bytes, key: int, outcome: Outcome) -> None:
        if self.rejecting and outcome.position == 0:
            self.law(one not in dict(self.present()), "a real place was lost while rejecting")
            return
        certain = [place for other, place in self.present() if other != one]
        possible = [place for other, place in self.present(LATE_MS) if other != one]
        self.inside.pop(one, None)
        self.places[one] = Place(key, outcome.attempted_ms, outcome.refresh_ms)
        least = sum(1 for place in certain if place.key < key)
        most = sum(1 for place in possible if place.key < key)
        self.law(
            least <= outcome.ahead <= most, f"told {outcome.ahead} ahead, but {least} to {most} are"
        )
        self.law(outcome.position == outcome.ahead + 1, "position is not one more than ahead")
        self.law(
            len(certain) < outcome.waiting <= len(possible) + 1,
            f"told {outcome.waiting} wait, but {len(certain)}+1 do",
        )
        self.law(outcome.attempted_ms == self.now_ms, "a try was not counted")
        longest_ms = self.room.refresh_max_seconds * 1100
        self.law(
            (outcome.refresh_ms == 0)
            if self.rejecting
            else (1500 <= outcome.refresh_ms <= longest_ms),
            "a strange refresh",
        )
        self._estimated(outcome)

    def _estimated(self, outcome: Outcome) -> None:
        if self.closed or outcome.storage_failed:
            self.law(outcome.estimate is None, "an estimate although nobody is let in")
        if outcome.estimate:
            self.law(
                0 <= outcome.estimate.p25_s <= outcome.estimate.p50_s <= outcome.estimate.p75_s,
                "quartiles out of order",
            )
            next_ms = outcome.attempted_ms + outcome.refresh_ms - self.now_ms
            self.law(
                outcome.estimate.p25_s * 1000 >= next_ms - 1,
                "somebody is told to get in before the next try",
            )

    def _after(self) -> None:
        self.found += self.ledger.problems()
        self.halted = self.ledger.storage_failed
        on_the_books = self.ledger.ledger.sessions.renewals()
        least = self.active()
        late = sum(
            1 for renewed_ms in on_the_books.values() if renewed_ms + self.life_ms <= self.now_ms
        )
        self.law(
            len(on_the_books) == least + late,
            f"{len(on_the_books)} sessions on the books, {late} of them over, but {least} inside",
        )
        overdue = [
            renewed_ms
            for renewed_ms in on_the_books.values()
            if renewed_ms + self.life_ms <= self.now_ms - LATE_MS
        ]
        self.law(
            not overdue or self.ledger.ledger._swept != self.now_ms >> 8,
            "a session that is over holds its unit",
        )
        while self.from_line and self.now_ms - self.from_line[0] > 120_000:
            self.from_line.popleft()
