"""The body of one request while it is read: how far it is, whether it goes anywhere, whether it
comes too slowly or too long.
"""

from greenroom.gateway.wire.body import BadBody, ChunkedBody, LengthBody
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.settings.limits import Limits

TURN_BYTES = 16 * 1024
"""Of a chunked body, read before other connections get their turn: each chunk costs work, and one
read may bring 256 KiB of them.
"""


class RequestBody:
    """Times are those of the event loop. `flowing` is whether what arrives is taken at once (to the
    origin, or thrown away).
    """

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
        """What of these bytes is read now, and what when other connections had their turn."""
        if len(data) <= TURN_BYTES or isinstance(self._reader, LengthBody):
            return data, b""
        return data[:TURN_BYTES], data[TURN_BYTES:]

    def read_first(self) -> bool:
        """Whether it is read (or begun) before a connection to the origin is taken: it is small, or
        may be.
        """
        most = self._limits.body_first_bytes
        return most > 0 and (not isinstance(self._reader, LengthBody) or self._reader.left <= most)

    def wait(self, now: float) -> None:
        """From now on it is the visitor who is waited for (not the origin, nor the waiting room)."""
        self._since = now
        self.flowing = True

    def take(self, data: bytes) -> bytes:
        """The payload in `data`. BadBody when it is malformed or too large."""
        payload = self._reader.feed(data)
        self._seen += len(payload)
        most = self._limits.body_bytes
        if most and self._seen > most:
            raise BadBody("the body of the request is too large", 413)
        return payload

    def take_in_time(self, data: bytes, now: float) -> bytes:
        """As `take`; BadBody also when it trickles in more slowly than allowed."""
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
        """Discards the received part of an unwanted body; False when its end can never be found.

        That is so when it is malformed, when the visitor `asked` whether to send it (Expect): it
        may never send it, and when finding it would take more than one turn.
        """
        if (asked and not kept) or self.cut(kept)[1]:
            return False
        try:
            self.take(kept)
        except BadBody:
            return False
        return True

    def small_rest(self) -> bool:
        """Whether so little is left that it may be thrown away to keep the connection."""
        return (
            isinstance(self._reader, LengthBody) and self._reader.left <= self._limits.drain_bytes
        )


class CollectedBody:
    """The beginning of a body, kept while nothing can take it yet: for an origin, or for the form on
    a waiting page. At most so many bytes, and what came with the last of them.
    """

    __slots__ = ("_missing", "_parts")

    def __init__(self, most: int) -> None:
        self._missing = most
        self._parts: list[bytes] = []

    def add(self, data: bytes, whole: bool) -> bool:
        """Keeps a part. True once: when this is the whole body, or as much as is kept."""
        self._parts.append(data)
        if self._missing <= 0:
            return False
        self._missing = 0 if whole else self._missing - len(data)
        return self._missing <= 0

    def take(self) -> bytes:
        """What there is."""
        return b"".join(self._parts)
