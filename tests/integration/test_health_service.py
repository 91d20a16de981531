"""The health checks of a process: status, alerts, restarts, two processes on one store, previews."""

import asyncio
from dataclasses import replace
from pathlib import Path

from health_rig import CLOCK, Origin, Sink, a_check, placed, serving, until

from greenroom.health.rules.memory import EventQuestion
from greenroom.health.service import HealthService
from greenroom.health.store import HealthStore, default_url
from greenroom.model.probe import Reason


def status(service: HealthService, check_id: str = "c1") -> str:
    condition = service.condition(check_id)
    return condition.status if condition else "unknown"


async def becomes(service: HealthService, wanted: str) -> None:
    await until(lambda: status(service) == wanted, f"status {wanted}")


def events(folder: Path) -> list:
    store = HealthStore(default_url(folder))
    found = store.events(EventQuestion(0, CLOCK.now_ms() + 1))
    store.close()
    return found


async def test_an_outage_is_an_alert_and_its_end_another_with_the_same_correlation_id(
    tmp_path: Path,
) -> None:
    origin, sink = Origin(), Sink()
    async with serving(tmp_path, origin, sink, checks=[a_check()]) as service:
        await becomes(service, "healthy")
        assert sink.kept == []
        origin.up = False
        await until(lambda: sink.kept, "an alert")
        assert status(service) == "unhealthy"
        origin.up = True
        await until(lambda: len(sink.kept) == 2, "the end")
    start, end = sink.kept
    assert sink.events() == [("start", Reason.TCP_FAILED), ("end", "No failures")]
    assert start.correlation_id == end.correlation_id
    assert (start.zone_id, start.subject_id, start.subject_name) == ("z1", "c1", "c1")
    assert start.data["status"] == start.data["new_status"] == "Unhealthy"
    assert (
        start.data["old_status"],
        start.data["origin_ip"],
        start.data["failing_regions"],
    ) == ("Healthy", "192.0.2.1", "Global")
    assert start.text == "Health check c1 is now Unhealthy: TCP connection failed."
    assert [event.changed for event in events(tmp_path)].count(True) == 3
    assert {(event.region, event.scope) for event in events(tmp_path)} == {("Global", "overall")}


async def test_a_restart_keeps_the_status_and_raises_no_alarm(tmp_path: Path) -> None:
    origin, sink = Origin(up=False), Sink()
    async with serving(tmp_path, origin, sink, checks=[a_check()]):
        await until(lambda: sink.kept, "an alert")
    origin.probes = 0
    async with serving(tmp_path, origin, sink, checks=[a_check()]) as service:
        await until(lambda: service.leads, "the lead")
        assert status(service) == "unhealthy", "before anything was probed"
        await until(lambda: origin.probes >= 2, "two probes")
        assert len(sink.kept) == 1
        origin.up = True
        await until(lambda: len(sink.kept) == 2, "the end of the incident of the process before")
    assert sink.kept[0].correlation_id == sink.kept[1].correlation_id


async def test_an_alert_that_could_not_be_handed_on_is_handed_on_after_a_restart_and_once(
    tmp_path: Path,
) -> None:
    origin, sink = Origin(up=False), Sink(broken=True)
    async with serving(tmp_path, origin, sink, checks=[a_check()]) as service:
        await becomes(service, "unhealthy")
        await until(lambda: origin.probes >= 3, "probes go on")
    assert sink.kept == []
    sink.broken = False
    async with serving(tmp_path, origin, sink, checks=[a_check()]):
        await until(lambda: sink.kept, "the alert")
        await until(lambda: origin.probes >= 6, "probes")
    assert [alert.state for alert in sink.kept] == ["start"]


async def test_an_incident_ends_when_its_check_is_suspended_or_removed(tmp_path: Path) -> None:
    origin, sink = Origin(up=False), Sink()
    checks = [a_check("c1"), a_check("c2")]
    async with serving(tmp_path, origin, sink, checks=checks) as service:
        await until(lambda: len(sink.kept) == 2, "two alerts")
        service.configure(placed(replace(checks[0], suspended=True)))
        await until(lambda: len(sink.kept) == 4, "two ends")
        assert status(service) == "suspended"
        probes = origin.probes
        await asyncio.sleep(1.2)  # longer than the interval: nothing may be probed
        assert origin.probes == probes
    ends = [alert for alert in sink.kept if alert.state == "end"]
    assert {alert.subject_id for alert in ends} == {"c1", "c2"}
    assert {alert.data["status"] for alert in ends} == {"Suspended"}


async def test_of_two_processes_one_probes_and_the_other_shows_what_it_found_and_takes_over(
    tmp_path: Path,
) -> None:
    first, second, sink = Origin(), Origin(), Sink()
    async with serving(tmp_path, second, sink, "b") as other:
        async with serving(tmp_path, first, sink, "a", [a_check()]) as service:
            await becomes(service, "healthy")
            other.configure(placed(a_check()))
            await until(lambda: status(other) == "healthy", "the follower knows")
            assert (service.leads, other.leads, second.probes) == (True, False, 0)
        await until(lambda: other.leads, "the lead changes hands")
        await until(lambda: second.probes, "the other one probes")
        assert status(other) == "healthy"
    assert sink.kept == []


async def test_a_preview_is_probed_at_once_and_remembered_nowhere(tmp_path: Path) -> None:
    origin, sink = Origin(up=False), Sink()
    async with serving(tmp_path, origin, sink) as service:
        service.previews.add(a_check("p1"), "z1")
        await until(lambda: status(service, "p1") == "unhealthy", "a verdict")
        assert service.previews.get("p1", "z2") is None
        assert service.previews.get("p1", "z1") is not None
        service.previews.remove("p1")
        assert service.previews.get("p1", "z1") is None
    assert sink.kept == []
    assert not Path(tmp_path / "health.db").exists(), (
        "an installation without checks has no database for them"
    )
