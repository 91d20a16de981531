"""Spans as bytes, read by the official protobuf messages; the environment's variables; how they are
sent.
"""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from greenroom.runtime.span_bytes import CLIENT, SERVER, request, span
from greenroom.runtime.span_sender import TIMEOUT_S, SpanSender, pairs, resource, timeout_s

IDS = st.binary(min_size=8, max_size=8)
TIMES = st.integers(0, 2**63)
VALUES = st.one_of(st.text(max_size=300), st.integers(0, 2**40))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(
    st.binary(min_size=16, max_size=16), IDS, st.one_of(st.just(b""), IDS), TEXTS, TIMES, TIMES,
    st.dictionaries(TEXTS, VALUES, max_size=5), st.booleans(), st.booleans(),
)  # fmt: skip
def test_every_field_is_read_as_it_was_written(
    trace_id, span_id, parent_id, name, start_ns, end_ns, attributes, failed, remote
) -> None:
    one = span(
        trace_id, span_id, parent_id, name, SERVER, (start_ns, end_ns), attributes, b"a=b",
        failed=failed, parent_is_remote=remote,
    )  # fmt: skip
    other = span(trace_id, span_id, b"", "origin", CLIENT, (1, 2), {})
    sent = request({"service.name": "x"}, ("greenroom", "1.0"), [one, other])
    (group,) = ExportTraceServiceRequest.FromString(sent).resource_spans
    (scope,) = group.scope_spans
    told = {row.key: row.value.string_value for row in group.resource.attributes}
    assert (told, scope.scope.name, scope.scope.version) == (
        {"service.name": "x"},
        "greenroom",
        "1.0",
    )
    read, last = scope.spans
    assert (read.trace_id, read.span_id, read.parent_span_id) == (trace_id, span_id, parent_id)
    assert (read.name, read.kind, read.trace_state) == (name, 2, "a=b")
    assert (read.start_time_unix_nano, read.end_time_unix_nano) == (start_ns, end_ns)
    found = {
        row.key: getattr(row.value, row.value.WhichOneof("value") or "") for row in read.attributes
    }
    assert found == {
        key: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for key, value in attributes.items()
    }
    assert read.status.code == (2 if failed else 0)
    assert read.flags == (0x301 if remote else 0x101)
    assert (last.name, last.kind, last.parent_span_id) == ("origin", 3, b"")


def test_variables_of_opentelemetry_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=a%2Cb, service.name=no")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    assert resource("1.0") == {
        "service.name": "shop",
        "service.version": "1.0",
        "deployment.environment": "a,b",
    }
    assert pairs("Authorization=Bearer%20x,broken,") == {"Authorization": "Bearer x"}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("2.5", 2.5),
        ("10000", 10.0),
        *((bad, TIMEOUT_S) for bad in ("", "0", "-1", "nan", "inf", "x")),
    ],
)
def test_a_time_limit_that_is_none_is_the_usual_one(
    written: str, found: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", written)
    assert timeout_s() == found


class Collector(BaseHTTPRequestHandler):
    """Answers with the next of `answers`, then 200."""

    answers: ClassVar[list[tuple[int, dict[str, str]]]] = []
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append(f"{self.command} {self.path}")
        status, headers = self.answers.pop(0) if self.answers else (200, {})
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.answers.clear()
    Collector.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def sender(endpoint: str) -> SpanSender[bytes]:
    return SpanSender(endpoint, {}, ("greenroom", "1"), lambda one: one)


def test_a_secret_does_not_follow_a_redirect(collector: str) -> None:
    Collector.answers.append((302, {"Location": "/elsewhere"}))
    one = sender(collector)
    one.send(b"")
    one.close(10)
    assert Collector.asked == ["POST /v1/traces"]


def test_a_collector_says_when_it_wants_spans_again(collector: str) -> None:
    Collector.answers += [(429, {"Retry-After": "0"}), (503, {"Retry-After": "0"})]
    one = sender(collector)
    one.send(b"")
    one.flush()
    assert Collector.asked == ["POST /v1/traces"] * 3
    one.close(10)


@pytest.mark.needs("patching")
def test_what_was_there_before_the_end_is_sent(
    collector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, run = threading.Event(), SpanSender._run

    def late(self: SpanSender[bytes]) -> None:
        gate.wait(10)
        run(self)

    monkeypatch.setattr(SpanSender, "_run", late)
    one = sender(collector)
    one.send(b"")
    one.close(0)
    gate.set()
    one.close(10)
    assert Collector.asked == ["POST /v1/traces"]
