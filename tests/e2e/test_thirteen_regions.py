"""Thirteen regions with three agents each, every agent a process of its own, and an origin that
dies for some regions only.

Verdicts, alerts and times are as the quorum says; then agents are killed, cut off, and come back
with what they could not report.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from api_rig import ACCOUNT, Api, create_token
from receivers import WebReceiver
from regional_agents import AgentProcesses, RegionalOrigin, Road

from greenroom.model.health_check import REGIONS

INTERVAL_S = 2
LOST_S = 15
"""Three missed reports, one every five seconds."""

SLOW_S = 10
"""What a busy machine may add."""

CONFIG = f"""
origin = "http://127.0.0.1:9"
[outbound]
ports = []
allow = ["127.0.0.1"]
[health]
probe = false
[[rooms]]
name = "main"
host = "*"
total_active_users = 10
new_users_per_minute = 10
[[health_checks]]
name = "shop"
address = "origin.shop.example"
interval = {INTERVAL_S}
check_regions = ["ALL_REGIONS"]
http_config = {{{{ port = {{port}} }}}}
"""


class Installation:
    """What a test sees of it: the check, its regions, its agents, its events, and the webhooks that
    came.
    """

    def __init__(self, running: Any, data: Any, eventually: Callable[..., Any]) -> None:
        self.api = Api(
            running.control,
            create_token(data, "operator", "--scope", "edit", "--scope", "analytics"),
        )
        self.eventually = eventually
        zone = self.api.ask("GET", "/zones").result[0]["id"]
        (check,) = self.api.ask("GET", f"/zones/{zone}/healthchecks").result
        self.path = f"/zones/{zone}/healthchecks/{check['id']}"
        self.web = WebReceiver()
        alerting = f"/accounts/{ACCOUNT}/alerting/v3"
        hook = self.api.ask(
            "POST", f"{alerting}/destinations/webhooks", {"name": "w", "url": self.web.url}
        ).result["id"]
        self.web.taken.clear()
        wanted = {"name": "p", "enabled": True, "alert_type": "health_check_status_notification"}
        assert (
            self.api.ask(
                "POST",
                f"{alerting}/policies",
                {**wanted, "mechanisms": {"webhooks": [{"id": hook}]}},
            ).status
            == 200
        )

    @property
    def status(self) -> str:
        return str(self.api.ask("GET", self.path).result["status"])

    @property
    def regions(self) -> dict[str, str]:
        return dict(self.api.ask("GET", self.path).result["greenroom"]["regions"])

    @property
    def alerts(self) -> list[str]:
        return [each["data"]["new_status"] for each in self.web.taken]

    def lost(self) -> list[str]:
        return sorted(
            agent["name"]
            for agent in self.api.ask("GET", f"/accounts/{ACCOUNT}/probe_agents").result
            if agent["lost"]
        )

    def failures(self, region: str, since_s: float) -> list[dict[str, Any]]:
        since = datetime.fromtimestamp(since_s, UTC).isoformat()
        found = self.api.ask(
            "GET",
            f"{self.path}/events?region={region}&limit=1000&since={since.replace('+', '%2B')}",
        ).result
        return [event for event in found if event["status"] == "Unhealthy"]

    def until(self, true: Callable[[], object], what: str, within_s: float = 20 + SLOW_S) -> float:
        """How long it took."""
        began = time.monotonic()
        self.eventually(
            true,
            lambda: f"{what}; {self.status}, {self.regions}, {self.alerts}, lost {self.lost()}",
            within_s,
        )
        return time.monotonic() - began


@pytest.fixture
def origin() -> Iterator[RegionalOrigin]:
    found = RegionalOrigin(REGIONS)
    yield found
    found.close()


# the same with agents in one process is in tests/integration/test_probe_agents.py
@pytest.mark.campaign
def test_thirteen_regions_with_three_processes_each(greenroom, origin: RegionalOrigin) -> None:
    running = greenroom.config(CONFIG.format(port=origin.port))
    here = Installation(running, greenroom.data, greenroom.eventually)
    agents = AgentProcesses(create_token(greenroom.data, "agents", "--scope", "probe"))
    road = Road(running.control)
    try:
        for region in REGIONS:
            join(
                agents, region, road.port if region in REGIONS[10:] else running.control[1], origin
            )
        regions_decide(here, origin)
        killed_agents_are_missing_votes(here, agents, running.control[1], origin)
        cut_off_agents_report_later(here, road, origin)
    finally:
        agents.close()
        road.close()
        here.web.close()


def join(agents: AgentProcesses, region: str, port: int, origin: RegionalOrigin) -> None:
    for number in range(3):
        agents.start(
            f"{region}-{number}", region, f"http://127.0.0.1:{port}", origin.address(region)
        )


def regions_decide(here: Installation, origin: RegionalOrigin) -> None:
    """Six regions are not enough, seven are, and the message comes within an interval and what a
    probe and a delivery take.
    """
    here.until(
        lambda: here.regions == dict.fromkeys(REGIONS, "healthy"),
        "all regions are heard",
        60 + SLOW_S,
    )
    assert here.status == "healthy"
    origin.down(*REGIONS[:6])
    here.until(lambda: list(here.regions.values()).count("unhealthy") == 6, "six regions see it")
    time.sleep(2 * INTERVAL_S)  # every agent has probed again: six must never be enough
    assert (here.status, here.alerts) == ("healthy", [])
    origin.down(REGIONS[6])
    took_s = here.until(lambda: here.alerts == ["Unhealthy"], "seven regions are enough")
    assert took_s < INTERVAL_S + 1 + SLOW_S
    assert sorted(here.web.taken[0]["data"]["failing_regions"].split(", ")) == sorted(REGIONS[:7])
    origin.up(*REGIONS[:7])
    took_s = here.until(lambda: here.alerts == ["Unhealthy", "Healthy"], "the end")
    assert took_s < INTERVAL_S + 1 + SLOW_S
    assert len({each["alert_correlation_id"] for each in here.web.taken}) == 1
    here.until(lambda: here.regions == dict.fromkeys(REGIONS, "healthy"), "all regions are well")


def killed_agents_are_missing_votes(
    here: Installation, agents: AgentProcesses, port: int, origin: RegionalOrigin
) -> None:
    """One of three changes nothing; six whole regions change nothing; with a seventh the status is
    unknown, and that is no alert.
    """
    for region in REGIONS:
        agents.kill(f"{region}-0")
    for region in REGIONS[:6]:
        agents.kill(f"{region}-1")
        agents.kill(f"{region}-2")
    here.until(
        lambda: len(here.lost()) == 25,
        "one agent of each region and six whole regions are lost",
        LOST_S + 10 + SLOW_S,
    )
    assert here.status == "healthy"
    assert [here.regions[region] for region in REGIONS] == ["unknown"] * 6 + ["healthy"] * 7
    agents.kill(f"{REGIONS[6]}-1")
    here.until(
        lambda: here.status == "unknown", "too few report", LOST_S + 3 * INTERVAL_S + 30 + SLOW_S
    )
    for region in REGIONS[:7]:
        for number in (0, 1, 2):
            if f"{region}-{number}" not in agents.pids:
                agents.start(
                    f"{region}-{number}", region, f"http://127.0.0.1:{port}", origin.address(region)
                )
    here.until(
        lambda: here.regions == dict.fromkeys(REGIONS, "healthy"), "they are back", 30 + SLOW_S
    )
    assert here.status == "healthy"
    assert here.alerts == ["Unhealthy", "Healthy"]


def cut_off_agents_report_later(here: Installation, road: Road, origin: RegionalOrigin) -> None:
    """Three regions cannot report while the origin dies for them and comes back: the log learns it,
    the verdict never saw it.
    """
    cut = REGIONS[10:]
    road.cut()
    cut_s = time.time()
    origin.down(*cut)
    time.sleep(3 * INTERVAL_S)  # an outage that the agents see and cannot tell of
    origin.up(*cut)
    back_s = time.time()
    time.sleep(2 * INTERVAL_S)  # and that is over when they can
    assert [found for region in cut for found in here.failures(region, cut_s)] == []
    road.open()
    for region in cut:
        here.until(lambda region=region: here.failures(region, cut_s), f"{region} tells of it")
    for region in cut:
        found = here.failures(region, cut_s)
        times = [datetime.fromisoformat(event["time"]).timestamp() for event in found]
        assert cut_s - 1 <= min(times) <= max(times) <= back_s + 1, (
            "with the time of the probe, not of the report"
        )
        assert len(set(times)) == len(times), "nothing is told twice"
        assert len(times) >= 3, "two agents or more, several probes"
    here.until(lambda: here.regions == dict.fromkeys(REGIONS, "healthy"), "all is well")
    assert here.alerts == ["Unhealthy", "Healthy"]
