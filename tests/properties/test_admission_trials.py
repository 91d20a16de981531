"""Admission passes its trials, and each of many broken builds fails the one that is named beside
it.
"""

from collections.abc import Callable
from typing import Any

import admission_trials as trials
import pytest
from broken_builds import Break, Broken, Trial, around, found_by, must_be_found

from greenroom.admission.coordinator import coordinator
from greenroom.admission.lease import Lease, PermitSource
from greenroom.admission.ledger import ledger as ledger_rules
from greenroom.admission.ledger import sessions
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.newcomers import Newcomers
from greenroom.admission.ledger.provisional import Provisional
from greenroom.admission.ledger.sessions import Sessions
from greenroom.admission.queueing import line, methods
from greenroom.admission.queueing.line import Line
from greenroom.admission.queueing.methods import QUEUEING_METHODS, Fifo, PermitAttempt, Random
from greenroom.model.room import METHODS
from greenroom.model.visit import Outcome, Standing, make_key

pytestmark = pytest.mark.slow

TRIALS: list[Trial] = [
    trials.walks,
    trials.fair_tries,
    trials.fair_room,
    trials.prompt_heads,
    trials.everybodys_turn,
    trials.messages_astray,
    trials.while_the_origin_fails,
    trials.two_restarts,
    trials.first_in_line,
]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.__name__)
def test_admission_passes(trial: Trial) -> None:
    assert trial() == []


BROKEN: Broken = []


def broken(trial: Trial) -> Callable[[Break], Break]:
    """A build that `trial` must find."""
    return found_by(trial, BROKEN)


@broken(trials.walks)
def forgets_the_admissions_of_the_last_minute(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "ages", lambda self, now_ms, whole: ())


@broken(trials.walks)
def counts_a_minute_of_59_seconds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coordinator, "WINDOW_MS", 59_000)


@broken(trials.walks)
def counts_freed_units_twice(patch: pytest.MonkeyPatch) -> None:
    def free(original: Any, self: Lease) -> None:
        original(self)
        original(self)

    around(patch, Lease, "free", free)


@broken(trials.walks)
def returns_freed_units_twice(patch: pytest.MonkeyPatch) -> None:
    def give_back(original: Any, self: Lease, now_ms: int) -> None:
        freed = self.freed
        original(self, now_ms)
        self.freed = freed

    around(patch, Lease, "give_back", give_back)


@broken(trials.walks)
def loses_the_unit_of_whoever_leaves(patch: pytest.MonkeyPatch) -> None:
    def leave(original: Any, self: Ledger, ticket_id: bytes, now_ms: int) -> None:
        freed, settled = self.lease.freed, self.lease.settled
        original(self, ticket_id, now_ms)
        self.lease.freed, self.lease.settled = freed, settled

    around(patch, Ledger, "leave", leave)


@broken(trials.walks)
def admits_newcomers_ahead_of_waiters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Ledger,
        "_newcomer_source",
        lambda self, now_ms: PermitSource.PERMIT if self.lease.permits else None,
    )


@broken(trials.walks)
def calls_the_last_first(patch: pytest.MonkeyPatch) -> None:
    def admits(self: Fifo, attempt: PermitAttempt) -> bool:
        return attempt.rank > 0 or attempt.permits > 1

    patch.setattr(Fifo, "admits", admits)


@broken(trials.walks)
def lets_in_whoever_tries_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fifo, "admits", lambda self, *_: True)


@broken(trials.walks)
def looks_far_ahead(patch: pytest.MonkeyPatch) -> None:
    def sweep(original: Any, self: Ledger, *asked: Any) -> bool:
        more = original(self, *asked)
        self.lookahead.permits += 3
        return bool(more)

    around(patch, Ledger, "sweep", sweep)


@broken(trials.first_in_line)
def lets_visitors_overtake_the_first_by_minutes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(methods, "OVERTAKING_MS", 600_000)


@broken(trials.fair_tries)
def counts_the_try_that_takes_a_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Random, "admits", lambda self, *_: True)


@broken(trials.fair_tries)
def asks_the_early_more_often(patch: pytest.MonkeyPatch) -> None:
    def refresh(original: Any, self: Ledger, rank: int, *rest: Any) -> int:
        return original(self, rank, *rest) // (3 if rank < 5 else 1)

    around(patch, Ledger, "_refresh", refresh)


@broken(trials.fair_room)
def lets_only_the_first_of_a_random_line_in(patch: pytest.MonkeyPatch) -> None:
    def admits(original: Any, self: Random, attempt: PermitAttempt) -> bool:
        return attempt.rank < 2 and original(self, attempt)

    around(patch, Random, "admits", admits)


