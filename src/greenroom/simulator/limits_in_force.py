"""The limits that must hold after an operator has changed them. A raised limit holds at once. A
lowered one may not be in force until every data center has *followed*. From then on at most as many
visitors are active as the new limit allows, or as were active before; and a minute and one second
later at most as many are admitted within a minute.
"""

UNLIMITED = 1 << 60
MINUTE_MS = 61_000


class LimitsInForce:
    def __init__(self, total: int, per_minute: int) -> None:
        self.total, self.per_minute = total, per_minute
        self._most = total
        self._old: list[tuple[int, int, int]] = []
        """(total, per minute, until when the latter holds); 0: not followed yet."""

    @property
    def behind(self) -> bool:
        return any(not until_ms for _, _, until_ms in self._old)

    def change(self, total: int, per_minute: int) -> None:
        if (total, per_minute) != (self.total, self.per_minute):
            self._old.append((self.total, self.per_minute, 0))
            self.total, self.per_minute = total, per_minute
            self._most = max(self._most, total)

    def follow(self, now_ms: int) -> None:
        self._old = [
            (total, per_minute, until_ms or now_ms + MINUTE_MS)
            for total, per_minute, until_ms in self._old
        ]

    def ebb(self, in_use: int, now_ms: int) -> None:
        """Where the limit was lowered, never more again."""
        self._old = [one for one in self._old if not one[2] or now_ms <= one[2]]
        if not self.behind:
            self._most = max(self.total, min(self._most, in_use))

    @property
    def most_active(self) -> int:
        return self._most

    @property
    def most_per_minute(self) -> int:
        return max([self.per_minute, *(per_minute for _, per_minute, _ in self._old)])
