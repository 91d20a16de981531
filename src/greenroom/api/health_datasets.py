"""Answers `healthCheckEventsAdaptive` and `...Groups` from the event log. Groups of more than
EVENTS_MAX events, or of expired ones, come from hourly sums.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from math import ceil
from time import monotonic
from typing import Any, NamedTuple

from msgspec.structs import replace

from greenroom.analytics.graphql.datasets import (
    TEXT_OPERATORS,
    Comparison,
    Dataset,
    DatasetAnswer,
    DatasetLimits,
    DatasetQuery,
    DatasetRows,
    Every,
    OrderBy,
    Where,
)
from greenroom.analytics.question import QuestionRefused, SlowAnswer
from greenroom.health.rules.memory import (
    HOUR_MS,
    TIMES,
    EventQuestion,
    HourQuestion,
    HourSum,
    KeptEvent,
)
from greenroom.health.rules.sketch import Sketch
from greenroom.health.service import HealthService
from greenroom.health.store import HealthStore
from greenroom.model.probe import CheckEvent

EVENTS_MAX = 100_000
"""Read in a second or two: a day of 60 checks."""

AT_ONCE = 10_000

HOURS_MAX = 200_000
"""Hourly sums: 31 days of 60 checks from three regions."""

DAY_S = 86_400
NAME = "healthCheckEventsAdaptive"

_SECONDS = {
    "datetimeMinute": 60,
    "datetimeFiveMinutes": 300,
    "datetimeFifteenMinutes": 900,
    "datetimeHour": 3_600,
    "date": DAY_S,
}
_BUCKETS = {name: "Date" if name == "date" else "Time" for name in _SECONDS}
_TIMES = {
    "tcpConnMs": "tcp_ms",
    "tlsHandshakeMs": "tls_ms",
    "timeToFirstByteMs": "ttfb_ms",
    "rttMs": "rtt_ms",
}
_QUANTILES = {
    f"{name}P{percent}": (name, percent) for name in _TIMES for percent in (50, 75, 90, 95, 99)
}
_PLAIN: Mapping[str, str] = {
    "datetime": "Time",
    "healthCheckId": "string",
    "healthCheckName": "string",
    "fqdn": "string",
    "originIP": "string",
    "originResponseStatus": "uint64",
    "expectedResponseCodes": "string",
    "healthStatus": "string",
    "healthChanged": "uint64",
    "failureReason": "string",
    "region": "string",
    "scope": "string",
    "sampleInterval": "uint64",
}
_LIMITS = DatasetLimits(max_duration_s=31 * DAY_S, not_older_than_s=31 * DAY_S)
_FILTERS = {**_PLAIN, **_BUCKETS, **dict.fromkeys(_TIMES, "float64")}

HEALTH_EVENTS = Dataset(
    name=NAME,
    type_name="ZoneHealthCheckEventsAdaptive",
    filter_name="ZoneHealthCheckEventsAdaptiveFilter_InputObject",
    help=(
        "One row for each probe of a health check, and for what all probes of an interval come to"
        " (`scope` overall)."
    ),
    filters=_FILTERS,
    fields={**_PLAIN, **dict.fromkeys(_TIMES, "float64")},
    limits=_LIMITS,
)
HEALTH_GROUPS = Dataset(
    name=f"{NAME}Groups",
    type_name="ZoneHealthCheckEventsAdaptiveGroups",
    filter_name="ZoneHealthCheckEventsAdaptiveGroupsFilter_InputObject",
    help="Events of health checks, grouped by the dimensions that are selected.",
    filters=_FILTERS,
    dimensions={**_PLAIN, **_BUCKETS},
    aggregates={
        **dict.fromkeys(("avg", "max", "min"), dict.fromkeys(_TIMES, "float64")),
        "quantiles": dict.fromkeys(_QUANTILES, "float64"),
    },
    counted=True,
    limits=_LIMITS,
)

EventValues = Mapping[str, Any]

_HOURLY = frozenset(_PLAIN) - {"datetime"} | {"datetimeHour", "date"}


class _Span(NamedTuple):
    begin_ms: int
    end_ms: int


class _Counted(NamedTuple):
    """Events with the same values; their times are numbers or sketches."""

    values: EventValues
    events: int
    times: Mapping[str, float | Sketch]


def health_answers(view: HealthService, now_ms: Callable[[], int]) -> dict[str, DatasetAnswer]:
    def answer(query: DatasetQuery) -> DatasetRows:
        question = _question(query, now_ms())
        if query.dataset.fields:
            rows = _raw(_newest(view.history, question, query), query)
        else:
            rows = _grouped(_counted(view.history, question, query), query)
        return DatasetRows(rows[: query.limit])

    return {HEALTH_EVENTS.name: answer, HEALTH_GROUPS.name: answer}


def _question(query: DatasetQuery, now_ms: int) -> EventQuestion:
    span = _span(query.where, now_ms, query.dataset.limits)
    named = {part.field: part.value for part in _parts(query.where) if part.op == ""}
    ids = [str(named["healthCheckId"])] if "healthCheckId" in named else []
    return EventQuestion(
        span.begin_ms,
        span.end_ms,
        ids,
        query.zone_id,
        str(named.get("region", "")),
        str(named.get("scope", "")),
    )


def _newest(
    history: HealthStore, question: EventQuestion, query: DatasetQuery
) -> list[EventValues]:
    """As many as are asked for, if the newest are; else all of at most EVENTS_MAX."""
    by_time = not query.order or query.order[0] == OrderBy("", "datetime", descending=True)
    found: list[EventValues] = []
    for _, same in groupby(_log(history, question, by_time), lambda kept: kept.event.at_ms // 1000):
        if by_time and len(found) >= query.limit:
            break  # after whole seconds: the rest of the order sorts within them
        found += [row for kept in same if _matches(query.where, row := _values(kept.event))]
        _in_time(query)
    return found


def _log(history: HealthStore, question: EventQuestion, any_number: bool) -> Iterator[KeptEvent]:
    """Newest first, a page at a time. Raises QuestionRefused unless `any_number` is fine."""
    if not any_number and history.count(question, EVENTS_MAX + 1) > EVENTS_MAX:
        raise QuestionRefused(
            f"more than {EVENTS_MAX} events: ask for a shorter time range, for one health check, or"
            " for the newest by orderBy: [datetime_DESC]"
        )
    before = None
    while page := history.log(replace(question, before=before, limit=AT_ONCE)):
        yield from page
        if len(page) < AT_ONCE:
            return
        before = page[-1].event.at_ms, page[-1].number


def _counted(
    history: HealthStore, question: EventQuestion, query: DatasetQuery
) -> Iterator[_Counted]:
    wanted = HourQuestion(
        question.since_ms, question.until_ms, question.check_ids, question.zone_id,
        question.region, question.scope, limit=HOURS_MAX + 1,
    )  # fmt: skip
    if not _fits(history, question, wanted):
        where = _hourly(query)
        sums = history.hours(wanted)
        if len(sums) > HOURS_MAX:
            raise QuestionRefused(
                f"more than {HOURS_MAX} hourly sums: ask for a shorter time range, or for one"
                " health check"
            )
        yield from (one for one in map(_of_hour, sums) if _matches(where, one.values))
        return
    for kept in _log(history, question, any_number=True):
        values = _values(kept.event)
        if _matches(query.where, values):
            yield _Counted(values, 1, {name: values[name] for name in _TIMES if values[name]})
        _in_time(query)


def _fits(history: HealthStore, question: EventQuestion, hours: HourQuestion) -> bool:
    """All events are kept, and are few enough to read."""
    if history.count(question, EVENTS_MAX + 1) > EVENTS_MAX:
        return False
    oldest_ms = history.oldest_ms()
    if oldest_ms is None or oldest_ms <= question.since_ms:
        return True
    gone = replace(hours, until_ms=oldest_ms // HOUR_MS * HOUR_MS, limit=1)
    return not (gone.until_ms > gone.since_ms and history.hours(gone))


def _hourly(query: DatasetQuery) -> Where:
    """The filter without its range of time. Raises QuestionRefused where an hour is too coarse."""
    parts = query.where.parts if isinstance(query.where, Every) else (query.where,)
    kept = tuple(part for part in parts if getattr(part, "field", "") != "datetime")
    used = {name for aggregate, name in query.selected if aggregate == "dimensions"}
    used |= {*_ordering(query), *_fields(Every(kept))}
    if finer := sorted(used - _HOURLY):
        raise QuestionRefused(
            f"more than {EVENTS_MAX} events, or events that are kept as hourly sums only: ask for a"
            f" shorter time range, or leave out {', '.join(finer)}"
        )
    return Every(kept)


def _fields(where: Where) -> set[str]:
    if isinstance(where, Comparison):
        return {where.field}
    return {name for part in where.parts for name in _fields(part)}


def _of_hour(one: HourSum) -> _Counted:
    at_s = one.hour_ms // 1000
    values = {
        "datetimeHour": at_s,
        "date": at_s // DAY_S * DAY_S,
        "healthCheckId": one.check_id,
        "healthCheckName": one.name,
        "fqdn": one.fqdn,
        "originIP": one.address,
        "originResponseStatus": one.code,
        "expectedResponseCodes": one.expected,
        "healthStatus": "Healthy" if one.healthy else "Unhealthy",
        "healthChanged": one.changed,
        "failureReason": one.reason,
        "region": one.region,
        "scope": one.scope,
        "sampleInterval": 1,
    }
    times = dict(zip(TIMES, one.times, strict=True))
    return _Counted(values, one.count, {name: times[own] for name, own in _TIMES.items()})


def _in_time(query: DatasetQuery) -> None:
    if monotonic() > query.deadline_s:
        raise SlowAnswer


def _parts(where: Where) -> list[Comparison]:
    if isinstance(where, Comparison):
        return [where]
    return (
        [found for part in where.parts for found in _parts(part)]
        if isinstance(where, Every)
        else []
    )


NO_BEGIN_MS = -(1 << 50)


def _span(where: Where, now_ms: int, limits: DatasetLimits) -> _Span:
    """By default a day. Raises Refused."""
    begin, end = NO_BEGIN_MS, now_ms + 1
    for part in _parts(where):
        if part.field == "datetime" and not isinstance(part.value, list):
            at = int(float(part.value) * 1000)
            begin = (
                max(begin, at + (part.op == "_gt") * 1000)
                if part.op in ("", "_gt", "_geq")
                else begin
            )
            end = (
                min(end, at + (part.op != "_lt") * 1000) if part.op in ("", "_lt", "_leq") else end
            )
    if begin == NO_BEGIN_MS:
        begin = max(0, end - DAY_S * 1000)
    if begin < now_ms - (limits.not_older_than_s + 60) * 1000:
        raise QuestionRefused(f"cannot request data older than {limits.not_older_than_s}s")
    return _Span(begin, end)


def _values(event: CheckEvent) -> EventValues:
    """Times are Unix seconds, as in filters."""
    at_s = event.at_ms // 1000
    return {
        "datetime": at_s,
        **{name: at_s // seconds * seconds for name, seconds in _SECONDS.items()},
        "healthCheckId": event.check_id,
        "healthCheckName": event.name,
        "fqdn": event.fqdn,
        "originIP": event.result.address,
        "originResponseStatus": event.result.code,
        "expectedResponseCodes": event.expected,
        "healthStatus": "Healthy" if event.healthy else "Unhealthy",
        "healthChanged": int(event.changed),
        "failureReason": event.result.reason,
        "region": event.region,
        "scope": event.scope,
        "sampleInterval": 1,
        **{name: getattr(event.result, own) for name, own in _TIMES.items()},
    }


def _matches(where: Where, values: EventValues) -> bool:
    if isinstance(where, Comparison):
        return TEXT_OPERATORS[where.op](values[where.field], where.value)
    results = (_matches(part, values) for part in where.parts)
    return all(results) if isinstance(where, Every) else any(results)


def _raw(found: Sequence[EventValues], query: DatasetQuery) -> list[dict[str, Any]]:
    ordered = _ordered(found, query, lambda row, _aggregate, name: row[name])
    return [
        {name: _shown(name, row[name]) for _, name in query.selected}
        for row in ordered[: query.limit]
    ]


class _Times:
    """Single values as long as there are no sketches, so that quantiles are exact."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.sketch = Sketch()

    def add(self, found: float | Sketch) -> None:
        if isinstance(found, Sketch):
            self.sketch.add(found)
        else:
            self.values.append(found)

    def figure(self, aggregate: str, percent: int = 0) -> float:
        """0 without values."""
        made, values = self.sketch, self.values
        if aggregate == "avg":
            return sum(values) / len(values) if values else made.mean
        if aggregate == "quantiles":
            if values:
                return sorted(values)[max(1, ceil(percent / 100 * len(values))) - 1]
            return made.quantile(percent)
        if aggregate == "max":
            return max(values, default=made.greatest)
        return min(values, default=made.least)


