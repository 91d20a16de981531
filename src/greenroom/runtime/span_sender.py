"""Posts spans to an OpenTelemetry collector, from a thread of its own. When the collector does not
keep up, spans are dropped. OpenTelemetry's environment variables count: headers, certificates,
compression, time limit, and attributes of the process.
"""

import gzip
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar
from urllib.parse import unquote

import structlog

from greenroom.runtime.span_bytes import request

BATCH, QUEUE_MAX, EVERY_S = 512, 2_048, 5.0
"""Requests, each with up to three spans."""
TIMEOUT_S, RETRIES = 10.0, 3
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


def _timeout_s() -> float:
    try:
        return float(variable("TIMEOUT") or TIMEOUT_S)
    except ValueError:
        return TIMEOUT_S


class SpanSender(Generic[T]):
    def __init__(
        self,
        endpoint: str,
        resource: Mapping[str, str],
        scope: tuple[str, str],
        encode: Callable[[T], bytes],
    ) -> None:
        """`encode` gives all spans of one thing that is sent; the thread calls it."""
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._headers = {"Content-Type": "application/x-protobuf", **pairs(variable("HEADERS"))}
        self._gzip = variable("COMPRESSION").lower() == "gzip"
        if self._gzip:
            self._headers["Content-Encoding"] = "gzip"
        self._tls: ssl.SSLContext | None = None
        self._timeout_s = _timeout_s()
        self._resource, self._scope, self._encode = resource, scope, encode
        self._queue: deque[T] = deque(maxlen=QUEUE_MAX)
        self._wake = threading.Event()
        self._sending = threading.Lock()
        self._closed = self._failing = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="spans")
        self._thread.start()

    def send(self, what: T) -> None:
        """Later, and the newest of too many."""
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
        self._closed = True
        self._wake.set()
        self._thread.join(wait_s)

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(EVERY_S)
            self._wake.clear()
            try:
                self.flush()
            except Exception as error:  # a batch is lost, the thread is not
                self._failed(f"{type(error).__name__}: {error}")

    def _post(self, body: bytes) -> None:
        if self._gzip:
            body = gzip.compress(body, 1)
        if self._tls is None and self._url.startswith("https"):
            self._tls = _tls()
        asked = urllib.request.Request(self._url, body, self._headers)  # noqa: S310  checked when read
        for attempt in range(RETRIES):
            pause_s = 2.0**attempt
            try:
                with urllib.request.urlopen(  # noqa: S310
                    asked, timeout=self._timeout_s, context=self._tls
                ) as answer:
                    answer.read()
            except urllib.error.HTTPError as error:
                error.close()
                reason = f"status {error.code}"
                if error.code not in RETRIED:
                    break
            except OSError as error:
                reason = str(getattr(error, "reason", error))
            else:
                self._failing = False
                return
            if self._closed or attempt + 1 == RETRIES:
                break
            time.sleep(pause_s)  # in the thread of the sender
        self._failed(reason)

    def _failed(self, reason: str) -> None:
        if not self._failing:
            self._failing = True
            log.warning("spans_not_sent", reason=reason)
