"""What no ledger can report to a coordinator without memory: sessions and admissions of a ledger that
lost its memory too, and those that only the lost coordinator knew. Until they are over nothing is
granted. Not so at a first start: no ledger has a memory, and no earlier coordinator has answered one.
"""

from typing import NamedTuple

from greenroom.admission.messages.sync import SyncUp


class Forgotten(NamedTuple):
    until_ms: int = 0
    certain: bool = False
    """There was an earlier coordinator."""

    def until(self, until_ms: int, certain: bool = False) -> "Forgotten":
        return Forgotten(max(self.until_ms, until_ms), self.certain or certain)

    def report(self, up: SyncUp, life_ms: int, earlier: bool, now_ms: int) -> "Forgotten":
        """For a data center without a stored row. `earlier`: an earlier coordinator answered it."""
        until_ms = now_ms + up.unknown_ms if up.unknown_ms > 0 else 0
        # the coordinator that answered knew what the ledger's predecessor had admitted
        told = up.applied > 0 and up.unknown_ms >= 0
        if up.remembers_ms > 0 and not told:
            until_ms = max(until_ms, now_ms - up.remembers_ms + life_ms)
        return self.until(until_ms, earlier or up.remembers_ms == 0 or up.unknown_ms > 0)
