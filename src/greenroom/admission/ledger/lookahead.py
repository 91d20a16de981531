"""Permits expected between two tries of a called visitor: the admission rate times that gap."""

from greenroom.admission.ledger.refresh import CALLED_REFRESH_MS

PACE_MS = 10_000
GAP_WEIGHT = 0.1


class Lookahead:
    """Times are milliseconds."""

    __slots__ = ("_entered", "_looked_ms", "gap_ms", "pace", "permits")

    def __init__(self, now_ms: int) -> None:
        self.permits = 0.0
        self.gap_ms = float(CALLED_REFRESH_MS)
        self.pace = 0.0
        """Visitors who enter from the line, per second."""
        self._entered = 0  # from the line, since the last look
        self._looked_ms = now_ms

    def count(self, gap_ms: int) -> None:
        self._entered += 1
        self.gap_ms += (gap_ms - self.gap_ms) * GAP_WEIGHT

    def undo(self) -> None:
        self._entered -= 1

    def look(self, now_ms: int) -> None:
        passed_ms = now_ms - self._looked_ms
        if passed_ms > 0:
            self.pace += (
                (self._entered * 1000 / passed_ms - self.pace) * passed_ms / (passed_ms + PACE_MS)
            )
            self._entered, self._looked_ms = 0, now_ms
        self.permits = self.pace * self.gap_ms / 1000
