"""Predefined scenarios, by name, in the table TRACES. All have 20 data centers unless the name says
otherwise.
"""

from collections.abc import Callable, Sequence
from math import pi, sin

from greenroom.model.room import Room
from greenroom.simulator.arrivals import arrivals, shares
from greenroom.simulator.chance import Streams
from greenroom.simulator.scenario import Behaviour, Fault, NetworkProfile, Scenario

CENTERS = 20
L, N = 2_000, 1_200
VISIT_S = 60.0
FENCE_S = 180  # shorter than the default, so that it takes part in the traces
PER_S = min(N / 60, L / (VISIT_S + 60))
"""A visit of a minute, and the session of a minute after it."""


def room(total: int = L, per_minute: int = N, minutes: int = 1, method: str = "fifo") -> Room:
    return Room(
        name="trace",
        host="*",
        total_active_users=total,
        new_users_per_minute=per_minute,
        session_duration=minutes,
        queueing_method=method,
    )


def level(part: Sequence[float], total: float) -> list[float]:
    return [total * one for one in part]


def wave(
    part: Sequence[float],
    second: float,
    from_s: float,
    until_s: float,
    high: float = 1.3,
    low: float = 0.7,
) -> list[float]:
    """Relative to capacity."""
    return level(part, PER_S * (high if from_s <= second < until_s else low))


def steady(streams: Streams) -> Scenario:
    """A third more visitors than can enter for 15 minutes, fewer before and after."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    return Scenario(
        "steady",
        room(),
        CENTERS,
        arrivals(draw, 1800, lambda second: wave(part, second, 300, 1200)),
        2100,
    )


def one_site_spike(streams: Streams) -> Scenario:
    """Low traffic, fifty times as much at one data center for two minutes, then at another."""
    draw = streams("trace")
    part = shares(draw, CENTERS)

    def rates(second: float) -> list[float]:
        found = level(part, PER_S * 0.4)
        if second % 600 >= 300 and second % 600 < 420:
            found[int(second // 600) * 7 % CENTERS] += PER_S * 3
        return found

    return Scenario("one-site spike", room(), CENTERS, arrivals(draw, 1800, rates), 2100)


def global_spike(streams: Streams) -> Scenario:
    """Six times as many visitors as can enter, everywhere for two minutes, after low traffic."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    found = arrivals(draw, 1500, lambda second: wave(part, second, 300, 420, 6.0, 0.4))
    return Scenario("global spike", room(), CENTERS, found, 1800)


