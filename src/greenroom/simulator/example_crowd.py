"""The last wait of an example crowd, shown at the form of the limits. A run ends early: once the
room is full, visitors enter at a constant pace, measured over whole stays after the first, because
visitors who entered together leave together. With fewer than STAYS stays the answer is a lower
bound.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from greenroom.simulator.arrivals import from_curve
from greenroom.simulator.chance import Streams
from greenroom.simulator.dry_run import scale_of, scaled
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.sale import sale
from greenroom.simulator.scenario import START_MS, Behaviour
from greenroom.simulator.world import World

VISITORS, MINUTES, VISIT_S = 10_000, 10, 120.0

SIMULATED_LEAST = 50
STAYS = 3

REFRESH_S = 60
"""Tries dominate the runtime."""

TRIES_MAX = 50_000
"""About a second on one core."""

SEEN_MAX_S = 2 * 86_400
STEP_S = 30

FILLINGS = 3


class LastWait(NamedTuple):
    seconds: float
    least: bool = False


def last_wait(settings: Mapping[str, Any], streams: Callable[[], Streams]) -> LastWait:
    """Raises InvalidConfig."""
    part = scale_of(VISITORS, settings)
    stay_s = settings["session_duration"] * 60 + (
        0.0 if settings["disable_session_renewal"] else VISIT_S
    )
    expected = round(VISITORS / part)
    limits = {**scaled(settings, part), "refresh_max_seconds": REFRESH_S}
    fitting = max(
        SIMULATED_LEAST,
        int(TRIES_MAX * REFRESH_S / (2 * STAYS * stay_s)),
        FILLINGS * limits["total_active_users"],
    )
    simulated = min(expected, fitting)
    world = _world(limits, simulated, MINUTES * simulated / expected, streams())
    _run(world)
    if world.crowd.settled and simulated == expected:
        return LastWait(max(visitor.wait_s for visitor in world.crowd.visitors))
    entered = sorted(
        (visitor.entered_ms - START_MS) / 1000
        for visitor in world.crowd.visitors
        if visitor.entered_ms
    )
    seen_s = entered[-1] if world.crowd.settled else (world.agenda.now_ms - START_MS) / 1000
    return _projected(entered, expected, seen_s, stay_s)


def _world(settings: Mapping[str, Any], visitors: int, minutes: float, draw: Streams) -> World:
    arrivals = from_curve(draw("arrivals"), "flat", visitors, minutes, 1)
    world = World(sale(settings, arrivals, 1, Behaviour(visit_s=VISIT_S)), draw)
    if isinstance(world.system, LeaseModel):
        world.system.forecast_nothing()
    return world


def _run(world: World) -> None:
    tries, at_s = 0.0, 0
    while not world.crowd.settled and tries <= TRIES_MAX and at_s < SEEN_MAX_S:
        at_s += STEP_S
        world.agenda.run(START_MS + at_s * 1000)
        tries += world.ground_truth.waiting * STEP_S / REFRESH_S


def _projected(entered: list[float], expected: int, seen_s: float, stay_s: float) -> LastWait:
    stays = int(seen_s / stay_s) - 1
    let_in = sum(second > seen_s - stays * stay_s for second in entered)
    if stays + 1 < STAYS or not let_in:
        return LastWait(max(0.0, seen_s - MINUTES * 60), least=True)
    last_s = seen_s + (expected - len(entered)) * stays * stay_s / let_in
    return LastWait(max(0.0, last_s - MINUTES * 60))
