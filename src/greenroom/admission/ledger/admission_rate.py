"""The admission rate of the line: visitors who had waited, per minute with a line. Measured over the
shortest recent time with ENOUGH admissions, at most half an hour.
"""

from collections import deque

SLOT_MS = 15_000
SLOTS_MAX = 120
ENOUGH = 30
"""The rate is then good to about a fifth."""
BELIEVED = 5
"""With fewer admissions the rate could be off by half."""
BELIEVED_MS = 60_000
"""Permits come in lumps, and the sliding minute repeats its lumps."""


class AdmissionRate:
    __slots__ = ("_last_ms", "_queueing", "_slots")

    def __init__(self, now_ms: int) -> None:
        # [admitted, queueing ms], newest last
        self._slots: deque[list[int]] = deque([[0, 0]], SLOTS_MAX)
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
        self._slots[-1][0] += change

    def per_minute(self) -> float | None:
        """None: too little was measured."""
        admitted = queueing_ms = 0
        for slot_admitted, slot_ms in reversed(self._slots):
            admitted += slot_admitted
            queueing_ms += slot_ms
            if admitted >= ENOUGH and queueing_ms >= BELIEVED_MS:
                break
        if admitted < BELIEVED or queueing_ms < BELIEVED_MS:
            return None
        return admitted * 60_000 / queueing_ms
