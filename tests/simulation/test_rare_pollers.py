"""Visitors whose phones sleep: they try every 45 to 180 seconds, and enter about as soon as those
who are there all the time.
"""

from dataclasses import replace
from statistics import median, quantiles

import pytest
from small_worlds import little, watched

from greenroom.admission.ledger.ledger import Ledger
from greenroom.simulator import lease_model
from greenroom.simulator.checks import verdict
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Behaviour, Scenario
from greenroom.simulator.traces import room

HABITS = Behaviour(visit_s=20, sleeping=0.15, dropping=0.1, leaving=1.0)
OFTEN = little(
    behaviour=HABITS, arrivals=[(700 * number, number % 3) for number in range(857)], lasts_s=1000
)
"""A permit every two or three seconds in each of three data centers."""
RARE = little(
    room=replace(room(2, 60), confirm_newcomers=False),
    centers=1,
    arrivals=[(120_000 * number, 0) for number in range(120)],
    lasts_s=15_000,
    laws_every_s=60,
    behaviour=Behaviour(visit_s=200, sleeping=0.15, dropping=0.1, leaving=1.0),
)
"""Room for two, and a permit every two minutes."""
SEEDS = (2, 3)
PHONES = little(
    room=room(200, 200),
    centers=4,
    behaviour=Behaviour(sleeping=0.15, sleep_s=(60, 60)),
    arrivals=[(480 * number, number % 4) for number in range(1250)],
    lasts_s=1000,
    laws_every_s=60,
)
"""A room for 200 in four data centers; phones sleep for a minute."""


def waits(scenario: Scenario) -> tuple[float, float, float]:
    """Nine of ten who are there, and of those who sleep, wait so long, in seconds; capacity unused."""
    found: tuple[list[float], list[float]] = ([], [])
    watch = watched(scenario, SEEDS[0])
    assert verdict(watch) == []
    for visitor in watch.world.crowd.visitors:
        found[visitor.gap_ms > 0].append(visitor.wait_s if visitor.entered_ms else scenario.lasts_s)
    unused = report(watch.world).unused or 0.0
    return quantiles(found[0], n=10)[8], quantiles(found[1], n=10)[8], unused


@pytest.mark.needs("patching")
def test_where_permits_come_often_who_sleeps_waits_little_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompt_s, asleep_s, unused = waits(OFTEN)
    assert asleep_s <= prompt_s + 90
    monkeypatch.setattr(lease_model, "HELD_MS", 0)
    monkeypatch.setattr(Ledger, "keep", lambda *_: None)
    _, before_s, unused_before = waits(OFTEN)
    assert before_s > prompt_s + 180, "the answers are not held, and the test does not notice"
    assert unused <= unused_before


@pytest.mark.needs("patching")
def test_where_permits_come_rarely_the_next_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asleep_s, unused = waits(RARE)
    assert asleep_s <= 700
    assert unused <= 0.04
    monkeypatch.setattr(Ledger, "keep", lambda *_: None)
    _, before_s, _ = waits(RARE)
    assert before_s > 1.4 * asleep_s, "no permit is kept, and the test does not notice"


def extra_wait_s() -> tuple[float, float]:
    """Median by which who sleeps waits longer than who came within 5 s and does not, in seconds,
    where that is more than 20; capacity unused. Over both seeds.
    """
    extra, unused = [], 0.0
    for seed in SEEDS:
        watch = watched(PHONES, seed)
        assert verdict(watch) == []
        unused += (report(watch.world).unused or 0.0) / len(SEEDS)
        crowd = [one for one in watch.world.crowd.visitors if one.entered_ms and one.tries > 1]
        prompt = [one for one in crowd if not one.gap_ms]
        for sleeper in (one for one in crowd if one.gap_ms):
            near = [one.wait_s for one in prompt if abs(one.came_ms - sleeper.came_ms) <= 5_000]
            if near and (others_s := median(near)) > 20:
                extra.append(sleeper.wait_s - others_s)
    return median(extra), unused


@pytest.mark.needs("patching")
def test_who_is_due_soon_is_held_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    extra_s, unused = extra_wait_s()
    assert extra_s <= 25
    monkeypatch.setattr(lease_model, "is_due", lambda outcome: outcome.called)
    before_s, unused_before = extra_wait_s()
    assert before_s > extra_s + 5, "only who is called is held, and the test does not notice"
    assert unused <= unused_before + 0.001
