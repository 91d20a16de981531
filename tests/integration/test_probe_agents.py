"""Agents as they are: the program's own loop and link against the API of a running service, through
outages, crashes and mistakes.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from health_rig import CLOCK, Origin, Sink, a_check, serving, until
from starlette.applications import Starlette

from greenroom.api.app import under_prefix
from greenroom.api.management import management_api
from greenroom.config_file.addresses import origin_problems
from greenroom.configuration.store import SqlStore, default_url
from greenroom.health.agent import ProbeAgent, ReportFailed
from greenroom.health.agent_link import AgentLink
from greenroom.health.rules.memory import EventQuestion
from greenroom.health.service import HealthService
from greenroom.health.store import HealthStore
from greenroom.health.store import default_url as health_url
from greenroom.model.change import Put
from greenroom.model.health_check import REGIONS
from greenroom.model.probe import AgentReport, CheckEvent, ProbeReport
from greenroom.runtime.listener import AppListener, bind, bound
from greenroom.settings.process import Address
from greenroom.web.authenticator import make_token


class Front:
    """The management API of a service at a real address; `stop` and `start` are a network that
    fails and heals.
    """

    def __init__(self, folder: Path, service: HealthService, scope: str = "probe") -> None:
        self.store = SqlStore(default_url(folder))
        self.token, record = make_token("t", "agents", (scope,))
        self.store.write([Put(record)], expected=0, author="test", now_ms=1)
        self._service = service
        self.address = Address("127.0.0.1", 0)

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    async def start(self) -> None:
        api = management_api(
            self.store, self.store.sessions, CLOCK, None, origin_problems, None, self._service
        )
        sock = bind(self.address, "agents")
        self.address = bound(sock)
        self._listener = AppListener(Starlette(routes=[under_prefix(api)]), sock)
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.close()


@contextlib.asynccontextmanager
async def agent(
    front: Front, name: str, region: str, origin: Origin, *, goodbye: bool = True
) -> AsyncIterator[asyncio.Task]:
    """An agent that runs meanwhile."""
    link = AgentLink([front.url], front.token, name)
    task = asyncio.create_task(
        ProbeAgent(name, region, link.send, origin.probe, CLOCK.now_ms).run()
    )
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ReportFailed):
            await task
        if goodbye:
            await link.goodbye()


@contextlib.asynccontextmanager
async def installation(
    folder: Path, here: Origin, sink: Sink, *regions: str
) -> AsyncIterator[tuple[HealthService, Front]]:
    async with serving(
        folder, here, sink, checks=[a_check(check_regions=regions, timeout=1, retries=1)]
    ) as service:
        front = Front(folder, service)
        await front.start()
        await until(lambda: service.leads, "the lead")
        try:
            yield service, front
        finally:
            await front.stop()
            front.store.close()


def status(service: HealthService) -> str:
    condition = service.condition("c1")
    return condition.status if condition else "unknown"


async def test_an_agent_takes_over_the_probes_of_its_region_and_gives_them_back_when_it_ends(
    tmp_path: Path,
) -> None:
    here, there, sink = Origin(), Origin(), Sink()
    async with installation(tmp_path, here, sink, "WEU", "OC") as (service, front):
        await until(
            lambda: service.regions("c1") == {"": "healthy"},
            "all regions collapse into the own agent",
        )
        async with agent(front, "paris", "WEU", there):
            await until(lambda: service.regions("c1") == {"WEU": "healthy"}, "the agent's verdict")
            probes = here.probes
            await until(lambda: there.probes >= 3, "probes there")
            assert here.probes <= probes + 1, "nothing is probed twice"
            there.up = False
            await until(lambda: sink.kept, "an alert")
            assert sink.kept[0].data["failing_regions"] == "WEU"
        await until(
            lambda: service.regions("c1").get("") == "healthy", "the own agent probes again"
        )
        assert [known.name for known, _ in service.agents()] == []


async def test_a_region_is_decided_by_two_of_three_and_an_agent_that_dies_without_a_word_is_seen_as_lost(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("greenroom.health.service.REPORT_EVERY_MS", 300)
    good, bad, sink = Origin(), Origin(up=False), Sink()
    async with (
        installation(tmp_path, Origin(), sink, "WEU") as (service, front),
        contextlib.AsyncExitStack() as agents,
    ):
        for name in ("one", "two"):
            await agents.enter_async_context(agent(front, name, "WEU", good))
        async with agent(front, "three", "WEU", bad, goodbye=False):
            await until(
                lambda: bad.probes >= 2 and service.regions("c1") == {"WEU": "healthy"},
                "one against two",
            )
        await until(
            lambda: [known.name for known, lost in service.agents() if lost] == ["three"],
            "it is lost",
        )
        await until(lambda: status(service) == "healthy", "one of three is not missed")
        good.up = False
        await until(lambda: status(service) == "unhealthy", "two of three is enough")


async def test_an_agent_that_is_cut_off_goes_on_and_reports_later_without_moving_the_verdict(
    tmp_path: Path,
) -> None:
    there, sink = Origin(), Sink()
    async with (
        installation(tmp_path, Origin(), sink, "WEU") as (service, front),
        agent(front, "paris", "WEU", there),
    ):
        await until(lambda: service.regions("c1") == {"WEU": "healthy"}, "the agent's verdict")
        await front.stop()
        cut_ms, there.up = CLOCK.now_ms(), False
        await until(
            lambda: there.probes and CLOCK.now_ms() > cut_ms + 2_500,
            "an outage that nobody can report",
        )
        there.up = True
        probes = there.probes
        await until(lambda: there.probes > probes, "it is over")
        await front.start()
        wanted = EventQuestion(cut_ms, CLOCK.now_ms() + 60_000, region="WEU")
        await until(
            lambda: any(not event.healthy for event in service.history.events(wanted)),
            "the log knows of the outage",
        )
        await until(lambda: status(service) == "healthy", "and it is over")
    assert [alert.state for alert in sink.kept] in ([], ["start", "end"])
    found = agent_events(tmp_path, cut_ms)
    assert len({(event.at_ms, event.agent) for event in found}) == len(found), (
        "nothing was written down twice"
    )


def agent_events(folder: Path, since_ms: int) -> list[CheckEvent]:
    store = HealthStore(health_url(folder))
    found = [
        event
        for event in store.events(EventQuestion(since_ms, CLOCK.now_ms() + 1))
        if event.scope == "agent"
    ]
    store.close()
    return found


@pytest.mark.parametrize(
    ("scope", "region", "reason"), [("read", "WEU", "probe"), ("probe", "MARS", "region")]
)
async def test_an_agent_that_can_never_report_says_why_and_ends(
    tmp_path: Path, scope: str, region: str, reason: str
) -> None:
    async with serving(tmp_path, Origin(), Sink(), checks=[a_check()]) as service:
        front = Front(tmp_path, service, scope)
        await front.start()
        with pytest.raises(ReportFailed, match=reason) as refused:
            async with agent(front, "paris", region, Origin()) as task:
                await asyncio.wait_for(asyncio.shield(task), 60)
        assert refused.value.hopeless
        await front.stop()
        front.store.close()


async def test_two_agents_of_one_name_are_told_apart_and_a_batch_that_comes_twice_counts_once(
    tmp_path: Path,
) -> None:
    async with (
        installation(tmp_path, Origin(), Sink(), "WEU") as (service, front),
        agent(front, "paris", "WEU", Origin()),
    ):
        await until(lambda: service.agents(), "the first agent")
        link = AgentLink([front.url], front.token, "paris")
        with pytest.raises(ReportFailed, match="another agent reports as 'paris'") as refused:
            await link.send(AgentReport("WEU", "another-session", 1))
        assert not refused.value.hopeless
        fresh = AgentLink([front.url], front.token, "rome")
        report = AgentReport("WEU", "session-1", 1, "", [ProbeReport("c1", 100, rtt_ms=7.0)])
        orders = await fresh.send(report)
        assert [check.id for check in orders.checks or ()] == ["c1"]
        again = await fresh.send(
            AgentReport("WEU", "session-1", 1, orders.revision, report.reports)
        )
        assert again.checks is None, "it has them already"
        wanted = EventQuestion(0, CLOCK.now_ms() + 1, region="WEU")
        await until(
            lambda: [event for event in service.history.events(wanted) if event.agent == "rome"],
            "its event",
        )
        await asyncio.sleep(1.2)  # longer than it takes to write another one down
        assert (
            len([event for event in service.history.events(wanted) if event.agent == "rome"]) == 1
        )


async def test_thirteen_regions_with_three_agents_each_decide_by_seven(
    tmp_path: Path, monkeypatch
) -> None:
    """Every agent over a connection of its own. The origin dies for six regions, then for a
    seventh; then whole regions are lost.
    """
    monkeypatch.setattr("greenroom.health.service.REPORT_EVERY_MS", 1_000)
    views = {region: Origin() for region in REGIONS}
    sink, crowd = Sink(), contextlib.AsyncExitStack()
    async with installation(tmp_path, Origin(), sink, "ALL_REGIONS") as (service, front), crowd:
        for region in REGIONS:
            for number in range(3):
                await crowd.enter_async_context(
                    agent(front, f"{region}-{number}", region, views[region], goodbye=False)
                )
        await until(
            lambda: list(service.regions("c1").values()) == ["healthy"] * 13,
            "every region is heard",
        )
        for region in REGIONS[:6]:
            views[region].up = False
        await until(
            lambda: list(service.regions("c1").values()).count("unhealthy") == 6,
            "six regions see it",
        )
        await asyncio.sleep(1.5)  # longer than an interval: six must never be enough
        await until(lambda: status(service) == "healthy", "seven of thirteen are enough")
        assert sink.kept == []
        views[REGIONS[6]].up = False
        await until(lambda: sink.kept, "seven regions are enough")
        assert sink.kept[0].data["failing_regions"].count(",") == 6
        for view in views.values():
            view.up = True
        await until(lambda: len(sink.kept) == 2, "the end")
        await crowd.aclose()
        await until(lambda: status(service) == "unknown", "too few report")
    assert [alert.state for alert in sink.kept] == ["start", "end"]
