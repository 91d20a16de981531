"""The borrower of a connection to an origin."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from greenroom.decision.verdict import Forward
from greenroom.gateway.request_span import RequestSpan
from greenroom.gateway.wire.answer_head import AnswerHead
from greenroom.gateway.wire.head_records import RequestHead


class OriginRequest:
    """A request that wants a connection, and its callbacks for the answer. Exactly one of
    `connected` and `not_connected` is called, unless it withdraws first.
    """

    head: RequestHead
    forward: Forward | None = None
    key: bytes = b""  # Sec-WebSocket-Key of a WebSocket request, or empty
    tunnelling: bool = False  # bytes are carried both ways as they come
    hints: int = 0  # interim answers so far
    queued_s: float = 0.0  # waited for a connection
    span: RequestSpan | None = None

    @abstractmethod
    def waits(self) -> None: ...

    @abstractmethod
    def connected(self, connection: Any) -> None:
        """`connection` is an OriginConnection (whose module imports this one), held until released
        or aborted.
        """

    @abstractmethod
    def not_connected(self, status: int) -> None: ...

    @abstractmethod
    def interim(self, head: AnswerHead) -> None: ...

    @abstractmethod
    def answer_begins(self, head: AnswerHead, payload: bytes, done: bool) -> None:
        """The head and the first bytes of the body; `done` when the answer is complete."""

    @abstractmethod
    def answer_continues(self, payload: bytes, done: bool) -> None: ...

    @abstractmethod
    def open_tunnel(self, head: AnswerHead, rest: bytes) -> None: ...

    @abstractmethod
    def from_tunnel(self, data: bytes) -> None: ...

    @abstractmethod
    def released(self) -> bool:
        """The connection has finished with this request; returns whether it may be reused."""

    @abstractmethod
    def origin_is_full(self) -> None: ...

    @abstractmethod
    def origin_has_room(self) -> None: ...

    @abstractmethod
    def origin_lost(self, *, stale: bool) -> None:
        """`stale`: a reused connection was closed before any byte of this answer."""

    @abstractmethod
    def origin_failed(self, status: int) -> None: ...

    @abstractmethod
    def broken(self, error: BaseException) -> None: ...
