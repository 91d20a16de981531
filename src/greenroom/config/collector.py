"""Checks the address of an OpenTelemetry collector, of `[tracing]` and `[metrics]`."""

from importlib.util import find_spec
from urllib.parse import urlsplit

from greenroom.errors import Problem

EXPORTER = "opentelemetry.exporter"


def collector_problems(pointer: str, endpoint: str) -> list[Problem]:
    if not endpoint:
        return []
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or "@" in parts.netloc:
        return [
            Problem(
                pointer,
                "must be http:// or https:// with a host, without user, query and fragment, not"
                f" {endpoint[:60]!r}",
            )
        ]
    if pointer.startswith("metrics.") and (
        find_spec("opentelemetry") is None or find_spec(EXPORTER) is None
    ):
        return [Problem(pointer, "needs greenroom's wheel with [otel]")]
    return []
