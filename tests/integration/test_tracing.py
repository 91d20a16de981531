"""Traces and metrics of a real greenroom, as a collector gets them over OTLP."""

import gzip
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.conftest import Running, StartGreenroom, eventually

from greenroom.config_file.addresses import collector_problems
from greenroom.errors import Problem
from greenroom.runtime.span_sender import BATCH

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ROOMS = """
origin = "{origin}"
trusted_proxies = [{proxies}]
[tracing]
endpoint = "{collector}"
one_in = {one_in}
[metrics]
endpoint = "{collector}"
every_seconds = 1
[[rooms]]
name = "main"
host = "shop.example.com"
total_active_users = 1
new_users_per_minute = 100
confirm_newcomers = false
"""


class Collector(BaseHTTPRequestHandler):
    """Keeps the spans and the last metrics that were sent."""

    metrics: ClassVar[dict[str, Any]] = {}
    spans: ClassVar[list[Any]] = []
    resources: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path == "/v1/metrics":
            (group,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
            self.metrics.update((one.name, one) for one in group.scope_metrics[0].metrics)
        else:
            assert self.path == "/v1/traces"
            self._keep(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _keep(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            told = {one.key: one.value.string_value for one in group.resource.attributes}
            self.resources.append(told)
            for scope in group.scope_spans:
                self.spans.extend(scope.spans)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.spans.clear()
    Collector.metrics.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def attributes(span: Any) -> dict[str, str | int]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def spans(running: Running) -> dict[str, list[Any]]:
    """By name, after the end of greenroom, which sends what is left."""
    assert running.stop() == 0
    found: dict[str, list[Any]] = {}
    for span in Collector.spans:
        found.setdefault(span.name, []).append(span)
    return found


def started(
    greenroom: StartGreenroom, origin: Any, collector: str, one_in: int = 1, proxies: str = ""
) -> Running:
    return greenroom.config(
        ROOMS.format(origin=origin.url, collector=collector, one_in=one_in, proxies=proxies)
    )


def exported_as_scraped(running: Running) -> None:
    def told() -> bool:
        documents = Collector.metrics.get("greenroom_room_document_seconds")
        return bool(documents and documents.histogram.data_points[0].count)

    eventually(told, "metrics with the visit are sent")
    text = running.ask("/metrics").text
    scraped = {
        name: kind
        for line in text.splitlines()
        if line.startswith("# TYPE ") and re.search(rf"^{line.split()[2]}[ {{_]", text, re.M)
        for _, _, name, kind in [line.split()]
    }
    sent = {name: one.WhichOneof("data") for name, one in Collector.metrics.items()}
    kinds = {"counter": "sum", "gauge": "gauge", "histogram": "histogram"}
    wanted = {name: kinds[kind] for name, kind in scraped.items() if "estimated" not in name}
    assert wanted.items() <= sent.items()
    (point,) = Collector.metrics["greenroom_room_document_seconds"].histogram.data_points
    assert sum(point.bucket_counts) == point.count == 1
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
    assert [one.value.string_value for one in point.attributes] == ["main"]
    (ready,) = Collector.metrics["greenroom_ready"].gauge.data_points
    assert ready.as_double == 1
    assert Collector.metrics["greenroom_gateway_requests_total"].sum.is_monotonic


def told_to(answer: Any, name: str) -> list[str]:
    """Values of a header as the origin got it."""
    return [value for key, value in json.loads(answer.text)["headers"] if key.lower() == name]


def test_a_visitor_inside_and_one_who_waits(greenroom, origin, collector) -> None:
    running = started(greenroom, origin, collector)
    forged = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b"}
    inside = running.visitor().get("/page?secret=1", headers=forged)
    assert running.visitor().get("/").waiting
    exported_as_scraped(running)
    asks = {"Accept": "application/openmetrics-text"}
    exemplars = re.findall(
        r'# {span_id="(\w+)",trace_id="(\w+)"}',
        running.control_visitor().get("/metrics", headers=asks).text,
    )
    found = spans(running)
    served, waited = sorted(found["GET"], key=lambda span: span.start_time_unix_nano)
    asked, decided = found["origin"], found["decision"]
    assert len(asked) == 1
    assert exemplars == [(served.span_id.hex(), served.trace_id.hex())]
    assert {one.parent_span_id for one in decided} == {served.span_id, waited.span_id}
    assert asked[0].parent_span_id == served.span_id
    assert served.parent_span_id == b""
    assert told_to(inside, "traceparent") == [
        f"00-{served.trace_id.hex()}-{asked[0].span_id.hex()}-01"
    ]
    assert served.trace_id.hex() != TRACE, "a visitor does not choose the trace"
    assert told_to(inside, "tracestate") == []
    assert served.start_time_unix_nano <= asked[0].start_time_unix_nano
    assert asked[0].end_time_unix_nano <= served.end_time_unix_nano
    assert attributes(served) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "server.address": "shop.example.com",
        "url.path": "/page",
        "url.scheme": "http",
        "greenroom.verdict": "forward",
        "greenroom.room": attributes(waited)["greenroom.room"],
    }
    assert attributes(waited)["greenroom.verdict"] == "hold"
    assert waited.status.code == 0, "waiting is no error"
    assert Collector.resources[-1]["service.name"] == "greenroom"


def test_a_trace_of_a_trusted_proxy_goes_on(greenroom, origin, collector) -> None:
    running = started(greenroom, origin, collector, 1_000_000, '"127.0.0.1"')
    visitor = running.visitor()
    sampled = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b"}
    answer = visitor.get("/", headers=sampled)
    ended = visitor.get("/", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert told_to(ended, "traceparent") == [f"00-{TRACE}-{PARENT}-00"]
    for wrong in (f"00-{'0' * 32}-{PARENT}-01", f"ff-{TRACE}-{PARENT}-01", "00-x-y-01", ""):
        visitor.get("/", headers={"traceparent": wrong})
    found = spans(running)
    (served,), (asked,) = found["GET"], found["origin"]
    assert (served.trace_id.hex(), served.parent_span_id.hex()) == (TRACE, PARENT)
    assert told_to(answer, "traceparent") == [f"00-{TRACE}-{asked.span_id.hex()}-01"]
    assert told_to(answer, "tracestate") == ["a=b"]


def test_a_collector_that_never_answers_delays_nobody(greenroom, origin, monkeypatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
    with socket.socket() as hanging:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen()
        running = started(greenroom, origin, f"http://127.0.0.1:{hanging.getsockname()[1]}")
        visitor = running.visitor()
        took = []
        for _ in range(BATCH + 20):
            began = time.monotonic()
            assert visitor.get("/").status == 200
            took.append(time.monotonic() - began)
        assert max(took) < 5
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 40


def test_it_is_switched_on_and_off_by_a_reload(greenroom, origin, collector) -> None:
    running = started(greenroom, origin, "")
    visitor = running.visitor()
    assert told_to(visitor.get("/"), "traceparent") == []
    text = ROOMS.format(origin=origin.url, collector=collector, one_in=1, proxies="")
    (greenroom.folder / "greenroom.toml").write_text(text)
    eventually(lambda: told_to(visitor.get("/"), "traceparent"), "requests are traced")
    (greenroom.folder / "greenroom.toml").write_text(text.replace(collector, ""))
    eventually(lambda: not told_to(visitor.get("/"), "traceparent"), "they are no longer")
    assert spans(running)["origin"]


@pytest.mark.parametrize(
    "endpoint",
    [
        "collector:4318",
        "ftp://a",
        "http://",
        "http://u:p@a",
        "http://a?b",
        "http://a:0",
        "http://a:x",
    ],
)
def test_an_address_that_is_none_is_named(endpoint: str) -> None:
    (problem,) = collector_problems("tracing.endpoint", endpoint)
    assert isinstance(problem, Problem)
    assert problem.pointer == "tracing.endpoint"
    assert repr(endpoint) in str(problem)
