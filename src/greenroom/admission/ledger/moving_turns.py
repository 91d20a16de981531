"""A ledger's side of rows that follow their visitors (`messages.turns`)."""

from collections.abc import Callable

from greenroom.admission.ledger.failures import (
    GAP_MS,
    KEPT,
    OFFSET_MOST_S,
    TURN_KEPT_MS,
    USED,
    WINDOW_MS,
    Failures,
    parts_of,
    row_of,
)
from greenroom.admission.messages.moves import CLAIMS_MAX
from greenroom.admission.messages.turns import EVERYWHERE, TurnsDown, TurnsUp
from greenroom.admission.records import FAILED, pack

SEEK_MS = 15_000
"""How long a visitor is held whose turn another data center may keep: four syncs, twice for one who
moves again meanwhile.
"""
ASKED_MS = 5_000
"""A visitor who has not asked again by then has left. Pages ask every second."""


class MovingTurns:
    """Times are the ledger's own."""

    __slots__ = (
        "_failures",
        "_got",
        "_revive",
        "_seen",
        "_spoken",
        "elsewhere",
        "lasts_ms",
        "leaving",
        "left",
        "seeks",
    )

    def __init__(self, failures: Failures, revive: Callable[[bytes], None]) -> None:
        """`revive`: lets a spent id take a place again."""
        self._failures, self._revive = failures, revive
        self.lasts_ms = TURN_KEPT_MS + GAP_MS
        """Since the end of a session as its ticket knows it."""
        self.elsewhere = False
        self.leaving: dict[tuple[bytes, str], tuple[int, int]] = {}
        """(id, to) -> serial, row: reported until `to` has it."""
        self.left: dict[bytes, int] = {}
        """Turns once kept here: id -> when it is forgotten."""
        self.seeks: dict[bytes, tuple[int, int]] = {}
        """Id -> since when, and when its visitor last asked."""
        self._got: tuple[tuple[bytes, str, int], ...] = ()
        self._seen: dict[tuple[bytes, str], tuple[int, int]] = {}
        """(id, source) -> serial, and when it is forgotten."""
        self._spoken = False

    def leave(self, ticket_id: bytes, to: str, now_ms: int) -> list[bytes]:
        """Sends the visitor's row to `to`, with a kept turn. Returns records."""
        row = self._failures.known(ticket_id, now_ms)
        if not row:
            return []
        self.leaving[ticket_id, to] = now_ms, row
        self._spoken = True
        _, offset_s, state = parts_of(row)
        if state != USED or offset_s:
            self._revive(ticket_id)  # its visitor may re-enter elsewhere, and come back waiting
        if state != KEPT or to == EVERYWHERE:
            return []
        del self._failures.rows[ticket_id]
        self.left[ticket_id] = now_ms + TURN_KEPT_MS
        return [pack(FAILED, ticket_id, 0)]

    def replaced(self, ticket_id: bytes, now_ms: int) -> list[bytes]:
        """A permit was spent because the session cannot be reached: a turn kept in the other data
        center would be a second one. Also makes a row, with no turn, for a visitor whom the origin
        never failed. Returns records.
        """
        row = self._failures.absorb(ticket_id, row_of(now_ms // 1000, 0, USED), now_ms)
        return [pack(FAILED, ticket_id, row)]

    def seek(self, ticket_id: bytes, now_ms: int) -> bool:
        since_ms, _ = self.seeks.get(ticket_id, (now_ms, 0))
        if not self.elsewhere or now_ms - since_ms >= SEEK_MS:
            self.seeks.pop(ticket_id, None)
            return False
        self.seeks[ticket_id] = since_ms, now_ms
        self._spoken = True
        return True

    def report(self, now_ms: int) -> TurnsUp | None:
        """None while there is nothing to report, and never was."""
        self.leaving = {
            one: named
            for one, named in self.leaving.items()
            if parts_of(named[1])[0] * 1000 + WINDOW_MS > now_ms
        }
        self.seeks = {
            one: asked for one, asked in self.seeks.items() if now_ms - asked[1] < ASKED_MS
        }
        self.left = {one: until_ms for one, until_ms in self.left.items() if until_ms > now_ms}
        self._seen = {one: seen for one, seen in self._seen.items() if seen[1] > now_ms}
        failing = self._failures.may_keep(now_ms)
        self._spoken = self._spoken or failing
        if not self._spoken:
            return None
        seeks = [(one, now_ms - asked[1]) for one, asked in self.seeks.items()]
        rows = []
        # the newest first: a data center that is cut off confirms none, and must not stop the others
        newest = sorted(self.leaving.items(), key=lambda named: -named[1][0])
        for (ticket_id, to), (serial, row) in newest[:CLAIMS_MAX]:
            since_s, offset_s, state = parts_of(row)
            rows.append((ticket_id, to, serial, now_ms - since_s * 1000, offset_s, state))
        return TurnsUp(failing, tuple(rows), self._got, tuple(seeks[:CLAIMS_MAX]))

    def hear(self, down: TurnsDown, now_ms: int) -> list[bytes]:
        """Applies the coordinator's message; returns records."""
        self.elsewhere, records = down.elsewhere, []
        for ticket_id, to, serial in down.got:
            if self.leaving.get((ticket_id, to), (0, 0))[0] == serial:
                del self.leaving[ticket_id, to]
        self._got = tuple([row[:3] for row in down.rows])
        self._spoken = self._spoken or bool(self._got)
        for ticket_id, source, serial, age_ms, offset_s, state in down.rows:
            if serial <= self._seen.get((ticket_id, source), (0, 0))[0]:
                continue
            self._seen[ticket_id, source] = serial, now_ms + WINDOW_MS
            since_s = -((age_ms - now_ms) // 1000)  # rounded up: the visitor gets what was promised
            row = row_of(since_s, min(offset_s, OFFSET_MOST_S), state)
            was_taken = self._failures.is_taken(ticket_id, now_ms)
            if known := self._failures.absorb(ticket_id, row, now_ms):
                records.append(pack(FAILED, ticket_id, known))
                if not was_taken and self._failures.is_taken(ticket_id, now_ms):
                    self._revive(ticket_id)  # it waits elsewhere, and may come here
        for ticket_id, to, age_ms in down.sought:
            asked_ms = self.seeks.get(ticket_id, (0, 0))[1]
            if now_ms - age_ms > asked_ms and self._failures.is_kept(ticket_id, now_ms):
                records += self.leave(ticket_id, to, now_ms)
        return records
