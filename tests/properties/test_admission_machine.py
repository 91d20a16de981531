"""Hypothesis lives in a small room: any row of visits, settings, disk failures and restarts keeps
the laws of admission.
"""

from admission_laws import GroundTruth
from admission_walks import METHODS, PAUSES_MS
from admission_world import small_room, ticket_id
from examples import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from greenroom.model.visit import Standing

LIMITS = st.sampled_from((1, 2, 3, 7))
CONFIRMS = st.sampled_from((False, True, "auto", "auto"))


class Admission(RuleBasedStateMachine):
    """One room, one ledger, its coordinator and its journal."""

    @initialize(
        inside=LIMITS,
        minute=LIMITS,
        method=st.sampled_from(METHODS),
        confirm=CONFIRMS,
        seed=st.integers(0, 1 << 32),
    )
    def opens(self, inside: int, minute: int, method: str, confirm: bool | str, seed: int) -> None:
        room = small_room(
            total_active_users=inside,
            new_users_per_minute=minute,
            queueing_method=method,
            confirm_newcomers=confirm,
        )
        self.ground_truth = GroundTruth(room, seed)
        self.known: list[bytes] = []
        self.strangers = 0

    def pick(self, index: int) -> bytes:
        return self.known[index % len(self.known)]

    @rule(pause_ms=st.sampled_from(PAUSES_MS))
    def time_passes(self, pause_ms: int) -> None:
        self.ground_truth.advance(pause_ms)

    @rule(count=st.integers(1, 4), come_back=st.booleans())
    def newcomers(self, count: int, come_back: bool) -> None:
        for _ in range(count):
            one = ticket_id(len(self.known))
            self.known.append(one)
            outcome = self.ground_truth.arrive(one)
            if come_back and outcome.standing is Standing.WAITING:
                self.ground_truth.advance(outcome.refresh_ms)
                self.ground_truth.poll(one)

    @rule(count=st.integers(1, 50))
    def requests_without_cookies(self, count: int) -> None:
        for _ in range(count):
            self.strangers += 1
            if (
                self.ground_truth.arrive(ticket_id(10**12 + self.strangers)).standing
                is Standing.ADMITTED
            ):
                break

    @precondition(lambda self: self.known)
    @rule(index=st.integers(0, 1 << 16))
    def a_ticket_comes_back_in_time(self, index: int) -> None:
        one = self.pick(index)
        place = self.ground_truth.places.get(one)
        if place:
            self.ground_truth.advance(
                max(0, place.attempted_ms + place.refresh_ms - self.ground_truth.now_ms)
            )
        self.ground_truth.poll(one)

    @precondition(lambda self: self.known)
    @rule(index=st.integers(0, 1 << 16))
    def a_ticket_comes_back_too_early(self, index: int) -> None:
        self.ground_truth.peek(self.pick(index))

    @precondition(lambda self: self.known)
    @rule(index=st.integers(0, 1 << 16))
    def somebody_browses(self, index: int) -> None:
        self.ground_truth.view(self.pick(index))

    @rule(number=st.integers(0, 1 << 40))
    def somebody_brings_an_unknown_session(self, number: int) -> None:
        self.ground_truth.view(ticket_id((1 << 60) + number))

    @precondition(lambda self: self.known)
    @rule(index=st.integers(0, 1 << 16))
    def somebody_leaves(self, index: int) -> None:
        self.ground_truth.leave(self.pick(index))

    @rule()
    def the_background_ticks(self) -> None:
        self.ground_truth.tick()

    @rule(inside=LIMITS, minute=LIMITS)
    def limits_change(self, inside: int, minute: int) -> None:
        self.ground_truth.configure(total_active_users=inside, new_users_per_minute=minute)

    @rule(method=st.sampled_from(METHODS), queue_all=st.booleans())
    def the_method_changes(self, method: str, queue_all: bool) -> None:
        self.ground_truth.configure(queueing_method=method, queue_all=queue_all)

    @rule(minutes=st.sampled_from((1, 2, 5)), fixed=st.booleans())
    def sessions_change(self, minutes: int, fixed: bool) -> None:
        self.ground_truth.configure(session_duration=minutes, disable_session_renewal=fixed)

    @rule()
    def an_operator_ends_all_sessions(self) -> None:
        self.ground_truth.end_all_sessions()

    @rule(failing=st.booleans())
    def the_disk_changes_its_mind(self, failing: bool) -> None:
        self.ground_truth.journal.failing = failing

    @rule()
    def the_process_is_killed_and_starts_again(self) -> None:
        self.ground_truth.restart()

    @rule()
    def the_journal_is_compacted(self) -> None:
        if not self.ground_truth.journal.failing and not self.ground_truth.halted:
            self.ground_truth.journal.payloads = list(self.ground_truth.ledger.snapshot())

    @invariant()
    def no_law_is_broken(self) -> None:
        assert not hasattr(self, "ground_truth") or self.ground_truth.found == []


TestAdmission = Admission.TestCase
TestAdmission.settings = settings(
    max_examples=examples(300),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
