"""The access log: one line for every request, saying what the waiting room made of it, without any secret of the visitor."""

import time
from collections.abc import Callable

import structlog

from greenroom.gateway.visitor.exchange import Receiver
from greenroom.model.visit import Answer, Arrival, Forward, Reply

log = structlog.get_logger("greenroom.access")


class AccessLog:
    """A receiver that writes down what another one replies. Cookies and headers are never written; queries only if wanted."""

    def __init__(self, receiver: Receiver, queries: bool) -> None:
        self._receiver = receiver
        self._queries = queries

    @property
    def own_cookies(self) -> frozenset[bytes]:
        """As the receiver behind it says."""
        return self._receiver.own_cookies

    def receive(self, arrival: Arrival, then: Callable[[Reply], None]) -> None:
        """Writes the line when the reply is known."""
        begun = time.monotonic()

        def replied(reply: Reply) -> None:
            took_ms = (time.monotonic() - begun) * 1000
            path = f"{arrival.path}?{arrival.query}" if self._queries and arrival.query else arrival.path
            what = (
                {"reply": "answered", "status": reply.status}
                if isinstance(reply, Answer)
                else {"reply": "forwarded", "room": reply.room_id}
            )
            log.info(
                "request", method=arrival.method, host=arrival.host, path=path, client=arrival.client, took_ms=round(took_ms, 2), **what
            )
            then(reply)

        self._receiver.receive(arrival, replied)

    def obey(self, forward: Forward, command: bytes) -> bytes:
        """As the receiver behind it does."""
        return self._receiver.obey(forward, command)
