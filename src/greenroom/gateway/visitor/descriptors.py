"""Closes connections when file descriptors run short. The kernel gives a new socket the lowest free
number, so that number is a lower bound of the descriptors in use. Near the limit, less a reserve
for origins, journals and operators, idle or stalled connections are closed; when there are none,
the new one is refused.
"""

import os
import resource
from collections.abc import Iterable
from heapq import nsmallest

import structlog

from greenroom.gateway.counts import Counts
from greenroom.gateway.visitor.stream import VisitorStream

RESERVE_MOST = 1_024
"""Four origins at their default maximum."""

ACCEPTED_MOST = 256
"""Connections accepted per event loop iteration."""

QUIET_S = 60.0
"""A shortage ends after this long without closing connections; an intermittent one is logged once.
"""

log = structlog.get_logger(__name__)


class Descriptors:
    """File descriptors of this process. Times are loop times."""

    def __init__(self, counts: Counts, limit: int | None = None) -> None:
        """`limit` None: the system's."""
        self._counts = counts
        self._limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
        if self._limit == resource.RLIM_INFINITY:
            self._limit = 1 << 31
        self._reserve = min(self._limit // 4, RESERVE_MOST)
        self.line = self._limit - self._reserve
        """Descriptors in use from which they count as short."""
        self.accepted_at_once = max(1, min(self._reserve // 8, ACCEPTED_MOST))
        """Small, because a closed connection frees its number only a few iterations later."""
        self._going: set[VisitorStream] = set()  # told to close, and not closed yet
        # descriptors in use that are no connections of the gateway: the most that numbers have
        # shown lately
        self._others = 0
        self._closed = 0  # in the present shortage
        self._last = 0.0

    def short(self, number: int, handshakes: int = 0) -> bool:
        """Whether descriptors run short; `number` is the new connection's, `handshakes` are under
        way.
        """
        counts = self._counts
        held = counts.connections_open + counts.origin_connections_open + handshakes
        held += len(self._going)
        if (
            number > self._others + held
        ):  # more are in use than was known, or were when it was accepted
            self._others = max(self._others, _lowest_free(number, self._limit) - held)
        return self._others + held >= self.line

    @property
    def closing(self) -> bool:
        """Whether closed connections have still to free their numbers."""
        return bool(self._going)

    def closed(self, connection: VisitorStream) -> None:
        self._going.discard(connection)

    def shed(self, spare: Iterable[VisitorStream], most: int) -> list[VisitorStream]:
        """Closes up to `most` in the order of `_rank`."""
        shed = nsmallest(most, spare, key=_rank)
        for one in shed:
            one.transport.abort()
        self._going.update(shed)
        self._counts.connections_shed += len(shed)
        return shed

    def make_room(
        self, spare: Iterable[VisitorStream], connections: int, now: float
    ) -> list[VisitorStream]:
        """`connections`: how many are open."""
        shed = self.shed(spare, max(1, self._reserve))
        if not self._last:
            log.warning(
                "descriptors_short", limit=self._limit, connections=connections, closed=len(shed)
            )
        self._closed += len(shed)
        self._last = now
        return shed

    def sweep(self, now: float) -> None:
        if self._last and now >= self._last + QUIET_S:
            log.info("file_descriptors_sufficient", limit=self._limit, closed=self._closed)
            self._closed, self._last = 0, 0.0
        if not self._last:
            self._others = 0  # learnt again from the next connection


def _lowest_free(number: int, limit: int) -> int:
    """The lowest free number; `number` is in use."""
    try:
        lowest = os.dup(number)
    except OSError:
        return limit
    os.close(lowest)
    return lowest


def _rank(connection: VisitorStream) -> tuple[bool, bool, bool, float]:
    """Closed first: kept-alive, then incomplete heads, then incomplete bodies and answers that may
    not have arrived; longest silence first. Trusted proxies come last: one may be sending a
    request, and its visitor would see the failure.
    """
    answered = (
        connection.ending
        or connection.body is not None
        or connection.transport.get_write_buffer_size() > 0
    )
    return connection.peer.trusted, answered, connection.requests == 0, connection.deadline
