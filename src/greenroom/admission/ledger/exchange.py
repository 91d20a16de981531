"""The ledger's side of a sync: its report, and how it applies the answer."""

from msgspec import structs

from greenroom.admission.lease import Lease
from greenroom.admission.ledger import moving_places
from greenroom.admission.ledger.state import LedgerState
from greenroom.admission.ledger.transfers import hear
from greenroom.admission.messages.line_counts import Ages
from greenroom.admission.messages.moves import Moves
from greenroom.admission.messages.room_summary import Elsewhere
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.admission.queueing.line import GRACE_MS

REMEMBERS_MS = 31 * 86_400_000
"""The longest session is shorter."""


def farewell(ledger: LedgerState, now_ms: int) -> SyncUp | None:
    """The last report of a ledger that stops; None where no fence is known to be in force. The next
    epoch begins at once, with the units of sessions only and behind the fence until it is answered:
    it refuses what is on its way to this epoch, and renews no session.
    """
    if not ledger.lease.fence_ms or ledger.lease.fenced(now_ms):
        return None
    ledger.lease.give_all_back()
    last = structs.replace(report(ledger, now_ms, 0), farewell=True)
    # the coordinator continues with the epoch after the last one
    _begin_epoch(ledger, last.epoch + 2, now_ms)
    return last


def report(ledger: LedgerState, now_ms: int, want: int) -> SyncUp:
    """Returns surplus units with it."""
    lease, line, reporting = ledger.lease, ledger.line, ledger.reporting
    lease.give_back(now_ms)
    reporting.begin(now_ms, want, line.changed)
    whole, line_counts = reporting.whole, ledger.line_counts
    moves = ledger.moves.report(
        ledger.life_ms,
        ledger.moving_turns.report(now_ms),
        moving_places.report(ledger, now_ms),
        now_ms,
    )
    return SyncUp(
        ledger.data_center, ledger.epoch, reporting.number, now_ms, lease.granted_seen, lease.returned_permits, lease.returned_freed,
        lease.used, lease.over, lease.settled, lease.admitted, lease.ages(now_ms, whole), lease.applied, lease.permits, len(line),
        reporting.seconds(line.seconds), reporting.arrivals_per_s, want,
        ledger.sessions.ended.report(whole), line_counts.joined, line_counts.lost, line_counts.strays, line_counts.front_s,
        whole, lease.disconnected_rate, moves, lease.fence_ms, False,
        *((remembers_ms(ledger.empty_ms, now_ms), unknown_ms(lease, now_ms)) if whole else ()),
    )  # fmt: skip


def remembers_ms(empty_ms: int, now_ms: int) -> int:
    age_ms = now_ms - empty_ms
    return max(1, age_ms) if empty_ms and age_ms < REMEMBERS_MS else 0


def unknown_ms(lease: Lease, now_ms: int) -> int:
    return max(0, lease.unknown_until_ms - now_ms) if lease.unknown_until_ms else -1


def apply(ledger: LedgerState, down: SyncDown, now_ms: int) -> None:
    """Answers may come in any order and repeatedly."""
    if down.epoch != ledger.epoch:
        if down.epoch > ledger.epoch:
            _begin_epoch(ledger, down.epoch + 1, now_ms)
        return
    if ledger.lease.is_late(down):
        return
    newest = ledger.reporting.answered(down.answers, down.afresh)
    if newest:
        ledger.sessions.ended.acknowledge()
    if down.moves:
        hear(ledger, down.moves, now_ms, newest)
        came = [arrival[0] for arrival in down.moves.arrivals]
        if down.moves.turns:
            came += [row[0] for row in down.moves.turns.rows]
        for ticket_id in came:
            moving_places.arrived(ledger, ticket_id, now_ms)
        if down.moves.places:
            moving_places.hear(ledger, down.moves.places, now_ms)
    ledger.lease.apply(down, now_ms)
    if down.wait_table:
        ledger.waits.wait_reader.take(down.wait_table, down.time_ms, now_ms)
    if down.summary:
        ledger.elsewhere = Elsewhere(down.summary)
    elif down.alone:
        ledger.elsewhere = None
    ledger.reporting.borrowing.answered(down.answers, ledger.lease.permits, now_ms)


def _begin_epoch(ledger: LedgerState, epoch: int, now_ms: int) -> None:
    """Visitors stay, units do not."""
    ledger.epoch, ledger.born_ms = max(now_ms, epoch), now_ms
    ledger.lease = ledger.lease.begin_epoch(len(ledger.sessions.inside), now_ms)
    sources = ledger.moves.sources
    ledger.moves, ledger.sessions.ended = Moves(), Ages()
    ledger.moves.sources = sources
    ledger.line_counts.begin_epoch()
    ledger.reporting.begin_epoch(now_ms)
    ledger.line.pardon(now_ms + ledger.longest_refresh_ms + GRACE_MS)
