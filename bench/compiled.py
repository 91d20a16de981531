"""The compiled wheel beside plain Python: CPU time of our own code for each kind of request, both
by turns in one run.

    python bench/compiled.py [--pairs 5] [--rounds 5] [--plain .venv/bin/python] [--compiled
    .venv-compiled/bin/python]

`bench/hot_path.py` runs under each of the two interpreters in changing order; what is printed are
the medians of its figures, and the median of the ratios of neighbours with the middle half of them.
`./test --compiled` makes `.venv-compiled`. Whole processes:

    .venv/bin/python bench/updates.py --against .venv-compiled/bin/greenroom
    .venv-compiled/bin/python bench/gateway.py --against .venv/bin/greenroom
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

HOT_PATH = Path(__file__).with_name("hot_path.py")
ROW = re.compile(r"^(.+?) {2,}([0-9.]+) +([0-9.]+)$", re.MULTILINE)
IS_COMPILED = "from greenroom.runtime.compiled import is_compiled; print(is_compiled())"


def printed(python: str, *arguments: str) -> str:
    return subprocess.run([python, *arguments], capture_output=True, text=True, check=True).stdout


def measure(python: str, rounds: int) -> dict[str, float]:
    """The median of each row."""
    return {
        row: float(median)
        for row, _, median in ROW.findall(printed(python, str(HOT_PATH), "--rounds", str(rounds)))
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", default=".venv/bin/python")
    parser.add_argument("--compiled", default=".venv-compiled/bin/python")
    options = parser.parse_args()
    if [
        printed(python, "-c", IS_COMPILED).strip() for python in (options.plain, options.compiled)
    ] != ["False", "True"]:
        sys.exit("one of the interpreters has the other kind of greenroom")
    plain: list[dict[str, float]] = []
    compiled: list[dict[str, float]] = []
    for number in range(options.pairs):
        both = [(plain, options.plain), (compiled, options.compiled)]
        for found, python in reversed(both) if number % 2 else both:
            found.append(measure(python, options.rounds))
    print(
        f"{'us of CPU a request':30} {'plain':>7} {'compiled':>9} {'ratio':>6} {'half of them':>14}"
    )
    for row in plain[0]:
        ratios = [after[row] / before[row] for before, after in zip(plain, compiled, strict=True)]
        low, high = (
            (statistics.quantiles(ratios, n=4)[at] for at in (0, 2))
            if len(ratios) > 1
            else (ratios[0], ratios[0])
        )
        before_us, after_us = (
            statistics.median([figures[row] for figures in side]) for side in (plain, compiled)
        )
        print(
            f"{row:30} {before_us:7.2f} {after_us:9.2f} {statistics.median(ratios):6.2f} {low:6.2f}"
            f" to {high:4.2f}"
        )
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
