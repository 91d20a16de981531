"""Logs: one line per event on standard error, never with a visitor's secret. Tracebacks omit the
values of local variables: the visitor's headers are among them.
"""

import logging
import sys
from collections.abc import Callable
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from greenroom.model.fields import printable
from greenroom.settings.process import Log

SECRET_KEYS = frozenset(
    {"cookie", "set_cookie", "authorization", "proxy_authorization", "ticket", "ticket_id"}
)
"""With a ticket a person could take over a place in line or a session."""

ERRORS_PER_MINUTE = 10

QUIET = {
    "uvicorn.error": logging.ERROR,  # warnings are of what clients send, as often as they like
    "asyncio": logging.WARNING,
    "alembic": logging.WARNING,
}


def set_up_logs(log: Log) -> None:
    shared: list[Any] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        without_secrets,
    ]
    if log.format == "json":
        tracebacks = structlog.processors.ExceptionRenderer(
            structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        )
        rendering: list[Any] = [tracebacks, structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        rendering = [
            without_controls,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), pad_event_to=0, exception_formatter=plain
            ),
        ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(log.level.upper())
    for name, level in QUIET.items():
        logging.getLogger(name).setLevel(max(level, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def leave_logs_to_logging() -> None:
    if not structlog.is_configured():
        structlog.configure(
            processors=[
                structlog.stdlib.filter_by_level,
                without_secrets,
                structlog.processors.format_exc_info,
                structlog.processors.KeyValueRenderer(key_order=["event"]),
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
            cache_logger_on_first_use=False,
        )


def without_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for key in SECRET_KEYS & event.keys():
        event[key] = "(not logged)"
    return event


def without_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Input must not look like another log line, or move a terminal's cursor."""
    return {
        key: printable(value) if isinstance(value, str) and key != "exception" else value
        for key, value in event.items()
    }


class ErrorLog:
    """At most ERRORS_PER_MINUTE: clients cannot fill the disk."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._minute = 0
        self._written = 0
        self._left_out = 0
        self._log = structlog.get_logger("greenroom.errors")

    def __call__(self, error: BaseException) -> None:
        minute = int(self._now_s() // 60)
        if minute != self._minute:
            if self._left_out:
                self._log.error("exceptions_suppressed", count=self._left_out)
            self._minute, self._written, self._left_out = minute, 0, 0
        if self._written >= ERRORS_PER_MINUTE:
            self._left_out += 1
            return
        self._written += 1
        self._log.error("unexpected_exception", exc_info=error)
