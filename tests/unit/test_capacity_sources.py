"""Where figures of an origin come from: the order, what silence of each source means, and the refusal
where there is none.
"""

import asyncio
import itertools
import tomllib
from typing import Any

import pytest
from admission_world import small_room
from hypothesis import given
from hypothesis import strategies as st

from greenroom.capacity import WINDOW_MS, Histogram
from greenroom.capacity.exported import Exported, FiguresRefused, reports_of_push
from greenroom.capacity.measurement import (
    PROBE_DOCUMENTS,
    Measurement,
    ProbeFigures,
    ProcessReport,
    WindowMeter,
)
from greenroom.capacity.room_capacity import RoomCapacity
from greenroom.capacity.sources import (
    ANSWERS,
    FORGOTTEN_MS,
    HEALTH_CHECK,
    NO_SOURCE,
    PROMETHEUS,
    PUSH,
    SOURCES,
    Source,
    source_of,
)
from greenroom.config_file.load import config_of
from greenroom.config_file.sections import prometheus_target
from greenroom.config_file.served import new_faults
from greenroom.errors import InvalidConfig
from greenroom.model.change import applied
from greenroom.model.configuration import Configuration
from greenroom.model.probe import ProbeResult
from greenroom.model.room import Room
from greenroom.outbound import Guard, OutboundPolicy
from greenroom.runtime.prometheus import PrometheusFigures
from greenroom.transfer.export_import import make_true
from greenroom.web.config_service import ChangeContext

URL = 'http://prometheus.example:9090/api/v1/query?query=x_bucket{job="shop"}'


def follows(**more: Any) -> Room:
    return small_room(capacity="follow", total_active_users=400, new_users_per_minute=4_000, **more)


@pytest.mark.parametrize(
    ("room", "answers", "checked", "source"),
    [
        ({}, True, True, ANSWERS),
        ({"capacity_metrics": "push"}, True, False, ANSWERS),
        ({"capacity_metrics": "push"}, False, True, PUSH),
        ({"capacity_metrics": URL}, False, True, PROMETHEUS),
        ({}, False, True, HEALTH_CHECK),
        ({}, False, False, None),
        ({"native_pass": "hs256"}, True, False, None),
        ({"native_pass": "hs256", "capacity_metrics": "push"}, True, False, PUSH),
    ],
)
def test_the_first_source_that_a_room_has_counts(
    room: dict[str, Any], answers: bool, checked: bool, source: Source | None
) -> None:
    assert source_of(follows(**room), answers=answers, checked=checked) is source


def report(at_ms: int, count: int, source: Source | None, **more: int) -> ProcessReport:
    measured = Measurement(documents=Histogram.of([100] * count), **more)
    return ProcessReport(at_ms=at_ms, rooms={"r": measured}, source=source.name if source else "")


def test_sessions_are_those_of_all_processes_and_documents_those_of_the_source() -> None:
    meter, sources = WindowMeter(), {"r": PUSH}
    for at_ms, count in ((0, 10), (WINDOW_MS, 40)):
        reports = {
            "edge": report(at_ms, 3 * count, ANSWERS, active=5, admitted=count),
            "decide": report(at_ms, 0, None, active=7, waiting=2),
            "push:r:1": report(at_ms, count, PUSH),
            "push:r:2": report(at_ms, count, PUSH, failed=count),
        }
        window = meter.windows(reports, at_ms, sources)["r"]
    assert window is not None
    assert (window.documents.total, window.failed) == (60, 30)
    assert (window.active, window.admitted, window.waiting) == (12, 30, 2)


def test_a_late_instance_is_named() -> None:
    """Until it is forgotten: then the others are all there is."""
    meter, sources, late_ms = WindowMeter(), {"r": PUSH}, PUSH.silent_ms
    for at_ms in (0, late_ms, FORGOTTEN_MS):
        reports = {
            "edge": report(at_ms, 0, ANSWERS),
            "push:r:shop-1": report(at_ms, 10, PUSH),
            "push:r:shop-2": report(0, 10, PUSH),
        }
        window = meter.windows(reports, at_ms, sources)["r"]
        assert (window is None) is (at_ms == late_ms)
        why = "the newest figures of instance shop-2 (push) are 30 s old"
        assert meter.missing == ({"r": why} if at_ms == late_ms else {})
    state = RoomCapacity(follows(capacity_metrics="push"), None, 50, 0).step(None, 5_000, why)
    assert state.reason.startswith(f"{why}: ")


