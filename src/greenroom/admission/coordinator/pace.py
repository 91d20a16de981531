"""How evenly the coordinator hands out permits while visitors wait: a minute's worth over the
minute, instead of all at its start.

A token bucket that earns `(new_users_per_minute + what is left of it) / 60` permits a second, and
saves one second of them and one more. A permit that comes back unused let no visitor in, so it is
earned again at once: otherwise every permit that was meant for a ghost would cost the whole line a
turn, which takes half a minute where two may enter a minute.
"""


class Pace:
    """Permits that may be granted now. Times are the coordinator's milliseconds."""

    __slots__ = ("_earned", "_since_ms")

    def __init__(self, now_ms: int) -> None:
        self._earned = 1.0
        self._since_ms = now_ms

    @property
    def permits(self) -> int:
        return int(self._earned)

    @property
    def since_ms(self) -> int:
        """The latest moment counted."""
        return self._since_ms

    def earn(self, per_minute: int, left: int, now_ms: int) -> None:
        """Earns permits up to now; `left` of `per_minute` may still be granted in this minute."""
        rate = (per_minute + max(0, left)) / 60
        self._earned = min(1 + rate, self._earned + rate * (now_ms - self._since_ms) / 1000)
        self._since_ms = now_ms

    def spend(self, count: int) -> None:
        self._earned -= count

    def return_unused(self, count: int) -> None:
        """Restores permits that came back and admitted nobody."""
        self._earned += count
