"""What is refused before a head is read: too long, too many lines, or so far no HTTP at all."""

from greenroom.core.canonical import Refusal
from greenroom.decision.arrival import TOO_LARGE, TOO_LONG
from greenroom.gateway.wire.limits import Limits

_NOT_HTTP = Refusal(400, "this is not HTTP: a line ends without CR, or a request begins with something unprintable")


_END = b"\r\n\r\n"


def end_of_head(data: bytes) -> int:
    """Where the first head ends; 0: it is not complete. Nearly always one head came and nothing else; searching from the end is quicker."""
    if data.endswith(_END) and data.rfind(_END, 0, -1) < 0:
        return len(data)
    found = data.find(_END)
    return found + len(_END) if found >= 0 else 0


def hopeless(data: bytes, limits: Limits) -> Refusal | None:
    """Judges the beginning of a head: whether it is no use waiting for the rest."""
    line = data.find(b"\r\n")
    if (line if line >= 0 else len(data)) > limits.url_bytes:
        return TOO_LONG
    if len(data) > limits.head_bytes:
        return TOO_LARGE
    if data.count(b"\n") != data.count(b"\r\n") or (data and not 0x21 <= data[0] <= 0x7E and data != b"\r"):
        return _NOT_HTTP
    return None
