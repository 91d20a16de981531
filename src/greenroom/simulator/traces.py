"""Ready-made scenarios, by name, in the table TRACES. All have 20 data centers unless the name says otherwise."""

from collections.abc import Callable, Sequence
from math import exp, pi, sin, sqrt

from greenroom.model.room import Room
from greenroom.simulator.chance import Draw, Streams, between, weighted
from greenroom.simulator.scenario import Behaviour, Fault, Network, Scenario

CENTERS = 20
L, N = 2_000, 1_200
"""Limits of the middle-sized room in most traces: visits of a minute and sessions of a minute keep about 1,000 inside at N."""


def room(total: int = L, per_minute: int = N, minutes: int = 1, method: str = "fifo") -> Room:
    """A room for a trace."""
    return Room(
        name="trace",
        host="*",
        total_active_users=total,
        new_users_per_minute=per_minute,
        session_duration=minutes,
        queueing_method=method,
    )


def arrivals(draw: Draw, lasts_s: float, rates: Callable[[float], Sequence[float]], step_s: float = 1.0) -> list[tuple[int, int]]:
    """Poisson arrivals: `rates(second)` are arrivals per second in each data center."""
    found: list[tuple[int, int]] = []
    second = 0.0
    while second < lasts_s:
        now = rates(second)
        sums, total = [], 0.0
        for rate in now:
            total += rate
            sums.append(total)
        count = poisson(draw, total * step_s)
        found += [(int((second + draw.random() * step_s) * 1000), weighted(draw, sums)) for _ in range(count)]
        second += step_s
    found.sort()
    return found


def poisson(draw: Draw, mean: float) -> int:
    """How many of many unlikely things happen. Above 50 as a rounded normal, which is as good."""
    if mean > 50:
        normal = sum(draw.random() for _ in range(12)) - 6
        return max(0, round(mean + normal * sqrt(mean)))
    count, product, limit = 0, draw.random(), exp(-mean)
    while product > limit:
        count += 1
        product *= draw.random()
    return count


def shares(draw: Draw, centers: int, tail: float = 0.8) -> list[float]:
    """How traffic divides among data centers: few large ones, many small ones."""
    weights = [1 / (rank + 1) ** tail for rank in range(centers)]
    for index in range(centers - 1, 0, -1):
        other = between(draw, 0, index)
        weights[index], weights[other] = weights[other], weights[index]
    total = sum(weights)
    return [weight / total for weight in weights]


def steady(streams: Streams) -> Scenario:
    """A third more visitors than may enter for 15 minutes, then fewer."""
    part = shares(streams("trace"), CENTERS)

    def rates(second: float) -> list[float]:
        total = N / 60 * (0.7 if second < 300 or second > 1200 else 1.3)
        return [total * one for one in part]

    return Scenario("steady", room(), CENTERS, arrivals(streams("trace"), 2100, rates), 2700, Behaviour(patience_s=3600))


def day_curve(streams: Streams) -> Scenario:
    """A day in an hour: a noon above the limits, nights far below, and each data center has its own time of day."""
    part = shares(streams("trace"), CENTERS, 0.4)

    def rates(second: float) -> list[float]:
        turn = 2 * pi * second / 3600
        return [N / 60 * one * (0.75 + 0.55 * sin(turn - pi / 2 + place / CENTERS * pi / 2)) for place, one in enumerate(part)]

    return Scenario("day curve", room(), CENTERS, arrivals(streams("trace"), 3600, rates), 4000)


def flash_sale(streams: Streams) -> Scenario:
    """A hundred thousand people within a minute."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    found = arrivals(draw, 60, lambda _: [100_000 / 60 * one for one in part])
    return Scenario("flash sale", room(20_000, 12_000), CENTERS, found, 960, Behaviour(patience_s=7200))


Maker = Callable[[Streams], Scenario]

TRACES: dict[str, Maker] = {"steady": steady, "day curve": day_curve, "flash sale": flash_sale}

__all__ = ["TRACES", "Fault", "Network", "arrivals", "room", "shares"]
