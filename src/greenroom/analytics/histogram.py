"""A histogram of times with three significant digits, in the layout of HDR Histogram. Times are
whole milliseconds. Below 2048 each has its own bucket; above, each power of two is cut into 1024. A
minute of one room has few different values, so counts are a dict (decision 8).
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

HIGHEST_MS = (1 << 32) - 1
"""About 49 days."""

HistogramCounts = dict[int, int]

_FINE_BITS = 11  # below 2**11 every value has its own bucket
_HALF_BITS = _FINE_BITS - 1
_HALF = 1 << _HALF_BITS

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(dict[int, int]).decode


def bucket_of(value_ms: int) -> int:
    if value_ms < 1 << _FINE_BITS:
        return max(0, value_ms)
    if value_ms > HIGHEST_MS:
        value_ms = HIGHEST_MS
    shift = value_ms.bit_length() - _FINE_BITS
    return (shift << _HALF_BITS) + (value_ms >> shift)


def lowest_of(bucket: int) -> int:
    if bucket < 1 << _FINE_BITS:
        return bucket
    return ((bucket & _HALF - 1) + _HALF) << (bucket >> _HALF_BITS) - 1


def highest_of(bucket: int) -> int:
    """Percentiles report it, so that they are never too small."""
    if bucket < 1 << _FINE_BITS:
        return bucket
    shift = (bucket >> _HALF_BITS) - 1
    return lowest_of(bucket) + (1 << shift) - 1


def record(counts: HistogramCounts, value_ms: int) -> None:
    bucket = bucket_of(value_ms)
    counts[bucket] = counts.get(bucket, 0) + 1


def add(into: HistogramCounts, other: Mapping[int, int]) -> None:
    if not into:
        into.update(other)
        return
    for bucket, count in other.items():
        into[bucket] = into.get(bucket, 0) + count


def total(counts: Mapping[int, int]) -> int:
    return sum(counts.values())


def percentiles(counts: Mapping[int, int], wanted: Sequence[int]) -> tuple[int, ...]:
    """`wanted` is ascending, 0 to 100."""
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
    """Equal counts give equal bytes; empty when there are none."""
    return _pack(dict(sorted(counts.items()))) if counts else b""


def unpacked(data: bytes) -> HistogramCounts:
    """Raises ValueError."""
    return _unpack(data) if data else {}


def merged(parts: Iterable[bytes]) -> HistogramCounts:
    counts: HistogramCounts = {}
    for part in parts:
        if part:
            add(counts, _unpack(part))
    return counts
