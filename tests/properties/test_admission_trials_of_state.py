"""Broken builds of what a room keeps: sessions, leases, the journal and messages; each fails the
trial that is named beside it.
"""

from collections.abc import Callable
from typing import Any

import admission_trials as trials
import pytest
from broken_builds import Break, Broken, Trial, around, found_by, must_be_found

from greenroom.admission import lease
from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.lease import Lease, PermitSource
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.sessions import Sessions
from greenroom.admission.messages.sync import NO_RECALL
from greenroom.admission.queueing.line import Line
from greenroom.admission.records import LedgerMemory
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import Outcome

pytestmark = pytest.mark.slow

BROKEN: Broken = []


def broken(trial: Trial) -> Callable[[Break], Break]:
    """A build that `trial` must find."""
    return found_by(trial, BROKEN)


@broken(trials.walks)
def extends_sessions_that_do_not_renew(patch: pytest.MonkeyPatch) -> None:
    def configure(original: Any, self: Ledger, room: Any, now_ms: int) -> None:
        original(self, room, now_ms)
        self.renews = True

    around(patch, Ledger, "configure", configure)


@broken(trials.walks)
def ends_sessions_early(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Sessions,
        "expire",
        lambda original, self, now_ms, limit, ended: original(self, now_ms + 3_000, limit, ended),
    )


@broken(trials.walks)
def keeps_the_old_session_duration(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sessions, "change_life", lambda self, life_ms, now_ms, ended: None)


@broken(trials.walks)
def ignores_the_minute_when_granting(patch: pytest.MonkeyPatch) -> None:
    def spare(original: Any, self: Coordinator, now_ms: int) -> int:
        original(self, now_ms)
        return self.pool

    around(patch, Coordinator, "_spare", spare)


@broken(trials.walks)
def does_not_call_permits_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "_recalled", lambda self, center, missing: NO_RECALL)


@broken(trials.walks)
def lets_in_although_the_disk_refused(patch: pytest.MonkeyPatch) -> None:
    def written(
        original: Any, self: MemoryLedger, outcome: Outcome, now_ms: int, random_bits: int
    ) -> Outcome:
        self._write_log()
        return outcome

    around(patch, MemoryLedger, "_written", written)


@broken(trials.walks)
def writes_after_answering(patch: pytest.MonkeyPatch) -> None:
    def write_log(original: Any, self: MemoryLedger) -> bool:
        late, self.late = getattr(self, "late", []), list(self.ledger.log)  # type: ignore[attr-defined]
        self.ledger.log[:] = late
        return bool(original(self))

    around(patch, MemoryLedger, "_write_log", write_log)


@broken(trials.walks)
def keeps_the_session_of_an_undone_admission(patch: pytest.MonkeyPatch) -> None:
    def undo(original: Any, self: Ledger, now_ms: int, random_bits: int) -> Outcome:
        (one, *_) = self._last  # type: ignore[misc]
        outcome = original(self, now_ms, random_bits)
        self.sessions.begin(one, now_ms)
        return outcome

    around(patch, Ledger, "undo", undo)


@broken(trials.walks)
def restarts_without_the_minute(patch: pytest.MonkeyPatch) -> None:
    def restore(original: Any, self: Ledger, memory: LedgerMemory, now_ms: int) -> None:
        memory.window = []
        original(self, memory, now_ms)

    around(patch, Ledger, "restore", restore)


@broken(trials.walks)
def restarts_without_the_line(patch: pytest.MonkeyPatch) -> None:
    def restore(original: Any, self: Ledger, memory: LedgerMemory, now_ms: int) -> None:
        memory.places = {}
        original(self, memory, now_ms)

    around(patch, Ledger, "restore", restore)


@broken(trials.walks)
def sweeps_the_line_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        Line,
        "fill",
        lambda original, self, places, now_ms, refresh_ms: original(
            self, places, now_ms - 30_000, refresh_ms
        ),
    )


@broken(trials.two_restarts)
def revives_sessions_at_the_second_restart(patch: pytest.MonkeyPatch) -> None:
    def restore(original: Any, self: Ledger, memory: LedgerMemory, now_ms: int) -> None:
        original(self, memory, now_ms)
        self.log.clear()

    around(patch, Ledger, "restore", restore)


@broken(trials.walks)
def stays_halted_when_the_disk_is_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryLedger, "_try_again", lambda self, now_ms: None)


@broken(trials.walks)
def goes_on_with_a_hole_in_the_journal(patch: pytest.MonkeyPatch) -> None:
    def try_again(self: MemoryLedger, now_ms: int) -> None:
        self.ledger.halted = self._journal.failing  # type: ignore[union-attr]

    patch.setattr(MemoryLedger, "_try_again", try_again)


@broken(trials.everybodys_turn)
def never_gives_freed_units_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "give_back", lambda self, now_ms: None)


@broken(trials.while_the_origin_fails)
def frees_the_unit_of_a_kept_turn_twice(patch: pytest.MonkeyPatch) -> None:
    def expired(
        original: Any, self: Ledger, ticket_id: bytes, until_ms: int, ended_ms: int, now_ms: int
    ) -> None:
        original(self, ticket_id, until_ms, ended_ms, now_ms)
        if self.failures.is_kept(ticket_id, ended_ms):
            self.lease.free()

    around(patch, Ledger, "expired", expired)


@broken(trials.messages_astray)
def grants_again_when_a_message_comes_twice(patch: pytest.MonkeyPatch) -> None:
    def is_late(original: Any, self: Lease, down: Any) -> bool:
        late: bool = original(self, down)
        if late and down.granted:
            self.permits += 1
            self.granted_seen += 1
        return late

    around(patch, Lease, "is_late", is_late)


@broken(trials.messages_astray)
def believes_old_messages(patch: pytest.MonkeyPatch) -> None:
    def absorb(original: Any, self: Coordinator, center: Any, up: Any, now_ms: int) -> None:
        center.returned_freed = min(center.returned_freed, up.returned_freed)
        original(self, center, up, now_ms)

    around(patch, Coordinator, "_absorb", absorb)


@broken(trials.messages_astray)
def compares_clocks_instead_of_ages(patch: pytest.MonkeyPatch) -> None:
    def absorb(original: Any, self: Coordinator, center: Any, up: Any, now_ms: int) -> None:
        original(self, center, up, up.sent_ms)

    around(patch, Coordinator, "_absorb", absorb)


@broken(trials.messages_astray)
def cut_off_spends_whatever_it_frees(patch: pytest.MonkeyPatch) -> None:
    def source(original: Any, self: Lease, now_ms: int, overdraws: bool) -> PermitSource | None:
        found = original(self, now_ms, overdraws)
        return found or (PermitSource.FREED if self.freed and not self.connected(now_ms) else None)

    around(patch, Lease, "source", source)


@broken(trials.walks)
def frees_the_units_of_ended_sessions_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lease, "CLOSING_MS", -512)


@broken(trials.walks)
def remembers_no_session_that_an_operator_ended(patch: pytest.MonkeyPatch) -> None:
    def end_all(self: Sessions, now_ms: int) -> list[tuple[bytes, int]]:
        ended = [(ticket_id, 0) for ticket_id in self.inside]
        self.inside.clear()
        return ended

    patch.setattr(Sessions, "end_all", end_all)


@broken(trials.walks)
def keeps_the_units_of_ended_sessions_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "free_closed", lambda self, now_ms: setattr(self, "closing", 0))


@pytest.mark.needs("patching")
@pytest.mark.parametrize(
    ("trial", "build"), BROKEN, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_build_is_found_that(trial: Trial, build: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(trial, build, monkeypatch)
