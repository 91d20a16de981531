"""Figures about a room's origin, pushed by a collector or by the application."""

import zlib
from collections.abc import Callable
from typing import Annotated, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from greenroom.capacity.exported import (
    BODY_MAX,
    Exported,
    FiguresRefused,
    of_otlp,
    of_prometheus_text,
)
from greenroom.configuration.dependencies import Edit, RoomPath
from greenroom.configuration.rooms import room_of
from greenroom.configuration.state import Observed
from greenroom.web.dependencies import JsonBody
from greenroom.web.envelope import answered_bare
from greenroom.web.openapi import documented
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.routing import Depends, Query, Router

router = Router(tags=["waiting rooms"])


def _of_protobuf(body: bytes, metric: str) -> dict[str, Exported]:
    try:
        from google.protobuf.json_format import MessageToJson  # type: ignore[import-untyped]
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
            ExportMetricsServiceRequest,
        )
    except ImportError:
        raise FiguresRefused(
            "application/x-protobuf needs greenroom[otel] here; application/json does not"
        ) from None
    try:
        request = ExportMetricsServiceRequest.FromString(body)
    except DecodeError as error:
        raise FiguresRefused(f"the body is no OTLP metrics request: {error}") from None
    return of_otlp(MessageToJson(request).encode(), metric)


FORMATS: dict[str, Callable[[bytes, str], dict[str, Exported]]] = {
    "application/json": of_otlp,
    "application/x-protobuf": _of_protobuf,
    "text/plain": of_prometheus_text,
    "application/openmetrics-text": of_prometheus_text,
}

_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/json": {"schema": {"type": "object"}},
        "application/x-protobuf": {"schema": {"type": "string", "format": "binary"}},
        "text/plain": {"schema": {"type": "string"}},
    },
}


@router.post(
    "/zones/{zone_id}/waiting_rooms/{waiting_room_id}/capacity/figures",
    **documented("", change=True) | {"body": _BODY},
)
async def push_figures(
    edit: Edit,
    request: Request,
    body: Annotated[bytes, Depends(JsonBody(BODY_MAX))],
    room: RoomPath,
    metric: Annotated[
        str, Query(max_length=200, description="Name of the histogram, if it is another one.")
    ] = "",
) -> Response:
    """Send figures about the origin of a room with `capacity_metrics` push, an extension: an OTLP
    metrics request (JSON or protobuf) or Prometheus text, with a histogram of server latencies.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMATS:
        raise Refused(
            ApiFault(Code.BAD_HEADERS, f"Content-Type: must be one of {', '.join(FORMATS)}")
        )
    packed = request.headers.get("content-encoding", "identity").lower()

    def read() -> dict[str, Exported]:
        return FORMATS[kind](_unpacked(body, packed), metric)

    known = await run_in_threadpool(lambda: edit.service.look(lambda known: known))
    entry = room_of(known, *room)
    observed: Observed = request.app.state.observed
    try:
        # a body of a megabyte may take a hundred while it is read
        figures = await request.app.state.figures.run(read)
        await observed.push_figures(entry.record, figures)
    except FiguresRefused as error:
        raise Refused(ApiFault(Code.BAD_BODY, str(error))) from None
    return answered_bare()


def _unpacked(body: bytes, packed: str) -> bytes:
    if packed == "identity":
        return body
    if packed != "gzip":
        raise FiguresRefused("Content-Encoding: must be gzip or identity")
    unzip = zlib.decompressobj(wbits=31)
    try:
        text = unzip.decompress(body, BODY_MAX)
    except zlib.error as error:
        raise FiguresRefused(f"the body is not gzip: {error}") from None
    if unzip.unconsumed_tail or not unzip.eof or unzip.unused_data:
        raise FiguresRefused(
            f"the body is cut off, followed by more, or larger than {BODY_MAX} bytes"
        )
    return text