SILENCE = st.lists(st.sampled_from(("push", "silent", "stopped")), min_size=5, max_size=60)


@given(SILENCE, st.sampled_from(SOURCES[1:]), st.integers(20, 900))
def test_the_limit_never_grows_while_the_source_is_silent(
    story: list[str], source: Source, latency_ms: int
) -> None:
    """Another source, which finds all well, does not take the place of the silent one."""
    meter, now_ms, count, told_ms = WindowMeter(), 0, 0, 0
    law = RoomCapacity(follows(capacity_metrics="push"), None, 50, 0)
    before = None
    for step in story:
        now_ms += WINDOW_MS
        if step == "push":
            count, told_ms = count + 200, now_ms
        reports = {"edge": report(now_ms, now_ms, ANSWERS, active=100)}
        if told_ms and step != "stopped":
            seen = Measurement(documents=Histogram.of([latency_ms] * count))
            reports["p"] = ProcessReport(at_ms=told_ms, rooms={"r": seen}, source=source.name)
        window = meter.windows(reports, now_ms, {"r": source}).get("r")
        silent = "p" not in reports or now_ms - told_ms >= min(source.silent_ms, FORGOTTEN_MS)
        unchanged = "r" in meter.unchanged
        assert (window is None) is (silent or unchanged)
        if unchanged:
            assert step == "silent"
            continue
        state = law.step(window, now_ms)
        if silent and before is not None:
            assert (state.sessions, state.limit) == (before.sessions, before.limit)
        before = state


# -- refused -----------------------------------------------------------------------------------------

DECIDES = """
decide = "127.0.0.1:8083"
trusted_proxies = ["127.0.0.1"]
[[rooms]]
name = "shop"
host = "shop.example.com"
total_active_users = 40
new_users_per_minute = 40
capacity = "follow"
"""


FOLLOWS: Any = {"greenroom": {"capacity": "follow"}}


def problems(text: str) -> list[str]:
    try:
        config_of(tomllib.loads(text), needs_origin=False)
    except InvalidConfig as error:
        return [str(problem) for problem in error.problems]
    return []


def test_a_room_without_a_source_is_refused_in_a_file() -> None:
    assert problems('origin = "http://127.0.0.1:3000"\n' + DECIDES) == []
    (problem,) = problems(DECIDES)
    assert f"rooms[0].capacity: {NO_SOURCE}" in problem
    assert problems(DECIDES + 'capacity_metrics = "push"') == []
    check = '[[health_checks]]\nname = "up"\naddress = "shop.example.com"\n'
    assert problems(DECIDES + check) == []
    passes = 'native_pass = "hs256"\n[native_pass]\nsecret_file = "none"\n'
    served = DECIDES.replace('decide = "127.0.0.1:8083"', 'origin = "http://127.0.0.1:3000"')
    assert any(NO_SOURCE in problem for problem in problems(served + passes))


def test_the_api_and_the_form_refuse_it_in_the_same_words() -> None:
    """Both save only what brings no new fault."""
    room = {
        "name": "a",
        "host": "a.example.com",
        "total_active_users": 400,
        "new_users_per_minute": 400,
    }

    def stored(**more: str) -> Configuration:
        whole = {"zones": [{"name": "example.com", "waiting_rooms": [room | more]}]}
        ids = map(str, itertools.count())
        planned = make_true(whole, lambda _pointer, _url: [])(
            Configuration(), ChangeContext(1, lambda: next(ids))
        )
        return applied(Configuration(), planned.changes, 1)[0]

    decides = config_of(tomllib.loads(DECIDES.partition("[[rooms]]")[0]), needs_origin=False)
    (fault,) = new_faults(decides, stored(), stored(**FOLLOWS))
    assert (fault.unit, fault.reason) == ("room a", f"capacity: {NO_SOURCE}")
    pushed = stored(**FOLLOWS | {"greenroom": {"capacity": "follow", "capacity_metrics": "push"}})
    assert new_faults(decides, stored(), pushed) == []
    serves = config_of({"origin": "http://127.0.0.1:3000"})
    assert new_faults(serves, stored(), stored(**FOLLOWS)) == []


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("pull", "must be push, or the URL of a query of Prometheus"),
        ("http://prometheus.example/", "must end in ?query= and a selector"),
        ("http://prometheus.example/?query=", "must end in ?query= and a selector"),
        ("http://a:b@prometheus.example/?query=x", "must not contain a user name"),
        ("http://0x7f.1/?query=x", "0x7f.1"),
    ],
)
def test_a_query_that_cannot_be_asked_is_named(written: str, words: str) -> None:
    (problem,) = problems(DECIDES + f'capacity_metrics = "{written}"')
    assert "rooms[0].capacity_metrics" in problem
    assert words in problem


