"""Histograms of latencies that other programs export: OTLP as JSON, Prometheus text, and answers of
Prometheus. Counters only grow, so they are reports like those of a process.

A bucket counts as its upper bound, and what is beyond the last bound as slower than everything: a
coarse histogram makes the origin look slower than it is, never faster.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple

import msgspec

from greenroom.capacity.histogram import BOUNDS_MS, BUCKETS, Histogram
from greenroom.capacity.measurement import Measurement, ProcessReport
from greenroom.capacity.sources import PUSH
from greenroom.errors import GreenroomError
from greenroom.model.room import PUSHED, Room

BODY_MAX = 1 << 20
COUNT_MAX, DIGITS_MAX, LATEST_S = 1 << 53, 20, 1e12
SERIES_MAX, BUCKETS_MAX, INSTANCES_MAX = 2_000, 200, 200
NAMES = (
    "http.server.request.duration",
    "http_server_request_duration_seconds",
    "http_request_duration_seconds",
)
"""Metrics that are taken unless the caller names another one."""
INSTANCE = ("service.instance.id", "service_instance_id", "instance", "host.name")
STATUS = (
    "http.response.status_code", "http_response_status_code", "http.status_code",
    "http_status_code", "status_code", "status", "code",
)  # fmt: skip

_READ = frozenset((*INSTANCE, *STATUS))
_CUMULATIVE = 2
_MILLISECONDS = {"s": 1_000.0, "ms": 1.0}


class FiguresRefused(GreenroomError):
    """Names what is wrong with exported figures."""


class Exported(NamedTuple):
    """One instance of the origin. `at_ms`: when it was measured; 0: unknown."""

    documents: Histogram
    failed: int
    at_ms: int = 0


class _Series(NamedTuple):
    labels: Mapping[str, str]
    bounds_ms: tuple[float, ...]
    counts: tuple[int, ...]
    """One more than bounds."""
    sum_ms: float
    at_ms: int = 0


def of_otlp(body: bytes, metric: str = "") -> dict[str, Exported]:
    """An ExportMetricsServiceRequest as JSON, by instance. Raises FiguresRefused."""
    try:
        request = msgspec.json.decode(body, type=_Request)
    except (ValueError, RecursionError) as error:
        raise FiguresRefused(f"the body is no OTLP metrics request: {error}") from None
    found: list[_Series] = []
    seen: set[str] = set()
    for resource in request.resourceMetrics:
        about = _attributes(resource.resource.attributes)
        for one in (one for scope in resource.scopeMetrics for one in scope.metrics):
            seen.add(one.name)
            if one.name not in ((metric,) if metric else NAMES):
                continue
            if one.histogram is None:
                raise FiguresRefused(f"{one.name}: must be a histogram with explicit bounds")
            if one.histogram.aggregationTemporality not in (
                _CUMULATIVE, "AGGREGATION_TEMPORALITY_CUMULATIVE",
            ):  # fmt: skip
                raise FiguresRefused(f"{one.name}: aggregationTemporality must be cumulative")
            unit_ms = _unit(one.name, one.unit or "s")
            for point in one.histogram.dataPoints:
                bounds = tuple(unit_ms * bound for bound in point.explicitBounds)
                counts = tuple(_whole(one.name, count) for count in point.bucketCounts)
                labels = about | _attributes(point.attributes)
                at_ms = _whole(one.name, point.timeUnixNano, "timeUnixNano") // 1_000_000
                found.append(_Series(labels, bounds, counts, unit_ms * point.sum, at_ms))
                _check(one.name, found)
    return _by_instance(found, seen, metric)


def of_prometheus_text(body: bytes, metric: str = "") -> dict[str, Exported]:
    """What an application shows at /metrics, by instance. Raises FiguresRefused."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise FiguresRefused("the body is not UTF-8") from None
    wanted = (metric,) if metric else NAMES
    samples: list[tuple[str, dict[str, str], float, int]] = []
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):  # a label may hold other ends of lines
        if not line.strip() or line.startswith("#"):
            continue
        name = re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*", line)
        base = name[0].removesuffix("_bucket").removesuffix("_sum") if name else ""
        seen.add(base)
        if name and base not in wanted:
            continue
        whole = _SAMPLE.fullmatch(line)
        if whole is None:
            raise FiguresRefused(f"line {number} is no sample of Prometheus text: {line[:80]!r}")
        labels = {key: _unescaped(value) for key, value in _LABEL.findall(whole["labels"] or "")}
        at_ms = int(whole["at"] or 0)
        at_ms *= 1 if at_ms >= LATEST_S / 10 else 1_000  # OpenMetrics has seconds
        samples.append((whole["name"], labels, _number(whole["value"], number), max(0, at_ms)))
    return _by_instance(_series(samples), seen, metric)


