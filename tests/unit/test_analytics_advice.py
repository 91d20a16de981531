"""Advice about simulated rooms: each planted mistake is named, and nothing else."""

from collections import deque
from collections.abc import Callable

import pytest

from greenroom.analytics.advice import (
    AdviceEvent,
    AdviceFacts,
    AdviceStep,
    advise,
    cause,
)

HOUR = 60


def simulated(
    *,
    minutes: int = 3 * HOUR,
    arrivals: Callable[[int], float] = lambda _: 30,
    limit: int = 300,
    rate: int = 60,
    session: int = 5,
    visit: tuple[float, float] = (4, 8),
    opens: int | None = None,
    start: int = 0,
) -> AdviceFacts:
    """A room by the minute, whose visitors keep a place for their visit and a session. Visits of
    `visit` minutes (median, p95) are simulated by their median.
    """
    ends: deque[tuple[float, float]] = deque()
    active = waiting = 0.0
    steps = []
    for minute in range(minutes):
        while ends and ends[0][0] <= minute:
            active -= ends.popleft()[1]
        came = arrivals(minute)
        free = limit - active if minute >= start else 0
        let_in = max(0.0, min(rate, free, waiting + came))
        waiting += came - let_in
        active += let_in
        ends.append((minute + session + visit[0], let_in))
        steps.append(AdviceStep(minute * 60, active, limit, let_in, rate, let_in, round(waiting)))
    events = (AdviceEvent("sale", opens * 60, start * 60),) if opens is not None else ()
    sessions = sum(step.admitted for step in steps)
    median_s, p95_s = (60 * one for one in visit)
    return AdviceFacts(steps, 60, session * 60, True, sessions, (median_s, p95_s), events)


def rush(minute: int) -> float:
    return 200 if minute < 20 else 10


ROOMS = {
    "well set: nobody waits": (simulated(), []),
    "well set: a rush that both limits slow": (
        simulated(arrivals=rush, limit=300, rate=40, session=5),
        [],
    ),
    "sessions longer than visits": (
        simulated(arrivals=lambda _: 50, limit=300, rate=25, session=15, visit=(2, 5)),
        ["session_too_long"],
    ),
    "a rate too low for the capacity": (
        simulated(arrivals=lambda _: 60, limit=1000, rate=40),
        ["rate_too_low"],
    ),
    "a rate that overshoots": (
        simulated(arrivals=lambda _: 90, limit=300, rate=300, session=5),
        ["rate_overshoots"],
    ),
    "a pre-queue too short for the crowd": (
        simulated(
            arrivals=lambda minute: 5 if minute < 24 else 100 if minute < 30 else 10,
            opens=0,
            start=30,
            limit=1200,
            rate=100,
            minutes=50,
            session=5,
        ),
        ["prequeue_too_short"],
    ),
    "limits that are never reached": (
        simulated(minutes=24 * HOUR, arrivals=lambda _: 5, limit=1000, rate=100),
        ["limits_never_reached"],
    ),
    "the same, of one hour: too little data": (
        simulated(minutes=HOUR, arrivals=lambda _: 5, limit=1000, rate=100),
        [],
    ),
    "sessions too long, but twenty minutes of data": (
        simulated(minutes=20, arrivals=lambda _: 50, rate=25, session=15, visit=(2, 5)),
        [],
    ),
    "nothing recorded": (AdviceFacts((), 60, 300, True, 0, None), []),
}


@pytest.mark.parametrize("name", ROOMS)
def test_each_planted_mistake_is_named_and_no_other(name: str) -> None:
    facts, words = ROOMS[name]
    assert [one.word for one in advise(facts)] == words


def test_each_advice_says_the_figures_it_rests_on() -> None:
    (found,) = advise(ROOMS["sessions longer than visits"][0])
    assert "95 % of visitors leave within 5 minutes; sessions last 15 minutes." in found.text
    assert "About 88% of the time" in found.text
    assert found.setting == "session_duration"


def test_the_cause_of_a_line_is_the_limit_that_binds() -> None:
    free = AdviceStep(0, 10, 100, 5, 50, 5, 9)
    assert cause(free._replace(waiting=0)) == ""
    assert cause(free) == "hold"
    assert cause(free._replace(active=99)) == "active"
    assert cause(free._replace(rate=50)) == "rate"
    assert cause(free._replace(active=100, rate=50)) == "both"
