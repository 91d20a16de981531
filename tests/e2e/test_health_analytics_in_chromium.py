"""Health analytics in real Chromium, with real probes of real servers that fail in planted ways and
agents in two regions.
"""

import asyncio
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from api_rig import Api, create_token
from dashboard_browser import DashboardBrowser, chromium, violations_in_both_themes
from failing_origins import AUTHORITY, answers, page, served
from playwright.sync_api import Page, expect
from regional_agents import AgentProcesses

from greenroom.model.probe import Reason

PICTURES = os.environ.get("HEALTH_PICTURES", "")
"""A folder: pictures for the documentation are written there."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
SLOW_S = 3.0
PLANTED = {
    "well": "",
    "unknown-name": Reason.UNKNOWN_HOST,
    "refuses": Reason.TCP_FAILED,
    "wrong-certificate": Reason.TLS_UNTRUSTED,
    "slow-first-byte": Reason.HTTP_TIMEOUT,
    "slow-body": Reason.HTTP_TIMEOUT,
    "wrong-code": Reason.CODE,
    "wrong-body": Reason.BODY,
}


class Servers:
    """Each on a port of its own, in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._stack = AsyncExitStack()
        self.ports: dict[str, int] = asyncio.run_coroutine_threadsafe(
            self._start(), self._loop
        ).result(60)

    async def _start(self) -> dict[str, int]:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        AUTHORITY.issue_cert("origin.example.com").configure_cert(tls)
        handlers = {
            "well": (answers(page()), None),
            "wrong-certificate": (answers(page()), tls),
            "slow-first-byte": (answers(b"", then_s=SLOW_S, then=page()), None),
            "slow-body": (answers(HEAD + b"ab", then_s=SLOW_S, then=b"cd"), None),
            "wrong-code": (answers(page("503 Service Unavailable")), None),
            "wrong-body": (answers(page(body=b"not found")), None),
        }
        ports = {
            name: await self._stack.enter_async_context(served(handler, secured))
            for name, (handler, secured) in handlers.items()
        }
        return {**ports, "unknown-name": 80, "refuses": 1}

    async def _end(self) -> None:
        await self._stack.aclose()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)


def entry(name: str, port: int, timeout_s: int = 1, **more: str) -> str:
    address = "no-such-name.invalid" if name == "unknown-name" else "127.0.0.1"
    kind = "HTTPS" if name == "wrong-certificate" else "HTTP"
    body = ', expected_body = "all is well"' if name == "wrong-body" else ""
    lines = [f"{key} = {value}" for key, value in more.items()]
    return "\n".join(
        [
            "[[health_checks]]",
            f'name = "{name}"',
            f'address = "{address}"',
            f'type = "{kind}"',
            "interval = 2",
            f"timeout = {timeout_s}",
            "retries = 1",
            f"http_config = {{ port = {port}{body} }}",
            *lines,
            "",
        ]
    )


CONFIG = """
origin = "http://127.0.0.1:9"
[log]
level = "error"
[outbound]
ports = []
allow = ["127.0.0.1"]
[[rooms]]
name = "main"
host = "*"
total_active_users = 10
new_users_per_minute = 10
"""


class Probed:
    """A greenroom whose checks have found every planted fault, and a signed-in browser."""

    def __init__(self, start: Any, window: DashboardBrowser, servers: Servers) -> None:
        entries = [entry(name, servers.ports[name]) for name in PLANTED]
        # No probe may fail of this one, on whatever machine.
        entries.append(
            entry("two-regions", servers.ports["well"], 10, check_regions='["WEU", "OC"]')
        )
        self.running = start.config(CONFIG + "\n".join(entries))
        self.window, self.servers = window, servers
        window.base = "http://{}:{}".format(*self.running.control)
        window.first_sign_in(self.running.output)
        token = create_token(start.data, "test", "--scope", "edit", "--scope", "analytics")
        probing = create_token(start.data, "agents", "--scope", "probe")
        self.api = Api(self.running.control, token)
        self.agents = AgentProcesses(probing)
        for name, region in (("paris", "WEU"), ("sydney", "OC")):
            self.agents.start(name, region, window.base, "127.0.0.1")
        self.zone = self.api.ask("GET", "/zones").result[0]["id"]
        self.checks = {
            check["name"]: check["id"]
            for check in self.api.ask("GET", f"/zones/{self.zone}/healthchecks").result
        }
        self._settled()

    def _settled(self) -> None:
        end = time.monotonic() + 120
        wanted = {**PLANTED, "two-regions": ""}
        while time.monotonic() < end:
            found = {
                name: (one["status"], one["failure_reason"])
                for name, key in self.checks.items()
                for one in [self.api.ask("GET", f"/zones/{self.zone}/healthchecks/{key}").result]
            }
            if self._agents_reported() and found == {
                name: ("unhealthy", str(reason)) if reason else ("healthy", "")
                for name, reason in wanted.items()
            }:
                return
            time.sleep(0.5)  # probes of other processes
        raise AssertionError(found)

    def _agents_reported(self) -> bool:
        path = f"/zones/{self.zone}/healthchecks/{self.checks['two-regions']}/events?region="
        return all(self.api.ask("GET", path + region).result for region in ("WEU", "OC"))

    def close(self) -> None:
        self.agents.close()


