"""Middleware of the API: request ids, log lines, and an envelope around internal errors."""

import re
import secrets
import time
from http import HTTPStatus

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.web.envelope import broken, refused

log = structlog.get_logger("greenroom.api")

CALLER = "greenroom.caller"

AGENT_REPORTS = "/probe_agents/"

READING = frozenset({"GET", "HEAD", "OPTIONS"})

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Front:
    """Never logs bodies, headers or query strings: secrets may be in them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
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
            await self._app(scope, receive, marked)
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
            path=scope["path"],
            status=status,
            took_ms=took_ms,
            caller=scope.get(CALLER, "anonymous"),
        )
