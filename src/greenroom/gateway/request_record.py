"""What became of one request at the gateway, for the access log and traces: told once, when the
answer is written or the connection is gone.
"""

from collections.abc import Callable

import msgspec

from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.gateway.request_span import RequestSpan
from greenroom.model.visit import Arrival


class RequestRecord(msgspec.Struct, frozen=True):
    """`status` is 0 when the visitor went away before an answer; `sent` counts the bytes of the
    body; `arrival` is None for a request

    that could not be read, and `client` is then the other end of the connection.
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
        """How: forward, reenter (forwarded by a turn that was kept), hold, answer, or refuse
        (before or without a decision).
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
