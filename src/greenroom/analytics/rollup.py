"""What one process knows of one room and minute. `merge` is associative and commutative but not
idempotent, so the store keeps each part once, by its key.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from greenroom.analytics import histogram
from greenroom.analytics.histogram import HistogramCounts
from greenroom.analytics.outcomes import OUTCOMES

MINUTE_MS = 60_000
SLOT_MS = 5_000
SLOTS = MINUTE_MS // SLOT_MS

PERCENTS = (50, 75, 90, 95, 99)

_SPREAD_COLUMNS = {
    name: tuple(f"{name}_{what}" for what in ("samples", "max", "min", "sum"))
    for name in ("active", "queued", "wait")
}
_PERCENT_COLUMNS = {
    name: tuple(f"{name}_p{percent}" for percent in PERCENTS) for name in ("waited", "origin")
}

_NOT_LOOKED = -1
_NO_SLOTS = (_NOT_LOOKED,) * SLOTS


class GaugeTrack(msgspec.Struct, frozen=True):
    """-1 where unknown."""

    active: tuple[int, ...] = _NO_SLOTS
    queued: tuple[int, ...] = _NO_SLOTS
    wait_s: tuple[int, ...] = _NO_SLOTS


class RoomLimits(msgspec.Struct, frozen=True, order=True):
    """Merging keeps the later one."""

    at_ms: int
    total_active_users: int
    new_users_per_minute: int
    session_minutes: int


class RoomTarget(msgspec.Struct, frozen=True, order=True):
    """The capacity that greenroom finds for the origin. Merging keeps the later one; `stopped` and
    `unmeasured` hold if either was set.
    """

    at_ms: int
    sessions: int
    limit: int
    """The limit in force."""
    stopped: bool = False
    unmeasured: bool = False

    def __add__(self, other: "RoomTarget") -> "RoomTarget":
        later = max(self, other)
        return RoomTarget(
            later.at_ms,
            later.sessions,
            later.limit,
            self.stopped or other.stopped,
            self.unmeasured or other.unmeasured,
        )


class Rollup(msgspec.Struct, frozen=True):
    """`incomplete`: a process was killed in it; `generated`: made up for trials."""

    outcomes: dict[str, int] = {}
    tracks: dict[str, GaugeTrack] = {}
    limits: RoomLimits | None = None
    waited: HistogramCounts = {}
    origin: HistogramCounts = {}
    incomplete: bool = False
    generated: bool = False
    target: RoomTarget | None = None


class Part(msgspec.Struct, frozen=True):
    source: str
    minute: int  # whole minutes since 1970
    room: str
    rollup: Rollup

    @property
    def key(self) -> tuple[str, int, str]:
        return self.source, self.minute, self.room


def merge(parts: Iterable[Rollup]) -> Rollup:
    records = tuple(parts)
    if len(records) == 1:  # by far the most
        return records[0]
    outcomes: dict[str, int] = {}
    tracks: dict[str, GaugeTrack] = {}
    waited: HistogramCounts = {}
    origin: HistogramCounts = {}
    limits: RoomLimits | None = None
    target: RoomTarget | None = None
    incomplete = generated = False
    for part in records:
        for name, count in part.outcomes.items():
            outcomes[name] = outcomes.get(name, 0) + count
        for name, track in part.tracks.items():
            tracks[name] = _both(tracks[name], track) if name in tracks else track
        histogram.add(waited, part.waited)
        histogram.add(origin, part.origin)
        if part.limits is not None and (limits is None or part.limits > limits):
            limits = part.limits
        if part.target is not None:
            target = part.target if target is None else target + part.target
        incomplete |= part.incomplete
        generated |= part.generated
    return Rollup(outcomes, tracks, limits, waited, origin, incomplete, generated, target)


def _both(one: GaugeTrack, other: GaugeTrack) -> GaugeTrack:
    """Keeps the higher count: two processes may have sampled one slot."""
    return GaugeTrack(
        tuple(map(max, one.active, other.active)),
        tuple(map(max, one.queued, other.queued)),
        tuple(map(max, one.wait_s, other.wait_s)),
    )


class Spread(msgspec.Struct, frozen=True):
    slots: int
    highest: int
    lowest: int
    sum: int

    @classmethod
    def of(cls, values: Sequence[int]) -> "Spread":
        return (
            cls(len(values), max(values), min(values), sum(values)) if values else cls(0, 0, 0, 0)
        )


def together(tracks: Sequence[Sequence[int]]) -> list[int]:
    """The sum over all data centers, in each slot in which one was sampled. The others count with
    their sample before, or else with their first.
    """
    # by far the most, and a minute of a thousand rooms has to be written in 0.1 s
    if len(tracks) == 1:
        return _looked(tracks[0])
    looked = [max(slot) != _NOT_LOOKED for slot in zip(*tracks, strict=True)]
    sums = map(sum, zip(*map(_continued, tracks), strict=True))
    return [total for total, known in zip(sums, looked, strict=True) if known]


def _continued(slots: Sequence[int]) -> list[int]:
    last = next((value for value in slots if value != _NOT_LOOKED), 0)
    return [last := value if value != _NOT_LOOKED else last for value in slots]


def longest(tracks: Sequence[Sequence[int]]) -> list[int]:
    return _looked(
        tracks[0] if len(tracks) == 1 else [max(slot) for slot in zip(*tracks, strict=True)]
    )


def _looked(slots: Sequence[int]) -> list[int]:
    return [value for value in slots if value != _NOT_LOOKED]


def minute_row(rollup: Rollup) -> dict[str, int | bytes]:
    tracks = rollup.tracks.values()
    active = Spread.of(together([track.active for track in tracks]))
    queued = Spread.of(together([track.queued for track in tracks]))
    wait = Spread.of(longest([track.wait_s for track in tracks]))
    limits = rollup.limits or RoomLimits(0, 0, 0, 0)
    target = rollup.target or RoomTarget(0, 0, 0)
    row: dict[str, int | bytes] = {
        "limited": int(rollup.limits is not None),
        "limit_active": limits.total_active_users,
        "limit_rate": limits.new_users_per_minute,
        "limit_session": limits.session_minutes,
        "targeted": int(rollup.target is not None),
        "target": target.sessions,
        "applied": target.limit,
        "target_stopped": int(target.stopped),
        "target_unmeasured": int(target.unmeasured),
        **{name: rollup.outcomes.get(name, 0) for name in OUTCOMES},
        "waited_count": histogram.total(rollup.waited),
        "origin_count": histogram.total(rollup.origin),
        "incomplete": int(rollup.incomplete),
        "generated": int(rollup.generated),
        "waited": histogram.packed(rollup.waited),
        "origin": histogram.packed(rollup.origin),
    }
    for name, spread in (("active", active), ("queued", queued), ("wait", wait)):
        row.update(_spread(name, spread))
    for name, counts in (("waited", rollup.waited), ("origin", rollup.origin)):
        row.update(_percentiles(name, counts))
    return row


def _spread(name: str, spread: Spread) -> Iterable[tuple[str, int]]:
    return zip(
        _SPREAD_COLUMNS[name],
        (spread.slots, spread.highest, spread.lowest, spread.sum),
        strict=True,
    )


def _percentiles(name: str, counts: Mapping[int, int]) -> Iterable[tuple[str, int]]:
    return zip(_PERCENT_COLUMNS[name], histogram.percentiles(counts, PERCENTS), strict=True)
