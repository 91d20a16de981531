"""The body of one request while it is read: its framing, its destination, and its limits of time
and size.
"""

from greenroom.gateway.wire.body import BadBody, ChunkedBody, LengthBody
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.settings.limits import Limits

TURN_BYTES = 16 * 1024
"""Bytes of a chunked body read per turn: each chunk costs work, and one read may bring 256 KiB."""


class RequestBody:
    """Times are loop times. `flowing`: what arrives is consumed at once (forwarded or discarded)."""

    __slots__ = ("_limits", "_reader", "_seen", "_since", "_waited", "flowing")

    def __init__(self, head: RequestHead, limits: Limits) -> None:
        self._limits = limits
        self._reader: LengthBody | ChunkedBody = (
            ChunkedBody(limits.chunk_bytes)
            if head.chunked
            else LengthBody(head.content_length or 0)
        )
        self._seen = 0  # payload bytes
        self._waited = 0.0  # seconds spent waiting for the visitor
        self._since = 0.0  # since when it is waited for
        self.flowing = False

    @property
    def done(self) -> bool:
        return self._reader.done

    @property
    def rest(self) -> bytes:
        return self._reader.rest

    def cut(self, data: bytes) -> tuple[bytes, bytes]:
        """Splits into what is read now and what is left for the next turn."""
        if len(data) <= TURN_BYTES or isinstance(self._reader, LengthBody):
            return data, b""
        return data[:TURN_BYTES], data[TURN_BYTES:]

    def read_first(self) -> bool:
        """Whether it is read before connecting to the origin: it is small, or may be."""
        most = self._limits.body_first_bytes
        return most > 0 and (not isinstance(self._reader, LengthBody) or self._reader.left <= most)

    def wait(self, now: float) -> None:
        """The visitor, not the origin or the waiting room, is waited for from now on."""
        self._since = now
        self.flowing = True

    def take(self, data: bytes) -> bytes:
        """Returns the payload. Raises BadBody when malformed or too large."""
        payload = self._reader.feed(data)
        self._seen += len(payload)
        most = self._limits.body_bytes
        if most and self._seen > most:
            raise BadBody("the body of the request is too large", 413)
        return payload

    def take_in_time(self, data: bytes, now: float) -> bytes:
        """As `take`, and raises BadBody when too slow."""
        self._waited += now - self._since
        self._since = now
        payload = self.take(data)
        if (
            not self.done
            and self._waited > self._limits.body_idle_s
            and self._seen < self._waited * self._limits.body_rate
        ):
            raise BadBody("the body of the request is sent too slowly", 408)
        return payload

    def take_unwanted(self, kept: bytes, asked: bool) -> bool:
        """Discards the received part; False when the connection cannot be reused: the body is
        malformed, the visitor `asked` first (Expect) and may never send it, or discarding takes
        more than one turn.
        """
        if (asked and not kept) or self.cut(kept)[1]:
            return False
        try:
            self.take(kept)
        except BadBody:
            return False
        return True

    def small_rest(self) -> bool:
        """Whether the rest is small enough to discard."""
        return (
            isinstance(self._reader, LengthBody) and self._reader.left <= self._limits.drain_bytes
        )


class CollectedBody:
    """The beginning of a body, kept (up to a limit) until an origin or the form on a waiting page
    takes it.
    """

    __slots__ = ("_missing", "_parts")

    def __init__(self, most: int) -> None:
        self._missing = most
        self._parts: list[bytes] = []

    def add(self, data: bytes, whole: bool) -> bool:
        """True once: when the body is complete, or as much as is kept."""
        self._parts.append(data)
        if self._missing <= 0:
            return False
        self._missing = 0 if whole else self._missing - len(data)
        return self._missing <= 0

    def take(self) -> bytes:
        return b"".join(self._parts)
