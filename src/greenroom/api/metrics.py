"""The metrics of a running greenroom, one row each."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from greenroom.capacity.histogram import BOUNDS_MS, Histogram
from greenroom.configuration.state import (
    AnalyticsState,
    Observed,
    ProcessState,
    RoomState,
    SyncState,
    TracedAnswer,
    TripState,
)
from greenroom.model.room import Room

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class TracedHistogram(NamedTuple):
    histogram: Histogram
    traced: Mapping[int, TracedAnswer]  # the newest by bucket


Sample = tuple[tuple[str, ...], float | TracedHistogram]


@dataclass(frozen=True, slots=True)
class MetricRow:
    """`read` gives samples: the values of `labels`, and the number."""

    name: str
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily] | type[HistogramMetricFamily]
    help: str
    labels: tuple[str, ...]
    read: Callable[[ProcessState], Iterable[Sample]]


def _process(
    name: str, help: str, read: Callable[[ProcessState], float], kind: type = GaugeMetricFamily
) -> MetricRow:
    return MetricRow(f"greenroom_{name}", kind, help, (), lambda state: [((), read(state))])


def _room(
    name: str, help: str, read: Callable[[RoomState], float | None], kind: type = GaugeMetricFamily
) -> MetricRow:
    def samples(state: ProcessState) -> Iterator[Sample]:
        for label, room in _labelled(state):
            value = read(room)
            if value is not None:
                yield (label,), value

    return MetricRow(f"greenroom_room_{name}", kind, help, ("room",), samples)


def _labelled(state: ProcessState) -> Iterator[tuple[str, RoomState]]:
    """Rooms with equal names in two zones get host and path."""
    names = Counter(state.room.name for state in state.rooms)
    for found in state.rooms:
        room = found.room
        yield room.name if names[room.name] == 1 else f"{room.name} ({room.host}{room.path})", found


def _sync(
    name: str, help: str, read: Callable[[SyncState], float | None], kind: type = GaugeMetricFamily
) -> MetricRow:
    """Absent in a process that keeps its own ledgers."""

    def samples(state: ProcessState) -> Iterator[Sample]:
        value = None if state.sync is None else read(state.sync)
        if value is not None:
            yield (), value

    return MetricRow(f"greenroom_sync_{name}", kind, help, (), samples)


def _trips(name: str, help: str, read: Callable[[TripState], float]) -> MetricRow:
    return MetricRow(
        f"greenroom_redis_{name}_total",
        CounterMetricFamily,
        help,
        (),
        lambda state: [((), read(state.sync.trips))] if state.sync and state.sync.trips else [],
    )


def _analytics(
    name: str, help: str, read: Callable[[AnalyticsState], float], kind: type = GaugeMetricFamily
) -> MetricRow:
    return MetricRow(
        f"greenroom_analytics_{name}",
        kind,
        help,
        (),
        lambda s: [((), read(s.analytics))] if s.analytics else [],
    )


def _long_wait(state: RoomState) -> float | None:
    estimate = state.figures.estimate
    return None if estimate is None or not estimate.most_s else estimate.most_s


def _median_wait(state: RoomState) -> float | None:
    return None if state.figures.estimate is None else state.figures.estimate.p50_s


def _requests(state: ProcessState) -> Iterator[Sample]:
    for label, room in _labelled(state):
        for result, count in sorted(room.requests.items()):
            yield (label, result), count


def _settings(state: RoomState) -> Room:
    return state.now.room if state.now else state.room


def _active_limit(state: RoomState) -> int:
    return state.now.active_limit if state.now else state.room.total_active_users


METRICS: tuple[MetricRow, ...] = (
    MetricRow(
        "greenroom_build_info",
        GaugeMetricFamily,
        "always 1; the version is in the label",
        ("version",),
        lambda s: [((s.version,), 1)],
    ),
    _process(
        "compiled",
        "1 where the compiled wheel is installed, 0 where Python reads all of the source",
        lambda state: state.compiled,
    ),
    _process(
        "clock_ahead_seconds",
        "greenroom's time, by which events begin, minus the system clock's; far from 0 after that"
        " clock was set or the machine slept",
        lambda state: state.clock_ahead_ms / 1000,
    ),
    _process(
        "ready",
        "1 while the process is ready for visitors, as in /readyz",
        lambda state: state.ready,
    ),
    _process(
        "config_valid",
        "0 while the configuration on disk is invalid and the last good one stays in use",
        lambda s: not s.config.problems,
    ),
    _process(
        "config_pending_changes",
        "changed settings that take effect only after a restart",
        lambda state: len(state.config.pending),
    ),
    _process(
        "config_reloads_total",
        "configuration reloads that succeeded",
        lambda state: state.config.reloads,
        CounterMetricFamily,
    ),
    _process(
        "config_reload_failures_total",
        "configuration reloads that were refused",
        lambda s: s.config.failures,
        CounterMetricFamily,
    ),
    _process(
        "config_loaded_timestamp_seconds",
        "time when the running configuration was read",
        lambda state: state.config.loaded_ms / 1000,
    ),
    _process(
        "config_store_reachable",
        "0 while the configuration store does not answer and the last good configuration stays"
        " in use",
        lambda s: s.store.reachable,
    ),
    _process(
        "config_store_valid",
        "0 while the newest revision is invalid and the last good one stays in use",
        lambda s: not s.store.problems,
    ),
    _process(
        "config_unusable",
        "rooms, zones, lists and the like that cannot be used and are held or left out, as in"
        " /readyz",
        lambda state: len({fault.pointer for fault in state.faults}),
    ),
    _process(
        "config_store_revision",
        "revision of the configuration store in use",
        lambda s: max(0, s.store.revision),
    ),
    _process(
        "config_store_taken_total",
        "revisions loaded while running",
        lambda s: s.store.taken,
        CounterMetricFamily,
    ),
    _process(
        "config_store_refusals_total",
        "revisions that were refused",
        lambda s: s.store.refusals,
        CounterMetricFamily,
    ),
    _process(
        "config_store_loaded_timestamp_seconds",
        "time when the running revision was loaded",
        lambda s: s.store.loaded_ms / 1000,
    ),
    _sync(
        "lock_held",
        "1 while this process syncs its data center with the coordinator",
        lambda sync: sync.syncing,
    ),
    _sync(
        "leader",
        "1 while this process is the coordinator of all data centers",
        lambda sync: sync.leader,
    ),
    _sync(
        "cut_off",
        "1 while the coordinator has not answered for 4 s; absent in processes that do not sync",
        lambda sync: sync.cut_off if sync.syncing else None,
    ),
    _sync(
        "answered_seconds_ago",
        "time since the last answer of the coordinator; absent in processes that do not sync",
        lambda sync: sync.answered_s if sync.syncing else None,
    ),
    _sync(
        "batches_total",
        "sync batches sent to the coordinator",
        lambda sync: sync.batches,
        CounterMetricFamily,
    ),
    _sync(
        "batches_unanswered_total",
        "sync batches that got no answer in time",
        lambda sync: sync.unanswered,
        CounterMetricFamily,
    ),
    _sync(
        "answers_total",
        "sync batches answered as the coordinator",
        lambda sync: sync.answers,
        CounterMetricFamily,
    ),
    MetricRow(
        "greenroom_sync_data_center_silent_seconds",
        GaugeMetricFamily,
        "time since the coordinator last heard from each data center; only in the process that"
        " holds the leader lease",
        ("data_center",),
        lambda state: [
            ((name,), seconds)
            for name, seconds in (state.sync.silent_s if state.sync else {}).items()
        ],
    ),
    _trips(
        "questions",
        "ledger questions sent to Redis for visitors' requests",
        lambda trips: trips.questions,
    ),
    _trips(
        "trips",
        "round trips to Redis for visitors; one trip carries many questions",
        lambda trips: trips.trips,
    ),
    _trips(
        "trips_failed",
        "round trips to Redis that were not answered in time",
        lambda trips: trips.failed,
    ),
    _trips(
        "trips_seconds", "total duration of the answered round trips", lambda trips: trips.seconds
    ),
    _analytics(
        "minutes_waiting",
        "closed minutes that wait to be written",
        lambda found: found.waiting_minutes,
    ),
    _analytics(
        "minutes_dropped_total",
        "closed minutes given up because they could not be written in time",
        lambda found: found.dropped_minutes,
        CounterMetricFamily,
    ),
    _analytics(
        "parts_written_total",
        "minutes of rooms written",
        lambda found: found.written_parts,
        CounterMetricFamily,
    ),
    _analytics(
        "failures_total",
        "attempts to write or keep analytics that failed",
        lambda found: found.failures,
        CounterMetricFamily,
    ),
    _analytics(
        "write_seconds_total",
        "time spent writing, in the thread of analytics",
        lambda found: found.written_s,
        CounterMetricFamily,
    ),
    _analytics(
        "healthy",
        "0 while analytics cannot be written; visitors are not affected",
        lambda found: not found.problem,
    ),
    _room(
        "active_users",
        "visitors with a living session, of this data center",
        lambda room: room.figures.here.active,
    ),
    _room(
        "waiting_users",
        "visitors in line who have sent their ticket back, of this data center",
        lambda room: room.figures.here.waiting,
    ),
    _room(
        "admitted_total",
        "visitors let in since the start",
        lambda room: room.requests.get("admitted", 0),
        CounterMetricFamily,
    ),
    _room(
        "admitted_last_minute",
        "visitors let in during the last 60 seconds, in this data center",
        lambda room: room.figures.here.last_minute,
    ),
    _room(
        "sessions_ended_timestamp_seconds",
        "time when an operator last ended all sessions of the room; absent: never",
        lambda room: room.room.sessions_ended_ms / 1000 or None,
    ),
    _room(
        "permits_unused",
        "permits held and not yet used, of this data center",
        lambda room: room.figures.here.permits_unused,
    ),
    _room(
        "estimated_wait_seconds",
        "median wait of a visitor who joins the line now; absent while unknown",
        _median_wait,
    ),
    _room(
        "estimated_wait_p95_seconds",
        "95th percentile of the estimated wait of visitors who join the line now; absent while unknown",
        _long_wait,
    ),
    _room(
        "active_users_ratio",
        "share of the limit of active users that is taken, of all data centers together",
        lambda room: room.figures.active / _active_limit(room),
    ),
    _room(
        "new_users_ratio",
        "share of the limit of new users per minute that was used in the last 60 seconds, of all data centers together",
        lambda room: room.figures.last_minute / _settings(room).new_users_per_minute,
    ),
    _room(
        "total_active_users_limit", "configured limit", lambda room: room.room.total_active_users
    ),
    _room(
        "new_users_per_minute_limit",
        "configured limit",
        lambda room: room.room.new_users_per_minute,
    ),
    _room("journal_bytes", "size of the journal on disk", lambda room: room.figures.journal_bytes),
    _room(
        "storage_failed",
        "1 while admissions are stopped because the ledger cannot be written",
        lambda room: room.figures.storage_failed,
    ),
    _room(
        "newcomers_confirmed",
        "1 while new visitors are let in only after their ticket came back",
        lambda room: room.figures.confirms,
    ),
    _room(
        "origin_healthy",
        "1 while the health checks on the origin find it healthy, 0 while unhealthy; absent when"
        " unknown",
        lambda room: {"healthy": 1, "unhealthy": 0}.get(room.origin),
    ),
    _room(
        "held_for_origin",
        "1 while new visitors are held because the origin is unhealthy",
        lambda room: room.now is not None and room.now.origin_down,
    ),
    _room(
        "capacity_target_sessions",
        "active visitors that the origin can take, where the capacity of the room is not fixed",
        lambda room: room.capacity.sessions if room.capacity else None,
    ),
    _room(
        "capacity_limit",
        "limit of active visitors that applies now, where the room follows its origin",
        lambda room: (
            room.now.active_limit
            if room.now is not None and room.now.capacity is not None
            else None
        ),
    ),
    _room(
        "held_for_slow_origin",
        "1 while new visitors are held because the origin is too slow or fails",
        lambda room: room.now is not None and room.now.origin_slow,
    ),
    MetricRow(
        "greenroom_health_check_healthy",
        GaugeMetricFamily,
        "1 while a health check finds its origin healthy, 0 while unhealthy; absent when unknown or"
        " suspended",
        ("check", "zone"),
        lambda state: [
            ((name, zone), says == "healthy")
            for name, zone, says in state.health.checks
            if says in ("healthy", "unhealthy")
        ],
    ),
    _process(
        "health_checks", "health checks of the installation", lambda state: len(state.health.checks)
    ),
    _process(
        "health_leader",
        "1 while this process runs the health checks",
        lambda state: state.health.leads,
    ),
    _process(
        "health_agents",
        "probe agents that report to this process",
        lambda state: state.health.agents,
    ),
    _process(
        "health_agents_lost",
        "probe agents that have missed three reports",
        lambda state: state.health.lost,
    ),
    _process(
        "health_probes_total",
        "probes made by this process",
        lambda state: state.health.probes,
        CounterMetricFamily,
    ),
    _process(
        "health_probes_running",
        "probes of this process under way",
        lambda state: state.health.running,
    ),
    _process(
        "health_probes_skipped_total",
        "probes left out because the one before had not ended",
        lambda state: state.health.skipped,
        CounterMetricFamily,
    ),
    _process(
        "health_probes_impossible_total",
        "probes that this machine could not make (no file descriptor, no memory)",
        lambda state: state.health.impossible,
        CounterMetricFamily,
    ),
    _process(
        "health_probe_delay_seconds",
        "greatest delay of a probe in the last minute",
        lambda state: state.health.late_ms / 1000,
    ),
    _process(
        "notifications_waiting",
        "messages of all processes that are not delivered yet",
        lambda state: state.notifications.waiting,
    ),
    _process(
        "notifications_oldest_waiting_seconds",
        "age of the oldest message that is due and not delivered yet; 0 when there is none",
        lambda state: state.notifications.oldest_s,
    ),
    MetricRow(
        "greenroom_room_document_seconds",
        HistogramMetricFamily,
        "time from a request for a document to the first byte of the origin's answer, with the time"
        " in line for a connection; documents of admitted visitors, answered below 500; only of the"
        " built-in gateway",
        ("room",),
        lambda state: [
            ((label,), TracedHistogram(room.documents.answered, room.documents.traced))
            for label, room in _labelled(state)
            if room.documents
        ],
    ),
    _room(
        "documents_failed_total",
        "documents of admitted visitors that the origin answered with 5xx or not at all",
        lambda room: room.documents.failed if room.documents else None,
        CounterMetricFamily,
    ),
    MetricRow(
        "greenroom_room_requests_total",
        CounterMetricFamily,
        "requests to a covered host and path, by result",
        ("room", "result"),
        _requests,
    ),
)


def gateway_rows(help: Iterable[tuple[str, str]], gauges: frozenset[str]) -> tuple[MetricRow, ...]:
    return tuple(_gateway_row(name, text, name in gauges) for name, text in help)


def _gateway_row(name: str, help: str, is_gauge: bool) -> MetricRow:
    kind: type = GaugeMetricFamily if is_gauge else CounterMetricFamily

    def samples(state: ProcessState) -> Iterator[Sample]:
        return (((), value) for counted, value in state.gateway if counted == name)

    return MetricRow(
        f"greenroom_gateway_{name}" + ("" if is_gauge else "_total"), kind, help, (), samples
    )


def _buckets(found: TracedHistogram) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    """Cumulated, by upper bound in seconds."""
    bounds = [*(str(bound / 1000) for bound in BOUNDS_MS), "+Inf"]
    counted = zip(bounds, accumulate(found.histogram.counts), strict=True)
    return [
        (*bucket, _exemplar(found.traced[place])) if place in found.traced else bucket
        for place, bucket in enumerate(counted)
    ]


def _exemplar(answer: TracedAnswer) -> Exemplar:
    labels = {"trace_id": answer.trace_id, "span_id": answer.span_id}
    return Exemplar(labels, answer.seconds, answer.at_s)


class Exposition(Collector):
    def __init__(self, observed: Observed, rows: Iterable[MetricRow]) -> None:
        self._observed = observed
        self._rows = tuple(rows)
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def describe(self) -> list[Metric]:
        # Nothing up front: no state may be taken before the start is over.
        return []

    def collect(self) -> Iterator[Metric]:
        state = self._observed.state()
        for row in self._rows:
            family = row.kind(row.name, row.help, labels=row.labels)
            for labels, value in row.read(state):
                if isinstance(family, HistogramMetricFamily):
                    if isinstance(value, TracedHistogram):
                        sum_s = value.histogram.sum_ms / 1000
                        family.add_metric(labels, _buckets(value), sum_s)
                elif not isinstance(value, TracedHistogram):
                    family.add_metric(labels, value)
            yield family

    def families(self) -> Iterable[Metric]:
        """With those of the process."""
        return self._registry.collect()

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """With its media type. Only OpenMetrics has exemplars."""
        if "application/openmetrics-text" in accept:
            text: bytes = openmetrics.generate_latest(self._registry)  # type: ignore[no-untyped-call]
            return text, openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(self._registry), TEXT_TYPE
