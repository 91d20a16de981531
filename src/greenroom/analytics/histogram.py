"""A histogram of times with three significant digits, in the layout of HDR Histogram.

Theory. Times are whole milliseconds. Below 2048 each has a bucket of its own; above, each power of
two is cut into 1024 equal buckets, so a bucket is never wider than 1/1024 of its values. The number
of a bucket is its place in the counts array of an HDR Histogram with three significant digits,
lowest value 1 and the same layout in every language, so `hdr_text` can be read by the published
libraries.

A minute of one room has few different values, so the counts are a dict and not an array of 30,000
numbers: recording costs 0.18 us, merging and percentiles cost what is in there. Decision 8 compares
it with the library `hdrhistogram`.
"""

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

HIGHEST_MS = (1 << 32) - 1
"""About 49 days; longer times count as this. A cookie cannot be that old."""

HistogramCounts = dict[int, int]
"""Bucket number -> how many values are in it."""

_FINE_BITS = 11  # below 2**11 every value has its own bucket
_HALF_BITS = _FINE_BITS - 1
_HALF = 1 << _HALF_BITS

_HDR_COOKIE = (
    0x1C849303 | 0x10
)  # HDR Histogram, encoding version 2, counts as variable-length numbers
_HDR_COMPRESSED_COOKIE = 0x1C849304 | 0x10
_HDR_HEADER = struct.Struct(">IIIIQQd")

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(dict[int, int]).decode


def bucket_of(value_ms: int) -> int:
    """The bucket of a time; negative ones count as 0."""
    if value_ms < 1 << _FINE_BITS:
        return max(0, value_ms)
    if value_ms > HIGHEST_MS:
        value_ms = HIGHEST_MS
    shift = value_ms.bit_length() - _FINE_BITS
    return (shift << _HALF_BITS) + (value_ms >> shift)


def lowest_of(bucket: int) -> int:
    """The smallest time that falls into a bucket."""
    if bucket < 1 << _FINE_BITS:
        return bucket
    return ((bucket & _HALF - 1) + _HALF) << (bucket >> _HALF_BITS) - 1


def highest_of(bucket: int) -> int:
    """The largest time that falls into a bucket: what a percentile is said to be, so that it is
    never too small.
    """
    if bucket < 1 << _FINE_BITS:
        return bucket
    shift = (bucket >> _HALF_BITS) - 1
    return lowest_of(bucket) + (1 << shift) - 1


def record(counts: HistogramCounts, value_ms: int) -> None:
    """One more value."""
    bucket = bucket_of(value_ms)
    counts[bucket] = counts.get(bucket, 0) + 1


def add(into: HistogramCounts, other: Mapping[int, int]) -> None:
    """Adds the values of another histogram to this one."""
    if not into:
        into.update(other)
        return
    for bucket, count in other.items():
        into[bucket] = into.get(bucket, 0) + count


def total(counts: Mapping[int, int]) -> int:
    """How many values there are."""
    return sum(counts.values())


def percentiles(counts: Mapping[int, int], wanted: Sequence[int]) -> tuple[int, ...]:
    """For each p of `wanted` (ascending, 0 to 100) a time that p percent of the values do not
    exceed; zeros when there are none.
    """
    if not counts:
        return (0,) * len(wanted)
    overall, found, seen, bucket = total(counts), [], 0, 0
    entries = iter(sorted(counts.items()))
    for percent in wanted:
        rank = -(-overall * percent // 100) or 1  # rounded up
        while seen < rank:
            bucket, count = next(entries)
            seen += count
        found.append(highest_of(bucket))
    return tuple(found)


def packed(counts: Mapping[int, int]) -> bytes:
    """As bytes, the same for the same counts; empty when there is nothing."""
    return _pack(dict(sorted(counts.items()))) if counts else b""


def unpacked(data: bytes) -> HistogramCounts:
    """What `packed` made. Raises ValueError (msgspec.DecodeError) for anything else."""
    return _unpack(data) if data else {}


def merged(parts: Iterable[bytes]) -> HistogramCounts:
    """The sum of packed histograms."""
    counts: HistogramCounts = {}
    for part in parts:
        if part:
            add(counts, _unpack(part))
    return counts


def hdr_text(counts: Mapping[int, int]) -> str:
    """As published libraries exchange it: HDR Histogram V2, compressed, base64. Unit: milliseconds."""
    body, last = bytearray(), -1
    for bucket, count in sorted(counts.items()):
        skipped = bucket - last - 1
        if skipped:
            _variable_length(body, -skipped)
        _variable_length(body, count)
        last = bucket
    head = _HDR_HEADER.pack(_HDR_COOKIE, len(body), 0, 3, 1, HIGHEST_MS, 1.0)
    squeezed = zlib.compress(head + bytes(body))
    return base64.b64encode(
        struct.pack(">II", _HDR_COMPRESSED_COOKIE, len(squeezed)) + squeezed
    ).decode()


def _variable_length(body: bytearray, value: int) -> None:
    """Zigzag (the sign is the lowest bit), then seven bits to a byte, low ones first; the ninth
    byte has eight.
    """
    left = value << 1 if value >= 0 else (-value << 1) - 1
    for _ in range(8):
        if left < 0x80:
            body.append(left)
            return
        body.append(left & 0x7F | 0x80)
        left >>= 7
    body.append(left)
