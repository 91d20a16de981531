"""CORS headers of greenroom's own answers, so that a script of a listed origin
(`Room.cors_origins`) can read that its visitor waits.
"""

from collections.abc import Sequence
from functools import lru_cache

from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.visit import Arrival
from greenroom.request.cors import listed_origin

HEADERS_REMEMBERED = 1_024
"""Headers with those of CORS that are kept, about 1 MB: of each kind of answer, for each origin
that a room lists.
"""

EXPOSED = b"Retry-After, Refresh"
"""What a script may read beside the headers that every script may read: when to try again."""


def with_cors(answer: Answer, origins: Sequence[str], arrival: Arrival) -> Answer:
    """The answer of a room that lists these origins. From another origin it only says that the
    Origin header decides (Vary).
    """
    return replace(answer, headers=_with_cors(answer.headers, listed_origin(arrival, origins)))


@lru_cache(maxsize=HEADERS_REMEMBERED)
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
