"""The fence: how units of a dead data center are given to others without an operator
(docs/explanation/admission.md). A ledger whose newest answered report is `fence_ms` old admits no
visitor and renews no session (`lease`); the coordinator makes everything it held orphans
FENCE_SLACK_MS later. The coordinator counts with the longest fence that may be in force there: one
that was sent, and not replaced by a later answer that the ledger has confirmed.
"""

from collections import deque

NEVER_MS = 1 << 62
FENCE_SLACK_MS = 5_000
"""For clocks of different pace: enough for an hour at one part in a thousand."""


class FencesInForce:
    """By answer number."""

    __slots__ = ("_fences",)

    def __init__(self) -> None:
        self._fences = deque[
            tuple[int, int]
        ]()  # without those that a later one outweighs: the first is the longest

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
        """The fence of this answer is in force there; those of earlier answers no longer are."""
        fences, fence_ms = self._fences, fence_ms or NEVER_MS
        while fences and fences[0][0] <= number:
            fences.popleft()
        if not fences or fences[0][1] < fence_ms:
            fences.appendleft((number, fence_ms))
