"""How often waits end by the percentiles that are told when joining, over several seeds; and by
those of an oracle.

    python bench/coverage.py                              seven traces, three seeds: about ten
    minutes of one core
    python bench/coverage.py surge stopped --seeds 1 2    these

In one run most visitors share the errors of a few waves, so one seed says little; `told` is over
all of them. `exact` is what a forecast gets that is exact: the same arrivals at a room whose units
come back as a Poisson process, so waits have a gamma distribution, which is told. Two oracles know
the errors of the other seeds of the same trace, so they have learnt all that a run can teach about
the next one: `steady oracle` of the whole run, `minute oracle` of each minute of it, so it foresees
every step. `causal oracle` knows the errors of all waits, of this seed and the others, that had
ended when a visitor joined, exactly and at once, and nothing that comes later. Beside them the
error of the median at joining, as a part of the mean wait.
"""

import argparse
from bisect import insort
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log, sqrt
from random import Random
from statistics import NormalDist, fmean, median
from typing import NamedTuple

from held_out import off_by

from greenroom.admission.messages.wait_table import OFFSET_S
from greenroom.simulator.report import QuartileShares, SimulationReport
from greenroom.simulator.traces import TRACES
from greenroom.simulator.world import World

SOME = ("steady", "moving-spike", "surge", "heavy-tail", "stopped", "outage", "coordinator-down")
ENOUGH = 1_000
QUARTILES = (0.25, 0.5, 0.75)
SEEDS = (1, 5, 6)
"""Of the page of `figures.py`; with 5 and 6 no rule was chosen."""


