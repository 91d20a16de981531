"""The admission rate from the line, per minute of queueing. Only time with a line counts, and only
visitors who had waited. The recent past is as short as it can be with enough admissions in it, at
most half an hour.
"""

from collections import deque

SLOT_MS = 15_000
SLOTS_MAX = 120
ENOUGH = 30
"""The figure is then good to about a fifth."""
BELIEVED = 5
"""With fewer admissions the figure could be off by half."""
BELIEVED_MS = 60_000
"""Permits come in lumps, and the sliding minute repeats its lumps."""


class Tempo:
    """In slots of 15 s of queueing."""

    __slots__ = ("_last_ms", "_queueing", "_slots")

    def __init__(self, now_ms: int) -> None:
        self._slots: deque[list[int]] = deque(
            [[0, 0]], SLOTS_MAX
        )  # [admitted, queueing ms], newest last
        self._last_ms = now_ms
        self._queueing = False

    def mark(self, now_ms: int, queueing: bool) -> None:
        if self._queueing and now_ms > self._last_ms:
            self._slots[-1][1] += now_ms - self._last_ms
            if self._slots[-1][1] >= SLOT_MS:
                self._slots.append([0, 0])
        self._last_ms = now_ms
        self._queueing = queueing

    def count(self, change: int = 1) -> None:
        """-1: did not, after all."""
        self._slots[-1][0] += change

    def per_minute(self) -> float | None:
        """None while nothing believable has been measured."""
        admitted = queueing_ms = 0
        for slot_admitted, slot_ms in reversed(self._slots):
            admitted += slot_admitted
            queueing_ms += slot_ms
            if admitted >= ENOUGH and queueing_ms >= BELIEVED_MS:
                break
        if admitted < BELIEVED or queueing_ms < BELIEVED_MS:
            return None
        return admitted * 60_000 / queueing_ms
