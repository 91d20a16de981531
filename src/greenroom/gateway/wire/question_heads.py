"""Reads proxies' questions about visitors, and skips parsing when only the target differs from a
cached one. The key is the head without that value. Anything unusual is parsed as a whole.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from greenroom.gateway.wire.head_records import Framing, HeaderLines, RequestHead
from greenroom.gateway.wire.request_head import BLOCK_CACHED_MAX, Peer, read_head
from greenroom.model.visit import Arrival
from greenroom.request.bounded_cache import BoundedCache
from greenroom.request.canonical import Refusal
from greenroom.settings.limits import Limits

QUESTIONS_BYTES, QUESTION_BYTES = 12_000_000, 3_000
"""Bytes of each of two generations (3,000 questions), and of a question beside its text."""

TARGET_LINES = tuple(
    (name.lower(), b"\r\n%b: " % name) for name in (b"X-Original-URI", b"X-Forwarded-Uri")
)
"""Header lines with the visitor's target, as nginx, Caddy and Traefik write them."""

A = TypeVar("A")


class Again(Protocol[A]):
    """What a receiver caches of repeated questions (`proxies.service.ProxyQuestions`)."""

    def asker(self, question: Arrival, header: bytes) -> A | None:
        """What to cache of this question except this header's value; None: nothing."""

    def again(self, asker: A, target: bytes, address: str) -> Arrival | None:
        """The arrival with this value, from a peer at `address`; None: read the question as a
        whole.
        """


class _Known(msgspec.Struct, Generic[A], frozen=True, gc=False):
    asker: A
    framing: Framing
    lines: HeaderLines
    authority: bytes
    limits: Limits
    cost: int


class QuestionHeads(Generic[A]):
    """Reads heads for one gateway, as `read_head`, but the arrival may be the visitor's own."""

    __slots__ = ("_again", "_known")

    def __init__(self, again: Again[A]) -> None:
        self._again = again
        self._known: BoundedCache[tuple[str, bytes], _Known[A]] = BoundedCache(QUESTIONS_BYTES)

    def read(self, block: bytes, peer: Peer) -> RequestHead | Refusal:
        size = len(block)
        if size > BLOCK_CACHED_MAX:
            return read_head(block, peer)
        for name, line in TARGET_LINES:
            begins = block.find(line)
            if begins >= 0:
                begins += len(line)
                ends = block.find(b"\r\n", begins)
                key = (peer.address, block[:begins] + block[ends:])
                known = self._known.young.get(key) or self._known.again(key)
                if (
                    known is not None
                    and known.limits is peer.limits
                    and size <= known.limits.head_bytes
                ):
                    arrival = self._again.again(known.asker, block[begins:ends], peer.address)
                    if arrival is not None:
                        return RequestHead(
                            arrival, arrival.target, known.framing, known.lines, known.authority
                        )
                return self._learning(block, peer, name, key)
        return read_head(block, peer)

    def _learning(
        self, block: bytes, peer: Peer, name: bytes, key: tuple[str, bytes]
    ) -> RequestHead | Refusal:
        head = read_head(block, peer)
        if (
            isinstance(head, RequestHead)
            and head.framing.bare
            and head.arrival.facts is not None
            and self._known.came_before(key)
        ):
            asker = self._again.asker(head.arrival, name)
            if asker is not None:
                lines = HeaderLines(head.lines.frame, (), None)  # the visitor's are the asker's
                cost = QUESTION_BYTES + len(key[1])
                self._known.keep(
                    key, _Known(asker, head.framing, lines, head.authority, peer.limits, cost)
                )
        return head


ReadHead = Callable[[bytes, Peer], RequestHead | Refusal]