@pytest.fixture(scope="module")
def probed(shared_greenroom) -> Iterator[Probed]:
    servers = Servers()
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": 1280, "height": 1000}, bypass_csp=True, reduced_motion="reduce"
        )
        found = Probed(shared_greenroom, DashboardBrowser(context, ""), servers)
        yield found
        assert found.window.complaints == []
        found.close()
    servers.close()


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.wait_for_timeout(700)  # charts need a moment
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


def test_every_planted_fault_is_named_on_one_page(probed: Probed) -> None:
    page = probed.window.go("/health/analytics?span=1h&check=" + ",".join(probed.checks.values()))
    expect(page.locator("#analytics .chart svg").nth(2)).to_be_attached()
    expect(page.get_by_role("row", name="two-regions")).to_contain_text("100.00 %")
    page.goto(
        f"{probed.window.base}/health/analytics?span=1h&check="
        + ",".join(probed.checks[name] for name, reason in PLANTED.items() if reason)[: 6 * 33]
    )
    for reason in list(PLANTED.values())[1:6]:
        expect(page.get_by_role("row", name=str(reason)).first).to_be_visible()
    picture(page, "failures")
    assert violations_in_both_themes(page) == []


def test_agents_are_told_apart_by_region(probed: Probed) -> None:
    page = probed.window.go(f"/health/analytics?span=1h&check={probed.checks['two-regions']}")
    expect(page.locator("[data-heat] svg")).to_be_visible()
    for agent, region in (("paris", "WEU"), ("sydney", "OC")):
        expect(page.locator("#log").get_by_role("row", name=agent).first).to_contain_text(region)
    assert page.locator(".waterfall").count() >= 2
    picture(page, "regions")
    assert violations_in_both_themes(page) == []


def test_dragging_zooms_and_keeps_the_checks(probed: Probed) -> None:
    page = probed.window.go(f"/health/analytics?span=24h&check={probed.checks['well']}")
    chart = page.locator('[data-panel="availability"]')
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.8, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, middle, steps=4)
    page.mouse.move(box["x"] + box["width"] * 0.97, middle, steps=4)
    page.mouse.up()
    page.wait_for_url("**from=*")
    assert f"check={probed.checks['well']}" in page.url


def test_the_log_is_filtered_and_a_row_opens_its_waterfall(probed: Probed) -> None:
    page = probed.window.go(f"/health/analytics?check={probed.checks['slow-body']}")
    page.get_by_label("Reason", exact=True).select_option(str(Reason.HTTP_TIMEOUT))
    page.get_by_role("button", name="Filter").click()
    log = page.locator("#log")
    expect(log.get_by_role("row", name="Unhealthy").first).to_be_visible()
    log.locator("tbody a").first.click()
    expect(page.get_by_role("row", name="TCP")).to_be_visible()
    expect(page.get_by_text("did not answer in time").first).to_be_visible()
    picture(page, "probe")
    assert violations_in_both_themes(page) == []


def test_the_page_of_a_check_lists_probes_only(probed: Probed) -> None:
    page = probed.window.go(f"/zones/{probed.zone}/health/{probed.checks['two-regions']}")
    rows = page.get_by_role("table", name="The last probes").get_by_role("row")
    expect(rows.nth(1)).to_be_visible()
    agents = rows.locator("td:nth-child(4)").all_inner_texts()
    assert set(agents) - {"local"} == {"paris", "sydney"}, "a verdict, or no probe of an agent"
    assert violations_in_both_themes(page) == []


def test_a_check_is_tried_before_it_is_made(probed: Probed) -> None:
    page = probed.window.go("/zones/new")
    page.get_by_label("Domain").fill("example.net")
    page.get_by_role("button", name="Create the zone").click()
    page.wait_for_url("**notice=created*")
    zones = probed.api.ask("GET", "/zones").result
    zone = next(one["id"] for one in zones if one["name"] == "example.net")
    probed.window.go(f"/zones/{zone}/health/new")
    page.get_by_label("Name", exact=True).fill("tried")
    page.get_by_label("Protocol").select_option("HTTP")
    page.get_by_label("Server").fill("127.0.0.1")
    page.get_by_label("Port").fill(str(probed.window.base.rpartition(":")[2]))
    page.get_by_role("button", name="Try it now").click()
    expect(page.get_by_text("The check cannot be run as it is configured")).to_be_visible()
    page.get_by_label("Port").fill(str(probed.servers.ports["wrong-code"]))
    page.get_by_label("Headers to send").fill("Host: shop.example.net")
    page.get_by_label("Western Europe").check()
    page.get_by_role("button", name="Try it now").click()
    expect(page.get_by_text("another status code than expected")).to_be_visible()
    expect(page.get_by_role("row", name="First byte")).to_be_visible()
    picture(page, "try")
    assert violations_in_both_themes(page) == []
    page.get_by_role("button", name="Create the check").click()
    page.wait_for_url("**notice=created*")
    (made,) = probed.api.ask("GET", f"/zones/{zone}/healthchecks").result
    assert made["check_regions"] == ["WEU"]
    assert made["http_config"]["header"] == {"Host": ["shop.example.net"]}
