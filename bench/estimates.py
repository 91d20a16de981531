"""How good wait estimates are, and what they cost: the forecast against the published formula, on
traces of the simulator.

    python bench/estimates.py                      a few traces, some minutes each
    python bench/estimates.py small-room --seed 3  these traces
    python bench/estimates.py --cost               only what it costs

Errors are mean distances between the median that was told and the wait, as a part of the mean wait:
when joining, and at tries later on. `inside` is the part of waits that ended between the quartiles
(half would be right; the formula of fifo has no interval), `unknown` the part of answers without a
number. The formula's crowd is the same, but not its run: who is told another wait comes back at
another time.
"""

import argparse
import time
from collections.abc import Callable
from random import Random

from greenroom.admission.forecast.forecast import Forecaster, ForecastInput
from greenroom.admission.messages.line_counts import AGE_CELL_MS
from greenroom.admission.messages.wait_reader import WaitReader
from greenroom.model.room import Room
from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.traces import TRACES
from greenroom.simulator.world import World

SOME = (
    "small-room",
    "steady",
    "moving-spike",
    "global-spike",
    "day-curve",
    "partition",
    "coordinator-down",
)
NOW_MS = 1_750_000_000_000
WAITING = 100_000


def run(trace: str, seed: int) -> SimulationReport:
    def streams(name: str) -> Random:
        return Random(f"{seed}/{name}")

    world = World(TRACES[trace](streams), streams)
    world.run()
    return report(world)


def without_forecast(trace: str, seed: int) -> SimulationReport:
    """As if no sketch ever arrived: ahead / measured pace, and ln(1-p) / ln(1-P)."""
    take = WaitReader.take
    WaitReader.take = lambda *_: None  # type: ignore[method-assign]
    try:
        return run(trace, seed)
    finally:
        WaitReader.take = take  # type: ignore[method-assign]


def errors(traces: list[str], seed: int) -> None:
    print(f"{'trace':26}{'told by':12}{'joining':>9}{'later':>9}{'inside':>9}{'unknown':>9}")
    ways: dict[str, Callable[[str, int], SimulationReport]] = {
        "formula": without_forecast,
        "forecast": run,
    }
    for trace in traces:
        for name, way in ways.items():
            found = way(trace, seed)
            figures = (
                found.error_joining,
                found.error_polls,
                found.inside_quartiles,
                found.unknown,
            )
            shown = ["-" if figure is None else f"{100 * figure:.1f} %" for figure in figures]
            print(f"{trace:26}{name:12}" + "".join(f"{figure:>9}" for figure in shown), flush=True)


def taught(method: str) -> Forecaster:
    """A room of 20,000 with sessions of up to twenty minutes that has been full for half an hour."""
    room = Room(
        name="bench",
        host="*",
        total_active_users=20_000,
        new_users_per_minute=12_000,
        queueing_method=method,
    )
    forecaster, draw = Forecaster(room, NOW_MS - 1_800_000), Random(1)
    ended: dict[int, int] = {}
    begun: dict[int, list[int]] = {}
    for second in range(1_800):
        now_ms = NOW_MS - 1_800_000 + second * 1_000
        for then in begun.pop(second, []):
            age = now_ms // AGE_CELL_MS - then // AGE_CELL_MS
            ended[age] = ended.get(age, 0) + 40
        begun.setdefault(second + draw.randint(5, 1_200), []).append(now_ms)
        forecaster.admitted("here", [0] * 40, now_ms)
        forecaster._endings.step(now_ms // AGE_CELL_MS)
        for age, count in ended.items():
            forecaster._endings.end("here", age, count)
        ended.clear()
    return forecaster


def cost() -> None:
    seconds = {NOW_MS // 1000 - age: WAITING // 500 for age in range(500)}
    facts = ForecastInput({"here": 20_000}, 0, 0, WAITING, 50_000, seconds)
    for method in ("fifo", "random"):
        forecaster, spent = taught(method), []
        for number in range(30):
            start = time.process_time()
            forecaster.think(facts, NOW_MS + number * 2_000)
            spent.append(time.process_time() - start)
        wait_table = forecaster.wait_table
        assert wait_table
        wait_reader = WaitReader()
        wait_reader.take(wait_table, wait_table.made_ms, wait_table.made_ms)
        came_ms, start = NOW_MS - 300_000, time.process_time()
        for place in range(1, WAITING + 1):
            if method == "fifo":
                wait_reader.fifo(place, came_ms, wait_table.made_ms)
            else:
                wait_reader.random(came_ms, wait_table.made_ms)
        each_us = (time.process_time() - start) / WAITING * 1e6
        print(
            f"{method}: a forecast for {WAITING:,} people takes {1e3 * sorted(spent)[15]:.1f} ms,"
            f" {len(wait_table.people)} knots;",
            end=" ",
        )
        print(f"one visitor {each_us:.2f} us")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", nargs="*", default=list(SOME), help=f"one of {', '.join(TRACES)}")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--cost", action="store_true", help="only what it costs")
    asked = parser.parse_args()
    cost()
    if not asked.cost:
        errors(asked.trace, asked.seed)


if __name__ == "__main__":
    main()
