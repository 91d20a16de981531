"""The coordinator's pace while visitors wait: a token bucket that earns `(new_users_per_minute + what
is left of it) / 60` permits a second, and saves those of three seconds and one more. A permit that
comes back unused is earned again at once, or every permit meant for a ghost would cost the line a
turn.
"""

SAVED_S = 3.0
"""Twice the longest pause between two syncs: each data center takes only its share of what is saved,
so a smaller bucket would run over before all have asked.
"""


class Pace:
    __slots__ = ("_earned", "_since_ms")

    def __init__(self, now_ms: int) -> None:
        self._earned = 1.0
        self._since_ms = now_ms

    @property
    def permits(self) -> int:
        return int(self._earned)

    @property
    def since_ms(self) -> int:
        return self._since_ms

    def earn(self, per_minute: int, left: int, now_ms: int) -> None:
        rate = (per_minute + max(0, left)) / 60
        self._earned = min(
            1 + SAVED_S * rate, self._earned + rate * (now_ms - self._since_ms) / 1000
        )
        self._since_ms = now_ms

    def spend(self, count: int) -> None:
        self._earned -= count

    def return_unused(self, count: int) -> None:
        self._earned += count
