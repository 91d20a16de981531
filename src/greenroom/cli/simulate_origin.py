"""`greenroom simulate --origin`: laws of capacity before a model of an origin, in one table."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import typer

from greenroom.cli.show import complain, complain_of, say
from greenroom.configuration.file_tables import read_toml
from greenroom.errors import InvalidConfig
from greenroom.model.fields import plural
from greenroom.simulator.chance import Streams
from greenroom.simulator.origin import OriginModel, read_model
from greenroom.simulator.origin_world import OriginFigures, figures, laws, run_law, run_oracle
from greenroom.simulator.plots import origin_picture

WRONG_USE = 2
COLUMNS = ("completed", "of the oracle", "lost", "p95", "overshoot", "deviation")


def compare_laws(file: Path, streams: Streams, as_json: bool) -> Callable[[], str]:
    """Returns what draws the run of greenroom's law."""
    model = _model(file)
    oracle = run_oracle(model, streams)
    worlds = {"oracle": oracle} | {
        name: run_law(model, streams, make()) for name, make in laws(model, oracle).items()
    }
    found = [figures(name, world) for name, world in worlds.items()]
    if as_json:
        say(json.dumps({"origin": asdict(model), "laws": [asdict(one) for one in found]}))
    else:
        _show(model, found)
    return lambda: origin_picture(worlds["follow"])


def _show(model: OriginModel, found: list[OriginFigures]) -> None:
    say(f"{model.name}: {model.minutes:g} {plural(model.minutes, 'minute')}, {model.capacity:g} {plural(model.capacity, 'visitor')} at once within "
        f"{model.objective_ms} ms")  # fmt: skip
    say()
    say(f"{'':<12}" + "".join(f"{column:>15}" for column in COLUMNS))
    for one in found:
        say(f"{one.law:<12}" + "".join(f"{cell:>15}" for cell in _cells(one, found[0])))


def _cells(one: OriginFigures, oracle: OriginFigures) -> tuple[str, ...]:
    return (
        f"{one.completed:,}",
        f"{one.completed / max(1, oracle.completed):.1%}",
        f"{one.lost:.1%}",
        f"{one.p95_s:.2f} s",
        f"{one.overshoot:.0%}",
        f"{one.deviation:.1%}",
    )


def _model(file: Path) -> OriginModel:
    try:
        return read_model(read_toml(file.read_text(encoding="utf-8")), file.stem)
    except InvalidConfig as error:
        complain_of(list(error.problems))
    except OSError as error:
        complain(f"greenroom: --origin {file}: {error.strerror}")
    except UnicodeDecodeError as error:
        complain(f"greenroom: --origin {file}: is not UTF-8 at byte {error.start}")
    except tomllib.TOMLDecodeError as error:
        complain(f"greenroom: --origin {file}: {error}")
    raise typer.Exit(WRONG_USE)
