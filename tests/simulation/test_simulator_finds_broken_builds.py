"""Broken builds under the simulator: the campaign that a good build passes finds each of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from broken_builds import Break, Broken, Trial, around, found_by, must_be_found
from small_worlds import (
    CUT,
    FAILED,
    FIRST_LINE,
    GHOSTS,
    LOST,
    LOWERED,
    MOVED,
    MOVED_BEHIND_A_CUT,
    OUTAGE,
    PASSED,
    REMOVED,
    STOPPED,
    campaign,
    given_up,
    on_the_way,
    removed_before,
    stepped,
    trial,
)

from greenroom.admission.coordinator import session_transfers
from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.data_center import DataCenter
from greenroom.admission.coordinator.pace import Pace
from greenroom.admission.coordinator.session_transfers import SessionTransfers
from greenroom.admission.lease import Lease, PermitSource
from greenroom.admission.ledger import exchange, transfers, visiting
from greenroom.admission.ledger.failures import FAILING, USED, Failures, parts_of, row_of
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.moving_turns import MovingTurns
from greenroom.admission.ledger_time import LedgerTime
from greenroom.admission.messages import moves
from greenroom.admission.messages.moves import Moves
from greenroom.admission.messages.turns import EVERYWHERE
from greenroom.admission.queueing.line import Line
from greenroom.admission.queueing.methods import Fifo
from greenroom.capacity import CapacityLaw, Window
from greenroom.capacity.exported import reports_of_push
from greenroom.simulator import followed_origin
from greenroom.simulator.checks import Watch
from greenroom.simulator.scenario import Behaviour, Fault
from greenroom.simulator.traces import room

BROKEN: Broken = []


def broken(seed: int) -> Callable[[Break], Break]:
    """A build that the campaign finds with this seed, or soon after."""
    return found_by(lambda: campaign(range(seed, seed + 25)), BROKEN)


def broken_in(seed: int = 1, **changes: Any) -> Callable[[Break], Break]:
    """A build that is found in the little world, changed so."""
    return found_by(lambda: trial(seed, **changes), BROKEN)


@found_by(on_the_way, BROKEN)
def names_a_gift_only_until_it_is_booked(patch: pytest.MonkeyPatch) -> None:
    def forgetful(original: Any, self: Moves, *more: Any) -> None:
        original(self, *more)
        self._kept.clear()

    around(patch, Moves, "confirm", forgetful)


@found_by(removed_before, BROKEN)
def tells_no_ledger_what_the_coordinator_alone_knows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "_unknown_ms", lambda *_: 0)


UNKNOWN: dict[str, Any] = LOST | {
    "faults": (
        Fault("partition", 100, 300, (0,)),
        Fault("coordinator loss", 104, 106),
        Fault("removed", 108, 300, (0,)),
    )
}
"""The one that is cut off is then taken off the list, when nobody knows what it holds."""


@broken_in(**UNKNOWN)
def takes_a_data_center_off_the_list_that_it_knows_nothing_of(patch: pytest.MonkeyPatch) -> None:
    def enlist(original: Any, self: Coordinator, *names: Any) -> None:
        forgotten = self.forgotten
        original(self, *names)
        self.forgotten = forgotten

    around(patch, Coordinator, "enlist", enlist)


@broken_in(**LOST)
def waits_for_a_silent_data_center_as_if_it_renewed_no_session_any_more(
    patch: pytest.MonkeyPatch,
) -> None:
    patch.setattr(
        Coordinator,
        "_waited_for_doubted",
        property(lambda self: self._pace.since_ms >= self.doubted_until_ms),
    )


FOLLOWED = {
    "room": room(40, 60),
    "faults": (
        Fault("follow", 20, 300, amount=10),
        Fault("partition", 75, 150, (0,)),
        Fault("coordinator loss", 80, 83),
    ),
}
"""The origin fails, one data center is silent, and the coordinator is lost."""


@broken_in(**FOLLOWED)
def admits_again_when_another_process_runs_the_law(patch: pytest.MonkeyPatch) -> None:
    def forgets(original: Any, self: CapacityLaw, limits: Any, start: int, _: int) -> None:
        original(self, limits, start)

    around(patch, CapacityLaw, "__init__", forgets)


@broken_in(**FOLLOWED)
def takes_a_window_of_some_data_centers_for_all(patch: pytest.MonkeyPatch) -> None:
    def unseeing(original: Any, self: CapacityLaw, window: Any, *rest: Any) -> Any:
        return original(self, window or Window(active=5), *rest)

    around(patch, CapacityLaw, "step", unseeing)


PUSHED = {
    "room": room(40, 60),
    "faults": (Fault("pushes", 19, 301, amount=40), Fault("follow", 20, 300, amount=80)),
}


@broken_in(**PUSHED)
def counts_a_push_again_that_comes_again(patch: pytest.MonkeyPatch) -> None:
    def trusting(room_id: str, found: Any, _known: Any, now_ms: int) -> Any:
        now = {name: one._replace(at_ms=0) for name, one in found.items()}
        return reports_of_push(room_id, now, {}, now_ms)

    patch.setattr(followed_origin, "reports_of_push", trusting)


@broken_in(**FAILED)
def keeps_no_turn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Failures, "end", lambda *_: [])


@broken_in(**FAILED)
def keeps_a_turn_twice(patch: pytest.MonkeyPatch) -> None:
    def again(original: Any, self: Failures, ticket_id: bytes, now_ms: int) -> bool:
        taken = original(self, ticket_id, now_ms)
        if taken:
            self.rows[ticket_id] = row_of(now_ms // 1000, 0, FAILING)
        return taken

    around(patch, Failures, "take", again)
    patch.setattr(Failures, "is_taken", lambda *_: True)


@broken_in(**MOVED)
def keeps_a_turn_where_its_visitor_is_not(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MovingTurns, "leave", lambda *_: [])


@broken_in(**MOVED)
def tells_no_other_data_center_that_a_turn_was_used(patch: pytest.MonkeyPatch) -> None:
    def quiet(original: Any, self: MovingTurns, ticket_id: bytes, to: str, now_ms: int) -> Any:
        return original(self, ticket_id, to, now_ms) if to != EVERYWHERE else []

    around(patch, MovingTurns, "leave", quiet)


@broken_in(2, **MOVED_BEHIND_A_CUT)
def revives_no_place_where_it_hears_of_a_turn(patch: pytest.MonkeyPatch) -> None:
    def hear(original: Any, self: MovingTurns, *heard: Any) -> Any:
        revive, self._revive = self._revive, lambda _: None
        try:
            return original(self, *heard)
        finally:
            self._revive = revive

    around(patch, MovingTurns, "hear", hear)


MOVED_AGAIN = {
    "room": replace(room(40, 60), strong_sessions=True),
    "behaviour": Behaviour(visit_s=60, page_gap_s=3, moving=0.5),
    "faults": tuple(
        Fault("partition", 60 + 30 * cut, 85 + 30 * cut, (cut % 3,)) for cut in range(12)
    ),
    "lasts_s": 450,
}
"""One data center after another is cut off, so that permits replace sessions twice; the origin never
fails.
"""


@broken_in(3, **MOVED_AGAIN)
def takes_a_permit_for_a_turn(patch: pytest.MonkeyPatch) -> None:
    def used(_: Any, self: Failures, ticket_id: bytes, now_ms: int) -> bool:
        return parts_of(self.known(ticket_id, now_ms))[2] == USED

    around(patch, Failures, "is_taken", used)


@found_by(given_up, BROKEN)
def frees_the_units_of_a_data_center_at_an_operators_word(patch: pytest.MonkeyPatch) -> None:
    def hasty(original: Any, self: Coordinator, center: DataCenter, now_ms: int) -> None:
        original(self, center, now_ms)
        self.pool, center.orphans = self.pool + center.orphans, 0

    around(patch, Coordinator, "_give_up", hasty)


@found_by(given_up, BROKEN)
def takes_the_old_epoch_of_a_data_center_that_was_given_up(patch: pytest.MonkeyPatch) -> None:
    begin = DataCenter.begin_epoch

    def same(self: DataCenter, epoch: int) -> None:
        begin(self, self.epoch if epoch == self.epoch + 1 else epoch)

    patch.setattr(DataCenter, "begin_epoch", same)


@broken_in(**GHOSTS)
def takes_a_turn_of_the_line_for_a_permit_that_let_no_visitor_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pace, "return_unused", lambda self, count: None)


@broken_in(**CUT)
def renews_sessions_behind_the_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "view", renewing(Ledger.view))


def renewing(view: Any) -> Any:
    def always(self: Ledger, ticket_id: bytes, now_ms: int) -> Any:
        fence_ms, self.lease.fence_ms = self.lease.fence_ms, 0
        try:
            return view(self, ticket_id, now_ms)
        finally:
            self.lease.fence_ms = fence_ms

    return always


@broken_in(**CUT)
def frees_what_is_behind_the_fence_before_sessions_have_ended(patch: pytest.MonkeyPatch) -> None:
    begin = Coordinator._begin_epoch

    def hasty(self: Coordinator, center: DataCenter, epoch: int, now_ms: int) -> None:
        begin(self, center, epoch, now_ms)
        center.orphans_until_ms = now_ms

    patch.setattr(Coordinator, "_begin_epoch", hasty)


@broken_in(**CUT)
def counts_the_fence_from_before_the_last_contact(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("greenroom.admission.coordinator.data_center.FENCE_SLACK_MS", -25_000)


@broken_in(**STOPPED)
def frees_the_units_of_sessions_at_the_farewell(patch: pytest.MonkeyPatch) -> None:
    part = Coordinator._part

    def hasty(self: Coordinator, center: DataCenter, *more: Any) -> None:
        part(self, center, *more)
        self.pool, center.orphans = self.pool + center.orphans, 0

    patch.setattr(Coordinator, "_part", hasty)


@broken_in(
    **{**STOPPED, "faults": (Fault("stop", 100, 100.3, (0,)), Fault("partition", 101, 400, (0,)))}
)
def goes_on_in_the_epoch_of_its_farewell(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exchange, "_begin_epoch", lambda *_: None)


@broken_in(**stepped(3_600))
def believes_a_server_whose_clock_was_stepped(patch: pytest.MonkeyPatch) -> None:
    def read(self: LedgerTime, server_ms: int, expected_ms: int, slack_ms: int) -> int:
        self.latest_ms = max(self.latest_ms, server_ms)
        return self.latest_ms

    patch.setattr(LedgerTime, "read", read)
    patch.setattr(
        LedgerTime, "put_right", lambda self, server_ms, expected_ms, line_ms: self.latest_ms
    )


@broken_in(
    **{
        **CUT,
        "faults": (Fault("partition", 100, 400, (0,)), Fault("clock step", 110, 410, (0,), -3_600)),
    }
)
def stands_still_behind_the_fence_after_a_step_back(patch: pytest.MonkeyPatch) -> None:
    def read(self: LedgerTime, server_ms: int, expected_ms: int, slack_ms: int) -> int:
        self.latest_ms = max(self.latest_ms, server_ms)
        return self.latest_ms

    patch.setattr(LedgerTime, "read", read)


@broken(1)
def grants_beyond_the_minute(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "_spare", lambda self, now_ms: self.pool)


@broken_in(faults=(Fault("partition", 110, 180, (0,)), Fault("coordinator loss", 120, 125)))
def grants_before_everybody_was_heard(patch: pytest.MonkeyPatch) -> None:
    allot = Coordinator._allot

    def trusting(self: Coordinator, *arguments: Any) -> int:
        self.doubted.clear()
        return allot(self, *arguments)

    patch.setattr(Coordinator, "_allot", trusting)


@broken_in(faults=(Fault("crash", 120, 122, (0,)),), behaviour=Behaviour(visit_s=60, page_gap_s=5))
def forgets_orphans(patch: pytest.MonkeyPatch) -> None:
    begin = Coordinator._begin_epoch

    def forgetful(self: Coordinator, center: DataCenter, epoch: int, now_ms: int) -> None:
        begin(self, center, epoch, now_ms)
        self.pool += center.orphans
        center.orphans = 0

    patch.setattr(Coordinator, "_begin_epoch", forgetful)


@broken(126)
def keeps_orphans_for_ever(patch: pytest.MonkeyPatch) -> None:
    def never(original: Any, self: DataCenter) -> int:
        orphans, self.orphans = self.orphans, 0
        alarm_ms: int = original(self)
        self.orphans = orphans
        return alarm_ms

    around(patch, DataCenter, "next_alarm_ms", never)


@broken(0)
def keeps_the_session_that_it_gives(patch: pytest.MonkeyPatch) -> None:
    def give(ledger: Any, ticket_id: bytes, to: str, now_ms: int) -> None:
        if ticket_id in ledger.sessions.inside:
            ledger.moves.give(ticket_id, to, ledger.sessions.renewed(ticket_id), 0)

    patch.setattr(transfers, "give", give)


@broken(0)
def takes_an_arrival_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Moves, "new_arrivals", lambda self, down: down.arrivals)


@broken(41)
def gives_an_orphan_for_nothing(patch: pytest.MonkeyPatch) -> None:
    def orphan(
        self: SessionTransfers,
        owner: DataCenter,
        ticket_id: bytes,
        to: str,
        renewed_ms: int,
        until_ms: int,
    ) -> bool:
        if owner.orphans:
            self._bring(ticket_id, to, renewed_ms, until_ms)
        return bool(owner.orphans)

    patch.setattr(session_transfers.SessionTransfers, "_orphan", orphan)


@broken(9_420)
def takes_an_orphan_for_a_session_that_was_renewed_when_its_ticket_was(
    patch: pytest.MonkeyPatch,
) -> None:
    def named(original: Any, self: Moves, down: Any) -> Any:
        return [(*one[:2], one[2] or "gift") for one in original(self, down)]

    around(patch, Moves, "new_arrivals", named)
    patch.setattr(Moves, "is_again", lambda *_: False)


@broken(0)
def books_every_gift_again(patch: pytest.MonkeyPatch) -> None:
    def confirm(self: Moves, down: moves.MovesDown, newest: bool) -> None:
        self.given += len(self._gifts)

    patch.setattr(Moves, "confirm", confirm)


@broken(4)
def serves_on_trust_in_strong_mode(patch: pytest.MonkeyPatch) -> None:
    trusting = visiting.visit

    def visit(ledger: Any, *arguments: Any) -> Any:
        ledger.strong, strong = False, ledger.strong
        outcome = trusting(ledger, *arguments)
        ledger.strong = strong
        return outcome

    patch.setattr("greenroom.simulator.lease_model.visit", visit)


@broken_in(
    14,
    behaviour=Behaviour(visit_s=90, page_gap_s=3, moving=0.2),
    fence_s=10,
    faults=(Fault("partition", 100, 160, (0, 1)), Fault("partition", 124, 274, (2,))),
)
def lets_an_older_session_here_replace_that_of_the_ticket(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("greenroom.simulator.lease_model.is_outlived", lambda *_: False)


@broken(0)
def lets_in_whoever_tries_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fifo, "admits", lambda self, *_: True)


@broken(0)
def stands_by_another_key(patch: pytest.MonkeyPatch) -> None:
    join = Line.join
    patch.setattr(
        Line,
        "join",
        lambda self, ticket_id, key, now_ms, refresh_ms: join(
            self, ticket_id, key + 1, now_ms, refresh_ms
        ),
    )


@broken(4)
def never_gives_freed_units_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "give_back", lambda self, now_ms: None)


@broken(954)
def believes_an_old_copy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "doubt", lambda *_: None)


@broken_in(**OUTAGE)
def does_not_look_how_far_permits_reach_where_all_wait_in_one_data_center(
    patch: pytest.MonkeyPatch,
) -> None:
    def share(
        original: Any,
        self: Coordinator,
        center: DataCenter,
        count: int,
        waiting: int,
        random_bits: int,
    ) -> int:
        alone = center.uncovered == waiting
        return (
            min(count, waiting)
            if alone
            else int(original(self, center, count, waiting, random_bits))
        )

    around(patch, Coordinator, "_share", share)


@broken_in(**REMOVED)
def leaves_the_horizon_of_a_line_where_it_is_when_only_one_data_center_is_left(
    patch: pytest.MonkeyPatch,
) -> None:
    def rank(original: Any, self: Coordinator) -> None:
        horizon_s = self._horizon_s
        original(self)
        self._horizon_s = horizon_s

    around(patch, Coordinator, "_rank", rank)
    does_not_look_how_far_permits_reach_where_all_wait_in_one_data_center(patch)


@broken_in(**PASSED)
def paces_those_whom_passthrough_lets_pass(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Lease,
        "spend",
        lambda original, self, source, now_ms, paced=True: original(self, source, now_ms, True),
    )


@broken_in(**FIRST_LINE)
def gives_no_visitor_a_freed_unit_behind_a_cut(patch: pytest.MonkeyPatch) -> None:
    def source(original: Any, *asked: Any, **more: Any) -> PermitSource | None:
        found = original(*asked, **more)
        return None if found is PermitSource.FREED else found

    around(patch, Lease, "source", source)


@broken_in(**LOWERED)
def goes_on_at_the_old_rate_behind_a_cut(patch: pytest.MonkeyPatch) -> None:
    def rate(self: Coordinator, center: DataCenter) -> int:
        left = max(0, min(self.pool, self.per_minute - self.sums.value))
        return max(
            int(0.95 * center.minute),
            min(int(0.05 * left), left + center.minute + center.outstanding),
        ) * (self.pool >= 0)

    patch.setattr(Coordinator, "_disconnected_rate", rate)


def ends_the_world(_: Watch, law: str, problem: str) -> None:
    raise AssertionError(f"{law}: {problem}")


@pytest.mark.parametrize(
    ("changes", "seed"),
    [(UNKNOWN, 1), (FOLLOWED, 1), (PUSHED, 1), (MOVED_AGAIN, 3)],
    ids=["unknown", "followed", "pushed", "moved again"],
)
def test_a_good_build_passes_the_worlds_that_only_broken_ones_are_tried_in(
    changes: dict[str, Any], seed: int
) -> None:
    assert trial(seed, **changes) == []


@pytest.mark.needs("patching")
@pytest.mark.parametrize(("trial", "build"), BROKEN, ids=[build.__name__ for _, build in BROKEN])
def test_the_simulator_finds_a_build_that(
    trial: Trial, build: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watch, "note", ends_the_world)
    must_be_found(trial, build, monkeypatch)
