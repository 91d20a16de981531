"""What single rules of admission bring: the tables of docs/explanation/admission.md that compare a
rule with its absence or another number.

    python bench/admission_rules.py                        all of them, about half an hour of one
    core
    python bench/admission_rules.py overtaking sleepers    these

Everything is simulated in virtual time with the code of the gateway, so a busy machine changes
nothing, and the same seed gives the same figures. `overtaking`: the bound on what look-ahead lets a
called visitor overtake, on the first part of some traces. `order`: the same crowd with other
bounds, with one data center and with 20. `sleepers`: answers that are held and permits that are
kept for visitors who try rarely (seeds 2 to 6). `phones`: answers held for visitors who are
due soon. `confirm`: the three values of `confirm_newcomers` in a flood.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from statistics import fmean, median, quantiles
from typing import Any

from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.queueing import methods
from greenroom.simulator import lease_model
from greenroom.simulator.chance import Streams
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Behaviour, Scenario
from greenroom.simulator.traces import TRACES, room
from greenroom.simulator.world import World

NO_BOUND_MS = 1 << 50
PARTS_S = {
    "steady": 700,
    "heavy-tail": 600,
    "global-spike": 700,
    "small-room": 1_000,
    "day-curve": 1_500,
}
SEEDS = range(2, 7)


@contextmanager
def changed(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """These attributes have these values."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def streams_of(seed: int) -> Streams:
    def streams(name: str) -> Random:
        return Random(f"{seed}/{name}")

    return streams


def ran(scenario: Scenario, seed: int = 1) -> World:
    """At its end."""
    world = World(scenario, streams_of(seed))
    world.run()
    found = report(world)
    if found.over_active or found.over_minute or found.broken_laws:
        print("BEYOND A LIMIT:", scenario.name)
    return world


# -- order -----------------------------------------------------------------------------------------


def overtaken(scenario: Scenario, bound_ms: int) -> tuple[float, float]:
    """99 of 100 are overtaken by less than so many seconds; capacity unused."""
    with changed((methods, "OVERTAKING_MS", bound_ms)):
        found = report(ran(scenario))
    return found.overtaking_p99_s, found.unused or 0.0


def overtaking() -> None:
    print(
        "| trace | without the bound | with it | capacity unused: without, with"
        " |\n|---|---|---|---|"
    )
    for trace, lasts_s in PARTS_S.items():
        scenario = replace(TRACES[trace](streams_of(1)), lasts_s=lasts_s)
        (free_s, free), (bound_s, bound) = (
            overtaken(scenario, NO_BOUND_MS),
            overtaken(scenario, methods.OVERTAKING_MS),
        )
        print(
            f"| {trace}, {lasts_s} s | {free_s:.1f} s | {bound_s:.1f} s | {free:.2%},"
            f" {bound:.2%} |",
            flush=True,
        )


def order() -> None:
    many = replace(TRACES["steady"](streams_of(1)), lasts_s=600)
    one = replace(many, centers=1, arrivals=[(at_ms, 0) for at_ms, _ in many.arrivals])
    print(
        "| bound | one data center | 20 data centers | capacity unused: one, 20"
        " |\n|---|---|---|---|"
    )
    for name, bound_ms in (
        ("none", NO_BOUND_MS),
        ("two seconds", methods.OVERTAKING_MS),
        ("zero: strict order", 0),
    ):
        (one_s, unused), (many_s, unused_many) = overtaken(one, bound_ms), overtaken(many, bound_ms)
        print(
            f"| {name} | {one_s:.1f} s | {many_s:.1f} s | {unused:.2%}, {unused_many:.2%} |",
            flush=True,
        )


# -- visitors who try rarely -----------------------------------------------------------------------

OFTEN = Scenario(
    "40 active, 60 a minute, three data centers",
    room(40, 60), 3, [(700 * number, number % 3) for number in range(857)], 1_000,
    Behaviour(visit_s=20, sleeping=0.15, dropping=0.1, leaving=1.0),
)  # fmt: skip
RARE = Scenario(
    "2 active, visits of 200 s, one data center",
    room(2, 60), 1, [(120_000 * number, 0) for number in range(120)], 15_000,
    Behaviour(visit_s=200, sleeping=0.15, dropping=0.1, leaving=1.0),
)  # fmt: skip
NOT_HELD, NOT_KEPT = (lease_model, "HELD_MS", 0), (Ledger, "keep", lambda *_: None)
CALLED_ONLY = (lease_model, "is_due", lambda outcome: outcome.called)


