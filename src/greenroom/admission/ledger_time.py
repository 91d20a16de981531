"""The time of a ledger whose server's clock may be stepped.

Every process sends the time it expects with each request; where the server differs by more than a
slack, the expected time counts. Each answer of the coordinator brings a third reading: the median of
the three is right, and the ledger shifts its clock for good. Behind a fence the later of two clocks
counts, because waiting longer does no harm. A ledger's time never runs backwards.
"""

STEP_MS = 2_000
"""Longer than any round trip or drift. Smaller steps are not noticed."""
DRIFT = 0.001
"""Part of the time since two clocks were compared."""


class LedgerTime:
    """All times but `server_ms` are the ledger's own."""

    __slots__ = ("later_ms", "latest_ms", "shift_ms")

    def __init__(self) -> None:
        self.shift_ms = 0
        self.latest_ms = 0
        self.later_ms = 0

    def read(self, server_ms: int, expected_ms: int, slack_ms: int) -> int:
        """`expected_ms` is good to `slack_ms`; 0: the process expects nothing yet."""
        own_ms = now_ms = server_ms + self.shift_ms
        if expected_ms and abs(now_ms - expected_ms) > slack_ms:
            now_ms = expected_ms
        self.latest_ms = max(self.latest_ms, now_ms)
        self.later_ms = max(0, own_ms - self.latest_ms)
        return self.latest_ms

    def put_right(self, server_ms: int, expected_ms: int, line_ms: int) -> int:
        own_ms = server_ms + self.shift_ms
        middle_ms = sorted((own_ms, expected_ms, line_ms))[1]
        if abs(own_ms - middle_ms) > STEP_MS:
            self.shift_ms += middle_ms - own_ms
        return middle_ms


class Expectation:
    __slots__ = ("_heard_ms", "_steady_ms")

    def __init__(self) -> None:
        self._heard_ms = self._steady_ms = 0

    def hear(self, ledger_ms: int, steady_ms: int) -> None:
        """`steady_ms`: a clock that is never stepped. Ignores a delayed answer."""
        expected_ms, slack_ms = self.at(steady_ms)
        if ledger_ms < expected_ms - slack_ms:
            return
        self._heard_ms, self._steady_ms = ledger_ms, steady_ms

    def at(self, steady_ms: int) -> tuple[int, int]:
        """Expected time and slack; (0, 0) before any answer."""
        if not self._heard_ms:
            return 0, 0
        passed_ms = steady_ms - self._steady_ms
        return self._heard_ms + passed_ms, STEP_MS + int(passed_ms * DRIFT)
