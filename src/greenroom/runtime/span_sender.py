"""Posts spans to an OpenTelemetry collector from its own thread, and drops them when the collector
is too slow. Honours OpenTelemetry's environment variables: headers, certificates, compression,
timeout, process attributes.
"""

import contextlib
import gzip
import os
import ssl
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

import structlog

from greenroom.runtime.span_bytes import request

BATCH, QUEUE_MAX, EVERY_S = 512, 2_048, 5.0
"""Requests, each with up to three spans."""
TIMEOUT_S, TIMEOUT_MOST_S, RETRIES = 10.0, 600.0, 3
RETRY_AFTER_MOST_S = 30.0
ANSWER_MOST = 65_536
RETRIED = frozenset((408, 429, 502, 503, 504))

log = structlog.get_logger(__name__)

T = TypeVar("T")


def variable(name: str) -> str:
    """Of traces, or else of all signals: `OTEL_EXPORTER_OTLP_...`."""
    found = os.environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}", "")
    return found or os.environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")


def pairs(text: str) -> dict[str, str]:
    """`a=b,c=d`, percent-encoded."""
    found = (one.partition("=") for one in text.split(",") if "=" in one)
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in found}


def resource(version: str) -> dict[str, str]:
    told = {"service.name": "greenroom", "service.version": version}
    told |= pairs(os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    if name := os.environ.get("OTEL_SERVICE_NAME"):
        told["service.name"] = name
    return told


def _tls() -> ssl.SSLContext:
    found = ssl.create_default_context(cafile=variable("CERTIFICATE") or None)
    if chain := variable("CLIENT_CERTIFICATE"):
        found.load_cert_chain(chain, variable("CLIENT_KEY") or None)
    return found


def timeout_s() -> float:
    """Seconds, as in the official exporter for Python; more than TIMEOUT_MOST_S are milliseconds."""
    with contextlib.suppress(ValueError):
        found = float(variable("TIMEOUT") or TIMEOUT_S)
        found = found / 1_000 if found > TIMEOUT_MOST_S else found
        if 0 < found <= TIMEOUT_MOST_S:
            return found
    return TIMEOUT_S


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Headers may hold a secret, and a redirected request is a GET without spans."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=_tls()))


class SpanSender(Generic[T]):
    def __init__(
        self,
        endpoint: str,
        resource: Mapping[str, str],
        scope: tuple[str, str],
        encode: Callable[[T], bytes],
    ) -> None:
        """`encode` makes the spans of one item, in the thread."""
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._headers = {"Content-Type": "application/x-protobuf", **pairs(variable("HEADERS"))}
        self._gzip = variable("COMPRESSION").lower() == "gzip"
        if self._gzip:
            self._headers["Content-Encoding"] = "gzip"
        self._opener: urllib.request.OpenerDirector | None = None
        self._timeout_s = timeout_s()
        self._resource, self._scope, self._encode = resource, scope, encode
        self._queue: deque[T] = deque(maxlen=QUEUE_MAX)
        self._wake = threading.Event()
        self._sending = threading.Lock()
        self._closing = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="spans")
        self._thread.start()

    def send(self, what: T) -> None:
        """Queues it; of more than QUEUE_MAX the oldest are dropped."""
        self._queue.append(what)
        if len(self._queue) == BATCH:
            self._wake.set()

    def flush(self) -> None:
        """Sends what is there, in this thread."""
        with self._sending:
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
                spans = map(self._encode, batch)
                self._post(request(self._resource, self._scope, spans))

    def close(self, wait_s: float) -> None:
        """Sends what is left; a collector that hangs is not waited for."""
        self._closing.set()
        self._wake.set()
        self._thread.join(wait_s)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._wake.wait(EVERY_S)
            self._wake.clear()
            closing = self._closing.is_set()  # before the flush: it sends what there was by then
            try:
                self.flush()
            except Exception as error:  # a batch is lost, the thread is not
                self._failed(type(error).__name__)  # its text may have the value of a header

    def _post(self, body: bytes) -> None:
        if self._gzip:
            body = gzip.compress(body, 1)
        asked = urllib.request.Request(self._url, body, self._headers)  # noqa: S310  checked when read
        for attempt in range(RETRIES):
            pause_s = 2.0**attempt
            try:
                self._opener = self._opener or _opener()
                with self._opener.open(asked, timeout=self._timeout_s) as answer:
                    answer.read(ANSWER_MOST)
            except urllib.error.HTTPError as error:
                error.close()
                reason = f"status {error.code}"
                if error.code not in RETRIED:
                    break
                wanted = error.headers.get("Retry-After", "")
                if wanted.isdecimal() and len(wanted) < 10:
                    pause_s = min(float(wanted), RETRY_AFTER_MOST_S)
            except (OSError, HTTPException) as error:
                reason = str(getattr(error, "reason", error)) or type(error).__name__
            else:
                self._failing = False
                return
            if attempt + 1 == RETRIES or self._closing.wait(pause_s):
                break
        self._failed(reason)

    def _failed(self, reason: str) -> None:
        if not self._failing:
            self._failing = True
            log.warning("spans_not_sent", reason=reason)
