"""Traces of requests, sent to an OpenTelemetry collector. A request that is traced has a span of its
own, one for the decision and one for the origin, whose id the origin gets as `traceparent`.

The library's thread sends them; when the collector does not keep up, spans are dropped. Credentials
for the collector and attributes of the process come from OTEL_EXPORTER_OTLP_HEADERS and
OTEL_RESOURCE_ATTRIBUTES, which the library reads. Only imported where there are traces.
"""

import os
import random
import re
import threading
import time
from collections.abc import Callable

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from greenroom.decision.verdict import Hold
from greenroom.gateway.request_record import RequestRecord
from greenroom.gateway.request_span import RequestSpan
from greenroom.gateway.wire.request_head import Peer
from greenroom.model.visit import Arrival
from greenroom.settings.process import Tracing

_PARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
"""https://www.w3.org/TR/trace-context/"""

STATE_MAX = 512
PLACES = (1, 10, 100, 1_000, 10_000, 100_000)
CLOSE_S = 3.0
"""How long the end of a process waits until the last spans are sent."""


class Tracer:
    def __init__(self, settings: Tracing, version: str, now_s: Callable[[], float]) -> None:
        """`now_s` is the gateway's clock, which spans are measured by."""
        self.settings = settings
        self._share = 1 / settings.one_in
        self._now_s = now_s
        self._processor = BatchSpanProcessor(
            OTLPSpanExporter(f"{settings.endpoint.rstrip('/')}/v1/traces")
        )
        name = os.environ.get("OTEL_SERVICE_NAME", "greenroom")
        self._resource = Resource.create({"service.name": name, "service.version": version})
        self._scope = InstrumentationScope("greenroom", version)

    def begin(self, arrival: Arrival, peer: Peer) -> RequestSpan | None:
        """Visitors cannot say that they are traced: only a trusted proxy's word counts."""
        told = _PARENT.fullmatch(arrival.header(b"traceparent") or b"") if peer.trusted else None
        if told is None:
            if random.random() >= self._share:  # noqa: S311  a sample, no secret
                return None
            return RequestSpan(os.urandom(16), os.urandom(8), os.urandom(8), b"", b"")
        if not int(told[3], 16) & TraceFlags.SAMPLED:
            return None
        trace_id, parent_id = (bytes.fromhex(told[group].decode()) for group in (1, 2))
        state = b",".join(arrival.values(b"tracestate"))
        state = state if len(state) <= STATE_MAX else b""
        return RequestSpan(trace_id, os.urandom(8), os.urandom(8), parent_id, state)

    def end(self, record: RequestRecord) -> None:
        """Takes the spans of a request that is over, if it is traced."""
        span, arrival = record.span, record.arrival
        if span is None or arrival is None:
            return
        ends = self._now_s()
        began, own = ends - record.took_s, span.span_id
        if span.decided_at:
            times = began, span.decided_at
            self._take(span, "decision", SpanKind.INTERNAL, os.urandom(8), own, times)
        if span.origin_at:
            times = span.origin_at, span.first_byte_at or ends
            self._take(span, "origin", SpanKind.CLIENT, span.origin_id, own, times)
        self._take(
            span,
            arrival.method,
            SpanKind.SERVER,
            own,
            span.parent_id,
            (began, ends),
            attributes_of(record, arrival),
            failed=record.status >= 500 and record.handled != "hold",
        )

    def close(self, wait_s: float = CLOSE_S) -> None:
        """Sends what is left; a collector that hangs is not waited for."""
        last = threading.Thread(target=self._processor.shutdown, daemon=True)
        last.start()
        last.join(wait_s)

    def _take(
        self,
        span: RequestSpan,
        name: str,
        kind: SpanKind,
        span_id: bytes,
        parent_id: bytes,
        times: tuple[float, float],
        attributes: dict[str, str | int] | None = None,
        *,
        failed: bool = False,
    ) -> None:
        offset = time.time() - self._now_s()
        start, end = (int((at + offset) * 1e9) for at in times)
        self._processor.on_end(
            ReadableSpan(
                name,
                context=_context(span, span_id),
                parent=_context(span, parent_id) if parent_id else None,
                resource=self._resource,
                attributes=attributes,
                kind=kind,
                status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
                start_time=start,
                end_time=end,
                instrumentation_scope=self._scope,
            )
        )


def attributes_of(record: RequestRecord, arrival: Arrival) -> dict[str, str | int]:
    """By OpenTelemetry's names where it has some. Nothing tells who the visitor is."""
    found: dict[str, str | int] = {
        "http.request.method": arrival.method,
        "http.response.status_code": record.status,
        "server.address": arrival.host,
        "url.path": arrival.path,
        "url.scheme": arrival.scheme,
        "greenroom.verdict": record.handled,
    }
    if record.room_id:
        found["greenroom.room"] = record.room_id
    verdict = record.verdict
    if isinstance(verdict, Hold) and verdict.held and verdict.held.position:
        found["greenroom.place"] = place_bucket(verdict.held.position)
    return found


def place_bucket(place: int) -> str:
    """1, 2-10, 11-100 and so on."""
    low = 0
    for high in PLACES:
        if place <= high:
            return "1" if high == 1 else f"{low + 1}-{high}"
        low = high
    return f"{low + 1}+"


def _context(span: RequestSpan, span_id: bytes) -> SpanContext:
    return SpanContext(
        int.from_bytes(span.trace_id),
        int.from_bytes(span_id),
        is_remote=span_id == span.parent_id,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
