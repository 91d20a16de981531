"""Worlds unlike the traces of `figures.py`, in which an earlier greenroom was weak.
`figures.py` puts them on its page.

    python bench/held_out.py            all of them, with the seeds of the page: about four
    minutes of one core
    python bench/held_out.py crowd --seeds 930 931
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean, median
from typing import NamedTuple

from greenroom.simulator.chance import Streams
from greenroom.simulator.checks import fairness
from greenroom.simulator.report import QuartileShares, report
from greenroom.simulator.scenario import START_MS, Behaviour, Fault, Scenario
from greenroom.simulator.traces import TRACES, room
from greenroom.simulator.world import World

SEEDS = (931, 932)
CENTERS = 20


class Found(NamedTuple):
    figure: str
    goal: float | None
    form: str
    value: float

    @property
    def missed(self) -> bool:
        return self.goal is not None and self.value > self.goal + 1e-9


Row = tuple[str, str, str, bool]
"""Figure, target, value, whether it is reached."""


def off_by(traces: list[QuartileShares], middle: Callable[[list[float]], float]) -> float:
    """How far quartiles are off in the middle of all traces, in points, of the worst quartile."""
    return max(
        middle([100 * abs(shares[quartile] - right) for shares in traces])
        for quartile, right in enumerate((0.25, 0.5, 0.75))
    )


def bar(name: str, most: float | None, value: float, form: str) -> Row:
    goal = "-" if most is None else form.format(most)
    return name, goal, form.format(value), most is None or value <= most + 1e-9


def table_of(rows: list[Row]) -> str:
    lines = [
        f"| {name} | {bar} | {value if holds else f'**{value}** (missed)'} |"
        for name, bar, value, holds in rows
    ]
    return "\n".join(["| figure | target | greenroom |", "|---|---|---|", *lines])


Measure = Callable[[World], dict[str, float]]


class Kind(NamedTuple):
    """`figures`: what `measure` calls it -> its description, goal, form."""

    text: str
    scenario: Callable[[int], Scenario]
    measure: Measure
    figures: dict[str, tuple[str, float | None, str]]


def streams_of(seed: int) -> Streams:
    return lambda name: Random(f"{seed}/{name}")


def uniform(draw: Random, count: int, from_s: float, until_s: float) -> list[tuple[int, int]]:
    return [
        (int(1000 * draw.uniform(from_s, until_s)), draw.randrange(CENTERS)) for _ in range(count)
    ]


def crowd(seed: int) -> Scenario:
    draw = Random(f"{seed}/crowd")
    found = sorted(uniform(draw, 60, 0, 60) + uniform(draw, 6_000, 60, 61.5))
    return Scenario("crowd", room(1_000, 375), CENTERS, found, 900, Behaviour(patience_s=1_200))


def quiet(seed: int) -> Scenario:
    found = sorted(uniform(Random(f"{seed}/quiet"), 4_500, 0, 600))
    return Scenario("quiet", room(1_000, 600), CENTERS, found, 600)


def drawn(seed: int) -> Scenario:
    found = sorted(uniform(Random(f"{seed}/drawn"), 7_200, 0, 600))
    lasts_s = 1_100
    return Scenario("random", room(1_000, 600, 1, "random"), CENTERS, found, lasts_s)


def ghosts(seed: int) -> Scenario:
    rare = replace(drawn(seed), room=room(100, 60, 1, "random"))
    return replace(rare, behaviour=Behaviour(once=0.9), lasts_s=700)


def cut(seed: int) -> Scenario:
    steady = TRACES["steady"](streams_of(seed))
    apart = Fault("partition", 200, 600, tuple(range(5)))
    return replace(steady, faults=(apart,), fence_s=600, lasts_s=700)


def movers(seed: int) -> Scenario:
    return replace(TRACES["steady"](streams_of(seed)), behaviour=Behaviour(moving=0.1), lasts_s=700)


def phones(seed: int) -> Scenario:
    behaviour = Behaviour(sleeping=0.1, sleep_s=(60, 60))
    return replace(TRACES["small-room"](streams_of(seed)), behaviour=behaviour)


def of_a_crowd(world: World) -> dict[str, float]:
    found = report(world)
    return {"joining": found.error_joining or 0.0, "unused": found.unused or 0.0}


def of_a_quiet_room(world: World) -> dict[str, float]:
    first = [one.wait_s for one in world.crowd.visitors if one.came_ms < START_MS + 10_000]
    return {"queued": report(world).queued_early, "first": max(first)}


def of_a_random_room(world: World) -> dict[str, float]:
    fair = fairness(world)
    unused = report(world).unused or 0.0
    return {"unused": unused} | ({"distance": fair.distance} if fair else {})


def of_a_cut(world: World) -> dict[str, float]:
    return {"over": float(world.ground_truth.over_active), "unused": report(world).unused or 0.0}


def of_movers(world: World) -> dict[str, float]:
    return {"sent back": float(world.crowd.forgotten)}


def of_phones(world: World) -> dict[str, float]:
    """By how much those who sleep wait longer than those who came within 5 s, where these wait more
    than 20 s.
    """
    entered = [one for one in world.crowd.visitors if one.entered_ms and one.tries > 1]
    prompt, extra = [one for one in entered if not one.gap_ms], []
    for sleeper in (one for one in entered if one.gap_ms):
        near = [one.wait_s for one in prompt if abs(one.came_ms - sleeper.came_ms) <= 5_000]
        if near and (others_s := median(near)) > 20:
            extra.append(sleeper.wait_s - others_s)
    return {"longer": median(extra)} if extra else {}


UNUSED = "capacity unused while visitors waited"
KINDS: dict[str, Kind] = {
    "crowd": Kind(
        "6,000 visitors within 1.5 s after a quiet minute, 375 a minute, patience of 20 minutes",
        crowd,
        of_a_crowd,
        {
            "joining": ("wait estimate when joining", 0.15, "{:.1%}"),
            "unused": (UNUSED, 0.08, "{:.1%}"),
        },
    ),
    "quiet": Kind(
        "a quiet room at nine tenths of its capacity",
        quiet,
        of_a_quiet_room,
        {
            "queued": ("queued although there was room", 0.001, "{:.2%}"),
            "first": ("longest wait in its first ten seconds", None, "{:.1f} s"),
        },
    ),
    "random": Kind(
        "a random room with 12 visitors a second",
        drawn,
        of_a_random_room,
        {
            "distance": ("Kolmogorov-Smirnov distance", 0.1, "{:.3f}"),
            "unused": (UNUSED, None, "{:.1%}"),
        },
    ),
    "ghosts": Kind(
        "a random room where nine of ten never come back",
        ghosts,
        of_a_random_room,
        {"unused": (UNUSED, None, "{:.1%}")},
    ),
    "cut": Kind(
        "steady, five data centers cut off for 400 s",
        cut,
        of_a_cut,
        {
            "over": ("active beyond the limit", 0.0, "{:.0f}"),
            "unused": (UNUSED, None, "{:.1%}"),
        },
    ),
    "movers": Kind(
        "steady, every tenth page at another data center",
        movers,
        of_movers,
        {"sent back": ("sent back to the line without a fault", 0.0, "{:.0f}")},
    ),
    "phones": Kind(
        "small-room, one in ten is a phone that sleeps for 60 s",
        phones,
        of_phones,
        {"longer": ("waits longer than others, median", 25.0, "{:.1f} s")},
    ),
}


def run(name: str, seed: int) -> tuple[str, dict[str, float]]:
    kind = KINDS[name]
    world = World(kind.scenario(seed), streams_of(seed))
    world.run()
    return name, kind.measure(world)


def found(name: str, runs: Sequence[dict[str, float]]) -> list[Found]:
    """Means of the runs."""
    rows = []
    for key, (figure, goal, form) in KINDS[name].figures.items():
        values = [one[key] for one in runs if key in one]
        if values:
            rows.append(Found(figure, goal, form, fmean(values)))
    return rows


def table(runs: dict[str, list[dict[str, float]]]) -> str:
    return "\n".join(
        f"- {KINDS[name].text}: {'; '.join(map(said, found(name, measured)))}"
        for name, measured in runs.items()
    )


def said(row: Found) -> str:
    value = row.form.format(row.value)
    shown = f"**{value}** (missed)" if row.missed else value
    goal = "" if row.goal is None else f" (target {row.form.format(row.goal)})"
    return f"{row.figure} {shown}{goal}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worlds", nargs="*", metavar="world", help=", ".join(KINDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    options = parser.parse_args()
    if unknown := set(options.worlds) - set(KINDS):
        parser.error(
            f"there is no world {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}"
        )
    for name in options.worlds or KINDS:
        print(table({name: [run(name, seed)[1] for seed in options.seeds]}), flush=True)


if __name__ == "__main__":
    main()
