"""The rules and dashboards in examples, with Prometheus: every alert fires when it should, and every
panel shows something.
"""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from admission_world import small_room
from ports import free_port
from redis_world import RedisServer

from greenroom.outbound import Guard, OutboundPolicy
from greenroom.runtime.prometheus import PrometheusFigures

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RULES, DASHBOARDS = EXAMPLES / "prometheus", EXAMPLES / "grafana"
REFERENCE = EXAMPLES.parent / "docs" / "reference" / "metrics.md"

FIRES: dict[str, tuple[str, str]] = {
    "GreenroomDown": ('up{job="greenroom",instance="a"}', "0+0x60"),
    "GreenroomNotReady": ("greenroom_ready", "0+0x60"),
    "GreenroomAdmissionsStopped": ('greenroom_room_storage_failed{room="r"}', "1+0x60"),
    "GreenroomLineStandsStill": ('greenroom_room_waiting_users{room="r"}', "5+0x60"),
    "GreenroomOriginUnhealthy": ('greenroom_room_origin_healthy{room="r"}', "0+0x60"),
    "GreenroomOriginFails": ("greenroom_gateway_failed_total", "0+10x60"),
    "GreenroomExceptions": ("greenroom_gateway_errors_total", "0+1x60"),
    "GreenroomConnectionsRefused": ("greenroom_gateway_connections_refused_total", "0+1x60"),
    "GreenroomCutOff": ('greenroom_sync_cut_off{instance="a"}', "1+0x60"),
    "GreenroomDataCenterSilent": (
        'greenroom_sync_data_center_silent_seconds{data_center="b"}',
        "0+60x60",
    ),
    "GreenroomRedisFails": ("greenroom_redis_trips_failed_total", "0+1x60"),
    "GreenroomLongWait": ('greenroom_room_estimated_wait_p95_seconds{room="r"}', "4000+0x60"),
    "GreenroomTicketsLost": (
        'greenroom_room_requests_total{room="r",result="ticket_lost"}',
        "0+1x60",
    ),
    "GreenroomConfigurationRefused": ("greenroom_config_store_valid", "0+0x60"),
    "GreenroomConfigStoreUnreachable": ("greenroom_config_store_reachable", "0+0x60"),
    "GreenroomAnalyticsNotWritten": ("greenroom_analytics_healthy", "0+0x60"),
    "GreenroomNotificationsLate": ("greenroom_notifications_oldest_waiting_seconds", "400+0x60"),
    "GreenroomHealthAgentLost": ("greenroom_health_agents_lost", "1+0x60"),
    "GreenroomClockSet": ("greenroom_clock_ahead_seconds", "-60+0x60"),
}
"""Alert -> the series that makes it fire, a value a minute."""

WELL = {
    'up{job="greenroom",instance="a"}': "1+0x60",
    "greenroom_ready": "1+0x60",
    'greenroom_room_storage_failed{room="r"}': "0+0x60",
    'greenroom_room_waiting_users{room="r"}': "0+0x60",
    'greenroom_room_admitted_total{room="r"}': "0+0x60",
    'greenroom_room_origin_healthy{room="r"}': "1+0x60",
    "greenroom_gateway_forwarded_total": "0+100x60",
    "greenroom_gateway_failed_total": "0+1x60",
    "greenroom_gateway_errors_total": "3+0x60",
    "greenroom_gateway_connections_refused_total": "3+0x60",
    'greenroom_sync_cut_off{instance="a"}': "0+0x60",
    'greenroom_sync_data_center_silent_seconds{data_center="b"}': "1+0x60",
    "greenroom_redis_trips_failed_total": "3+0x60",
    'greenroom_room_estimated_wait_p95_seconds{room="r"}': "600+0x60",
    'greenroom_room_requests_total{room="r",result="ticket_lost"}': "3+0x60",
    "greenroom_config_valid": "1+0x60",
    "greenroom_config_store_valid": "1+0x60",
    "greenroom_config_unusable": "0+0x60",
    "greenroom_config_store_reachable": "1+0x60",
    "greenroom_analytics_healthy": "1+0x60",
    "greenroom_notifications_oldest_waiting_seconds": "3+0x60",
    "greenroom_health_agents_lost": "0+0x60",
    "greenroom_clock_ahead_seconds": "0+0x60",
}