class Told(NamedTuple):
    """One visitor who joined: when, the quartiles that were told and the wait, in seconds."""

    joined_s: float
    quartiles: tuple[float, float, float]
    wait_s: float

    @property
    def minute(self) -> int:
        """Of the run."""
        return int(self.joined_s // 60)

    @property
    def error(self) -> float:
        """Logarithm of the wait by the median, both with OFFSET_S."""
        return log((self.wait_s + OFFSET_S) / (self.quartiles[1] + OFFSET_S))

    def scaled(self, errors: Sequence[float]) -> "Told":
        """As an oracle would tell it: the median times these."""
        low, middle, high = [
            (self.quartiles[1] + OFFSET_S) * exp(error) - OFFSET_S for error in errors
        ]
        return self._replace(quartiles=(low, middle, high))


def run(trace: str, seed: int) -> list[Told]:
    def streams(name: str) -> Random:
        return Random(f"{seed}/{name}")

    world = World(TRACES[trace](streams), streams)
    world.run()
    found = [
        (visitor.guess, visitor.entered_ms)
        for visitor in world.crowd.visitors
        if visitor.guess and visitor.entered_ms
    ]
    return [
        Told(at_ms / 1000, (p25, p50, p75), (entered - at_ms) / 1000)
        for (at_ms, p25, p50, p75), entered in found
        if p75 > p25
    ]


def exact(trace: str, seed: int) -> list[Told]:
    """Waits of two seconds and more. Quartiles of a gamma distribution as Wilson and Hilferty say."""
    scenario, draw = TRACES[trace](lambda name: Random(f"{seed}/{name}")), Random(f"{seed}/{trace}")
    room, stay_s = scenario.room, scenario.behaviour.visit_s + scenario.room.session_ms / 1000
    per_s = min(room.new_users_per_minute / 60, room.total_active_users / stay_s)
    line, next_s, found = deque[float](), 0.0, []
    for at_ms, _ in scenario.arrivals:
        while line and line[0] <= at_ms / 1000:
            line.popleft()
        next_s = max(next_s, at_ms / 1000) + draw.expovariate(per_s)
        line.append(next_s)
        count = len(line)
        if count > 2 * per_s:
            low, middle, high = [
                count
                / per_s
                * (1 - 1 / (9 * count) + NormalDist().inv_cdf(share) / sqrt(9 * count)) ** 3
                for share in QUARTILES
            ]
            found.append(Told(at_ms / 1000, (low, middle, high), next_s - at_ms / 1000))
    return found


def shares_of(told: Sequence[Told]) -> QuartileShares:
    low, middle, high = [
        sum(one.wait_s <= one.quartiles[which] for one in told) / max(1, len(told))
        for which in range(3)
    ]
    return low, middle, high


def mean_share(shares: Sequence[QuartileShares]) -> QuartileShares:
    low, middle, high = map(fmean, zip(*shares, strict=True))
    return low, middle, high


def mean_error(errors: Sequence[float | None]) -> float | None:
    known = [error for error in errors if error is not None]
    return fmean(known) if known else None


def over_seeds(runs: Sequence[SimulationReport]) -> SimulationReport:
    """The first, with estimates' errors and coverage of all in the mean."""
    joining = [one.coverage_joining for one in runs if one.coverage_joining]
    polls = [one.coverage_polls for one in runs if one.coverage_polls]
    return replace(
        runs[0],
        error_first=mean_error([one.error_first for one in runs]),
        error_joining=mean_error([one.error_joining for one in runs]),
        error_polls=mean_error([one.error_polls for one in runs]),
        coverage_joining=mean_share(joining) if joining else None,
        coverage_polls=mean_share(polls) if polls else None,
    )


def exact_off_by(traces: Sequence[str], groups: int = 4) -> tuple[float, float]:
    """Of the median trace, and the mean; of as many seeds as SEEDS has, the mean of several groups."""
    found = []
    for group in range(groups):
        seeds = range(1 + group * len(SEEDS), 1 + (group + 1) * len(SEEDS))
        told = [mean_share([shares_of(exact(trace, seed)) for seed in seeds]) for trace in traces]
        found.append((off_by(told, median), off_by(told, fmean)))
    return fmean(one[0] for one in found), fmean(one[1] for one in found)


def oracle(told: list[list[Told]], part: Callable[[Told], int]) -> list[list[Told]]:
    """Each run with the errors of the others."""
    answers = []
    for mine in told:
        errors: defaultdict[int, list[float]] = defaultdict(list)
        for other in told:
            for one in other if other is not mine else ():
                errors[part(one)].append(one.error)
        known = {at: quantiles(sorted(found)) for at, found in errors.items()}
        answers.append([one.scaled(known[part(one)]) for one in mine if part(one) in known])
    return answers


def causal(told: list[list[Told]]) -> list[list[Told]]:
    """Each run with the errors of all waits that had ended, in any run; those who join before
    ENOUGH have are left out.
    """
    ended = sorted((one.joined_s + one.wait_s, one.error) for run in told for one in run)
    answers: list[list[Told]] = [[] for _ in told]
    errors: list[float] = []
    passed = 0
    for one, which in sorted((one, which) for which, run in enumerate(told) for one in run):
        while passed < len(ended) and ended[passed][0] < one.joined_s:
            insort(errors, ended[passed][1])
            passed += 1
        if len(errors) >= ENOUGH:
            answers[which].append(one.scaled(quantiles(errors)))
    return answers


def quantiles(errors: Sequence[float]) -> list[float]:
    return [errors[int(share * len(errors))] for share in QUARTILES]


def shares(told: Sequence[Told]) -> str:
    return " / ".join(f"{100 * share:.0f}" for share in shares_of(told))


def shown(name: str, runs: list[list[Told]]) -> str:
    whole = [one for told in runs for one in told]
    error = sum(abs(one.quartiles[1] - one.wait_s) for one in whole) / max(
        1e-9, sum(one.wait_s for one in whole)
    )
    return f"  {name:15}{shares(whole):>14}{100 * error:>8.1f} %    " + ", ".join(
        shares(told) for told in runs
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", nargs="*", default=list(SOME), help=f"one of {', '.join(TRACES)}")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    asked = parser.parse_args()
    if unknown := set(asked.trace) - set(TRACES):
        parser.error(
            f"there is no trace {', '.join(sorted(unknown))}; there are {', '.join(TRACES)}"
        )
    print(f"{'':17}{'all seeds':>14}{'error':>10}    each seed")
    for trace in asked.trace:
        told = [run(trace, seed) for seed in asked.seeds]
        print(trace)
        print(shown("told", told), flush=True)
        print(shown("exact", [exact(trace, seed) for seed in asked.seeds]), flush=True)
        if len(told) > 1:
            print(shown("steady oracle", oracle(told, lambda _: 0)))
            print(shown("minute oracle", oracle(told, lambda one: one.minute)))
            print(shown("causal oracle", causal(told)), flush=True)


if __name__ == "__main__":
    main()
