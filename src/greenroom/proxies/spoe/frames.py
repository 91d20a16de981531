"""Frames of the Stream Processing Offload Protocol (SPOP 2.0, HAProxy 2.0 to 3.x): bytes to values
and back. Pure.

    frame     = length (4 bytes, big-endian), type (1), flags (4), stream id, frame id, payload
    HELLO     = name, value, ...
    NOTIFY    = (name of a message, number of arguments (1), (name, value) ...) ...
    ACK       = actions; one that sets a variable is 1, 3, scope, name, value

A number is one byte below 240; above, the first byte has its lowest four bits, and each further
byte seven, until one is below 128. A string is its length and its bytes. A value is one byte (type
in the low half, flags in the high one) and what the type says.
"""

import re
from collections.abc import Mapping

HAPROXY_HELLO, HAPROXY_DISCONNECT, NOTIFY, AGENT_HELLO, AGENT_DISCONNECT, ACK = (
    1,
    2,
    3,
    101,
    102,
    103,
)
FIN = 1

FRAME_MIN, FRAME_MAX = 256, 65_536
"""HAProxy offers its buffer less four, 16,380 by default."""

NORMAL, TIMED_OUT, TOO_BIG, INVALID, NO_VERSION, NO_SIZE, BAD_VERSION, BAD_SIZE, FRAGMENTED = (
    0,
    2,
    3,
    4,
    5,
    6,
    8,
    9,
    10,
)
"""As the protocol numbers them."""

ARGUMENTS_MAX = 32

VERSION = b"2.0"
_TRANSACTION = 2
_NULL, _BOOLEAN, _NUMBERS, _IPV4, _IPV6, _STRING, _BINARY = 0, 1, range(2, 6), 6, 7, 8, 9
_TRUE = 0x10
_NUMBER_BYTES_MAX = 10  # of 64 bits

SpoeValue = bytes | bool | int | str | None
"""Addresses are text, strings and binaries are bytes."""


class BadFrame(Exception):
    """`status` is the reason that HAProxy is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


TWO_NUMBERS = re.compile(
    rb"(?:[\x00-\xef]|[\xf0-\xff][\x80-\xff]{0,%d}[\x00-\x7f]){2}" % (_NUMBER_BYTES_MAX - 1)
)

WHOLE_NOTIFY = b"%c\0\0\0%c" % (NOTIFY, FIN)


class SpoeFrame:
    """`numbers`: stream and frame ids as sent; `at`: where the payload begins."""

    __slots__ = ("at", "data", "kind", "numbers")

    def __init__(self, data: bytes) -> None:
        """Without its length. Raises BadFrame."""
        if len(data) < 7:
            raise BadFrame(INVALID, "the frame is too short")
        if not data[4] & FIN or data[0] == 0:
            raise BadFrame(FRAGMENTED, "fragmented frames were not agreed on")
        numbers = TWO_NUMBERS.match(data, 5)
        if numbers is None:
            raise BadFrame(INVALID, "a number ends early or is too long")
        self.data, self.kind, self.numbers, self.at = data, data[0], numbers[0], numbers.end()

    @property
    def stream_id(self) -> int:
        return number(self.numbers, 0)[0]

    @property
    def frame_id(self) -> int:
        return number(self.numbers, number(self.numbers, 0)[1])[0]


def number(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends. Raises BadFrame."""
    try:
        value = data[at]
        if value < 240:
            return value, at + 1
        shift = 4
        for end in range(at + 1, at + _NUMBER_BYTES_MAX + 1):
            value += data[end] << shift
            if data[end] < 128:
                return value, end + 1
            shift += 7
    except IndexError:
        raise BadFrame(INVALID, "a number ends early") from None
    raise BadFrame(INVALID, "a number is too long")


def string(data: bytes, at: int) -> tuple[bytes, int]:
    """A string and where it ends. Raises BadFrame."""
    length, at = (data[at], at + 1) if at < len(data) and data[at] < 240 else number(data, at)
    end = at + length
    if end > len(data):
        raise BadFrame(INVALID, "a string ends early")
    return data[at:end], end


def value(data: bytes, at: int) -> tuple[SpoeValue, int]:
    """A value and where it ends. Raises BadFrame."""
    if at >= len(data):
        raise BadFrame(INVALID, "a value is missing")
    kind = data[at] & 0x0F
    if kind in (_STRING, _BINARY):
        return string(data, at + 1)
    if kind == _BOOLEAN:
        return bool(data[at] & _TRUE), at + 1
    if kind in _NUMBERS:
        return number(data, at + 1)
    if kind == _NULL:
        return None, at + 1
    if kind in (_IPV4, _IPV6):
        end = at + (5 if kind == _IPV4 else 17)
        if end > len(data):
            raise BadFrame(INVALID, "an address ends early")
        return _address(data[at + 1 : end]), end
    raise BadFrame(INVALID, f"a value has the unknown type {kind}")


