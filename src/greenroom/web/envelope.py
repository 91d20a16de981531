"""The published envelope of responses: success or errors around a result."""

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.web.refusals import (
    CODES,
    ApiFault,
    Code,
    Refused,
)

JSON = "application/json"


NOTICE = 1000


def answered(
    result: Any, info: Mapping[str, Any] | None = None, messages: Sequence[str] = ()
) -> Response:
    """`info` is the `result_info` of lists; `messages` are for people."""
    notices = [{"code": NOTICE, "message": message} for message in messages]
    body = {"success": True, "errors": [], "messages": notices, "result": result}
    return Response(
        msgspec.json.encode(body if info is None else body | {"result_info": info}), media_type=JSON
    )


def answered_bare() -> Response:
    return Response(
        msgspec.json.encode({"success": True, "errors": [], "messages": []}), media_type=JSON
    )


def refused(refusal: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """The status is never 2xx, because clients look at nothing else."""
    body = {
        "success": False,
        "errors": [_error(fault) for fault in refusal.faults],
        "messages": [],
        "result": None,
    }
    return Response(
        msgspec.json.encode(body), refusal.status, headers=dict(headers or {}), media_type=JSON
    )


def _error(fault: ApiFault) -> dict[str, Any]:
    error: dict[str, Any] = {"code": int(fault.code), "message": fault.message}
    return error | ({"source": {"pointer": fault.pointer}} if fault.pointer else {})


def broken(error: Exception) -> Refused:
    if isinstance(error, (StorageFailed, InvalidConfig)):
        return Refused(
            ApiFault(
                Code.UNAVAILABLE,
                "the configuration store is not available at the moment; nothing was changed",
            )
        )
    return Refused(
        ApiFault(
            Code.UNEXPECTED, "internal error; the log has it under the CF-Ray of this response"
        )
    )


def no_route(status: int, method: str, path: str) -> Refused:
    if status == CODES[Code.NO_METHOD].status:
        return Refused(ApiFault(Code.NO_METHOD, f"Method {method} is not available for that URI."))
    return Refused(
        ApiFault(
            Code.NO_OBJECT,
            f"Could not route to {path[:200]}, perhaps your object identifier is invalid?",
        ),
        ApiFault(Code.NO_ROUTE, "No route for that URI"),
    )


# Middleware of the API: request ids, log lines, and an envelope around internal errors.

log = structlog.get_logger("greenroom.api")

CALLER = "greenroom.caller"

AGENT_REPORTS = "/probe_agents/"

READING = frozenset({"GET", "HEAD", "OPTIONS"})

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Front:
    """Never logs bodies, headers or query strings: secrets may be in them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        ray = secrets.token_hex(8)
        request_id = next(
            (
                value
                for name, value in scope["headers"]
                if name == b"x-request-id" and _REQUEST_ID.fullmatch(value)
            ),
            b"",
        )
        marks = [
            (b"cf-ray", ray.encode()),
            (b"x-request-id", request_id or ray.encode()),
            (b"cache-control", b"no-store"),
        ]
        begun = time.monotonic()
        status = 0

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *marks]
            await send(message)

        try:
            await self.app(scope, receive, marked)
        except Exception as error:
            log.error(
                "api_request_failed",
                ray=ray,
                reason=str(error),
                exc_info=not isinstance(error, (StorageFailed, InvalidConfig)),
            )
            if not status:
                await refused(broken(error))(scope, receive, marked)
        took_ms = round((time.monotonic() - begun) * 1000, 1)
        routine = scope["method"] in READING or (
            AGENT_REPORTS in scope["path"] and status == HTTPStatus.OK
        )
        (log.debug if routine else log.info)(
            "api_request",
            ray=ray,
            method=scope["method"],
            path=scope["path"][:200],
            status=status,
            took_ms=took_ms,
            caller=scope.get(CALLER, "anonymous"),
        )
