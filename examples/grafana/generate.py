"""Writes the dashboards beside this file: `python examples/grafana/generate.py`.

They read the recording rules of ../prometheus/recording.yml and the metrics of
docs/reference/metrics.md.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
SOURCE = {"type": "prometheus", "uid": "${source}"}
COLUMNS = 24
HEIGHTS = {"stat": 4, "timeseries": 8, "table": 8}


class Panel(NamedTuple):
    title: str
    queries: dict[str, str]
    """Legend -> PromQL."""
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    help: str = ""


def stat(title: str, query: str, unit: str = "short", help: str = "") -> Panel:
    return Panel(title, {title: query}, unit, "stat", 4, help)


ROOM = '{room=~"$room"}'

SALE = (
    stat("Active", f"greenroom:room_active_users:sum{ROOM}"),
    stat("Waiting", f"greenroom:room_waiting_users:sum{ROOM}"),
    stat("Admitted in the last minute", f"greenroom:room_admitted_last_minute:sum{ROOM}"),
    stat(
        "Estimated wait",
        f"greenroom:room_estimated_wait_seconds:max{ROOM}",
        "s",
        "Median for a visitor who joins the line now; no value while nobody waits or it is unknown.",
    ),
    stat("Requests to origins that fail", "greenroom:gateway_failed:ratio_rate5m", "percentunit"),
    stat("Time to the origin's answer", "greenroom:origin_wait_seconds:mean5m", "s"),
    Panel(
        "Active visitors and their limit",
        {
            "active, {{room}}": f"greenroom:room_active_users:sum{ROOM}",
            "limit, {{room}}": f"max by (room) (greenroom_room_total_active_users_limit{ROOM})",
        },
    ),
    Panel("Waiting", {"{{room}}": f"greenroom:room_waiting_users:sum{ROOM}"}),
    Panel(
        "Admitted in the last minute and the limit",
        {
            "admitted, {{room}}": f"greenroom:room_admitted_last_minute:sum{ROOM}",
            "limit, {{room}}": f"max by (room) (greenroom_room_new_users_per_minute_limit{ROOM})",
        },
    ),
    Panel(
        "Estimated wait",
        {
            "median, {{room}}": f"greenroom:room_estimated_wait_seconds:max{ROOM}",
            "p95, {{room}}": f"greenroom:room_estimated_wait_p95_seconds:max{ROOM}",
        },
        "s",
    ),
    Panel(
        "Requests by result",
        {"{{result}}": f"sum by (result) (greenroom:room_requests:rate1m{ROOM})"},
        "reqps",
    ),
    Panel(
        "Answers of origins",
        {
            status: f"sum(rate(greenroom_gateway_origin_{status}_total[$__rate_interval]))"
            for status in ("2xx", "3xx", "4xx", "5xx")
        },
        "reqps",
    ),
)

OPERATIONS = (
    stat("Processes ready", "sum(greenroom_ready)"),
    stat("Processes down", 'count(up{job="greenroom"} == 0) or vector(0)'),
    stat("Requests", "greenroom:gateway_requests:rate1m", "reqps"),
    stat("Open connections", "sum(greenroom_gateway_connections_open)"),
    stat("Exceptions in an hour", "sum(increase(greenroom_gateway_errors_total[1h]))"),
    stat("Parts of the configuration unusable", "max(greenroom_config_unusable)"),
    Panel(
        "Requests",
        {
            name: f"sum(rate(greenroom_gateway_{name}_total[$__rate_interval]))"
            for name in ("forwarded", "answered", "refused", "failed")
        },
        "reqps",
    ),
    Panel(
        "Connections",
        {
            "visitors": "sum(greenroom_gateway_connections_open)",
            "origins": "sum(greenroom_gateway_origin_connections_open)",
            "tunnels": "sum(greenroom_gateway_tunnels_open)",
        },
    ),
    Panel(
        "CPU", {"{{instance}}": "rate(process_cpu_seconds_total[$__rate_interval])"}, "percentunit"
    ),
    Panel("Memory", {"{{instance}}": "process_resident_memory_bytes"}, "bytes"),
    Panel(
        "Redis: time of a trip",
        {
            "{{instance}}": "rate(greenroom_redis_trips_seconds_total[$__rate_interval])"
            " / rate(greenroom_redis_trips_total[$__rate_interval])"
        },
        "s",
    ),
    Panel(
        "Silence of data centers",
        {"{{data_center}}": "greenroom_sync_data_center_silent_seconds"},
        "s",
    ),
    Panel(
        "Bytes",
        {
            "to origins": "sum(rate(greenroom_gateway_bytes_in_total[$__rate_interval]))",
            "to visitors": "sum(rate(greenroom_gateway_bytes_out_total[$__rate_interval]))",
        },
        "Bps",
    ),
    Panel(
        "Analytics: minutes waiting to be written",
        {"{{instance}}": "greenroom_analytics_minutes_waiting"},
    ),
)

HEALTH = (
    stat("Checks", "max(greenroom_health_checks)"),
    stat("Unhealthy", "count(greenroom_health_check_healthy == 0) or vector(0)"),
    stat("Probe agents", "max(greenroom_health_agents)"),
    stat("Agents lost", "max(greenroom_health_agents_lost)"),
    stat("Probes", "sum(rate(greenroom_health_probes_total[$__rate_interval]))", "reqps"),
    stat("Rooms held for their origin", "sum(max by (room) (greenroom_room_held_for_origin))"),
    Panel("Health of each check", {"{{check}}": "max by (check) (greenroom_health_check_healthy)"}),
    Panel("Delay of probes", {"{{instance}}": "greenroom_health_probe_delay_seconds"}, "s"),
    Panel(
        "Probes left out",
        {
            "the one before ran": "sum(increase(greenroom_health_probes_skipped_total[$__rate_interval]))",
            "this machine could not": "sum(increase(greenroom_health_probes_impossible_total[$__rate_interval]))",
        },
    ),
    Panel("Notifications waiting", {"messages": "max(greenroom_notifications_waiting)"}),
)

DASHBOARDS = {
    "sale": ("greenroom: a sale", SALE),
    "operations": ("greenroom: operations", OPERATIONS),
    "health-checks": ("greenroom: health checks", HEALTH),
}


def dashboard(name: str) -> dict[str, Any]:
    """The JSON model that Grafana imports."""
    title, panels = DASHBOARDS[name]
    shown, x, y = [], 0, 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > COLUMNS:
            x, y = 0, y + HEIGHTS[panels[number - 2].kind]
        shown.append(_panel(number, panel, x, y))
        x += panel.width
    return {
        "uid": f"greenroom-{name}",
        "title": title,
        "tags": ["greenroom"],
        "schemaVersion": 39,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), *([_rooms()] if name == "sale" else [])]},
        "panels": shown,
    }


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "title": panel.title,
        "description": panel.help,
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": HEIGHTS[panel.kind]},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(65 + at), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for at, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _rooms() -> dict[str, Any]:
    return {
        "name": "room",
        "label": "Room",
        "type": "query",
        "datasource": SOURCE,
        "query": "label_values(greenroom_room_active_users, room)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }


def text(name: str) -> str:
    return json.dumps(dashboard(name), indent=1) + "\n"


if __name__ == "__main__":
    for name in DASHBOARDS:
        (HERE / f"{name}.json").write_text(text(name))