def of_prometheus_answer(body: bytes) -> dict[str, Exported]:
    """An answer with a matrix, by instance; the newest value counts. Raises FiguresRefused."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (ValueError, RecursionError) as error:
        raise FiguresRefused(f"Prometheus gave no usable answer: {error}") from None
    if answer.status != "success" or answer.data is None:
        raise FiguresRefused(f"Prometheus refused the query: {answer.error[:300]}")
    if answer.data.resultType != "matrix":
        raise FiguresRefused(
            'query: must be a selector of buckets, such as NAME_bucket{job="shop"}'
        )
    samples = []
    for one in answer.data.result:
        name = one.metric.pop("__name__", "")
        if not name.endswith("_bucket") or "le" not in one.metric:
            raise FiguresRefused(
                f"query: must select series that end in _bucket, not {name[:80]!r}"
            )
        if one.values:
            at_s, value = one.values[-1]
            if not 0 <= at_s < LATEST_S:
                raise FiguresRefused(f"Prometheus answered with the time {at_s:g}")
            samples.append((name, one.metric, _number(value, 0), int(1_000 * at_s)))
    if not samples:
        raise FiguresRefused("Prometheus has no series of the query in the last minute")
    return _by_instance(_series(samples), set(), "")


def reports_of_push(
    room_id: str, found: Mapping[str, Exported], known: Mapping[str, ProcessReport], now_ms: int
) -> dict[str, ProcessReport]:
    """Those that are newer than the `known` ones: of a repeated or overtaken push the same documents
    would count again. Raises FiguresRefused if all are too old to act on.
    """
    age_ms = now_ms - max(one.at_ms or now_ms for one in found.values())
    if age_ms >= PUSH.silent_ms:
        raise FiguresRefused(
            f"the figures must be less than {PUSH.silent_ms // 1_000} s old, not"
            f" {age_ms // 1_000} s: sent late, or of a clock that is behind"
        )
    reports = {}
    for instance, one in found.items():
        name, report = (
            f"{PUSH.name}:{room_id}:{instance}",
            report_of(room_id, one, PUSH.name, now_ms),
        )
        if not one.at_ms or name not in known or known[name].at_ms < report.at_ms:
            reports[name] = report
    return reports


def accepted_push(
    room: Room, found: Mapping[str, Exported], known: Mapping[str, ProcessReport], now_ms: int
) -> dict[str, ProcessReport]:
    """The new reports, of which a room with a fixed limit needs none. Raises FiguresRefused."""
    if room.capacity_metrics != PUSHED:
        raise FiguresRefused("capacity_metrics: must be push in a room that figures are sent to")
    if room.capacity == "fixed":
        return {}
    new = reports_of_push(room.id, found, known, now_ms)
    before = {name for name in known if name.startswith(f"{PUSH.name}:{room.id}:")}
    if len(before | new.keys()) > INSTANCES_MAX:
        raise FiguresRefused(f"must be at most {INSTANCES_MAX} instances in a minute")
    return new


def report_of(room_id: str, one: Exported, source: str, now_ms: int) -> ProcessReport:
    measured = Measurement(documents=one.documents, failed=one.failed)
    at_ms = min(one.at_ms or now_ms, now_ms)  # of a clock ahead nothing would ever be too old
    return ProcessReport(at_ms=at_ms, rooms={room_id: measured}, source=source)


# -- inside ----------------------------------------------------------------------------------------

_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,\s*)?')
_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    r'(?:\s*\{\s*(?P<labels>(?:[a-zA-Z_][a-zA-Z0-9_]*\s*=\s*"(?:[^"\\]|\\.)*"\s*(?:,\s*)?)*)\}\s*|\s+)'
    r"(?P<value>[^\s{]+)(?:\s+(?P<at>-?[0-9]{1,15})(?:\.[0-9]*)?)?(?:\s+#.*)?\s*"
)


class _Value(msgspec.Struct):
    stringValue: str | None = None  # noqa: N815 - OTLP's names
    intValue: int | str | None = None  # noqa: N815


class _Attribute(msgspec.Struct):
    key: str
    value: _Value = msgspec.field(default_factory=_Value)


class _Point(msgspec.Struct):
    attributes: list[_Attribute] = []
    sum: float = 0.0
    timeUnixNano: int | str = 0  # noqa: N815
    bucketCounts: list[int | str] = []  # noqa: N815
    explicitBounds: list[float] = []  # noqa: N815


class _OtlpHistogram(msgspec.Struct):
    dataPoints: list[_Point] = []  # noqa: N815
    aggregationTemporality: int | str = 0  # noqa: N815


class _Metric(msgspec.Struct):
    name: str = ""
    unit: str = ""
    histogram: _OtlpHistogram | None = None


class _Scope(msgspec.Struct):
    metrics: list[_Metric] = []


class _Resource(msgspec.Struct):
    attributes: list[_Attribute] = []


class _ResourceMetrics(msgspec.Struct):
    resource: _Resource = msgspec.field(default_factory=_Resource)
    scopeMetrics: list[_Scope] = []  # noqa: N815


class _Request(msgspec.Struct):
    resourceMetrics: list[_ResourceMetrics] = []  # noqa: N815


class _Result(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct):
    resultType: str = ""  # noqa: N815
    result: list[_Result] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""


def _attributes(found: Iterable[_Attribute]) -> dict[str, str]:
    """Those that are read: each point has those of its resource too."""
    values = ((one.key, one.value.stringValue, one.value.intValue) for one in found)
    return {
        key: str(text if text is not None else number)
        for key, text, number in values
        if key in _READ
    }


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda one: "\n" if one[1] == "n" else one[1], value)


def _unit(name: str, unit: str) -> float:
    if unit not in _MILLISECONDS:
        raise FiguresRefused(f"{name}: unit must be s or ms, not {unit[:20]!r}")
    return _MILLISECONDS[unit]


def _number(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        where = f"line {line}: " if line else ""
        raise FiguresRefused(f"{where}{text[:40]!r} is not a number") from None


def _whole(name: str, count: int | str, of: str = "bucketCounts") -> int:
    text = str(count)
    if not text.isdecimal() or len(text) > DIGITS_MAX:
        raise FiguresRefused(f"{name}: {of} must be whole numbers, not {text[:40]!r}")
    return int(text)


def _series(samples: Iterable[tuple[str, dict[str, str], float, int]]) -> list[_Series]:
    """Of cumulative buckets."""
    buckets: dict[tuple[str, frozenset[tuple[str, str]]], dict[float, float]] = {}
    sums: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    at: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    for name, labels, value, at_ms in samples:
        bound = labels.pop("le", None)
        key = (name.removesuffix("_bucket").removesuffix("_sum"), frozenset(labels.items()))
        if name.endswith("_sum"):
            sums[key] = value
        elif name.endswith("_bucket") and bound is not None:
            buckets.setdefault(key, {})[_number(bound, 0)] = value
            at[key] = max(at.get(key, 0), at_ms)
    found: list[_Series] = []
    for (name, labels_of), by_bound in buckets.items():
        unit_ms = 1.0 if name.endswith(("_milliseconds", "_ms")) else 1_000.0
        bounds = sorted(by_bound)
        if bounds[-1] != inf or not all(isfinite(count) for count in by_bound.values()):
            raise FiguresRefused(f"{name}: the buckets must be numbers, and the last one +Inf")
        totals = [0, *(int(by_bound[bound]) for bound in bounds)]
        counts = tuple(after - before for before, after in pairwise(totals))
        sum_ms = sums.get((name, labels_of))
        bounds_ms = tuple(unit_ms * bound for bound in bounds[:-1])
        if sum_ms is None:
            sum_ms = sum(map(float.__mul__, bounds_ms, map(float, counts)))
        else:
            sum_ms *= unit_ms
        key = (name, labels_of)
        found.append(_Series(dict(labels_of), bounds_ms, counts, sum_ms, at[key]))
        _check(name, found)
    return found


def _check(name: str, found: list[_Series]) -> None:
    """Of the newest one."""
    one = found[-1]
    if len(found) > SERIES_MAX:
        raise FiguresRefused(f"{name}: must be at most {SERIES_MAX} series")
    if not 1 <= len(one.bounds_ms) <= BUCKETS_MAX or len(one.counts) != len(one.bounds_ms) + 1:
        raise FiguresRefused(
            f"{name}: must have 1 to {BUCKETS_MAX} bounds, and one more bucket than bounds"
        )
    # so written, NaN does not ascend either
    if not one.bounds_ms[0] >= 0 or not all(
        before < after for before, after in pairwise(one.bounds_ms)
    ):
        raise FiguresRefused(f"{name}: bounds must be at least 0 and ascend")
    if min(one.counts) < 0 or sum(one.counts) > COUNT_MAX or not isfinite(one.sum_ms):
        raise FiguresRefused(
            f"{name}: buckets must be 0 to {COUNT_MAX} in all, and the sum a number"
        )


def _by_instance(found: list[_Series], seen: Iterable[str], metric: str) -> dict[str, Exported]:
    if not found:
        wanted = metric or " or ".join(NAMES)
        others = ", ".join(sorted(filter(None, seen))[:10]) or "no metric"
        raise FiguresRefused(f"there is no histogram {wanted}, but {others[:500]}")
    instances: dict[str, Exported] = {}
    for one in found:
        name = next((one.labels[key] for key in INSTANCE if key in one.labels), "")[:200]
        before = instances.get(name, Exported(Histogram(), 0))
        at_ms = max(before.at_ms, one.at_ms)
        if next((one.labels[key] for key in STATUS if key in one.labels), "").startswith("5"):
            instances[name] = Exported(before.documents, before.failed + sum(one.counts), at_ms)
        else:
            documents = before.documents + _rebinned(one)
            instances[name] = Exported(documents, before.failed, at_ms)
    if len(instances) > INSTANCES_MAX:
        raise FiguresRefused(f"must be at most {INSTANCES_MAX} instances, not {len(instances)}")
    return instances


def _rebinned(one: _Series) -> Histogram:
    counts = [0] * BUCKETS
    for bound_ms, count in zip((*one.bounds_ms, inf), one.counts, strict=True):
        counts[bisect_left(BOUNDS_MS, bound_ms)] += count
    return Histogram(tuple(counts), max(0.0, one.sum_ms))
