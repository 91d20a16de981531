"""The clock of a process whose ledgers are in Redis: follows the coordinator's, so that tickets
mean the same everywhere.
"""

from greenroom.model.clock import Clock


class ServerClock:
    def __init__(self, clock: Clock) -> None:
        self._own_ms = clock.now_ms
        self._ahead_ms = 0
        self._round_trip_ms = -1
        self._latest_ms = 0

    def now_ms(self) -> int:
        now_ms = self._own_ms() + self._ahead_ms
        if now_ms < self._latest_ms:
            return self._latest_ms
        self._latest_ms = now_ms
        return now_ms

    def steady_ms(self) -> int:
        return self._own_ms()

    def hear(self, server_ms: int, round_trip_ms: int) -> None:
        """`server_ms` lies within a round trip that ends now. Quick answers count at once, slower ones
        after a while, except where only another server can explain the reading.
        """
        if (
            self._round_trip_ms < 0
        ):  # nothing depends on the time yet, and this machine's may be wrong
            self._latest_ms = 0
        ahead_ms = server_ms - self._own_ms() + round_trip_ms // 2
        moved = (
            abs(ahead_ms - self._ahead_ms) > (round_trip_ms + max(0, self._round_trip_ms)) // 2 + 2
        )
        if self._round_trip_ms < 0 or moved or round_trip_ms <= self._round_trip_ms:
            self._round_trip_ms, self._ahead_ms = round_trip_ms, ahead_ms
        else:
            self._round_trip_ms += 1
