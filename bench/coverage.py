"""How often waits end by the percentiles that are told when joining, over several seeds; and by
those of an oracle.

    python bench/coverage.py                              seven traces, three seeds: about ten
    minutes of one core
    python bench/coverage.py surge stopped --seeds 1 2    these

In one run most visitors share the errors of a few waves, so one seed says little; `told` is over
all of them. Two oracles know the errors of the other seeds of the same trace, so they have learnt
all that a run can teach about the next one: `steady oracle` of the whole run, `minute oracle` of
each minute of it, so it foresees every step. `causal oracle` knows the errors of all waits, of this
seed and the others, that had ended when a visitor joined, exactly and at once, and nothing that
comes later. Beside them the error of the median at joining, as a part of the mean wait.
"""

import argparse
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import exp, log
from random import Random
from typing import NamedTuple

from greenroom.admission.messages.wait_table import OFFSET_S
from greenroom.simulator.traces import TRACES
from greenroom.simulator.world import World

SOME = ("steady", "moving-spike", "surge", "heavy-tail", "stopped", "outage", "coordinator-down")
ENOUGH = 1_000
QUARTILES = (0.25, 0.5, 0.75)


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
    return " / ".join(
        f"{100 * sum(one.wait_s <= one.quartiles[which] for one in told) / max(1, len(told)):.0f}"
        for which in range(3)
    )


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
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
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
        if len(told) > 1:
            print(shown("steady oracle", oracle(told, lambda _: 0)))
            print(shown("minute oracle", oracle(told, lambda one: one.minute)))
            print(shown("causal oracle", causal(told)), flush=True)


if __name__ == "__main__":
    main()
