"""Health analytics in the dashboard: the figures of a span, the log with its filters and pages, and
the waterfall of a probe.
"""

import json
import re
from html import unescape

import pytest
from dashboard_rig import DashboardRig, Visitor
from health_rig import a_check

from greenroom.health.dashboard.parts import HEALTH_VIEW
from greenroom.health.rules.memory import HealthBatch
from greenroom.model.probe import CheckEvent, ProbeResult, Reason

MINUTE = 60_000
PAGE = "/health/analytics"
REGIONS = ("WEU", "OC")


def events(check_id: str, now_ms: int, minutes: int, failing: int) -> list[CheckEvent]:
    """A probe from each region a minute, and the verdict; the newest `failing` minutes are bad."""
    found = []
    for minute in range(minutes):
        bad = minute < failing
        result = (
            ProbeResult(Reason.CODE, 503, "192.0.2.1")
            if bad
            else ProbeResult("", 200, "192.0.2.1", 40.0, 80.0, 200.0, 300.0, 1, 5.0, 1.0)
        )
        facts = {
            "at_ms": now_ms - minute * MINUTE - 1,
            "check_id": check_id,
            "zone_id": "z2",
            "name": check_id,
            "fqdn": "shop.example",
            "healthy": not bad,
            "result": result,
            "expected": "200" if bad else "",
        }
        found += [
            CheckEvent(region=region, scope="agent", agent=f"agent-{region}", **facts)
            for region in REGIONS
        ]
        found.append(
            CheckEvent(
                region="Global", scope="overall", agent="", changed=minute == failing - 1, **facts
            )
        )
    return found


@pytest.fixture
def viewer(dashboard: DashboardRig) -> Visitor:
    if "shop" not in dashboard.store.read().health_checks:
        dashboard.put((a_check("shop"), "z2"), (a_check("blog"), "z2"))
        now_ms = dashboard.clock.at_ms
        found = events("shop", now_ms, 180, 18) + events("blog", now_ms, 180, 0)
        running = dashboard.app.parts.find(HEALTH_VIEW)
        running.history.save(HealthBatch(events=found), now_ms)
    return dashboard.person("viewer", "z2")


def charts(shown: str) -> dict:
    found = re.search(r'data-charts="([^"]*)"', shown)
    assert found is not None
    return json.loads(unescape(found[1]))


@pytest.mark.parametrize("span", ["1h", "6h", "24h", "7d", "31d"])
def test_every_span_has_the_same_facts(viewer: Visitor, span: str) -> None:
    shown = viewer.get(f"{PAGE}?span={span}&check=shop")
    assert shown.status_code == 200
    data = charts(shown.text)
    (one,) = data["panels"]["availability"]["series"]
    known = [value for value in one["values"] if value is not None]
    assert min(known) < 100
    assert all(0 <= value <= 100 for value in known)
    (reason,) = data["panels"]["failures"]["series"]
    assert reason["label"] == "Response code mismatch error"
    assert sum(reason["values"]) == 2 * 18
    (rtt,) = data["panels"]["rtt_ms"]["series"]
    assert {round(value) for value in rtt["values"] if value is not None} <= set(range(288, 313))
    assert data["heat"]["rows"] == ["OC", "WEU"]
    for phase in ("DNS", "TCP", "TLS", "Request", "First byte", "Body"):
        assert f">{phase}</th>" in shown.text


def test_the_least_available_comes_first_and_checks_are_chosen(viewer: Visitor) -> None:
    shown = viewer.get(f"{PAGE}?span=6h").text
    assert shown.index("Compare shop") < shown.index("Compare blog")
    assert "90.00 %" in shown
    assert "100.00 %" in shown
    chosen = charts(viewer.get(f"{PAGE}?check=blog&check=nothing").text)
    assert [one["label"] for one in chosen["panels"]["availability"]["series"]] == ["blog"]
    assert "None of" in viewer.get(f"{PAGE}?check=blog").text


def test_the_log_filters_and_goes_back_as_far_as_events_are_kept(viewer: Visitor) -> None:
    address, times = f"{PAGE}?check=shop&span=24h", []
    while True:
        shown = viewer.get(address).text
        times += re.findall(r"/probes/(\d+)\"", shown)
        older = re.search(r'href="([^"]*before=[^"]*)#log"', shown)
        if not older:
            break
        address = unescape(older[1])
    assert len(times) == len(set(times)) == 2 * 180, "probes of both regions, and no verdicts"
    bad = viewer.get(f"{PAGE}?check=shop&reason=Response+code+mismatch+error&region=OC").text
    assert len(re.findall(r"/probes/\d+", bad)) == 18
    changed = viewer.get(f"{PAGE}?check=shop&changes=1").text
    assert len(re.findall(r"/probes/\d+", changed)) == 1
    assert "No probe of this kind" in viewer.get(f"{PAGE}?check=blog&status=Unhealthy").text


def test_a_probe_opens_as_a_waterfall_and_only_under_its_check(viewer: Visitor) -> None:
    shown = viewer.get(f"{PAGE}?check=shop&status=Healthy").text
    path = re.search(r'href="([^"]*/probes/\d+)"', shown)
    assert path is not None
    one = viewer.get(path[1]).text
    assert [float(ms) for ms in re.findall(r'"amount">([\d.]+) ms', one)] == [
        5.0, 40.0, 80.0, 1.0, 199.0, 100.0, 425.0,
    ]  # fmt: skip
    assert viewer.get(path[1].replace("/shop/", "/blog/")).status_code == 404
    assert viewer.get(f"{path[1].rpartition('/')[0]}/99999999").status_code == 404
    bad = viewer.get(f"{PAGE}?check=shop&status=Unhealthy").text
    path = re.search(r'href="([^"]*/probes/\d+)"', bad)
    assert path is not None
    assert "another status code than expected" in viewer.get(path[1]).text


def test_people_see_the_checks_of_their_zones_alone(
    dashboard: DashboardRig, viewer: Visitor
) -> None:
    assert "Compare shop" not in dashboard.person("viewer", "z1").get(PAGE).text
    odd = "?span=x&from=1&to=2&before=a-b&reason=x&region=%00&check=%00&of=x"
    assert viewer.get(PAGE + odd).status_code == 200
