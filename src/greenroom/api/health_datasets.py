"""Answers `healthCheckEventsAdaptive` and `...Groups` from the event log. Filter, groups and order
are computed here, over at most EVENTS_MAX events.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import Any, NamedTuple

from greenroom.analytics.graphql.datasets import (
    Comparison,
    Dataset,
    DatasetAnswer,
    DatasetLimits,
    DatasetQuery,
    DatasetRows,
    Every,
    Where,
)
from greenroom.analytics.graphql.room_datasets import TEXT_OPERATORS
from greenroom.analytics.question import QuestionRefused
from greenroom.health.rules.memory import EventQuestion
from greenroom.health.view import HealthView
from greenroom.model.probe import CheckEvent

EVENTS_MAX = 50_000
"""About 50 MB: a day of 30 checks."""

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
    aggregates={"avg": dict.fromkeys(_TIMES, "float64")},
    counted=True,
    limits=_LIMITS,
)

EventValues = Mapping[str, Any]


class _Span(NamedTuple):
    begin_ms: int
    end_ms: int


def health_answers(view: HealthView, now_ms: Callable[[], int]) -> dict[str, DatasetAnswer]:
    def answer(query: DatasetQuery) -> DatasetRows:
        found = [
            values
            for values in map(_values, _events(view, query, now_ms()))
            if _matches(query.where, values)
        ]
        rows = _raw(found, query) if query.dataset.fields else _grouped(found, query)
        return DatasetRows(rows[: query.limit])

    return {HEALTH_EVENTS.name: answer, HEALTH_GROUPS.name: answer}


def _events(view: HealthView, query: DatasetQuery, now_ms: int) -> Sequence[CheckEvent]:
    limits = query.dataset.limits
    span = _span(query.where, now_ms, limits)
    named = {part.field: part.value for part in _parts(query.where) if part.op == ""}
    ids = [str(named["healthCheckId"])] if "healthCheckId" in named else []
    question = EventQuestion(
        span.begin_ms,
        span.end_ms,
        ids,
        query.zone_id,
        str(named.get("region", "")),
        str(named.get("scope", "")),
        limit=EVENTS_MAX,
    )
    found = view.events(question)
    if len(found) >= EVENTS_MAX:
        raise QuestionRefused(
            f"more than {EVENTS_MAX} events: ask for a shorter time range, or for one health check"
        )
    return found


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


def _grouped(found: Sequence[EventValues], query: DatasetQuery) -> list[dict[str, Any]]:
    by = list(
        dict.fromkeys(
            [name for aggregate, name in query.selected if aggregate == "dimensions"]
            + _ordering(query)
        )
    )
    groups: dict[tuple[Any, ...], list[EventValues]] = {}
    for row in found:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    figures = [{"of": rows, **dict(zip(by, key, strict=True))} for key, rows in groups.items()]
    ordered = _ordered(figures, query, _figure)
    return [_nested(group, query) for group in ordered[: query.limit]]


def _ordering(query: DatasetQuery) -> list[str]:
    return [one.name for one in query.order if not one.aggregate and one.name != "count"]


def _figure(group: EventValues, aggregate: str, name: str) -> Any:
    if aggregate == "avg":
        values = [row[name] for row in group["of"] if row[name]]
        return fmean(values) if values else 0.0
    return len(group["of"]) if name == "count" else group[name]


def _nested(group: EventValues, query: DatasetQuery) -> dict[str, Any]:
    shown: dict[str, Any] = {"dimensions": {}, "avg": {}}
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
