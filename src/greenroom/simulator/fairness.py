"""Whether a random room is fair: to early and late comers, and to those who keep trying."""

from dataclasses import dataclass

from greenroom.simulator.scenario import START_MS
from greenroom.simulator.world import World


@dataclass(frozen=True, slots=True)
class Fairness:
    """Of everybody who waited when the last visitor came; the winners are the half admitted
    first.
    """

    distance: float
    """Kolmogorov-Smirnov distance between the winners' ranks by arrival and an even spread: 0 is
    fair.
    """
    advantage: float
    """Of those who tried ten times as often: 1 is fair."""
    waited: int
    winners: int


def fairness(world: World) -> Fairness | None:
    if not world.scenario.arrivals:
        return None
    last_ms = START_MS + world.scenario.arrivals[-1][0]
    visitors = [
        visitor
        for visitor in world.crowd.visitors
        if not visitor.once and visitor.came_ms <= last_ms
    ]
    waited = sorted(
        (one for one in visitors if not one.entered_ms or one.entered_ms > last_ms),
        key=lambda one: one.key,
    )
    entered = sorted((one.entered_ms, place) for place, one in enumerate(waited) if one.entered_ms)
    winners = sorted(place for _, place in entered[: len(waited) // 2])
    if not winners:
        return None
    ranks = [(place + 0.5) / len(waited) for place in winners]
    distance = max(
        max(abs(rank - index / len(ranks)), abs(rank - (index + 1) / len(ranks)))
        for index, rank in enumerate(ranks)
    )
    won = set(winners)
    chances = []
    for eager in (True, False):
        group = [place for place, one in enumerate(waited) if one.reloads is eager]
        chances.append(sum(place in won for place in group) / len(group) if group else 0.0)
    return Fairness(
        distance, chances[0] / chances[1] if chances[1] else 0.0, len(waited), len(winners)
    )