def test_a_server_that_the_outbound_guard_refuses_is_noted() -> None:
    def notes(text: str) -> list[str]:
        found = config_of(tomllib.loads(text), needs_origin=False).notes
        return [note for note in found if "capacity_metrics" in note]

    asks = DECIDES + "capacity_metrics = 'http://10.0.0.9:9090/q?query=x_bucket'\n"
    (closed,) = notes(asks)
    assert "port 9090 is not allowed" in closed
    (private,) = notes(asks + "[outbound]\nports = [9090]\n")
    assert "10.0.0.9 is not a public address" in private
    assert notes(asks + '[outbound]\nports = [9090]\nallow = ["10.0.0.9"]\n') == []
    assert notes(asks.replace("decide =", 'origin = "http://127.0.0.1:1"\ndecide =')) == []


def test_a_selector_is_asked_about_a_minute_and_encoded_once() -> None:
    quoted = "http://prometheus.example:9090/api/v1/query?query=x_bucket%7Bjob%3D%22shop%22%7D"
    for written in (URL, quoted):
        assert prometheus_target(written).url == f"{quoted}%5B1m%5D"


# -- Prometheus and probes ---------------------------------------------------------------------------


@pytest.mark.parametrize("url", [URL.replace("prometheus.example", "169.254.169.254"), URL])
def test_prometheus_is_asked_through_the_guard(url: str) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["10.0.0.7"]

    async def story() -> str:
        figures = PrometheusFigures(Guard(OutboundPolicy(ports=()), resolve), lambda: 0)
        await figures.ask([follows(capacity_metrics=url)])
        assert figures.reports() == {}
        return figures.reasons[follows().id]

    assert "is not a public address" in asyncio.run(story())


def test_figures_of_a_clock_ahead_grow_old_as_others_do() -> None:
    ahead = Exported(Histogram.of([100]), 0, at_ms=9_000)
    assert reports_of_push("r", {"a": ahead}, {}, 1_000)["push:r:a"].at_ms == 1_000


def test_a_push_that_comes_twice_late_or_overtaken_is_not_counted_again() -> None:
    now_ms = 1_000_000
    newest = {"a": Exported(Histogram.of([100] * 9), 0, now_ms - 1_000)}
    known = reports_of_push("r", newest, {}, now_ms)
    assert reports_of_push("r", newest, known, now_ms + 5) == {}
    overtaken = {"a": Exported(Histogram.of([100] * 5), 0, now_ms - 6_000)}
    assert reports_of_push("r", overtaken, known, now_ms) == {}
    assert reports_of_push("r", {"b": overtaken["a"]}, known, now_ms).keys() == {"push:r:b"}
    with pytest.raises(FiguresRefused, match="less than 30 s old, not 36 s"):
        reports_of_push("r", overtaken, {}, now_ms + 30_000)


def test_a_probe_counts_as_enough_documents_and_only_the_verdict_as_failure() -> None:
    probes = ProbeFigures()
    assert probes.report("r", 60_000, False, 1_000_000) is None, "nothing was probed"
    probes.probed("r", ProbeResult(ttfb_ms=120.0, code=200), 1_000_000)
    probes.probed("r", ProbeResult("HTTP timeout occurred"), 1_001_000)
    well = probes.report("r", 60_000, False, 1_002_000)
    assert well is not None
    assert (well.rooms["r"].documents.total, well.rooms["r"].failed) == (PROBE_DOCUMENTS, 0)
    bad = probes.report("r", 60_000, True, 1_003_000)
    assert bad is not None
    assert bad.rooms["r"].failed == PROBE_DOCUMENTS
    assert probes.report("r", 60_000, False, 1_200_000) is None, "probes have ended"
    probes.keep(set())
    assert probes.report("r", 60_000, False, 1_002_000) is None


def test_a_room_is_probed_by_the_checks_of_its_host() -> None:
    text = DECIDES + '[[health_checks]]\nname = "up"\naddress = "other.example.com"\n'
    assert NO_SOURCE in problems(text)[0], "another host's check is none of this room"
