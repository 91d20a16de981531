"""When the turn of a place came, for visitors who are away and return with an old ticket.

Such a visitor is out of the line like any ghost: holds no permit, delays nobody, and on return has
the old place by its key. No record of the visitor is needed: a turn has come when somebody with a
later key was admitted, so the admitted keys of the last half hour suffice.

A ticket id stays spent for longer than its turn can be claimed (KEPT_MS), so a copied ticket never
leads to a second session here.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from greenroom.model.room import CLAIM_LONGEST

STEP_MS = 15_000
"""One entry holds the turns of this time."""

CLAIM_MAX_MS = CLAIM_LONGEST * 60_000

ENTRIES = CLAIM_MAX_MS // STEP_MS + 4

KEPT_MS = CLAIM_MAX_MS + 2 * STEP_MS
"""How long after an admission a waiting ticket of that visitor may be accepted."""

KEY_MAX = 1 << 64
"""Above any key."""


class Turns:
    __slots__ = ("_keys", "_ms", "passed")

    def __init__(self, noted: Mapping[int, int] | None = None) -> None:
        """`noted`: time -> highest key admitted in the STEP_MS from then on."""
        self._ms: list[int] = []
        self._keys: list[int] = []
        self.passed = -1
        for at_ms in sorted(noted or ()):
            self._note(at_ms, (noted or {})[at_ms])

    def admitted(self, key: int, now_ms: int) -> int:
        """`key` is higher than `passed`. Returns the time of its entry."""
        if self._ms and now_ms - self._ms[-1] < STEP_MS:
            self.passed = self._keys[-1] = key
        else:
            self._note(now_ms, key)
        return self._ms[-1]

    def due(self, now_ms: int) -> bool:
        """Whether an admission now would begin a new entry."""
        return not self._ms or now_ms - self._ms[-1] >= STEP_MS

    def holds(self, key: int, claim_ms: int, now_ms: int) -> bool:
        """Whether the turn has not come, or came at most `claim_ms` (plus up to STEP_MS) ago."""
        if key > self.passed:
            return True
        return now_ms < self._ms[bisect_left(self._keys, key)] + claim_ms + STEP_MS

    def over(self, claim_ms: int, now_ms: int) -> int:
        """The highest key that `holds` refuses; -1: none. Without `claim_ms` it refuses all."""
        if not claim_ms:
            return KEY_MAX
        index = bisect_right(self._ms, now_ms - claim_ms - STEP_MS)
        return self._keys[index - 1] if index else -1

    def noted(self) -> dict[int, int]:
        return dict(zip(self._ms, self._keys, strict=True))

    def _note(self, at_ms: int, key: int) -> None:
        self._ms.append(at_ms)
        self.passed = max(self.passed, key)
        self._keys.append(self.passed)
        if len(self._ms) > ENTRIES:
            del self._ms[0], self._keys[0]