def _address(packed: bytes) -> str:
    if len(packed) == 4:
        return ".".join(map(str, packed))
    return ":".join([f"{packed[at] << 8 | packed[at + 1]:x}" for at in range(0, 16, 2)])


def pairs(data: bytes, at: int) -> dict[bytes, SpoeValue]:
    """Raises BadFrame, for a name that stands twice too."""
    found: dict[bytes, SpoeValue] = {}
    while at < len(data):
        at = _pair(data, at, found)
    return found


def message(data: bytes) -> tuple[bytes, dict[bytes, SpoeValue]]:
    """Of a NOTIFY: its name and its arguments. Raises BadFrame."""
    name, at = string(data, 0)
    if at >= len(data) or data[at] > ARGUMENTS_MAX:
        raise BadFrame(INVALID, "a message has no or too many arguments")
    count, at, size = data[at], at + 1, len(data)
    found: dict[bytes, SpoeValue] = {}
    try:
        for _ in range(
            count
        ):  # written out, because every argument of every question comes by here
            length = data[at]
            length, at = (length, at + 1) if length < 240 else number(data, at)
            argument, at = data[at : at + length], at + length
            if data[at] & 0x0F == _STRING or data[at] & 0x0F == _BINARY:
                length = data[at + 1]
                length, at = (length, at + 2) if length < 240 else number(data, at + 1)
                found[argument], at = data[at : at + length], at + length
            else:
                found[argument], at = value(data, at)
    except IndexError:
        raise BadFrame(INVALID, "an argument ends early") from None
    if at != size:
        raise BadFrame(INVALID, "there is more than one message, or the last argument ends early")
    if len(found) != count:
        raise BadFrame(INVALID, "a name stands twice")
    return name, found


def _pair(data: bytes, at: int, found: dict[bytes, SpoeValue]) -> int:
    name, at = string(data, at)
    if name in found or len(found) >= ARGUMENTS_MAX:
        raise BadFrame(INVALID, "a name stands twice, or there are too many")
    found[name], at = value(data, at)
    return at


def headers(data: bytes) -> list[tuple[bytes, bytes]]:
    """As `req.hdrs_bin` gives: an empty pair at the end. Raises BadFrame."""
    return [(name, text) for name, text, _ in headers_at(data)]


def headers_at(data: bytes) -> list[tuple[bytes, bytes, int]]:
    """Each with the place of its value (with its length). Raises BadFrame."""
    found: list[tuple[bytes, bytes, int]] = []
    at = 0
    while True:
        name, begins = string(data, at)
        text, at = string(data, begins)
        if not name:
            break
        found.append((name, text, begins))
    if text or at != len(data):
        raise BadFrame(INVALID, "the headers end early")
    return found


_SHORT = tuple(bytes((count,)) for count in range(240))


def number_bytes(count: int) -> bytes:
    if count < 240:
        return _SHORT[count]
    found = bytearray(((count & 0x0F) | 0xF0,))
    count = (count - 240) >> 4
    while count >= 128:
        found.append((count & 0x7F) | 0x80)
        count = (count - 128) >> 7
    found.append(count)
    return bytes(found)


def string_bytes(text: bytes) -> bytes:
    return number_bytes(len(text)) + text


def value_bytes(sent: bytes | int | bool) -> bytes:
    """Numbers have 32 bits and no sign."""
    if isinstance(sent, bytes):
        return b"\x08" + string_bytes(sent)
    if isinstance(sent, bool):
        return bytes((_BOOLEAN | (_TRUE if sent else 0),))
    return b"\x03" + number_bytes(sent)


def frame_bytes(kind: int, stream_id: int, frame_id: int, payload: bytes) -> bytes:
    return _framed(
        b"%c\0\0\0\x01" % kind, number_bytes(stream_id) + number_bytes(frame_id), payload
    )


def ack_bytes(numbers: bytes, actions: bytes) -> bytes:
    return _framed(_ACK_HEAD, numbers, actions)


_ACK_HEAD = b"%c\0\0\0\x01" % ACK


def _framed(head: bytes, numbers: bytes, payload: bytes) -> bytes:
    return b"".join(
        ((len(head) + len(numbers) + len(payload)).to_bytes(4, "big"), head, numbers, payload)
    )


def pairs_bytes(sent: Mapping[bytes, bytes | int | bool]) -> bytes:
    return b"".join([string_bytes(name) + value_bytes(what) for name, what in sent.items()])


def set_variable(name: bytes, text: bytes) -> bytes:
    return setting(name) + string_bytes(text)


def setting(name: bytes) -> bytes:
    return b"\x01\x03%c%b\x08" % (_TRANSACTION, string_bytes(name))
