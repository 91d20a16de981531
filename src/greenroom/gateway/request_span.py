"""One traced request: its ids and the time of each step."""

import re

_TRACE_LINES = re.compile(rb"\r\ntrace(?:parent|state):[^\r]*")


class RequestSpan:
    """Loop times in seconds; 0: not reached."""

    __slots__ = ("decided_at", "first_byte_at", "origin_at", "origin_id", "parent_id", "span_id", "state", "trace_id")  # fmt: skip

    def __init__(
        self, trace_id: bytes, span_id: bytes, origin_id: bytes, parent_id: bytes, state: bytes
    ) -> None:
        """`parent_id` empty: the trace begins here. `state`: the value of `tracestate`."""
        self.trace_id = trace_id
        self.span_id = span_id
        self.origin_id = origin_id
        self.parent_id = parent_id
        self.state = state
        self.decided_at = self.origin_at = self.first_byte_at = 0.0

    def traced_head(self, head: bytes, now: float) -> bytes:
        """The head for the origin, with this trace's headers instead of the visitor's."""
        self.origin_at = now
        line, _, rest = head.partition(b"\r\n")
        ours = b"\r\ntraceparent: 00-%b-%b-01" % (
            self.trace_id.hex().encode(),
            self.origin_id.hex().encode(),
        )
        if self.state:
            ours += b"\r\ntracestate: " + self.state
        return line + ours + _TRACE_LINES.sub(b"", b"\r\n" + rest)
