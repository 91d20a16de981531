"""Measures every figure of the admission protocol on our own traces, with the three published
allocations beside ours, and writes the page.

    .venv/bin/python bench/figures.py            all traces and algorithms,
    docs/explanation/admission-figures.md and docs/pictures
    .venv/bin/python bench/figures.py --ours     only greenroom: what the page says of the published
    methods stays
    .venv/bin/python bench/figures.py --show     only what is on the terminal
    .venv/bin/python bench/figures.py --only=small-room,flood-of-documents     a trial: greenroom in
    these traces, on the terminal

Takes about 40 minutes of two cores, 15 with `--ours`. The random-fault campaign is `greenroom simulate
--campaign 300`. `--ours` is for changes of greenroom alone: crowd, network and faults must be the
same as when the page was written.
"""

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean, median

import coverage
import held_out
from held_out import Row, bar, off_by, table_of

from greenroom.admission import Ledger
from greenroom.model.visit import make_key
from greenroom.simulator.checks import Fairness, Watch, fairness
from greenroom.simulator.plots import heatmap, page, picture
from greenroom.simulator.report import QuartileShares, SimulationReport, report
from greenroom.simulator.traces import TRACES, room
from greenroom.simulator.world import ALGORITHMS, World

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "admission-figures.md"
PICTURES = ROOT / "docs" / "pictures"
SEED = 1
HEATMAP = "thirty-minutes"
NAMES = [name for name in TRACES if name != HEATMAP]
OFF_BY = "quartiles told when joining, off by"
SPIKES = ("one-site-spike", "global-spike", "moving-spike", "spike-inside-a-partition")
HARD = ("flash-sale", "small-room")
UNUSED = {
    "outage": 0.04, "outage-and-partition": 0.05, "one-site-spike": 0.05, "partition": 0.05, "global-spike": 0.06, "flash-sale": 0.07,
    "coordinator-down": 0.10,
    "spike-inside-a-partition": 0.15, "random-fair": None,
}  # fmt: skip
Bar = Callable[[str], float | None]
FAULTS = (
    "outage",
    "outage-and-partition",
    "partition",
    "spike-inside-a-partition",
    "coordinator-down",
)


def overtaking_bar(trace: str) -> float | None:
    if trace in ("random-fair", *FAULTS):
        return None
    return 60.0 if trace == "flash-sale" else 30.0 if trace in SPIKES else 10.0


def unused_bar(trace: str) -> float | None:
    return UNUSED.get(trace, 0.03)


def early_bar(trace: str) -> float:
    return 0.015 if trace == "small-room" else 0.001


def joining_bar(trace: str) -> float | None:
    return None if trace == "random-fair" else 0.25 if trace in HARD else 0.15


def polls_bar(trace: str) -> float | None:
    return None if trace == "random-fair" else 0.15 if trace in HARD else 0.12


def median_bar(trace: str) -> float | None:
    return None if trace == "random-fair" else 2.5


