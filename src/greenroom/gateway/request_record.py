"""The result of one request, for access log and traces; reported once, when the answer is written
or the connection lost.
"""

from collections.abc import Callable

import msgspec

from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.gateway.request_span import RequestSpan
from greenroom.model.visit import Arrival


class RequestRecord(msgspec.Struct, frozen=True):
    """`status`: 0 when the visitor left before an answer; `sent`: bytes of the body. Without
    `arrival` the request was unreadable, and `client` is the peer.
    """

    client: str
    status: int
    sent: int
    took_s: float
    arrival: Arrival | None = None
    verdict: Verdict | None = None
    span: RequestSpan | None = None

    @property
    def handled(self) -> str:
        """forward, reenter (forwarded by a kept turn), hold, answer, or refuse (before or without a
        decision).
        """
        if self.verdict is None:
            return "refuse"
        if isinstance(self.verdict, Forward):
            return "reenter" if self.verdict.reentered else "forward"
        return "hold" if isinstance(self.verdict, Hold) else "answer"

    @property
    def room_id(self) -> str:
        return self.verdict.room_id if isinstance(self.verdict, Forward | Hold) else ""


RequestObserver = Callable[[RequestRecord], None]