def waits(scenario: Scenario) -> tuple[float, float, float]:
    """So long wait nine of ten of those who sleep, and of the others, in seconds; capacity unused.
    Over all seeds.
    """
    found: tuple[list[float], list[float]] = ([], [])
    unused = []
    for seed in SEEDS:
        world = ran(scenario, seed)
        unused.append(report(world).unused or 0.0)
        for visitor in world.crowd.visitors:
            found[visitor.gap_ms > 0].append(
                visitor.wait_s if visitor.entered_ms else scenario.lasts_s
            )
    return quantiles(found[1], n=10)[8], quantiles(found[0], n=10)[8], fmean(unused)


def sleepers() -> None:
    print("| room | | neither rule | answers held | both |\n|---|---|---|---|---|")
    for scenario in (OFTEN, RARE):
        columns = []
        for changes in ((NOT_HELD, NOT_KEPT), (NOT_KEPT,), ()):
            with changed(*changes):
                columns.append(waits(scenario))
        for name, place, form in (
            ("sleepers", 0, "{:,.0f} s"),
            ("others", 1, "{:,.0f} s"),
            ("capacity unused", 2, "{:.1%}"),
        ):
            cells = " | ".join(form.format(column[place]) for column in columns)
            print(f"| {scenario.name if not place else ''} | {name} | {cells} |", flush=True)


def extra_waits(scenario: Scenario) -> tuple[list[float], float]:
    """By how many seconds those who sleep wait longer than those who came within 5 s and do not,
    where that is more than 20; capacity unused. Over all seeds.
    """
    extra, unused = [], []
    for seed in SEEDS:
        world = ran(
            replace(scenario, arrivals=TRACES["small-room"](streams_of(seed)).arrivals), seed
        )
        unused.append(report(world).unused or 0.0)
        crowd = [one for one in world.crowd.visitors if one.entered_ms and one.tries > 1]
        prompt = [one for one in crowd if not one.gap_ms]
        for sleeper in (one for one in crowd if one.gap_ms):
            near = [one.wait_s for one in prompt if abs(one.came_ms - sleeper.came_ms) <= 5_000]
            if near and (others_s := median(near)) > 20:
                extra.append(sleeper.wait_s - others_s)
    return extra, fmean(unused)


def phones() -> None:
    print("| held are | median | 90 of 100 | capacity unused |\n|---|---|---|---|")
    scenario = replace(
        TRACES["small-room"](streams_of(1)), behaviour=Behaviour(sleeping=0.1, sleep_s=(60, 60))
    )
    for name, changes in (("who is called", (CALLED_ONLY,)), ("who is due within 18 s", ())):
        with changed(*changes):
            extra, unused = extra_waits(scenario)
        p90_s = quantiles(extra, n=10)[8]
        print(f"| {name} | {median(extra):.1f} s | {p90_s:.1f} s | {unused:.2%} |", flush=True)


# -- requests without cookies ----------------------------------------------------------------------


def confirm() -> None:
    print(
        "| `confirm_newcomers` | half | 19 of 20 | the flood holds | see the waiting page | wait"
        " over 1.5 s |\n|---|---|---|---|---|---|"
    )
    scenario = TRACES["flood-of-documents"](streams_of(1))
    for value in (False, "auto", True):
        world = ran(replace(scenario, room=replace(scenario.room, confirm_newcomers=value)))
        found, visitors = report(world), world.crowd.visitors
        saw = sum(visitor.tries > 0 for visitor in visitors) / len(visitors)
        longer = sum(visitor.wait_s > 1.5 for visitor in visitors if visitor.entered_ms) / len(
            visitors
        )
        share = (
            f"{found.waits_p50_s:.1f} s | {found.waits_p95_s:.1f} s | {found.flood or 0:.0%} |"
            f" {saw:.1%} | {longer:.1%}"
        )
        print(f"| `{str(value).lower()}` | {share} |", flush=True)


TABLES: dict[str, Callable[[], None]] = {
    one.__name__: one for one in (overtaking, order, sleepers, phones, confirm)
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="table", help=", ".join(TABLES))
    options = parser.parse_args()
    if unknown := set(options.tables) - set(TABLES):
        parser.error(
            f"there is no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}"
        )
    for name in options.tables or TABLES:
        print(f"\n{name}", flush=True)
        TABLES[name]()


if __name__ == "__main__":
    main()