FLOOD = "asked for a ticket because requests without cookies would have used up the room"
COMPARED = {"over_active", "over_minute", "unused", "overtaking_p99_s", "error_joining"}
"""Figures that get a table with the published methods; the others are columns of one table."""
FIGURES: list[tuple[str, str, Bar, str, str]] = [
    (
        "over_active",
        "Too many active at once",
        lambda _: 0,
        "{:,.0f}",
        "visitors beyond `total_active_users`",
    ),
    (
        "over_minute",
        "Too many within a minute",
        lambda _: 0,
        "{:,.0f}",
        "admissions in the worst 60 seconds beyond `new_users_per_minute`",
    ),
    (
        "unused",
        "Capacity unused while visitors waited",
        unused_bar,
        "{:.2%}",
        "of the narrower limit",
    ),
    (
        "queued_early",
        "Queued although there was room",
        early_bar,
        "{:.3%}",
        (
            "of all arrivals; both limits had room, for all requests without a ticket of the last"
            " minute, and no visitor waited but those of the next column and of a flood"
        ),
    ),
    (
        "asked_for_ticket",
        "Asked to show the ticket",
        lambda _: None,
        "{:.2%}",
        (
            "of all arrivals, in the same moments: the first page asks again within a second, and"
            " then the visitor is admitted ([why](admission.md#requests-without-cookies)). With"
            " `confirm_newcomers` off, none"
        ),
    ),
    (
        "overtaking_p50_s",
        "Overtaken, median",
        median_bar,
        "{:.1f} s",
        "a visitor who arrived so much later entered first",
    ),
    (
        "overtaking_p99_s",
        "Overtaken, p99",
        overtaking_bar,
        "{:.1f} s",
        "a visitor who arrived so much later entered first",
    ),
    (
        "error_first",
        "Wait estimate on the first page",
        joining_bar,
        "{:.1%}",
        "before the ticket came back for the first time",
    ),
    (
        "error_joining",
        "Wait estimate when joining",
        joining_bar,
        "{:.1%}",
        "mean error of the estimated median, relative to the mean wait",
    ),
    ("error_polls", "Wait estimate later on", polls_bar, "{:.1%}", "as when joining, at refreshes"),
    (
        "calls_per_admission",
        "Calls to the coordinator",
        lambda _: 0.05,
        "{:.4f}",
        "that a visitor waited for, per admission",
    ),
    (
        "messages_per_center_s",
        "Background messages",
        lambda _: 4.5,
        "{:.2f}",
        "per data center and second",
    ),
]


def run(
    name: str, algorithm: str, method: str = "", seed: int = SEED
) -> tuple[str, str, SimulationReport, Fairness | None, float, dict[str, str]]:
    def streams(part: str) -> Random:
        return Random(f"{seed}/{part}")

    begun = time.perf_counter()
    scenario = TRACES[name](streams)
    if method:
        scenario = replace(scenario, room=replace(scenario.room, queueing_method=method))
    world = World(scenario, streams, algorithm)
    Watch(world)
    world.run()
    pictures = {}
    if name == HEATMAP:
        pictures[f"heatmap-{method}.svg"] = page(
            [heatmap(world)], f"10,000 visitors over 30 minutes, {method}"
        )
    elif name == "flash-sale" and algorithm == "greenroom":
        pictures["flash-sale.svg"] = picture(world)
    fair = fairness(world) if scenario.room.queueing_method == "random" else None
    return name, algorithm, report(world), fair, time.perf_counter() - begun, pictures


