"""The fence: how the units of a data center that has died are given to others without an operator.

From afar a data center that has died and one that is cut off look alike. So both sides count from
the last contact. A ledger whose newest answered report is `fence_ms` old admits no visitor and
renews no session (`lease`); the coordinator, FENCE_SLACK_MS later, makes orphans of everything that
it held, and orphans become free when every session must have ended. The report was sent before it
came here, so the ledger counts from an earlier moment than the coordinator, and clocks are never
compared, only their pace.

The coordinator says in every answer how long the fence is, and counts with the longest that may be
in force there: one that was said, and not replaced by a later answer that the ledger has confirmed.
A ledger that was never told one goes on for ever.
"""

from collections import deque

NEVER_MS = 1 << 62
"""Longer than any contact is ago."""
FENCE_SLACK_MS = 5_000
"""For clocks of different pace: enough for an hour at one part in a thousand."""


class FencesInForce:
    """Fences that may be in force at one ledger, by answer number."""

    __slots__ = ("_fences",)

    def __init__(self) -> None:
        self._fences = deque[
            tuple[int, int]
        ]()  # without those that a later one outweighs: the first is the longest

    @property
    def longest_ms(self) -> int:
        return self._fences[0][1] if self._fences else NEVER_MS

    def say(self, number: int, fence_ms: int) -> None:
        """The answer of this number sets the fence; `0` disables it."""
        fences, fence_ms = self._fences, fence_ms or NEVER_MS
        while fences and fences[-1][1] < fence_ms:
            fences.pop()
        if not fences or fences[-1][1] != fence_ms:
            fences.append((number, fence_ms))

    def confirm(self, number: int, fence_ms: int) -> None:
        """The answer of this number, with its fence, is in force there; those before it no longer
        are.
        """
        fences, fence_ms = self._fences, fence_ms or NEVER_MS
        while fences and fences[0][0] <= number:
            fences.popleft()
        if not fences or fences[0][1] < fence_ms:
            fences.appendleft((number, fence_ms))
