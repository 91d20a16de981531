"""What the quorum promises, in worlds where agents are lost, late, lying and flapping; and rules
that are broken on purpose are caught.
"""

from collections.abc import Callable

import pytest
from health_world import (
    REPORT_MS,
    START_MS,
    Behaviour,
    Rules,
    World,
    check,
    first_result_counts,
    of_those_who_answered,
    one_is_enough,
    order_of_arrival,
    silence_is_failure,
    verdict_without_memory,
    votes_never_age,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.health.rules.condition import patience_ms
from greenroom.health.rules.votes import HEALTHY, UNHEALTHY, UNKNOWN
from greenroom.model.health_check import REGIONS

MINUTE = 60_000


def agents(
    regions: int, each: int, behaviours: dict[str, Behaviour] | None = None
) -> dict[str, tuple[str, Behaviour]]:
    """`each` agents in so many regions, named WNAM0, WNAM1 ..."""
    return {
        f"{region}{number}": (region, (behaviours or {}).get(f"{region}{number}", Behaviour()))
        for region in REGIONS[:regions]
        for number in range(each)
    }


def always_up(_region: str, _at_ms: int) -> bool:
    return False


def always_down(_region: str, _at_ms: int) -> bool:
    return True


def down_from(offset_ms: int, regions: tuple[str, ...] = REGIONS) -> Callable[[str, int], bool]:
    return lambda region, at_ms: region in regions and at_ms >= START_MS + offset_ms


def test_a_healthy_origin_becomes_healthy_without_an_alert() -> None:
    world = World(check(interval=10, check_regions=("ALL_REGIONS",)), agents(13, 3), always_up).run(
        2 * MINUTE
    )
    assert [status for _, status in world.statuses] == [UNKNOWN, HEALTHY]
    assert [turn.event for _, turn in world.turns] == ["none"]


@pytest.mark.parametrize(("down", "alarmed"), [(6, False), (7, True)])
def test_thirteen_regions_need_seven(down: int, alarmed: bool) -> None:
    world = World(
        check(interval=10, check_regions=("ALL_REGIONS",)),
        agents(13, 3),
        down_from(MINUTE, REGIONS[:down]),
    ).run(3 * MINUTE)
    assert bool(world.alarms()) is alarmed
    assert world.state.status == (UNHEALTHY if alarmed else HEALTHY)
    assert world.state.failing == (REGIONS[:7] if alarmed else ())


@pytest.mark.parametrize(("fails", "interval"), [(1, 10), (3, 10), (2, 30)])
def test_an_outage_is_noticed_after_so_many_probes_and_no_later_than_one_interval_more(
    fails: int, interval: int
) -> None:
    begins = 5 * interval * 1000
    wanted = check(interval=interval, consecutive_fails=fails, check_regions=("WEU",))
    world = World(wanted, {"a": ("WEU", Behaviour())}, down_from(begins)).run(
        begins + (fails + 3) * interval * 1000
    )
    (at_ms,) = world.alarms()
    took_ms = at_ms - START_MS - begins
    assert (fails - 1) * interval * 950 <= took_ms <= fails * interval * 1050


def test_start_and_end_of_an_incident_have_one_correlation_id_and_the_next_incident_another() -> (
    None
):
    def twice(_region: str, at_ms: int) -> bool:
        return (at_ms - START_MS) // MINUTE in (1, 2, 5)

    world = World(
        check(interval=10, check_regions=("WEU",)), {"a": ("WEU", Behaviour())}, twice
    ).run(8 * MINUTE)
    turns = [turn for _, turn in world.turns if turn.event != "none"]
    assert [turn.event for turn in turns] == ["start", "end", "start", "end"]
    assert turns[0].incident == turns[1].incident != turns[2].incident == turns[3].incident
    assert turns[1].since_failure_ms <= 11_000


def test_when_too_few_report_the_status_is_unknown_without_an_alarm() -> None:
    gone = Behaviour(lost_after_ms=MINUTE)
    world = World(
        check(interval=10, check_regions=("WNAM",)),
        agents(1, 3, {"WNAM0": gone, "WNAM1": gone}),
        always_up,
    ).run(5 * MINUTE)
    assert [status for _, status in world.statuses] == [UNKNOWN, HEALTHY, UNKNOWN]
    assert world.alarms() == []


def test_an_agent_that_takes_the_place_of_a_lost_one_restores_the_verdict() -> None:
    gone = {f"WNAM{number}": Behaviour(lost_after_ms=MINUTE) for number in range(3)}
    world = World(check(interval=10, check_regions=("WNAM",)), agents(1, 6, gone), always_up).run(
        5 * MINUTE
    )
    assert world.state.status == HEALTHY


def test_a_restart_keeps_the_status_and_raises_no_alarm() -> None:
    sick = World(
        check(interval=10, check_regions=("WEU",)), {"a": ("WEU", Behaviour())}, always_down
    ).run(MINUTE)
    again = World(sick.check, sick.agents, always_down, state=sick.state).run(
        10 * MINUTE, START_MS + MINUTE
    )
    assert again.turns == []
    assert [status for _, status in again.statuses] == [UNHEALTHY]


def test_being_undecided_longer_than_a_restart_takes_is_said_as_unknown_and_the_incident_stays_open() -> (
    None
):
    sick = World(
        check(interval=10, check_regions=("WEU",)), {"a": ("WEU", Behaviour())}, always_down
    ).run(MINUTE)
    silent = World(
        sick.check, {"a": ("WEU", Behaviour(lost_after_ms=0))}, always_down, state=sick.state
    )
    silent.run(patience_ms(sick.check) + MINUTE, START_MS + MINUTE)
    assert (silent.state.status, silent.turns, silent.state.incident) == (
        UNKNOWN,
        [],
        sick.state.incident,
    )
    back = World(sick.check, sick.agents, always_up, state=silent.state).run(
        MINUTE, START_MS + 5 * MINUTE
    )
    assert [turn.event for _, turn in back.turns] == ["end"]


losses = st.one_of(st.none(), st.integers(0, 4 * MINUTE))
lateness = st.sampled_from([0, 0, 3_000, 30_000, 10 * MINUTE])


@st.composite
def truthful_worlds(draw: st.DrawFn) -> World:
    """Agents that are lost, late, doubled or not; in each region at most one of three lies or
    flaps.
    """
    regions, each = draw(st.integers(1, 5)), draw(st.integers(3, 4))
    wanted = check(
        interval=draw(st.sampled_from([5, 10, 30])),
        consecutive_fails=draw(st.integers(1, 3)),
        check_regions=tuple(REGIONS[:regions]),
    )
    behaviours = {}
    for region in REGIONS[:regions]:
        odd = draw(st.integers(-1, 2))
        for number in range(each):
            behaviours[f"{region}{number}"] = Behaviour(
                lost_after_ms=draw(losses),
                late_ms=draw(lateness),
                lies=each == 3 and number == odd and draw(st.booleans()),
                flaps=each == 3 and number == odd and draw(st.booleans()),
                doubled=draw(st.booleans()),
            )
    return World(wanted, agents(regions, each, behaviours), always_up)


@given(truthful_worlds())
@settings(max_examples=60, deadline=None)
def test_lost_late_and_single_lying_agents_never_make_a_healthy_origin_unhealthy(
    world: World,
) -> None:
    world.run(5 * MINUTE)
    assert world.alarms() == []
    assert UNHEALTHY not in [status for _, status in world.statuses]


@given(st.integers(1, 5), st.integers(0, 2), st.sampled_from([0, 2_000, 4_000]))
@settings(max_examples=20, deadline=None)
def test_an_outage_is_seen_as_long_as_two_of_three_report_whichever_way_the_third_votes(
    regions: int, odd: int, late_ms: int
) -> None:
    strange = {
        f"{region}{odd}": Behaviour(lies=True, late_ms=late_ms) for region in REGIONS[:regions]
    }
    world = World(
        check(interval=10, check_regions=REGIONS[:regions]),
        agents(regions, 3, strange),
        down_from(MINUTE),
    ).run(3 * MINUTE)
    assert START_MS + MINUTE <= world.alarms()[0] <= START_MS + MINUTE + 11_000
    assert world.state.status == UNHEALTHY


LOST = agents(
    3,
    1,
    {
        "WNAM0": Behaviour(lies=True),
        "ENAM0": Behaviour(lost_after_ms=MINUTE),
        "WEU0": Behaviour(lost_after_ms=MINUTE),
    },
)
ALONE = {"a": ("WEU", Behaviour())}


def blinks(_region: str, at_ms: int) -> bool:
    """One probe in six fails."""
    return (at_ms - START_MS) // 10_000 % 6 == 5


def once_down(_region: str, at_ms: int) -> bool:
    return MINUTE <= at_ms - START_MS < 2 * MINUTE


CAUGHT = {
    "the majority of those who answered": (
        Rules(judged=of_those_who_answered),
        LOST,
        always_up,
        1,
        0,
    ),
    "one vote condemns": (
        Rules(judged=one_is_enough),
        agents(3, 3, {"WNAM0": Behaviour(lies=True)}),
        always_up,
        1,
        0,
    ),
    "silence is failure": (
        Rules(judged=silence_is_failure),
        agents(1, 3, {n: Behaviour(lost_after_ms=MINUTE) for n in ("WNAM0", "WNAM1")}),
        always_up,
        1,
        0,
    ),
    "consecutive_fails is not looked at": (Rules(counted=first_result_counts), ALONE, blinks, 2, 0),
    "reports count in the order of arrival": (
        Rules(counted=order_of_arrival),
        {"a": ("WEU", Behaviour(doubled=True))},
        once_down,
        1,
        1,
    ),
    "a moment without decision is forgotten": (
        Rules(advanced=verdict_without_memory),
        agents(1, 3, {"WNAM0": Behaviour(lost_after_ms=MINUTE), "WNAM1": Behaviour(flaps=True)}),
        always_down,
        1,
        1,
    ),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_broken_rule_alarms_where_the_real_one_does_not(name: str) -> None:
    rules, people, down, fails, alarms = CAUGHT[name]
    regions = tuple({region: None for region, _ in people.values()})
    wanted = check(interval=10, consecutive_fails=fails, check_regions=regions)
    assert len(World(wanted, people, down).run(6 * MINUTE).alarms()) == alarms
    assert len(World(wanted, people, down, rules).run(6 * MINUTE).alarms()) != alarms


def test_votes_that_never_age_are_caught() -> None:
    """All agents vanish; the real rule says unknown, the broken one goes on saying healthy."""
    gone = agents(1, 3, {f"WNAM{number}": Behaviour(lost_after_ms=MINUTE) for number in range(3)})
    wanted = check(interval=10, check_regions=("WNAM",))
    assert World(wanted, gone, always_up).run(6 * MINUTE).state.status == UNKNOWN
    assert (
        World(wanted, gone, always_up, Rules(judged=votes_never_age)).run(6 * MINUTE).state.status
        == HEALTHY
    )


def test_the_time_between_reports_is_what_the_world_assumes() -> None:
    assert patience_ms(check(interval=10)) >= REPORT_MS * 3