class _Group:
    def __init__(self) -> None:
        self.events = 0
        self.times = {name: _Times() for name in _TIMES}

    def add(self, one: _Counted) -> None:
        self.events += one.events
        for name, found in one.times.items():
            self.times[name].add(found)


def _grouped(found: Iterable[_Counted], query: DatasetQuery) -> list[dict[str, Any]]:
    by = list(
        dict.fromkeys(
            [name for aggregate, name in query.selected if aggregate == "dimensions"]
            + _ordering(query)
        )
    )
    groups: dict[tuple[Any, ...], _Group] = {}
    for one in found:
        key = tuple(one.values[name] for name in by)
        if key not in groups:
            groups[key] = _Group()
        groups[key].add(one)
    figures = [{"of": group, **dict(zip(by, key, strict=True))} for key, group in groups.items()]
    ordered = _ordered(figures, query, _figure)
    return [_nested(group, query) for group in ordered[: query.limit]]


def _ordering(query: DatasetQuery) -> list[str]:
    return [one.name for one in query.order if not one.aggregate and one.name != "count"]


def _figure(group: EventValues, aggregate: str, name: str) -> Any:
    if aggregate:
        of, percent = _QUANTILES.get(name, (name, 0))
        return group["of"].times[of].figure(aggregate, percent)
    return group["of"].events if name == "count" else group[name]


def _nested(group: EventValues, query: DatasetQuery) -> dict[str, Any]:
    shown: dict[str, Any] = {"dimensions": {}, **{name: {} for name in query.dataset.aggregates}}
    for aggregate, name in query.selected:
        if aggregate == "dimensions":
            shown["dimensions"][name] = _shown(name, group[name])
        elif aggregate:
            shown[aggregate][name] = _figure(group, aggregate, name)
        else:
            shown[name] = _figure(group, "", name)
    return shown


def _ordered(
    rows: Iterable[EventValues], query: DatasetQuery, value: Callable[[EventValues, str, str], Any]
) -> list[EventValues]:
    """Sorting is stable, and the log has newest first."""
    found = list(rows)
    for one in reversed(query.order):
        found.sort(key=lambda row: value(row, one.aggregate, one.name), reverse=one.descending)
    return found


def _shown(name: str, value: Any) -> Any:
    if name == "date":
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d}"
    return (
        f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"
        if name.startswith("datetime")
        else value
    )
