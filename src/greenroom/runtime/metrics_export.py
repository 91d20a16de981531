"""The metrics of /metrics, sent to an OpenTelemetry collector by the same names (`[metrics]`)."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from prometheus_client.core import Metric

from greenroom.api.metrics import Exposition
from greenroom.settings.process import MetricsExport

if TYPE_CHECKING:  # only loaded where metrics are sent
    from opentelemetry.sdk.metrics.export import MetricExporter, MetricsData

LOOK_S = 5.0
"""How often a process that sends nothing looks whether a reload has switched it on."""


async def export_metrics(
    exposition: Callable[[], Exposition], settings: Callable[[], MetricsExport], version: str
) -> None:
    """Endless. A collector that hangs costs one waiting thread; missed exports are not repeated,
    because counters are totals.
    """
    while not settings().endpoint:
        await asyncio.sleep(LOOK_S)
    found, source = settings(), exposition()
    exporter, resource = _exporter(found.endpoint), _resource(version)
    since_ns = time.time_ns()
    while settings() == found:
        families = list(source.families())
        sent = in_thread(
            exporter.export, metrics_data(families, resource, since_ns, time.time_ns())
        )
        await asyncio.gather(sent, asyncio.sleep(found.every_seconds))


def in_thread(call: Callable[..., Any], *arguments: Any) -> "asyncio.Future[None]":
    """In a daemon thread, so that a hanging collector does not delay the end of the process."""
    loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def finish(error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error else done.set_result(None)

    def work() -> None:
        try:
            call(*arguments)
            error = None
        except BaseException as raised:
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, error)

    threading.Thread(target=work, daemon=True, name="metrics-export").start()
    return done


def _exporter(endpoint: str) -> "MetricExporter":
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter(f"{endpoint.rstrip('/')}/v1/metrics")


def _resource(version: str) -> Any:
    """`service.instance.id` keeps processes apart, whose counters are each their own."""
    from opentelemetry.sdk.resources import Resource

    told = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME", "greenroom"),
        "service.version": version,
    }
    if "service.instance.id" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        told["service.instance.id"] = f"{socket.gethostname()}:{os.getpid()}"
    return Resource.create(told)


def metrics_data(
    families: Iterable[Metric], resource: Any, since_ns: int, now_ns: int
) -> "MetricsData":
    """Counters and histograms are totals since `since_ns`."""
    from opentelemetry.sdk.metrics.export import AggregationTemporality as Temporality
    from opentelemetry.sdk.metrics.export import (
        Gauge,
        Histogram,
        Metric,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    found = []
    for family in families:
        data: Gauge | Histogram | Sum
        if family.type == "histogram":
            data = Histogram(_histograms(family, since_ns, now_ns), Temporality.CUMULATIVE)
        else:
            points = [
                NumberDataPoint(dict(sample.labels), since_ns, now_ns, float(sample.value))
                for sample in family.samples
            ]
            counts = family.type == "counter"
            data = Sum(points, Temporality.CUMULATIVE, True) if counts else Gauge(points)
        if data.data_points:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found.append(Metric(name, family.documentation, "", data))
    scope = ScopeMetrics(InstrumentationScope("greenroom"), found, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _histograms(family: Metric, since_ns: int, now_ns: int) -> list[Any]:
    """Prometheus counts a bucket with all lower ones, OpenTelemetry each by itself."""
    from opentelemetry.sdk.metrics.export import HistogramDataPoint

    unknown: Any = None  # smallest and greatest: left out
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
        if sample.name.endswith("_bucket"):
            buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    return [
        HistogramDataPoint(
            dict(labels),
            since_ns,
            now_ns,
            int(rows[-1][1]),
            sums[labels],
            [int(upto - before) for (_, upto), before in zip(rows, (0, *(n for _, n in rows)))],  # noqa: B905
            [bound for bound, _ in rows[:-1]],
            unknown,
            unknown,
        )
        for labels, rows in buckets.items()
    ]
