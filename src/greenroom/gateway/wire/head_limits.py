"""Refusals before a head is read: too long, too many lines, or no HTTP at all."""

from greenroom.request.arrival import TOO_LARGE, TOO_LONG
from greenroom.request.canonical import Refusal
from greenroom.settings.limits import Limits

_NOT_HTTP = Refusal(
    400, "this is not HTTP: a line ends without CR, or a request begins with something unprintable"
)


PARTS_MAX = 256
"""Packets of one head: each one rescans it. The largest head is 60 small packets."""

_TOO_MANY_PARTS = Refusal(408, "the head of the request comes in too many pieces")

END_OF_HEAD = b"\r\n\r\n"


def hopeless(data: bytes, limits: Limits, parts: int) -> Refusal | None:
    """Refuses a partial head (received in `parts`) that cannot become valid."""
    if parts > PARTS_MAX:
        return _TOO_MANY_PARTS
    line = data.find(b"\r\n")
    if (line if line >= 0 else len(data)) > limits.url_bytes:
        return TOO_LONG
    if len(data) > limits.head_bytes:
        return TOO_LARGE
    if data.count(b"\n") != data.count(b"\r\n") or (
        data and not 0x21 <= data[0] <= 0x7E and data != b"\r"
    ):
        return _NOT_HTTP
    return None
