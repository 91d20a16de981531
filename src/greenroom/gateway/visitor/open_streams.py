"""Long requests: each session is watched, and its request ends with it. Each sweep passes all
requests under way. Most are gone by the next one and cost a dict entry; one that lasts half of q is
a stream, whose session is checked from then on (`decision.open_session`).
"""

from collections.abc import Callable, Iterable
from itertools import count

from greenroom.decision.open_session import OpenSession
from greenroom.decision.verdict import Forward
from greenroom.gateway.visitor.exchange import Exchange


class OpenStreams:
    """Requests under way that belong to a session."""

    __slots__ = ("_next", "_on_error", "_session_of", "_under_way")

    def __init__(
        self,
        session_of: Callable[[Forward, int], OpenSession],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self._session_of = session_of
        self._on_error = on_error
        self._under_way: dict[Exchange, OpenSession] = {}
        self._next = count().__next__

    def sweep(self, exchanges: Iterable[Exchange]) -> None:
        """Requests of earlier sweeps that are missing have ended."""
        before, self._under_way = self._under_way, {}
        for exchange in exchanges:
            forward = exchange.forward
            if forward is None or forward.ticket is None:
                continue
            try:
                session = before.pop(exchange, None) or self._session_of(forward, self._next())
                self._under_way[exchange] = session
                if session.is_over():
                    exchange.session_over()
            except Exception as error:
                self._on_error(error)
        for session in before.values():
            try:
                session.finish()
            except Exception as error:
                self._on_error(error)
