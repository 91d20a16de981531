"""Requests that are under way for long: each one's session is watched, and the request ends with
it.

The gateway's sweep shows every request that it finds under way. Most are gone by the next sweep and
cost one dict entry; what is still there after half of q is a stream, and its session is looked at
from then on (`decision.open_session`).
"""

from collections.abc import Callable, Iterable
from itertools import count

from greenroom.decision.open_session import OpenSession
from greenroom.decision.verdict import Forward
from greenroom.gateway.visitor.exchange import Exchange


class OpenStreams:
    """All requests under way that belong to a session."""

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
        """These are under way at this moment; those of before that are not among them have ended."""
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
