"""`greenroom simulate`: simulates a sale or a predefined trace in virtual time."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any, NoReturn

import typer

from greenroom.cli.show import complain, complain_of, say
from greenroom.cli.simulate_origin import compare_laws
from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import plural, specs
from greenroom.model.room import METHODS, Room
from greenroom.simulator.arrivals import (
    CENTERS_MAX,
    CURVES,
    LASTS_MAX_S,
    VISITORS_MAX,
    from_curve,
    from_rows,
    read_rows,
)
from greenroom.simulator.campaign import random_scenario
from greenroom.simulator.chance import Streams
from greenroom.simulator.checks import Watch, verdict
from greenroom.simulator.plots import picture
from greenroom.simulator.recording import WHOLE_RUN, RecordedFigures, RunRecording
from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.sale import (
    LINES,
    RECORDED_LINES,
    VISIT_S,
    bottleneck,
    changed,
    duration,
    figure,
    recorded_figure,
    sale,
)
from greenroom.simulator.scenario import Behaviour, Scenario
from greenroom.simulator.traces import TRACES
from greenroom.simulator.world import ALGORITHMS, World

FAILED, WRONG_USE = 1, 2
BAR = 24
ROOM_SHOWN = ("total_active_users", "new_users_per_minute", "session_duration", "queueing_method")

_WHAT, _ROOM, _CROWD, _ANSWER = "What is simulated", "The waiting room", "The crowd", "The answer"


def streams_of(seed: int) -> Streams:
    """Streams of random numbers that are the same for the same seed, on every machine."""
    return lambda name: Random(f"{seed}/{name}")  # noqa: S311 - a simulation, not a secret


def _option(panel: str, metavar: str | None, text: str, *names: str, **bounds: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, **bounds)


_room = specs(Room)
Trace = Annotated[str | None, _option(_WHAT, "NAME", f"Predefined scenario: {', '.join(TRACES)}.")]
Seed = Annotated[int, _option(_WHAT, "K", "Random seed; the same seed repeats the same run.")]
Campaign = Annotated[
    int | None,
    _option(
        _WHAT,
        "N",
        "Run N random rooms with random faults, starting at --seed; print the seed of each failure.",
        min=1,
    ),
]
OriginModelOption = Annotated[
    Path | None,
    _option(
        _WHAT,
        "MODEL",
        "Instead of a sale: find the limits of the origin described in this TOML file, with"
        " greenroom's law and others.",
    ),
]
CompareOption = Annotated[
    bool,
    _option(
        _WHAT, None, "Compare with the three published methods of dividing slots.", "--compare"
    ),
]
Centers = Annotated[
    int,
    _option(
        _WHAT,
        "D",
        "Number of data centers that share the line; a trace sets its own.",
        min=1,
        max=CENTERS_MAX,
    ),
]
Active = Annotated[
    int | None, _option(_ROOM, "N", f"How {_room['total_active_users'].help.removeprefix('how ')}.")
]
PerMinute = Annotated[
    int | None,
    _option(_ROOM, "N", f"How {_room['new_users_per_minute'].help.removeprefix('how ')}."),
]
Session = Annotated[
    int | None,
    _option(_ROOM, "MINUTES", f"How {_room['session_duration'].help.removeprefix('how ')}."),
]
Method = Annotated[str | None, _option(_ROOM, "METHOD", f"{', '.join(METHODS)} (default: fifo).")]
Visitors = Annotated[int, _option(_CROWD, "N", "Number of visitors.", min=1, max=VISITORS_MAX)]
Minutes = Annotated[
    float, _option(_CROWD, "M", "Minutes within which they arrive.", min=0.1, max=LASTS_MAX_S / 60)
]
Curve = Annotated[
    str, _option(_CROWD, "CURVE", f"Distribution of arrivals over this time: {', '.join(CURVES)}.")
]
Arrivals = Annotated[
    Path | None,
    _option(
        _CROWD, "FILE", "Instead: a CSV file of `second,visitors` or `second,visitors,data center`."
    ),
]
Visit = Annotated[
    float, _option(_CROWD, "SECONDS", "Average length of a visit.", min=1, max=86_400)
]
PatienceOption = Annotated[
    float,
    _option(
        _CROWD,
        "MINUTES",
        "Average time after which a waiting visitor gives up (0: never).",
        min=0,
        max=10_000,
    ),
]
JsonOption = Annotated[
    bool, _option(_ANSWER, None, "Print one JSON object instead of a table.", "--json")
]
Plot = Annotated[Path | None, _option(_ANSWER, "FILE", "Write charts of the run to this SVG file.")]


def simulate(
    context: typer.Context,
    trace: Trace = None,
    seed: Seed = 1,
    campaign: Campaign = None,
    origin: OriginModelOption = None,
    compare: CompareOption = False,
    data_centers: Centers = 1,
    total_active_users: Active = None,
    new_users_per_minute: PerMinute = None,
    session_duration: Session = None,
    queueing_method: Method = None,
    visitors: Visitors = 10_000,
    minutes: Minutes = 30.0,
    curve: Curve = "rush",
    arrivals: Arrivals = None,
    visit: Visit = VISIT_S,
    patience: PatienceOption = 0.0,
    as_json: JsonOption = False,
    plot: Plot = None,
) -> None:
    """Simulate a sale: waits, longest line, unused capacity, order and accuracy of the estimates.

    It runs the admission code of the gateway in virtual time. Describe your room and crowd, or use
    a predefined --trace.
    """
    if campaign is not None:
        run_campaign(seed, campaign, as_json)
        return
    if origin is not None:
        _refuse_beside_origin(context)
        picture_of_origin = compare_laws(origin, streams_of(seed), as_json)
        if plot is not None:
            _write(plot, picture_of_origin())
        return
    limits = {
        "total_active_users": total_active_users,
        "new_users_per_minute": new_users_per_minute,
        "session_duration": session_duration,
        "queueing_method": queueing_method,
    }
    given = {key: value for key, value in limits.items() if value is not None}
    streams = streams_of(seed)
    try:
        if trace is not None:
            scenario = changed(_trace(trace, streams), given)
        else:
            crowd = _arrivals(streams, arrivals, curve, visitors, minutes, data_centers)
            scenario = sale(
                given, crowd, data_centers, Behaviour(visit_s=visit, patience_s=patience * 60)
            )
    except InvalidConfig as error:
        complain_of(
            [
                Problem(f"--{problem.pointer.replace('_', '-')}", problem.reason)
                for problem in error.problems
            ]
        )
        raise typer.Exit(WRONG_USE) from None
    runs = [
        _run(scenario, streams_of(seed), algorithm)
        for algorithm in (ALGORITHMS if compare else ALGORITHMS[:1])
    ]
    if plot is not None:
        _write(plot, picture(runs[0].world))
    if as_json:
        say(json.dumps(_as_json(seed, scenario, runs)))
    else:
        _show(seed, scenario, runs)


def _refuse_beside_origin(context: typer.Context) -> None:
    """The model says all that other options would."""
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        given = source is not None and source.name == "COMMANDLINE"
        if given and name not in ("origin", "seed", "as_json", "plot"):
            _stop(f"--origin: cannot be used with {option.opts[-1]}; the model describes it")


def run_campaign(first: int, count: int, as_json: bool) -> None:
    """Random rooms with random faults, one for each seed; exits with an error when a law was
    broken.
    """
    failures: dict[int, list[str]] = {}
    unconfirmed = 0
    for seed in range(first, first + count):
        streams = streams_of(seed)
        world = World(random_scenario(streams), streams)
        watch = Watch(world)
        world.run()
        found = verdict(watch)
        unconfirmed = max(unconfirmed, report(world).unconfirmed)
        if found:
            failures[seed] = found
            complain(f"seed {seed}: {'; '.join(found)}")
        _progress("campaign")((seed - first + 1) / count)
    if as_json:
        say(
            json.dumps(
                {"first": first, "count": count, "failures": failures, "unconfirmed": unconfirmed}
            )
        )
    else:
        say(
            f"{count} seeds from {first}: {len(failures)} broke an invariant. Repeat one with greenroom simulate --campaign 1 --seed SEED"
        )
    if failures:
        raise typer.Exit(FAILED)


def _trace(name: str, streams: Streams) -> Scenario:
    if name not in TRACES:
        _stop(f"--trace {name}: is not one of {', '.join(TRACES)}")
    return TRACES[name](streams)


def _arrivals(
    streams: Streams, file: Path | None, curve: str, visitors: int, minutes: float, centers: int
) -> list[tuple[int, int]]:
    draw = streams("arrivals")
    if file is None:
        if curve not in CURVES:
            _stop(f"--curve {curve}: is not one of {', '.join(CURVES)}")
        return from_curve(draw, curve, visitors, minutes, centers)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        _stop(f"--arrivals {file}: is not UTF-8 at byte {error.start}")
    except OSError as error:
        _stop(f"--arrivals {file}: {error.strerror}")
    rows, problems = read_rows(text, centers)
    if problems:
        complain_of(
            [replace(problem, pointer=f"{file}: {problem.pointer}") for problem in problems]
        )
        raise typer.Exit(WRONG_USE)
    return from_rows(draw, rows, 60, centers)


@dataclass(frozen=True, slots=True)
class _Run:
    world: World
    recorded: RecordedFigures
    truth: SimulationReport


def _run(scenario: Scenario, streams: Streams, algorithm: str) -> _Run:
    world = World(scenario, streams, algorithm)
    Watch(world)
    recording = RunRecording(world)
    world.run(_progress(f"{scenario.name}, {algorithm}"))
    return _Run(world, recorded_figures(recording), report(world))


def recorded_figures(recording: RunRecording) -> RecordedFigures:
    """The figures as a store of analytics answers them. Raises StorageFailed."""
    from greenroom.analytics.store.duck import DuckEngine
    from greenroom.analytics.store.keeper import Keeper

    keeper = Keeper(DuckEngine(None))
    try:
        parts = recording.parts()
        keeper.write(parts, min((part.minute for part in parts), default=0) * 60)
        return recording.figures(keeper.answer(WHOLE_RUN))
    finally:
        keeper.close()


def _progress(name: str) -> Callable[[float], None]:
    """A line that fills, on a terminal only; wiped when it is full."""

    def show(share: float) -> None:
        if sys.stderr.isatty():
            full = round(share * BAR)
            line = f"\r{name} [{'#' * full}{'.' * (BAR - full)}] {share:4.0%}"
            sys.stderr.write(line if share < 1 else f"\r{' ' * len(line)}\r")
            sys.stderr.flush()

    return show


def _show(seed: int, scenario: Scenario, runs: list[_Run]) -> None:
    room = scenario.room
    limit, per_minute = bottleneck(room, scenario.behaviour)
    say(
        f"{scenario.name}, seed {seed}, {scenario.centers} {plural(scenario.centers, 'data center')}"
    )
    active = plural(room.total_active_users, "active user")
    say(
        f"{room.total_active_users:,} {active}, {room.new_users_per_minute:,} new per minute,"
        f" {room.queueing_method}, sessions of {room.session_duration} min"
    )
    say(
        f"A full room takes about {per_minute:,.0f} {plural(round(per_minute), 'visitor')} a minute, limited by {limit}."
    )
    wide = max(len(line[-1]) for line in (*RECORDED_LINES, *LINES)) + 2
    say()
    if len(runs) > 1:
        say(" " * wide + "".join(f"{run.world.algorithm:>16}" for run in runs))
    say("What analytics would show of it:")
    for aggregate, metric, text in RECORDED_LINES:
        say(
            _line(
                text,
                wide,
                [recorded_figure(metric, run.recorded[aggregate].get(metric)) for run in runs],
            )
        )
    say()
    say("What only a simulation knows:")
    for name, text in LINES:
        if name not in ("unconfirmed", "queued_in_flood", "flood") or any(
            getattr(run.truth, name) for run in runs
        ):
            say(_line(text, wide, [figure(name, getattr(run.truth, name)) for run in runs]))
    for run in runs:
        if run.truth.broken_laws:
            say(f"{run.world.algorithm}: {'; '.join(run.truth.broken_laws)}")
    if runs[0].world.ground_truth.waiting:
        say(
            f"{runs[0].world.ground_truth.waiting:,} were still waiting at the end, after {duration(runs[0].world.passed_s)}"
        )


def _line(text: str, wide: int, values: list[str]) -> str:
    return f"{text:<{wide}}" + "".join(f"{value:>16}" for value in values)


def _as_json(seed: int, scenario: Scenario, runs: list[_Run]) -> dict[str, Any]:
    limits = {name: getattr(scenario.room, name) for name in ROOM_SHOWN}
    shown = []
    for run in runs:
        series = {
            "columns": ["second", "active", "waiting", "minute"],
            "rows": run.world.ground_truth.series,
        }
        shown.append(
            {
                "algorithm": run.world.algorithm,
                "analytics": run.recorded,
                "truth": asdict(run.truth),
                "series": series,
            }
        )
    return {
        "trace": scenario.name,
        "seed": seed,
        "data_centers": scenario.centers,
        "room": limits,
        "runs": shown,
    }


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        _stop(f"--plot {file}: {error.strerror}")


def _stop(reason: str) -> NoReturn:
    complain(f"greenroom: {reason}")
    raise typer.Exit(WRONG_USE)