def moving_spike(streams: Streams) -> Scenario:
    """A crowd larger than can enter moves to other data centers every two minutes."""
    draw = streams("trace")

    def rates(second: float) -> list[float]:
        found = [PER_S * 0.2 / CENTERS] * CENTERS
        if second < 1200:
            for near in range(3):
                found[(int(second // 120) * 3 + near) % CENTERS] += PER_S * 0.37
        return found

    return Scenario("moving spike", room(), CENTERS, arrivals(draw, 1500, rates), 1800)


def flash_sale(streams: Streams) -> Scenario:
    """A hundred thousand visitors within a minute."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    found = arrivals(draw, 60, lambda _: level(part, 100_000 / 60))
    return Scenario(
        "flash sale", room(20_000, 12_000), CENTERS, found, 900, Behaviour(patience_s=7200)
    )


def surge(streams: Streams) -> Scenario:
    """A nearly full room, thrice as many for three minutes, then just as many as may enter."""
    draw = streams("trace")
    part = shares(draw, CENTERS)

    def rates(second: float) -> list[float]:
        return level(part, PER_S * (3.0 if 600 <= second < 780 else 0.9 if second < 600 else 1.0))

    return Scenario(
        "surge",
        room(minutes=2),
        CENTERS,
        arrivals(draw, 1800, rates),
        2400,
        Behaviour(visit_s=60, leaving=0.5),
    )


def heavy_tail(streams: Streams) -> Scenario:
    """Most data centers have almost no visitors; most visits are short, some very long."""
    draw = streams("trace")
    part = shares(draw, CENTERS, 1.6)
    found = arrivals(draw, 1800, lambda second: wave(part, second, 300, 1200))
    return Scenario(
        "heavy tail",
        room(1_500),
        CENTERS,
        found,
        2100,
        Behaviour(visit_s=60, heavy_tail=True, patience_s=1200),
    )


def day_curve(streams: Streams) -> Scenario:
    """A day in an hour: above the limits at noon; each data center has its own time of day."""
    draw = streams("trace")
    part = shares(draw, CENTERS, 0.4)

    def rates(second: float) -> list[float]:
        turn = 2 * pi * second / 3600
        return [
            PER_S * one * (0.75 + 0.55 * sin(turn - pi / 2 + place / CENTERS * pi / 2))
            for place, one in enumerate(part)
        ]

    return Scenario("day curve", room(), CENTERS, arrivals(draw, 3600, rates), 3900)


def outage(streams: Streams) -> Scenario:
    """Two large data centers are away for three minutes, and their visitors go to the others."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    large = sorted(range(CENTERS), key=lambda center: -part[center])[1:3]
    found = arrivals(draw, 1500, lambda second: wave(part, second, 200, 1300, 1.2))
    return Scenario(
        "outage",
        room(),
        CENTERS,
        found,
        1800,
        Behaviour(),
        NetworkProfile(),
        (Fault("outage", 600, 780, tuple(large)),),
        FENCE_S,
    )


def stopped(streams: Streams) -> Scenario:
    """As `outage`, but two large data centers are stopped in order for twelve minutes."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    large = tuple(sorted(range(CENTERS), key=lambda center: -part[center])[1:3])
    found = arrivals(draw, 1500, lambda second: wave(part, second, 200, 1300, 1.2))
    return Scenario(
        "stopped",
        room(),
        CENTERS,
        found,
        1800,
        faults=(Fault("stop", 400, 1120, large),),
        fence_s=FENCE_S,
    )


def outage_and_partition(streams: Streams) -> Scenario:
    """With a fence: two large data centers die for twelve minutes; a quarter of the others is cut
    off for three.
    """
    draw = streams("trace")
    part = shares(draw, CENTERS)
    large = tuple(sorted(range(CENTERS), key=lambda center: -part[center])[1:3])
    cut = tuple([center for center in range(0, CENTERS, 4) if center not in large])
    found = arrivals(draw, 1500, lambda second: wave(part, second, 200, 1300, 1.2))
    faults = (Fault("outage", 400, 1120, large), Fault("partition", 800, 980, cut))
    return Scenario(
        "outage and partition", room(), CENTERS, found, 1800, faults=faults, fence_s=FENCE_S
    )


def partition(streams: Streams) -> Scenario:
    """A quarter of the data centers does not reach the coordinator for three minutes."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    faults, found = (
        (Fault("partition", 600, 780, tuple(range(0, CENTERS, 4))),),
        arrivals(draw, 1500, lambda s: wave(part, s, 200, 1300, 1.2)),
    )
    return Scenario("partition", room(), CENTERS, found, 1800, faults=faults, fence_s=FENCE_S)


def spike_inside_a_partition(streams: Streams) -> Scenario:
    """The crowd arrives at the quarter of the data centers that is cut off."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    cut = tuple(range(0, CENTERS, 4))

    def rates(second: float) -> list[float]:
        found = wave(part, second, 200, 1300, 1.2)
        if 620 <= second < 740:
            for center in cut:
                found[center] += PER_S * 2 / len(cut)
        return found

    faults = (Fault("partition", 600, 780, cut),)
    return Scenario(
        "spike inside a partition",
        room(),
        CENTERS,
        arrivals(draw, 1500, rates),
        1800,
        faults=faults,
        fence_s=FENCE_S,
    )


def coordinator_down(streams: Streams) -> Scenario:
    """No data center reaches the coordinator for three minutes."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    faults, found = (
        (Fault("coordinator down", 600, 780),),
        arrivals(draw, 1500, lambda s: wave(part, s, 200, 1300, 1.2)),
    )
    return Scenario(
        "coordinator down", room(), CENTERS, found, 1800, faults=faults, fence_s=FENCE_S
    )


def worker_churn(streams: Streams) -> Scenario:
    """Workers stop and start every second."""
    draw = streams("trace")
    part = shares(draw, CENTERS)
    faults = (Fault("churn", 0, 1800),)
    return Scenario(
        "worker churn",
        room(),
        CENTERS,
        arrivals(draw, 1500, lambda s: wave(part, s, 300, 1200)),
        1800,
        faults=faults,
    )


def flood_of_documents(streams: Streams) -> Scenario:
    """A quiet shop with room to spare, and for ten minutes a hundred requests without cookies a
    second, each for a page.
    """
    draw = streams("trace")
    part = shares(draw, 4)
    faults = (Fault("flood", 300, 900, (0, 1, 2, 3), 100),)
    found = arrivals(draw, 1200, lambda _: level(part, 0.5))
    return Scenario(
        "flood of documents",
        room(1_000, 1_000, minutes=5),
        4,
        found,
        1500,
        Behaviour(parts=True),
        faults=faults,
    )


def random_fair(streams: Streams) -> Scenario:
    """4,000 visitors within two minutes at a random room for 1,000; some refresh ten times too
    often.
    """
    draw = streams("trace")
    part = shares(draw, CENTERS)
    habits = Behaviour(reloading=0.3)
    found = arrivals(draw, 120, lambda _: level(part, 4_000 / 120))
    return Scenario("random fair", room(1_000, 600, method="random"), CENTERS, found, 900, habits)


def small_room(streams: Streams) -> Scenario:
    """Sometimes slightly too many visitors."""
    draw = streams("trace")
    part = shares(draw, 4)

    def rates(second: float) -> list[float]:
        return level(part, 200 / (VISIT_S + 60) * (1.25 if 300 <= second % 1500 < 900 else 0.5))

    return Scenario("small room", room(200, 200), 4, arrivals(draw, 3000, rates), 3300)


def thirty_minutes(streams: Streams) -> Scenario:
    """The published trial of fairness: 10,000 people over 30 minutes, a minute inside each."""
    draw = streams("trace")
    part = shares(draw, 4)
    found = arrivals(draw, 1800, lambda _: level(part, 10_000 / 1800))
    return Scenario(
        "thirty minutes",
        room(200, 400),
        4,
        found,
        6 * 3600,
        Behaviour(leaving=1.0),
        ends_with_crowd=True,
    )


Maker = Callable[[Streams], Scenario]

TRACES: dict[str, Maker] = {
    maker.__name__.replace("_", "-"): maker
    for maker in (
        steady,
        one_site_spike,
        global_spike,
        moving_spike,
        flash_sale,
        surge,
        heavy_tail,
        day_curve,
        outage,
        stopped,
        outage_and_partition,
        partition,
        spike_inside_a_partition,
        coordinator_down,
        worker_churn,
        flood_of_documents,
        random_fair,
        small_room,
        thirty_minutes,
    )
}