def promtool(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def firing(series: dict[str, str], alerts: list[str]) -> dict[str, Any]:
    """A test of promtool: with these series, exactly these alerts fire after 40 minutes."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "40m",
                "exp_samples": [
                    {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts
                ],
            }
        ],
    }


def test_each_alert_fires_for_what_it_names_and_none_when_all_is_well(tmp_path: Path) -> None:
    rules = [str(RULES / name) for name in ("recording.yml", "alerts.yml")]
    promtool("check", "rules", *rules)
    named = re.findall(r"- alert: (\w+)", (RULES / "alerts.yml").read_text())
    assert sorted(named) == sorted(FIRES)
    tests = [firing(WELL, [])]
    tests += [firing({**WELL, name: values}, [alert]) for alert, (name, values) in FIRES.items()]
    file = tmp_path / "alerts_test.yml"  # every JSON document is YAML
    file.write_text(json.dumps({"rule_files": rules, "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", str(file))


def dashboards() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))}


def queries() -> Iterator[tuple[str, str]]:
    """What each panel asks, as Grafana sends it with all rooms chosen."""
    for name, dashboard in dashboards().items():
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$room", ".*").replace("$__rate_interval", "4s")
                yield f"{name}: {panel['title']}: {target['legendFormat']}", query


def test_rules_and_dashboards_name_metrics_that_exist() -> None:
    text = "".join((RULES / name).read_text() for name in ("recording.yml", "alerts.yml"))
    used = re.findall(r"\bgreenroom_\w+", text + " ".join(query for _, query in queries()))
    known = set(re.findall(r"`(greenroom_\w+)`", REFERENCE.read_text()))
    groups = set(re.findall(r"- name: (\w+)", text))
    assert set(used) - groups <= known


def test_the_dashboards_are_as_their_generator_writes_them() -> None:
    text = "import generate, json; print(json.dumps({n: generate.text(n) for n in generate.DASHBOARDS}))"
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=DASHBOARDS, capture_output=True, check=True
    )
    written = {path.stem: path.read_text() for path in sorted(DASHBOARDS.glob("*.json"))}
    assert json.loads(done.stdout) == written


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Any]:
    """Starts Prometheus with the rules, for this greenroom; gives its address."""
    running: list[subprocess.Popen[bytes]] = []

    def start(target: tuple[str, int]) -> str:
        settings = (RULES / "prometheus.yml").read_text()
        settings = settings.replace("15s", "1s").replace("127.0.0.1:9090", "{}:{}".format(*target))
        for name in ("recording.yml", "alerts.yml"):
            settings = settings.replace(name, str(RULES / name))
        file, port = tmp_path / "prometheus.yml", free_port()
        file.write_text(settings)
        promtool("check", "config", str(file))
        running.append(
            subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={file}",
                    f"--storage.tsdb.path={tmp_path / 'tsdb'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return f"http://127.0.0.1:{port}"

    yield start
    for one in running:
        one.kill()
        one.wait()


def test_every_panel_has_data_while_a_room_with_a_line_is_scraped(
    greenroom: Any, origin: Any, server: RedisServer, prometheus: Any
) -> None:
    file = greenroom.folder / "edge.toml"
    file.write_text(
        f'origin = "{origin.url}"\ndatacenters = ["fra"]\n[[rooms]]\nname = "main"\nhost = "*"\n'
        "total_active_users = 50\nnew_users_per_minute = 2\nconfirm_newcomers = false\n"
        '[[health_checks]]\nname = "shop"\naddress = "127.0.0.1"\ninterval = 5\n'
        f'[health_checks.http_config]\nport = {origin.url.rpartition(":")[2]}\npath = "/"\n'
    )
    running = greenroom.run(
        "edge",
        *("--config", str(file), "--datacenter", "fra", "--listen", "127.0.0.1:0"),
        *("--control", "127.0.0.1:0", "--data", str(greenroom.data)),
        env={"GREENROOM_REDIS": server.url, "GREENROOM_GLOBAL_REDIS": server.url},
    ).wait_until_ready()
    base = prometheus(running.control)
    inside, waiting, *others = [running.visitor() for _ in range(5)]
    inside.wait_until_in()
    for visitor in others:
        visitor.get()
    waiting.take_place()
    missing: dict[str, str] = dict(queries())
    until = time.monotonic() + 90
    with httpx.Client(trust_env=False) as client:
        while missing and time.monotonic() < until:
            inside.get()
            waiting.get()
            for panel, query in tuple(missing.items()):
                try:
                    answer = client.get(f"{base}/api/v1/query", params={"query": query}).json()
                except httpx.TransportError:
                    break  # it starts
                assert answer["status"] == "success", (panel, answer)
                if any(one["value"][1] != "NaN" for one in answer["data"]["result"]):
                    del missing[panel]
            time.sleep(1)  # Prometheus scrapes once a second
    assert not missing, running.output
    selector = 'greenroom_room_document_seconds_bucket{room="main"}'
    asks = small_room(capacity_metrics=f"{base}/api/v1/query?query={selector}")
    guard = Guard(OutboundPolicy(ports=(), allowed=("127.0.0.0/8",)))
    figures = PrometheusFigures(guard, lambda: int(time.time() * 1000))
    asyncio.run(figures.ask([asks]))
    assert figures.reasons == {}
    (report,) = figures.reports().values()
    assert report.rooms[asks.id].documents.total > 0, "a histogram of a program, through Prometheus"
    wrong = small_room(capacity_metrics=f"{base}/api/v1/query?query=rate(")
    asyncio.run(figures.ask([wrong]))
    assert "Prometheus refused the query: " in figures.reasons[wrong.id]
