"""What no ledger can report to a coordinator without memory: the sessions and admissions of a ledger
that lost its memory too, and those that only the lost coordinator knew of. Until they are over nothing
is granted. A first start, when no ledger has a memory either, is told apart by this: no ledger has one,
and none was answered by an earlier coordinator.
"""

from typing import NamedTuple


class Forgotten(NamedTuple):
    until_ms: int = 0
    certain: bool = False
    """There was an earlier coordinator."""

    def report(
        self, remembers_ms: int, unknown_ms: int, life_ms: int, earlier: bool, now_ms: int
    ) -> "Forgotten":
        """Of a data center of which nothing is stored. `earlier`: an earlier coordinator answered
        it.
        """
        until_ms = now_ms + unknown_ms if unknown_ms else 0
        if remembers_ms > 0:
            until_ms = max(until_ms, now_ms - remembers_ms + life_ms)
        return Forgotten(
            max(self.until_ms, until_ms),
            self.certain or earlier or remembers_ms == 0 or unknown_ms > 0,
        )
