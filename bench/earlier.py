"""An earlier greenroom beside this one, for benches: the source of a commit, run by the same
interpreter with the same libraries.
"""

import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
START = "import sys; from greenroom.cli import main; sys.exit(main())"


@contextlib.contextmanager
def greenroom_at(commit: str) -> Iterator[list[str]]:
    """The command of greenroom as it was at this commit. What it says about libraries that it
    misses is harmless.
    """
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "src"], capture_output=True, check=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        # in the environment, for the processes that it starts too
        yield ["env", f"PYTHONPATH={folder}/src", sys.executable, "-c", START]


class Figures(NamedTuple):
    """One round of one row."""

    cpu_us: float
    rate: float
    p99_ms: float


def in_pairs(
    rows: Mapping[str, tuple[Callable[[], Figures], Callable[[], Figures]]], rounds: int
) -> None:
    """Measures each row earlier and now, one after the other in changing order, and prints medians
    of the ratios of neighbours.
    """
    found: dict[str, list[tuple[Figures, Figures]]] = {row: [] for row in rows}
    for number in range(rounds + 1):
        for row, (earlier, now) in rows.items():
            if number % 2:
                after = now()
                before = earlier()
            else:
                before = earlier()
                after = now()
            if (
                number and before.rate and after.rate
            ):  # the first round warms up; a stopped server answers nothing
                found[row].append((before, after))
    print(
        f"{'':38} {'CPU us/request':>16} {'now / earlier':>14} {'half of them':>15} {'req/s':>7}"
        f" {'p99':>6}"
    )
    for row, pairs in found.items():
        if len(pairs) < 2:
            print(f"{row:38} was not answered often enough")
            continue
        cpu = [after.cpu_us / before.cpu_us for before, after in pairs]
        low, _, high = statistics.quantiles(cpu, n=4)
        before_us, after_us = (
            statistics.median([pair[at].cpu_us for pair in pairs]) for at in (0, 1)
        )
        rate = statistics.median([after.rate / before.rate for before, after in pairs])
        p99 = statistics.median([after.p99_ms / before.p99_ms for before, after in pairs])
        half = f"{low:.3f} to {high:.3f}"
        print(
            f"{row:38} {before_us:7.1f} {after_us:8.1f} {statistics.median(cpu):14.3f} {half:>15}"
            f" {rate:7.3f} {p99:6.2f}"
        )
