"""Lines are written by a thread a few times a second, so a slow disk delays no visitor. Beyond
LINES_MAX they are dropped and counted. A file that logrotate has moved away is opened again.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from logging.handlers import WatchedFileHandler
from urllib.parse import quote

import msgspec
import structlog

from greenroom.gateway.request_record import RequestRecord
from greenroom.settings.process import Log

FLUSH_S = 0.25
LINES_MAX = 50_000
"""10 MB."""

FIELD_MAX = 2_048

log = structlog.get_logger(__name__)
Format = Callable[[RequestRecord, float, bool], str]


def common(record: RequestRecord, now_s: float, queries: bool) -> str:
    """Status 0: the visitor went away first."""
    moment = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now_s))
    return (
        f'{record.client or "-"} - - [{moment}] "{_request_line(record, queries)}" {record.status}'
        f" {record.sent or '-'}"
    )


def combined(record: RequestRecord, now_s: float, queries: bool) -> str:
    referrer = _header(record, b"referer")
    if not queries:
        referrer = referrer.partition("?")[0]
    return (
        f'{common(record, now_s, queries)} "{referrer or "-"}"'
        f' "{_header(record, b"user-agent") or "-"}"'
    )


def as_json(record: RequestRecord, now_s: float, queries: bool) -> str:
    arrival = record.arrival
    line = {
        "time": round(now_s, 3),
        "client": record.client,
        "method": arrival.method if arrival else "",
        "scheme": arrival.scheme if arrival else "",
        "host": arrival.host if arrival else "",
        "path": _path(record, queries),
        "status": record.status,
        "bytes": record.sent,
        "duration_ms": round(record.took_s * 1000, 2),
        "handled": record.handled,
        "room": record.room_id,
        "referrer": _header(record, b"referer").partition("?")[0],
        "user_agent": _header(record, b"user-agent"),
    }
    return msgspec.json.encode(line).decode()


FORMATS: dict[str, Format] = {"common": common, "combined": combined, "json": as_json}


class AccessLog:
    def __init__(self, settings: Log) -> None:
        """Raises OSError when the file cannot be opened."""
        self.settings = settings
        self._format = FORMATS[settings.access]
        self._lines: list[str] = []
        self._dropped = 0
        self._writing: asyncio.Future[None] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._file = (
            WatchedFileHandler(settings.access_file, encoding="utf-8")
            if settings.access_file
            else None
        )

    def observe(self, record: RequestRecord) -> None:
        if len(self._lines) >= LINES_MAX:
            self._dropped += 1
            return
        self._lines.append(self._format(record, time.time(), self.settings.queries))
        if self._due is None and self._writing is None:
            self._due = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._write(self._taken())
        if self._file is not None:
            self._file.close()

    def _taken(self) -> str:
        lines, self._lines = self._lines, []
        dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning("access_log_lines_dropped", count=dropped)
        return "".join(f"{line}\n" for line in lines)

    def _flush(self) -> None:
        self._due = None
        self._writing = asyncio.get_running_loop().run_in_executor(None, self._write, self._taken())
        self._writing.add_done_callback(self._written)

    def _written(self, done: "asyncio.Future[None]") -> None:
        self._writing = None
        error = done.exception()
        if error:
            log.error("access_log_not_written", reason=str(error))
        if self._lines:
            self._due = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._file is None:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        self._file.reopenIfNeeded()
        if stream := self._file.stream:
            stream.write(text)
            stream.flush()


def _request_line(record: RequestRecord, queries: bool) -> str:
    arrival = record.arrival
    return (
        f"{_plain(arrival.method)} {_path(record, queries)} {arrival.version}" if arrival else "-"
    )


def _path(record: RequestRecord, queries: bool) -> str:
    arrival = record.arrival
    if arrival is None:
        return ""
    return _plain(f"{arrival.path}?{arrival.query}" if queries and arrival.query else arrival.path)


def _header(record: RequestRecord, name: bytes) -> str:
    value = record.arrival.header(name) if record.arrival else None
    return _plain(value.decode("latin-1")) if value else ""


def _plain(text: str) -> str:
    return quote(text[:FIELD_MAX], safe=" !#$%&'()*+,-./:;<=>?@[]^_`{|}~")
