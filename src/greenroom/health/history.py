from collections.abc import Sequence
from math import ceil
from typing import Any

from greenroom.health.rules.memory import EventQuestion
from greenroom.health.service import HealthService
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import CheckEvent
from greenroom.web.api_schema import ApiSchema, computed
from greenroom.web.api_shapes import Json, Shown
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.time_format import milliseconds
from greenroom.web.time_format import moment as written

SPAN_MS = 24 * 3_600_000

SAMPLE = 10_000
"""Newest events that percentiles are computed from."""

PERCENTILES = (50, 75, 95, 99)
TIMES = ("tcp_ms", "tls_ms", "ttfb_ms", "rtt_ms")
PHASE_TIMES = ("dns_ms", *TIMES[:2], "request_ms", *TIMES[2:])

_TEXT: Json = {"type": "string"}
_TIME: Json = {"type": "string", "format": "date-time"}
_NUMBER: Json = {"type": "number"}
_COUNT: Json = {"type": "integer"}


def _object(properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


CHECK_EVENT = ApiSchema(
    (
        computed("time", "when the probe began", Shown(_TIME)),
        computed(
            "status",
            "Healthy or Unhealthy",
            Shown({"type": "string", "enum": ["Healthy", "Unhealthy"]}),
        ),
        computed(
            "changed", "this event changed the status of the check", Shown({"type": "boolean"})
        ),
        computed("failure_reason", "why the probe failed; empty when it did not", Shown(_TEXT)),
        computed(
            "region", "region of the agent, or `Global` for all of them together", Shown(_TEXT)
        ),
        computed(
            "scope",
            "`agent`: one probe; `overall`: all of them",
            Shown({"type": "string", "enum": ["agent", "overall"]}),
        ),
        computed("agent", "name of the agent", Shown(_TEXT)),
        computed("address", "address that was connected to", Shown(_TEXT)),
        computed(
            "expected_codes",
            "codes that would have been right, when the code was wrong",
            Shown(_TEXT),
        ),
        computed("code", "code of the answer; 0: there was none", Shown(_COUNT)),
        computed("dns_ms", "time to look the name up", Shown(_NUMBER)),
        computed("tcp_ms", "time to connect after that", Shown(_NUMBER)),
        computed("tls_ms", "time of the TLS handshake after that", Shown(_NUMBER)),
        computed("request_ms", "from the connection until the request was sent", Shown(_NUMBER)),
        computed("ttfb_ms", "from the connection to the first byte", Shown(_NUMBER)),
        computed(
            "rtt_ms",
            "from the connection to the end of the body, of which up to 4 MiB are read",
            Shown(_NUMBER),
        ),
        computed("tries", "tries of the probe", Shown(_COUNT)),
    )
)

_SPREAD = _object({f"p{percent}": _NUMBER for percent in PERCENTILES})
FIGURES = ApiSchema(
    (
        computed("since", "begin of the span", Shown(_TIME)),
        computed("until", "end of the span", Shown(_TIME)),
        computed(
            "regions",
            "figures of each region; `Global` are those of all regions together",
            Shown(
                {
                    "type": "array",
                    "items": _object(
                        {
                            "region": _TEXT,
                            "events": _COUNT,
                            "uptime": {"type": ["number", "null"]},
                            "failures": {"type": "object", "additionalProperties": _COUNT},
                            "latency": _object(
                                {name: {**_SPREAD, "type": ["object", "null"]} for name in TIMES}
                            ),
                        }
                    ),
                }
            ),
        ),
        computed(
            "days",
            "each day of up to 90, all regions together",
            Shown(
                {
                    "type": "array",
                    "items": _object(
                        {"day": _TEXT, "uptime": _NUMBER, "events": _COUNT, "rtt_ms": _NUMBER}
                    ),
                }
            ),
        ),
    )
)


def span(since: str | None, until: str | None, now_ms: int) -> tuple[int, int]:
    """The last day by default. Raises Refused."""
    end = now_ms + 1 if until is None else milliseconds(until)
    begin = (end or now_ms) - SPAN_MS if since is None else milliseconds(since)
    faults = [
        ApiFault(
            Code.BAD_QUERY, f"{name}: must be a time such as 2030-01-01T00:00:00Z, not {text!r:.60}"
        )
        for name, text, found in (("since", since, begin), ("until", until, end))
        if found is None
    ]
    if faults:
        raise Refused(*faults)
    return max(0, begin or 0), end or 0


def show(event: CheckEvent) -> Json:
    result = event.result
    return CHECK_EVENT.show(
        {
            "time": written(event.at_ms),
            "status": "Healthy" if event.healthy else "Unhealthy",
            "changed": event.changed,
            "failure_reason": result.reason,
            "region": event.region,
            "scope": event.scope,
            "agent": event.agent,
            "address": result.address,
            "expected_codes": event.expected,
            "code": result.code,
            **{name: getattr(result, name) for name in PHASE_TIMES},
            "tries": result.tries,
        }
    )


def figures(view: HealthService, check: HealthCheck, begin: int, end: int) -> Json:
    failures: dict[str, dict[str, int]] = {}
    for region, _scope, reason, count in view.history.counts(check.id, begin, end):
        failures.setdefault(region, {})[reason] = failures.get(region, {}).get(reason, 0) + count
    timed: dict[str, list[CheckEvent]] = {}
    for event in view.history.events(EventQuestion(begin, end, [check.id], limit=SAMPLE)):
        timed.setdefault(event.region, []).append(event)
    days = view.history.uptimes([check.id], written(max(0, end - 90 * SPAN_MS))[:10])
    return FIGURES.show(
        {
            "since": written(begin),
            "until": written(end),
            "regions": [
                _region(region, reasons, timed.get(region, []))
                for region, reasons in sorted(failures.items())
            ],
            "days": [
                {
                    "day": day.day,
                    "uptime": round(day.good / day.total, 6),
                    "events": day.total,
                    "rtt_ms": day.rtt_ms,
                }
                for day in days
            ],
        }
    )


def _region(region: str, reasons: dict[str, int], found: Sequence[CheckEvent]) -> Json:
    total, good = sum(reasons.values()), reasons.get("", 0)
    latency = {
        name: spread(
            [value for event in found if event.healthy and (value := getattr(event.result, name))]
        )
        for name in TIMES
    }
    return {
        "region": region,
        "events": total,
        "uptime": round(good / total, 6) if total else None,
        "failures": {reason: count for reason, count in reasons.items() if reason},
        "latency": latency,
    }


def spread(values: Sequence[float]) -> dict[str, Any] | None:
    """Every percentile is a measured value; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return {
        f"p{percent}": ordered[ceil(percent / 100 * len(ordered)) - 1] for percent in PERCENTILES
    }