@broken(trials.walks)
def sweeps_a_ghost_during_its_own_poll(patch: pytest.MonkeyPatch) -> None:
    def poll(
        original: Any, self: Ledger, ticket_id: bytes, key: int, now_ms: int, random_bits: int
    ) -> Outcome:
        self.sweep(now_ms)
        return original(self, ticket_id, key, now_ms, random_bits)

    around(patch, Ledger, "poll", poll)


@broken(trials.prompt_heads)
def never_sweeps_ghosts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Line, "sweep", lambda self, now_ms, patience_ms, limit: [])


@broken(trials.walks)
def sweeps_waiters_before_their_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(line, "GRACE_MS", -5_000)


@broken(trials.walks)
def gives_a_returning_ghost_a_new_place(patch: pytest.MonkeyPatch) -> None:
    def poll(
        original: Any, self: Ledger, ticket_id: bytes, key: int, now_ms: int, random_bits: int
    ) -> Outcome:
        return original(self, ticket_id, make_key(now_ms, random_bits), now_ms, random_bits)

    around(patch, Ledger, "poll", poll)


@broken(trials.walks)
def forgets_spent_tickets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sessions, "remember", lambda self, ticket_id, until_ms: None)


@broken(trials.walks)
def remembers_spent_tickets_for_a_minute(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sessions, "PLACE_KEPT_MS", 30_000)


@broken(trials.walks)
def gives_a_newcomer_a_place_without_a_ticket(patch: pytest.MonkeyPatch) -> None:
    def arrive(
        original: Any, self: Ledger, ticket_id: bytes, now_ms: int, random_bits: int, *rest: Any
    ) -> Outcome:
        outcome: Outcome = original(self, ticket_id, now_ms, random_bits, *rest)
        return (
            self.poll(ticket_id, make_key(now_ms, random_bits), now_ms, random_bits)
            if outcome.standing is Standing.WAITING
            else outcome
        )

    around(patch, Ledger, "arrive", arrive)


@broken(trials.walks)
def does_not_confirm_newcomers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Newcomers, "confirms", lambda *_: False)


@broken(trials.walks)
def gives_the_last_place_to_a_newcomer_without_a_ticket(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Newcomers, "takes_the_last", lambda *_: False)


@broken(trials.walks)
def does_not_count_unconfirmed_sessions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Newcomers,
        "confirms",
        lambda self, _, centers, now_ms, ask=Newcomers.confirms: ask(self, 0, centers, now_ms),
    )


@broken(trials.walks)
def does_not_count_unconfirmed_admissions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Newcomers, "_count", lambda *_: None)


@broken(trials.walks)
def lets_any_number_pass_that_cannot_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Provisional, "has_room", lambda self, *_: True)


@broken(trials.walks)
def lets_pass_beside_waiting_visitors(patch: pytest.MonkeyPatch) -> None:
    def arrive(original: Any, self: Ledger, ticket_id: bytes, now_ms: int) -> Outcome:
        waiting, self.line.slots = self.line.slots, {}
        try:
            return original(self, ticket_id, now_ms)
        finally:
            self.line.slots = waiting

    around(patch, Ledger, "arrive_provisionally", arrive)


@broken(trials.walks)
def gives_a_whole_session_to_what_cannot_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger_rules, "PROVISIONAL_MS", 60_000)


@broken(trials.walks)
def lets_a_provisional_session_end_although_its_ticket_came_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Provisional, "fulfil", lambda self, ticket_id: None)


@broken(trials.walks)
def admits_under_queue_all(patch: pytest.MonkeyPatch) -> None:
    def configure(original: Any, self: Ledger, room: Any, now_ms: int) -> None:
        original(self, room, now_ms)
        self._open = self._queueing.open

    around(patch, Ledger, "configure", configure)


@broken(trials.walks)
def clears_the_line_when_the_method_changes(patch: pytest.MonkeyPatch) -> None:
    def configure(original: Any, self: Ledger, room: Any, now_ms: int) -> None:
        if room.queueing_method != self._method:
            self.line = Line()
        original(self, room, now_ms)

    around(patch, Ledger, "configure", configure)


@broken(trials.walks)
def forgives_the_debt_of_passthrough(patch: pytest.MonkeyPatch) -> None:
    def spend(original: Any, self: Lease, source: PermitSource, *rest: Any, **more: Any) -> None:
        original(self, source, *rest, **more)
        if source is PermitSource.DEBT:
            self.settled += 1
            self.granted_seen += 1

    around(patch, Lease, "spend", spend)


@pytest.mark.needs("patching")
@pytest.mark.parametrize(
    ("trial", "build"), BROKEN, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_build_is_found_that(trial: Trial, build: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(trial, build, monkeypatch)


def test_every_method_of_queueing_has_a_way_of_calling() -> None:
    assert set(QUEUEING_METHODS) == set(METHODS)