def bytes_each() -> tuple[float, float]:
    """Memory of one waiter and of one active visitor, in the ledger in memory."""
    many, now_ms = 100_000, 1_750_000_000_000
    big = room(many, many)
    tracemalloc.start()
    ledger = Ledger(big, "here", 1, now_ms)
    before = tracemalloc.get_traced_memory()[0]
    for number in range(many):
        ledger.poll(
            number.to_bytes(12, "big"),
            make_key(now_ms + number // 100, number),
            now_ms + number // 100,
            number,
        )
    ledger.log.clear()
    waiting = tracemalloc.get_traced_memory()[0]
    ledger.lease.permits = ledger.lease.granted_seen = many
    for number in range(many, 2 * many):
        ledger.sessions.begin(number.to_bytes(12, "big"), now_ms)
    active = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (waiting - before) / many, (active - waiting) / many


def measure(
    ours: bool,
) -> tuple[
    dict[tuple[str, str], SimulationReport],
    dict[str, Fairness],
    dict[str, str],
    dict[str, list[dict[str, float]]],
]:
    jobs = [
        (name, algorithm, "")
        for name in NAMES
        for algorithm in (ALGORITHMS[:1] if ours else ALGORITHMS)
    ]
    if len(NAMES) == len(TRACES) - 1:
        jobs += [(HEATMAP, "greenroom", method) for method in ("fifo", "random")]
    jobs.sort(key=lambda job: job[0] != "flash-sale")  # the long ones first
    reports, fair = {}, {}
    pictures: dict[str, str] = {}
    with ProcessPoolExecutor(2) as pool:
        others = {
            name: [pool.submit(held_out.run, name, seed) for seed in held_out.SEEDS]
            for name in held_out.KINDS
        }
        again = {
            name: [pool.submit(run, name, "greenroom", "", seed) for seed in coverage.SEEDS[1:]]
            for name in NAMES
        }
        for done in as_completed([pool.submit(run, *job) for job in jobs]):
            name, algorithm, figures, one, took_s, drawn = done.result()
            pictures |= drawn
            if name != HEATMAP:
                reports[name, algorithm] = figures
            if one and name != HEATMAP:
                fair[algorithm] = one
            print(f"{name}, {algorithm}: {took_s:.0f} s", file=sys.stderr, flush=True)
        worlds = {name: [one.result()[1] for one in runs] for name, runs in others.items()}
        for name, runs in again.items():
            told = [reports[name, "greenroom"], *[one.result()[2] for one in runs]]
            reports[name, "greenroom"] = coverage.over_seeds(told)
    return reports, fair, pictures, worlds


def cell(value: float | None, bar: float | None, form: str, ours: bool) -> str:
    if value is None:
        return "-"
    text = form.format(value)
    return f"**{text}** (missed)" if ours and bar is not None and value > bar + 1e-9 else text


def written(page: str) -> dict[str, list[str]]:
    """What the page says of the published methods, by trace."""
    part = page.partition("\n### Compared")[2].partition("\n### ")[0]
    found = {}
    for line in part.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if name in NAMES:
            found[name] = [cell.rpartition(" (")[2].rstrip(")") for cell in cells if cell]
    return found


def compared(reports: dict[tuple[str, str], SimulationReport], before: dict[str, list[str]]) -> str:
    """greenroom's figure, and the best and the worst of the methods; `before`: if not in `reports`."""
    figures = [figure for figure in FIGURES if figure[0] in COMPARED]
    lines = [
        "| trace | "
        + " | ".join(with_unit(title, form) for _, title, _, form, _ in figures)
        + " |",
        "|---" * (1 + len(figures)) + "|",
    ]
    for name in NAMES:
        cells = []
        for place, (key, _, bar_of, form, _) in enumerate(figures):
            ours, *others = [
                getattr(reports[name, algorithm], key)
                for algorithm in ALGORITHMS
                if (name, algorithm) in reports
            ]
            least_most = span(others, bare(form)) if others else before[name][place]
            cells.append(f"{cell(ours, bar_of(name), bare(form), True)} ({least_most})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    notes = [
        f"- *{title}*: {note}. Target: {targets(bar_of, form)}."
        for _, title, bar_of, form, note in figures
    ]
    return "\n".join([*lines, "", *notes])


def span(values: list[float | None], form: str) -> str:
    """The lowest and the highest, with the unit once."""
    known = [form.format(value) for value in sorted(one for one in values if one is not None)]
    if not known:
        return "-"
    return known[0] if known[0] == known[-1] else f"{known[0].removesuffix('%')}–{known[-1]}"


def bare(form: str) -> str:
    """A form without its unit, which stands in the head of the table."""
    return form.partition(" ")[0]


def with_unit(title: str, form: str) -> str:
    unit = form.partition(" ")[2]
    return f"{title.lower()}, {unit}" if unit else title.lower()


def targets(bar_of: Bar, form: str) -> str:
    """The lowest and the highest target of all traces."""
    bars = sorted({bar for name in NAMES if (bar := bar_of(name)) is not None})
    return " to ".join(form.format(bar) for bar in sorted({bars[0], bars[-1]})) if bars else "-"


def single(reports: dict[tuple[str, str], SimulationReport]) -> str:
    """Figures of greenroom alone: a column each."""
    columns = [figure for figure in FIGURES if figure[0] not in COMPARED]
    lines = [
        "| trace | "
        + " | ".join(with_unit(title, form) for _, title, _, form, _ in columns)
        + " | waits ended, joining | waits ended, later on |",
        "|---" * (3 + len(columns)) + "|",
        "| target | "
        + " | ".join(targets(bar, form) for _, _, bar, form, _ in columns)
        + " | 25/50/75 | 25/50/75 |",
    ]
    for name in NAMES:
        found = reports[name, "greenroom"]
        cells = [
            cell(getattr(found, key), bar(name), bare(form), True)
            for key, _, bar, form, _ in columns
        ]
        cells += [quartiles(found.coverage_joining), quartiles(found.coverage_polls)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    notes = [f"- *{title}*: {note}." for _, title, _, _, note in columns]
    notes.append(
        "- *Waits ended*: per cent of the waits that ended by the 25th, 50th and 75th percentile that"
        " visitors were told. All visitors of a run share the errors of a few waves, so figures of"
        " estimates are means of three seeds, and an exact forecast is off, too (`bench/coverage.py`)."
    )
    return "\n".join([*lines, "", *notes])


def misses(reports: dict[tuple[str, str], SimulationReport]) -> list[str]:
    found: dict[str, list[str]] = {}
    for key, title, bar_of, form, _ in FIGURES:
        for name in NAMES:
            bar, value = bar_of(name), getattr(reports[name, "greenroom"], key)
            if bar is not None and "missed" in cell(value, bar, form, True):
                figure = f"{title.lower()}, target {form.format(bar)}"
                found.setdefault(figure, []).append(f"{name} {form.format(value)}")
    return [f"{figure}: {', '.join(traces)}" for figure, traces in found.items()]


def quartiles(shares: QuartileShares | None) -> str:
    return "-" if shares is None else "/".join(f"{100 * share:.0f}" for share in shares)


def overall(reports: dict[tuple[str, str], SimulationReport]) -> list[Row]:
    """Figures over all fifo traces; where the coordinator is away, capacity is shown alone."""
    ours = {name: reports[name, "greenroom"] for name in NAMES if name != "random-fair"}
    unused = {name: one.unused or 0.0 for name, one in ours.items()}
    away = unused.pop("coordinator-down", 0.0)
    worst = max(unused, key=lambda name: unused[name])
    overtaken_s = median(one.overtaking_p99_s for one in ours.values())
    joining = median(one.error_joining or 0.0 for one in ours.values())
    flash = reports["flash-sale", "greenroom"] if "flash-sale" in ours else None
    known = {name: one.coverage_joining for name, one in ours.items() if one.coverage_joining}
    told, exact = list(known.values()), coverage.exact_off_by(list(known))
    rows = [
        bar("capacity unused while visitors waited, mean", 0.025, fmean(unused.values()), "{:.2%}"),
        bar(f"the same, worst ({worst})", 0.08, unused[worst], "{:.2%}"),
        bar("the same, coordinator away (coordinator-down)", None, away, "{:.2%}"),
        bar("overtaken, p99, median trace", 5.0, overtaken_s, "{:.1f} s"),
        bar("wait estimate when joining, median trace", 0.05, joining, "{:.1%}"),
        bar(f"{OFF_BY}, median trace", 5.0, off_by(told, median), "{:.1f} points"),
        bar("the same, of an exact forecast", None, exact[0], "{:.1f} points"),
        bar(f"{OFF_BY}, mean", 8.0, off_by(told, fmean), "{:.1f} points"),
        bar("the same, of an exact forecast", None, exact[1], "{:.1f} points"),
    ]
    if flash:
        first, later = flash.error_first or 0.0, flash.error_joining or 0.0
        rows.append(bar("wait estimate when joining, flash sale", 0.15, later, "{:.1%}"))
        rows.append(bar("wait estimate on the first page, flash sale", 0.15, first, "{:.1%}"))
    mean_ms = max(one.latency_mean_ms for one in ours.values())
    p99_ms = max(one.latency_p99_ms for one in ours.values())
    rows.append(
        bar("delay of a new visitor, mean, with a ledger of 1 to 10 ms", 10, mean_ms, "{:.1f} ms")
    )
    rows.append(bar("the same, p99", 160, p99_ms, "{:.0f} ms"))
    if "flood-of-documents" in ours:
        held = ours["flood-of-documents"].queued_in_flood
        rows.append(bar(f"{FLOOD}, flood-of-documents", None, held, "{:.1%}"))
    if "global-spike" in ours:
        burst = ours["global-spike"].burst
        rows.append(bar("burst of global-spike, of an even pace", 2.5, burst, "{:.2f} times"))
    return rows


def text(
    reports: dict[tuple[str, str], SimulationReport],
    fair: dict[str, Fairness],
    worlds: dict[str, list[dict[str, float]]],
) -> str:
    body, missed = compared(reports, written(PAGE.read_text())), misses(reports)
    waiter, active = bytes_each()
    laws = [
        f"{name}: {one.broken_laws[0]}" for (name, _), one in reports.items() if one.broken_laws
    ]
    ours = fair.get("greenroom")
    rest: list[Row] = []
    if ours:
        distance, advantage = ours.distance, ours.advantage
        what = "random: Kolmogorov-Smirnov distance of the winners' arrival rank"
        rest.append(bar(what, 0.1, distance, "{:.3f}"))
        name, right = "random: advantage of trying ten times as often", 0.85 <= advantage <= 1.15
        rest.append((name, "0.85 to 1.15", f"{advantage:.3f}", right))
    for what, size, most in (("waiter", waiter, 300), ("active visitor", active, 150)):
        rest.append(bar(f"memory of one {what} (ledger in memory)", most, size, "{:.0f} bytes"))
    whole = overall(reports)
    missed += [
        f"{held_out.KINDS[name].text}: {row.figure} {row.form.format(row.value)}, target"
        f" {row.form.format(row.goal)}"
        for name, runs in worlds.items()
        for row in held_out.found(name, runs)
        if row.missed and row.goal is not None
    ]
    missed += [
        f"{name}: {value}, target {bar}" for name, bar, value, holds in (*whole, *rest) if not holds
    ]
    listed = "\n".join(f"- {one}" for one in missed) or "- none"
    traces = "\n".join(
        f"- {name}: {' '.join((TRACES[name].__doc__ or '').split())}" for name in NAMES
    )
    return TEMPLATE.format(
        body=body, rest=table_of(rest), overall=table_of(whole), misses=listed, laws=len(laws), traces=traces, seed=SEED,
        single=single(reports), commit=commit(), worlds=held_out.table(worlds), seeds=len(held_out.SEEDS),
    )  # fmt: skip


def commit() -> str:
    """That of the code, without uncommitted changes."""
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


TEMPLATE = """<!-- Written by bench/figures.py: change the bench, not the page. -->

# Figures of admission

The gateway's code in virtual time, compared with the three published methods of dividing slots, for the same visitors: *even split* (each
worker an equal part), *utilisation* (worker count times utilisation to the power of a curve factor) and *counters* (one for each data center,
and Anywhere slots). What the articles leave open is chosen in their favour (`src/greenroom/simulator/published.py`).

Command: `bench/figures.py`; a single run: `greenroom simulate --trace steady --seed {seed} --compare`. greenroom's figures are those of
commit {commit}. Targets are greenroom's; a missed one is **bold**. Conservation laws violated: {laws}.

## Missed targets

{misses}

## Figures

### Over all traces

But for the random room.

{overall}

### Other worlds

Means of {seeds} seeds that no rule was chosen with (`bench/held_out.py`).

{worlds}

### Compared

In parentheses: the best and the worst of the published methods.

{body}

### greenroom alone

{single}

### Fairness of random rooms, and memory

{rest}

## The traces

20 data centers 5 to 75 ms from the coordinator, `total_active_users` 2,000, `new_users_per_minute` 1,200, sessions and visits of
a minute, unless stated otherwise.

{traces}

## Pictures

The published check of fairness: 10,000 visitors, each a minute inside. Here they arrive over 30 minutes; in the published trial all joined
at once. Fifo: visitors enter in the order of arrival. Random: the time of arrival makes no difference.

![Waits by time of arrival in a fifo room](../pictures/heatmap-fifo.svg)

![Waits by time of arrival in a random room](../pictures/heatmap-random.svg)

The flash sale: 100,000 visitors within a minute, 20,000 active, 12,000 a minute.

![A flash sale: active, waiting, estimated and actual waits](../pictures/flash-sale.svg)
"""


def main() -> None:
    only = [one.removeprefix("--only=") for one in sys.argv if one.startswith("--only=")]
    if only:
        NAMES[:] = only[0].split(",")
    reports, fair, pictures, worlds = measure("--ours" in sys.argv or bool(only))
    whole = text(reports, fair, worlds)
    if only or "--show" in sys.argv:
        print(whole)
        return
    PAGE.write_text(whole)
    for name, svg in pictures.items():
        (PICTURES / name).write_text(svg)


if __name__ == "__main__":
    main()
