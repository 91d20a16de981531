"""Moves a place, session or kept turn to another ticket id, on another device.

The same operation spends the old id, so two ids never both have it, however often and wherever
either is brought again.
"""

from greenroom.admission.ledger.failures import KEPT, USED, parts_of
from greenroom.admission.ledger.state import LedgerState
from greenroom.admission.messages.turns import EVERYWHERE
from greenroom.admission.records import BEGAN, END, EXTENDED, FAILED, PLACE, SESSION, pack
from greenroom.model.visit import Standing


def move(ledger: LedgerState, old: bytes, new: bytes, absent: bool, now_ms: int) -> Standing:
    """Returns what moved: ACTIVE a session, WAITING a place, GONE nothing.

    `absent`: a waiting ticket of the old id is still good, so an unknown place moves too: the new
    ticket takes it with its next try. So does a kept turn: see `take_turn`.
    """
    sessions, line = ledger.sessions, ledger.line
    renewed_ms = ledger.living(old, now_ms)
    if renewed_ms is not None:
        if ledger.provisional.holds(old):
            return Standing.GONE
        ledger.see(old, now_ms)
        sessions.rename(old, new)
        ledger.log.append(pack(END, old, ledger.spend_of_copy(old, renewed_ms, now_ms)))
        ledger.log.append(pack(SESSION, new, renewed_ms))
        if began_ms := sessions.began(new):
            ledger.log.append(pack(BEGAN, new, began_ms))
        if new in sessions.extended:
            ledger.log.append(pack(EXTENDED, new, sessions.extended[new]))
        row_moves(ledger, old, new, now_ms)
        return Standing.ACTIVE
    if not ledger.failures.is_kept(old, now_ms) and (
        sessions.spent.get(old, 0) > now_ms or not (absent or old in line.slots)
    ):
        return Standing.GONE
    ledger.log.append(pack(END, old, sessions.spend_place(old, now_ms)))
    if old in line.slots:
        line.rename(old, new)
        ledger.log.append(pack(PLACE, new, line.keys[line.slots[new]]))
    ledger.absent.rename(old, new)
    row_moves(ledger, old, new, now_ms)
    return Standing.WAITING


def row_moves(ledger: LedgerState, old: bytes, new: bytes, now_ms: int) -> bool:
    """Returns whether there is one."""
    row = ledger.failures.known(old, now_ms)
    if row:
        del ledger.failures.rows[old]
        row = ledger.failures.absorb(new, row, now_ms)
        ledger.log.append(pack(FAILED, new, row))
        if parts_of(row)[2] == USED:
            ledger.moving_turns.leave(new, EVERYWHERE, now_ms)
    return row > 0


def take_turn(ledger: LedgerState, ticket_id: bytes, now_ms: int) -> bool:
    """Uses a kept turn: the visitor now waits for a permit by the old key."""
    taken = ledger.failures.take(ticket_id, now_ms)
    if taken:
        ledger.log.append(pack(FAILED, ticket_id, ledger.failures.rows[ticket_id]))
        ledger.moving_turns.leave(ticket_id, EVERYWHERE, now_ms)
    return taken


def move_back(ledger: LedgerState, old: bytes, new: bytes) -> None:
    """Undoes the last move, which could not be stored."""
    row = ledger.failures.rows.pop(new, 0)
    if row:
        ledger.failures.put(old, row)
    if parts_of(row)[2] != KEPT:
        ledger.sessions.revive(old)
    ledger.absent.rename(new, old)
    if new in ledger.sessions.inside:
        ledger.sessions.rename(new, old)
    elif new in ledger.line.slots:
        ledger.line.rename(new, old)
