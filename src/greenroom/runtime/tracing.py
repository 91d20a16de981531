"""Traces of requests, sent to an OpenTelemetry collector: a span per request, for its decision and
for the origin, which gets its span's id as `traceparent`.
"""

import os
import re
import time
from collections.abc import Callable
from random import random

from greenroom.decision.verdict import Hold
from greenroom.gateway.request_record import RequestRecord
from greenroom.gateway.request_span import RequestSpan
from greenroom.gateway.wire.request_head import Peer
from greenroom.model.visit import Arrival
from greenroom.runtime.span_bytes import CLIENT, INTERNAL, SERVER, span
from greenroom.runtime.span_sender import SpanSender, resource
from greenroom.settings.process import Tracing

_PARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
"""https://www.w3.org/TR/trace-context/"""

STATE_MAX = 512
PLACES = (1, 10, 100, 1_000, 10_000, 100_000)
CLOSE_S = 3.0
"""How long the end of a process waits until the last spans are sent."""


SAMPLED = 0x1
"""Of the flags of `traceparent`."""


class Tracer:
    def __init__(self, settings: Tracing, version: str, now_s: Callable[[], float]) -> None:
        """`now_s` is the gateway's clock, which spans are measured by."""
        self.settings = settings
        self.share = 1 / settings.one_in
        self._now_s = now_s
        self._sender = SpanSender(
            settings.endpoint, resource(version), ("greenroom", version), spans_of
        )
        self.flush = self._sender.flush

    def begin(self, arrival: Arrival, peer: Peer) -> RequestSpan | None:
        """Only a trusted proxy can ask for a trace. For others the gateway calls this for `share`
        of the requests.
        """
        if peer.trusted:
            if told := _PARENT.fullmatch(arrival.header(b"traceparent") or b""):
                if not int(told[3], 16) & SAMPLED:
                    return None
                trace_id, parent_id = (bytes.fromhex(told[group].decode()) for group in (1, 2))
                state = b",".join(arrival.values(b"tracestate"))
                state = state if len(state) <= STATE_MAX else b""
                return RequestSpan(trace_id, os.urandom(8), os.urandom(8), parent_id, state)
            if random() >= self.share:  # noqa: S311  a sample, no secret
                return None
        ids = os.urandom(32)
        return RequestSpan(ids[:16], ids[16:24], ids[24:], b"", b"")

    def end(self, record: RequestRecord) -> None:
        """Takes the spans of a request that is over, if it is traced."""
        if record.span is not None and record.arrival is not None:
            ends_s = self._now_s()
            self._sender.send((record, ends_s, time.time() - ends_s))

    def close(self, wait_s: float = CLOSE_S) -> None:
        self._sender.close(wait_s)


def spans_of(ended: tuple[RequestRecord, float, float]) -> bytes:
    """The spans of one request; `ended` also has its end and the offset from the gateway's clock to
    Unix time.
    """
    record, ends_s, offset_s = ended
    told, arrival = record.span, record.arrival
    if told is None or arrival is None:
        return b""

    def ns(at_s: float) -> int:
        return int((at_s + offset_s) * 1e9)

    trace_id, own, began_s = told.trace_id, told.span_id, ends_s - record.took_s
    found = span(
        trace_id,
        own,
        told.parent_id,
        arrival.method,
        SERVER,
        (ns(began_s), ns(ends_s)),
        attributes_of(record, arrival),
        told.state,
        failed=record.status >= 500 and record.handled != "hold",
        parent_is_remote=bool(told.parent_id),
    )
    if told.decided_at:
        times = ns(began_s), ns(told.decided_at)
        found += span(trace_id, os.urandom(8), own, "decision", INTERNAL, times, {}, told.state)
    if told.origin_at:
        times = ns(told.origin_at), ns(told.first_byte_at or ends_s)
        found += span(trace_id, told.origin_id, own, "origin", CLIENT, times, {}, told.state)
    return found


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
