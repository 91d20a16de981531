"""Laws of capacity in the worlds of `bench/origin_worlds.py` and in random ones.

`python bench/capacity_laws.py --random 12` prints the table of docs/explanation/capacity.md, and
`--chance` how much of the overshoot is chance, even under the right limit.
"""

import argparse
from dataclasses import replace
from multiprocessing import Pool
from random import Random
from statistics import fmean

from origin_worlds import WORLDS, random_model

from greenroom.simulator.chance import Streams
from greenroom.simulator.origin import OriginModel
from greenroom.simulator.origin_world import (
    OVERSHOOT_ROWS,
    OriginFigures,
    bounds_of,
    figures,
    laws,
    run_law,
    run_oracle,
)
from greenroom.simulator.rivals import Fixed

Row = tuple[str, list[OriginFigures]]


def streams(seed: int) -> Streams:
    return lambda name: Random(f"{seed}/{name}")


def compare(world: tuple[str, OriginModel, int, list[str]]) -> Row:
    name, model, seed, chosen = world
    oracle = run_oracle(model, streams(seed))
    made = laws(model, oracle)
    return name, [
        figures("oracle", oracle),
        *(figures(law, run_law(model, streams(seed), made[law]())) for law in chosen),
    ]


def chance(world: tuple[str, OriginModel, int, list[str]]) -> float:
    """How far those who browse rise above their own mean in the last two thirds, under a constant
    limit that is right (Little's law) and with nothing that troubles the origin.
    """
    _, model, seed, _ = world
    calm = replace(model, disturbances=(), leak=0.0, scale_most=1.0, flash=0.0)
    resting_s = (1 - calm.leaving) * 60 * calm.session_duration
    limit = round(calm.capacity * (1 + resting_s / calm.visit_s))
    rows = run_law(calm, streams(seed), Fixed(bounds_of(calm), limit)).rows
    browsing = [row[3] for row in rows[len(rows) // 3 :]]
    ends = range(OVERSHOOT_ROWS, len(browsing) + 1)
    most = max(fmean(browsing[end - OVERSHOOT_ROWS : end]) for end in ends)
    return most / fmean(browsing) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=0, help="so many random worlds")
    parser.add_argument("--worlds", default=",".join(WORLDS), help="names, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--laws", default="follow,AIMD,Gradient2,Vegas,fixed,fixed +50 %")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--chance", action="store_true", help="only the overshoot by chance")
    given = parser.parse_args()
    chosen = given.laws.split(",")
    names = [name for name in given.worlds.split(",") if name]
    worlds = [(name, WORLDS[name], given.seed, chosen) for name in names]
    worlds += [
        (f"random {seed}", random_model(Random(f"world {seed}")), seed, chosen)
        for seed in range(given.seed, given.seed + given.random)
    ]
    if given.chance:
        with Pool(given.processes) as pool:
            found = []
            for (name, *_), share in zip(worlds, pool.imap(chance, worlds), strict=True):
                found.append(share)
                print(f"{name}: {share:.0%}", flush=True)
        over = sum(share > 0.1 for share in found)
        print(f"mean {fmean(found):.0%}, worst {max(found):.0%}, {over} over 10 %")
        return
    print("| world | " + " | ".join(chosen) + " | lost | overshoot | deviation |")
    print("|---" * (len(chosen) + 4) + "|")
    shares: dict[str, list[float]] = {law: [] for law in chosen}
    costs: list[tuple[float, float, float]] = []
    with Pool(given.processes) as pool:
        for name, (oracle, *found) in pool.imap(compare, worlds):
            for one in found:
                shares[one.law].append(one.completed / max(1, oracle.completed))
            first = found[0]
            costs.append((first.lost - oracle.lost, first.overshoot, first.deviation))
            print(_row(name, [shares[law][-1] for law in chosen], costs[-1]), flush=True)
    for word, of, most in (("mean", fmean, fmean), ("worst", min, max)):
        lost, overshoot, deviation = (most(column) for column in zip(*costs, strict=True))
        print(_row(word, [of(shares[law]) for law in chosen], (lost, overshoot, deviation)))


def _row(name: str, shares: list[float], costs: tuple[float, float, float]) -> str:
    lost, overshoot, deviation = costs
    cells = [f"{share:.0%}" for share in shares]
    cells += [f"{100 * lost:+.1f}", f"{overshoot:.0%}", f"{deviation:.0%}"]
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
