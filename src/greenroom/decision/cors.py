"""CORS headers of greenroom's own answers: scripts of a listed origin (`Room.cors_origins`) can
read that the visitor waits.
"""

from collections.abc import Sequence
from functools import lru_cache

from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.visit import Arrival
from greenroom.request.cross_origin import listed_origin

HEADERS_CACHED = 1_024
"""About 1 MB."""

EXPOSED = b"Retry-After, Refresh"


def with_cors(answer: Answer, origins: Sequence[str], arrival: Arrival) -> Answer:
    return replace(answer, headers=_with_cors(answer.headers, listed_origin(arrival, origins)))


@lru_cache(maxsize=HEADERS_CACHED)
def _with_cors(headers: AnswerHeaders, origin: bytes) -> AnswerHeaders:
    varies = headers.get(b"Vary")
    pairs = [
        (key, value + b", Origin" if key == b"Vary" else value) for key, value in headers.pairs
    ]
    if varies is None:
        pairs.append((b"Vary", b"Origin"))
    if origin:
        pairs += [
            (b"Access-Control-Allow-Origin", origin),
            (b"Access-Control-Allow-Credentials", b"true"),
            (b"Access-Control-Expose-Headers", EXPOSED),
        ]
    return AnswerHeaders(*pairs)
