"""The fence: how others get the units of a dead data center without an operator
(docs/explanation/admission.md). A ledger whose newest answered report is `fence_ms` old admits no
visitor and renews no session (`lease`); FENCE_SLACK_MS later everything it held are orphans. The
coordinator assumes the longest fence that may be in force: sent, and not replaced by a later answer
that the ledger has confirmed.
"""

from collections import deque

NEVER_MS = 1 << 62
FENCE_SLACK_MS = 5_000
"""For clock drift: enough for an hour at one part in a thousand."""


class FencesInForce:
    __slots__ = ("_fences",)

    def __init__(self) -> None:
        # (answer number, fence), without those below a later one: the first is the longest
        self._fences = deque[tuple[int, int]]()

    @property
    def longest_ms(self) -> int:
        return self._fences[0][1] if self._fences else NEVER_MS

    def say(self, number: int, fence_ms: int) -> None:
        """`0` disables it."""
        fences, fence_ms = self._fences, fence_ms or NEVER_MS
        while fences and fences[-1][1] < fence_ms:
            fences.pop()
        if not fences or fences[-1][1] != fence_ms:
            fences.append((number, fence_ms))

    def confirm(self, number: int, fence_ms: int) -> None:
        """The fence of this answer is in force there, and none of earlier answers."""
        fences, fence_ms = self._fences, fence_ms or NEVER_MS
        while fences and fences[0][0] <= number:
            fences.popleft()
        if not fences or fences[0][1] < fence_ms:
            fences.appendleft((number, fence_ms))
