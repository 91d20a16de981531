"""Checks `[tracing]`."""

from importlib.util import find_spec
from urllib.parse import urlsplit

from greenroom.errors import Problem
from greenroom.settings.process import Tracing

EXPORTER = "opentelemetry.exporter"


def tracing_problems(tracing: Tracing) -> list[Problem]:
    endpoint = tracing.endpoint
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
                "tracing.endpoint",
                "must be http:// or https:// with a host, without user, query and fragment, not"
                f" {endpoint[:60]!r}",
            )
        ]
    if find_spec("opentelemetry") is None or find_spec(EXPORTER) is None:
        return [Problem("tracing.endpoint", "needs greenroom's wheel with [otel]")]
    return []
