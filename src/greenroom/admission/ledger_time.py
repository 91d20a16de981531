"""Which time it is in a ledger whose server's clock may be stepped.

Sessions, the sliding minute and the fence are measured by the clock of the server that keeps the
ledger. Stepped forward by an hour it would end every session at once, with visitors inside; stepped
back, it would stand still for an hour. So no clock is believed alone:

- Every process says with every question what time it expects, from the last answer it got and its
  own steady clock. When the server
  is off by more than a slack, the expected time counts. A ledger's time never runs backwards.
- Each answer of the coordinator brings a third reading, its time line. Of the three the middle one
  is right: when the server is off
  from it, the ledger shifts its clock for good, so processes that expect nothing yet see the right
  time too; and a process whose own clock was stopped (a paused machine) takes over the time of the
  other two.
- Behind a fence (`coordinator.fence`) the later of two clocks counts, because there waiting longer
  is what could do harm.

Nothing that was noted has to move: sessions and windows are in the ledger's time, which goes on as
if nothing had happened.
"""

STEP_MS = 2_000
"""A difference that is no round trip and no drift. Smaller steps are not noticed: they are shorter
than the answer to a report may take.
"""
DRIFT = 0.001
"""Two clocks may move apart by this part of the time since they were compared."""


class LedgerTime:
    """Of one ledger. All times but the server's are the ledger's own."""

    __slots__ = ("later_ms", "latest_ms", "shift_ms")

    def __init__(self) -> None:
        self.shift_ms = 0
        """How far the ledger's time is ahead of its server's clock."""
        self.latest_ms = 0
        self.later_ms = 0
        """By how much it is later by the server's clock, if that is not believed."""

    def read(self, server_ms: int, expected_ms: int, slack_ms: int) -> int:
        """Now. `expected_ms`: by the clock of the process that asks, good to `slack_ms`; 0: it
        knows nothing.
        """
        own_ms = now_ms = server_ms + self.shift_ms
        if expected_ms and abs(now_ms - expected_ms) > slack_ms:
            now_ms = expected_ms
        self.latest_ms = max(self.latest_ms, now_ms)
        self.later_ms = max(0, own_ms - self.latest_ms)
        return self.latest_ms

    def put_right(self, server_ms: int, expected_ms: int, line_ms: int) -> int:
        """`line_ms`: by the coordinator's time line. The middle one of three clocks is right: what
        it says.
        """
        own_ms = server_ms + self.shift_ms
        middle_ms = sorted((own_ms, expected_ms, line_ms))[1]
        if abs(own_ms - middle_ms) > STEP_MS:
            self.shift_ms += middle_ms - own_ms
        return middle_ms


class Expectation:
    """What one process expects of a ledger's time."""

    __slots__ = ("_heard_ms", "_steady_ms")

    def __init__(self) -> None:
        self._heard_ms = self._steady_ms = 0

    def hear(self, ledger_ms: int, steady_ms: int) -> None:
        """The ledger said that it was `ledger_ms`; `steady_ms`: by the own clock, which is never
        stepped.

        An answer that is behind what is expected was on its way for long, because a ledger obeys
        the expectation.
        """
        expected_ms, slack_ms = self.at(steady_ms)
        if ledger_ms < expected_ms - slack_ms:
            return
        self._heard_ms, self._steady_ms = ledger_ms, steady_ms

    def at(self, steady_ms: int) -> tuple[int, int]:
        """(expected time, slack); (0, 0) before any answer."""
        if not self._heard_ms:
            return 0, 0
        passed_ms = steady_ms - self._steady_ms
        return self._heard_ms + passed_ms, STEP_MS + int(passed_ms * DRIFT)
