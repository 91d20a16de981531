"""Provisional sessions: requests that cannot wait (an image, a webhook, HEAD) pass on a permit.

Each is an ordinary session whose last renewal is set so far back that it ends PROVISIONAL_MS after
its admission, so both limits stay exact. Bringing the ticket back in that time makes it a full one.
Together they use at most one SHARE-th of either limit (at least 1), and none begins while visitors
wait (docs/explanation/admission.md).

They are not paced (`pacing`): a page that brings sixty at once would lose fifty, which nobody would
request again. SHARE bounds how many reach the origin at once.
"""

from collections import deque

from greenroom.admission.lease import WINDOW_MS

PROVISIONAL_MS = 10_000
"""A page's parts, and its client's next request, come within that time."""

SHARE = 4

CALLS = 2
"""Requests to the coordinator that such a request waits for where the lease ran dry. It does not
come back, so one that arrives during a request waits for its own too."""


class Provisional:
    __slots__ = ("_active", "_minute", "_over")

    def __init__(self) -> None:
        self._active: dict[bytes, int] = {}  # id -> when it was admitted, oldest first
        self._over: dict[bytes, int] = {}  # the same for as long again: may not be swept yet
        self._minute: deque[int] = deque()

    def has_room(
        self, now_ms: int, data_centers: int, total_active_users: int, new_users_per_minute: int
    ) -> bool:
        return self.left(now_ms, data_centers, total_active_users, new_users_per_minute) > 0

    def left(
        self, now_ms: int, data_centers: int, total_active_users: int, new_users_per_minute: int
    ) -> int:
        """How many more may be admitted (may be negative).

        Each of the `data_centers` has an even part of the share, whatever it holds: permits are
        leased a few at a time, and move between data centers within the minute that counts.
        """
        active, minute = self._active, self._minute
        while minute and minute[0] <= now_ms - WINDOW_MS:
            minute.popleft()
        while active:
            oldest = next(iter(active))
            if active[oldest] > now_ms - PROVISIONAL_MS:
                break
            self._over[oldest] = active.pop(oldest)
        while over := self._over:
            oldest = next(iter(over))
            if over[oldest] > now_ms - 2 * PROVISIONAL_MS:
                break
            del over[oldest]
        parts = SHARE * data_centers
        return min(
            max(1, total_active_users // parts) - len(active),
            max(1, new_users_per_minute // parts) - len(minute),
        )

    def begin(self, ticket_id: bytes, now_ms: int) -> None:
        self._active[ticket_id] = now_ms
        self._minute.append(now_ms)

    def undo(self, ticket_id: bytes) -> None:
        if self._active.pop(ticket_id, None) is not None:
            self._minute.pop()

    def holds(self, ticket_id: bytes) -> bool:
        return ticket_id in self._active or ticket_id in self._over

    def since(self, ticket_id: bytes, since_ms: int) -> bool:
        """Whether it is a provisional session that began later."""
        return self._active.get(ticket_id, self._over.get(ticket_id, 0)) > since_ms

    def fulfil(self, ticket_id: bytes) -> int | None:
        """The ticket came back: a full session from now on. Returns when it was admitted; None if it
        is not provisional.
        """
        return self._active.pop(ticket_id, self._over.pop(ticket_id, None))
