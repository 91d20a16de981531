"""Probes are spread over the interval, jitter a little, never drift and come no closer than they
should.
"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from greenroom.health.rules.roster import (
    LOCAL,
    Agent,
    asked,
    lost_agents,
    remembered,
)
from greenroom.health.rules.schedule import next_due_ms, phase_ms
from greenroom.model.health_check import HealthCheck

ids = st.text("0123456789abcdef", min_size=4, max_size=32)


@given(ids, ids, st.integers(1, 3_600), st.integers(0, 2_000_000_000_000))
def test_the_next_probe_is_later_and_at_most_an_interval_and_its_jitter_away(
    check: str, agent: str, interval_s: int, now_ms: int
) -> None:
    interval = interval_s * 1000
    due = next_due_ms(check, agent, interval, now_ms)
    assert now_ms < due <= now_ms + interval * 1.05 + 1
    assert next_due_ms(check, agent, interval, due - 1) == due, (
        "a restart at any moment finds the same probe"
    )


@given(ids, st.integers(1, 3_600))
def test_places_do_not_drift(check: str, interval_s: int) -> None:
    interval, at, times = interval_s * 1000, 10**12, []
    for _ in range(50):
        at = next_due_ms(check, "local", interval, at)
        times.append(at)
    assert all(
        interval * 0.9 <= later - earlier <= interval * 1.1 for earlier, later in pairwise(times)
    )
    phase = phase_ms(check, "local", interval)
    assert all(
        min((at - phase) % interval, (phase - at) % interval) <= min(interval / 40, 1_000) + 1
        for at in times
    )


def test_ten_thousand_checks_fill_the_minute_evenly() -> None:
    seconds = [0] * 60
    for number in range(10_000):
        seconds[next_due_ms(f"check{number}", "local", 60_000, 0) // 1000 % 60] += 1
    assert max(seconds) < 250, "167 on average"


def check(*regions: str, id: str = "c") -> HealthCheck:
    return HealthCheck(id=id, name="c", address="a", check_regions=regions or None)


def roster(*agents: tuple[str, str], heard_ms: int = 0) -> dict[str, Agent]:
    return {name: Agent(name, region, heard_ms, 5_000) for name, region in agents}


def test_regions_collapse_into_the_own_agent_until_one_of_them_has_agents() -> None:
    own = roster((LOCAL, ""))
    assert asked(check("WEU", "OC"), own, 0) == {"": (LOCAL,)}
    assert asked(check(), own, 0) == {"": (LOCAL,)}
    assert asked(check("WEU", "OC"), own | roster(("a", "OC")), 0) == {"OC": ("a",)}
    assert asked(check(), own | roster(("a", "OC")), 0) == {"": (LOCAL,)}
    assert asked(check(), roster(("a", "OC"), ("b", "WEU")), 0) == {"WEU": ("b",)}
    assert asked(check("ME"), roster(("a", "OC")), 0) == {}


def test_three_agents_of_a_region_probe_and_living_ones_go_first() -> None:
    many = roster(*((f"a{number}", "WEU") for number in range(9)))
    chosen = asked(check("WEU"), many, 0)["WEU"]
    assert len(chosen) == 3
    assert {
        name
        for number in range(50)
        for name in asked(check("WEU", id=f"c{number}"), many, 0)["WEU"]
    } == set(many), "all share the work"
    alive = roster(*((name, "WEU") for name in set(many) - set(chosen)), heard_ms=60_000)
    instead = asked(check("WEU"), many | alive, 60_000)["WEU"]
    assert not set(instead) & set(chosen)


def test_an_agent_is_lost_after_three_reports_and_forgotten_after_a_day() -> None:
    known = roster(("a", "WEU"))
    assert lost_agents(known, 15_000) == set()
    assert lost_agents(known, 15_001) == {"a"}
    assert remembered(known, 24 * 3_600_000) == known
    assert remembered(known, 24 * 3_600_000 + 1) == {}
