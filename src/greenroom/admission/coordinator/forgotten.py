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

    def until(self, until_ms: int, certain: bool = False) -> "Forgotten":
        return Forgotten(max(self.until_ms, until_ms), self.certain or certain)

    def report(
        self,
        remembers_ms: int,
        unknown_ms: int,
        life_ms: int,
        answered: bool,
        earlier: bool,
        now_ms: int,
    ) -> "Forgotten":
        """Of a data center of which nothing is stored. `answered`: in the ledger's present epoch,
        `earlier`: by an earlier coordinator.
        """
        until_ms = now_ms + unknown_ms if unknown_ms > 0 else 0
        # what the ledger before it had admitted the coordinator knew that told it so
        told = answered and unknown_ms >= 0
        if remembers_ms > 0 and not told:
            until_ms = max(until_ms, now_ms - remembers_ms + life_ms)
        return self.until(until_ms, earlier or remembers_ms == 0 or unknown_ms > 0)
