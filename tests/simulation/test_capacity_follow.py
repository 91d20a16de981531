"""The law of capacity behind the production admission code, before a model of an origin."""

import json
from pathlib import Path
from random import Random

from typer.testing import CliRunner

from greenroom.capacity import CapacityLaw
from greenroom.cli import app
from greenroom.simulator.chance import Streams
from greenroom.simulator.origin import Disturbance, OriginModel
from greenroom.simulator.origin_world import bounds_of, figures, run_law, run_oracle
from greenroom.simulator.scenario import START_MS

DOWN_S, UP_S = 420, 600


def streams(seed: int) -> Streams:
    return lambda name: Random(f"{seed}/{name}")


def test_an_outage_stops_admissions_at_once_and_is_over_four_minutes_later() -> None:
    outage = Disturbance(at_s=DOWN_S, until_s=UP_S, capacity=0)
    model = OriginModel(minutes=20, capacity=100, disturbances=(outage,))
    world = run_law(model, streams(1), CapacityLaw(bounds_of(model)))
    entered = [visitor.entered_ms for visitor in world.crowd.visitors if visitor.entered_ms]
    seconds = [(entered_ms - START_MS) / 1000 for entered_ms in entered]
    # Ten seconds and half a minute later a few visitors are probes.
    assert sum(DOWN_S + 10 < second < DOWN_S + 40 for second in seconds) == 0
    assert sum(DOWN_S + 10 < second < UP_S for second in seconds) <= 15
    again = min(row[0] for row in world.rows if row[0] > UP_S and row[3] >= 0.8 * model.capacity)
    assert again - UP_S <= 240
    oracle = run_oracle(model, streams(1))
    mine, best = figures("follow", world), figures("oracle", oracle)
    assert mine.completed >= 0.8 * best.completed
    assert mine.p95_s <= 1.5


def test_the_knee_of_an_origin_that_falls_to_half_is_found_again() -> None:
    half = Disturbance(at_s=480, until_s=1_080, capacity=0.5)
    model = OriginModel(minutes=18, capacity=100, leaving=1.0, disturbances=(half,))
    world = run_law(model, streams(2), CapacityLaw(bounds_of(model)))
    full = [row[3] for row in world.rows if 300 <= row[0] <= 480]
    halved = [row[3] for row in world.rows if 700 <= row[0] <= 1_080]
    assert 0.8 * 100 <= sum(full) / len(full) <= 1.1 * 100
    assert 0.75 * 50 <= sum(halved) / len(halved) <= 1.1 * 50


def test_the_command_compares_laws_and_names_every_problem_of_a_model(tmp_path: Path) -> None:
    file, chart = tmp_path / "small.toml", tmp_path / "small.svg"
    file.write_text("minutes = 2\ncapacity = 10\n[[disturbances]]\nat_s = 60\nuntil_s = 70\n")
    run = CliRunner().invoke(
        app, ["simulate", "--origin", str(file), "--json", "--plot", str(chart)]
    )
    assert run.exit_code == 0
    assert "</svg>" in chart.read_text()
    laws = {one["law"]: one for one in json.loads(run.stdout)["laws"]}
    assert list(laws) == [
        "oracle", "follow", "AIMD", "Gradient2", "Vegas", "fixed", "fixed +50 %",
    ]  # fmt: skip
    assert laws["oracle"]["completed"] > 0
    both = ["--origin", str(file), "--trace", "global-spike"]
    run = CliRunner().invoke(app, ["simulate", *both])
    assert (run.exit_code, "cannot be used with --trace" in run.output) == (2, True)
    file.write_text('capacity = 1\nfoo = 2\nminutes = "x"\n[[disturbances]]\nuntil_s = 5\n')
    run = CliRunner().invoke(app, ["simulate", "--origin", str(file)])
    assert run.exit_code == 2
    for part in ("capacity: must be 5 to 100000, not 1", "foo: ", "minutes: must be a number",
                 "disturbances[0].at_s: is required"):  # fmt: skip
        assert part in run.output
