"""The journal's format: a header, then frames; and how to find the intact ones in a damaged file.

Header: magic (8 bytes), version (u32), CRC-32 of both. Frame: length (u32), CRC-32 of the payload
begun at the length (u32), payload. Big-endian. A length of zero is no frame, so a stretch of zeros,
which a power cut may leave, is never read as one.
"""

import os
import re
import struct
import zlib
from collections.abc import Iterator

MAGIC = b"GREENJNL"
VERSION = 1

PAYLOAD_MAX = 4 * 1024 * 1024
"""A reader uses one window of a little more."""

RESYNC_BYTES_MAX = 1 << 30
"""About a second; the rest counts as damaged."""

FRAME_HEAD = struct.Struct(">II")
HEADER_SIZE = 16
_WINDOW = PAYLOAD_MAX + FRAME_HEAD.size
_NOT_ZERO = re.compile(rb"[^\0]")

Stretch = tuple[int, int]


def header(version: int = VERSION) -> bytes:
    begin = MAGIC + struct.pack(">I", version)
    return begin + struct.pack(">I", zlib.crc32(begin))


def version_of(head: bytes) -> int:
    if len(head) != HEADER_SIZE or not head.startswith(MAGIC):
        return 0
    version: int = struct.unpack_from(">I", head, len(MAGIC))[0]
    return version if head == header(version) else 0


def framed(payload: bytes) -> bytes:
    """Raises ValueError for an empty payload or one above PAYLOAD_MAX."""
    size = len(payload)
    if not 0 < size <= PAYLOAD_MAX:
        raise ValueError(f"a frame holds 1 to {PAYLOAD_MAX} bytes, not {size}")
    return FRAME_HEAD.pack(size, zlib.crc32(payload, size)) + payload


def scan(file: int, at: int, end: int, damaged: list[Stretch]) -> Iterator[bytes]:
    """Adds every stretch between intact frames to `damaged`."""
    unpack, head_size, crc32 = FRAME_HEAD.unpack_from, FRAME_HEAD.size, zlib.crc32
    while at < end:
        window = os.pread(file, min(_WINDOW, end - at), at)
        filled, used = len(window), 0
        while used + head_size < filled:
            length, crc = unpack(window, used)
            begin = used + head_size
            payload = window[begin : begin + length]
            if len(payload) != length or not length or crc32(payload, length) != crc:
                break
            yield payload
            used = begin + length
        at += used
        if not used:  # a window holds at least one whole frame, so what begins here is not intact
            following = _next_intact(file, at, end)
            damaged.append((at, following))
            at = following


def torn(file: int, at: int, end: int) -> bool:
    """Whether a kill or power cut leaves this of a write."""
    head = os.pread(file, FRAME_HEAD.size, at)
    if len(head) < FRAME_HEAD.size:
        return True
    length = FRAME_HEAD.unpack(head)[0]
    return (0 < length <= PAYLOAD_MAX and at + FRAME_HEAD.size + length > end) or all_zero(
        file, at, end
    )


def all_zero(file: int, at: int, end: int) -> bool:
    while at < end:
        window = os.pread(file, min(_WINDOW, end - at), at)
        if not window or _NOT_ZERO.search(window):
            return not window
        at += len(window)
    return True


def _next_intact(file: int, at: int, end: int) -> int:
    head = os.pread(file, FRAME_HEAD.size, at)
    if len(head) == FRAME_HEAD.size:
        behind: int = at + FRAME_HEAD.size + FRAME_HEAD.unpack(head)[0]
        if behind < end and _intact(file, behind, end):
            return behind  # only the payload was hit
    left = RESYNC_BYTES_MAX
    at += 1
    while at + FRAME_HEAD.size < end and left > 0:
        window = os.pread(file, min(_WINDOW, end - at), at)
        for place, length in _candidates(window):
            if at + place + FRAME_HEAD.size + length > end:
                continue
            left -= length
            if _intact(file, at + place, end):
                return at + place
            if left <= 0:
                return end
        at += max(1, len(window) - FRAME_HEAD.size)
    return end


def _candidates(window: bytes) -> Iterator[tuple[int, int]]:
    """A length's first byte is always zero."""
    place = window.find(b"\0")
    last = len(window) - FRAME_HEAD.size
    while 0 <= place < last:
        length = FRAME_HEAD.unpack_from(window, place)[0]
        if length:
            if length <= PAYLOAD_MAX:
                yield place, length
            place += 1
        else:
            other = _NOT_ZERO.search(window, place)
            place = other.start() - 3 if other else last
        place = window.find(b"\0", place)


def _intact(file: int, at: int, end: int) -> bool:
    head = os.pread(file, FRAME_HEAD.size, at)
    if len(head) < FRAME_HEAD.size:
        return False
    length: int
    crc: int
    length, crc = FRAME_HEAD.unpack(head)
    if not 0 < length <= PAYLOAD_MAX or at + FRAME_HEAD.size + length > end:
        return False
    payload = os.pread(file, length, at + FRAME_HEAD.size)
    return len(payload) == length and zlib.crc32(payload, length) == crc
