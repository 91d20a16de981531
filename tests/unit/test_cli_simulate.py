"""`greenroom simulate` says what a sale would look like, repeats it, and names everything that is
wrong with what it was given.
"""

import json
import xml.etree.ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner

from greenroom.cli import app
from greenroom.simulator.arrivals import CURVES, read_rows
from greenroom.simulator.report import SimulationReport
from greenroom.simulator.sale import LINES, RECORDED_LINES

pytestmark = pytest.mark.slow

SMALL = "--total-active-users 30 --new-users-per-minute 60 --session-duration 1 --visitors 120 --minutes 2 --visit 20".split()


def simulate(*options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["simulate", *options])
    return result.exit_code, result.stdout, result.stderr


def test_a_sale_is_told_in_words() -> None:
    code, told, _ = simulate(*SMALL)
    assert code == 0
    assert "A full room takes about 22 visitors a minute, limited by total_active_users." in told
    recorded, truth = told.split("What only a simulation knows:")
    assert "What analytics would show of it:" in recorded
    assert all(text in recorded for *_, text in RECORDED_LINES)
    assert "unused while visitors waited" in truth


def test_the_same_seed_gives_the_same_sale_and_another_one_another() -> None:
    one, same, other = (simulate(*SMALL, "--json", "--seed", seed)[1] for seed in ("5", "5", "6"))
    assert one == same != other


def test_the_answer_for_programs_has_every_figure_and_the_course_of_the_run() -> None:
    told = json.loads(simulate(*SMALL, "--json")[1])
    (run,) = told["runs"]
    assert {name for name, _ in LINES} < run["truth"].keys()
    assert run["truth"]["over_active"] == run["truth"]["over_minute"] == 0
    assert all(metric in run["analytics"][aggregate] for aggregate, metric, _ in RECORDED_LINES)
    assert run["analytics"]["sum"]["newUsersPerMinute"] == run["truth"]["entered"] >= 120
    assert run["analytics"]["max"]["totalActiveUsers"] <= 30
    assert max(row[1] for row in run["series"]["rows"]) <= 30


@pytest.mark.parametrize("curve", CURVES)
def test_everyone_comes_regardless_of_the_curve(curve: str) -> None:
    (run,) = json.loads(simulate(*SMALL, "--curve", curve, "--json")[1])["runs"]
    assert run["truth"]["visitors"] - run["truth"]["lost_sessions"] == 120


def test_pictures_are_written_as_svg(tmp_path: Path) -> None:
    file = tmp_path / "sale.svg"
    assert simulate(*SMALL, "--plot", str(file))[0] == 0
    root = xml.etree.ElementTree.fromstring(file.read_text())
    texts = "".join(text for text in root.itertext())
    assert root.tag.endswith("svg")
    assert all(
        title in texts
        for title in ("Inside", "Waiting", "Told and true", "Waits by time of arrival")
    )


def test_a_table_of_arrivals_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "crowd.csv"
    file.write_text("second,visitors,data center\n0,40,1\n60,0\n\n120,7,0\n")
    code, told, _ = simulate(*SMALL, "--arrivals", str(file), "--data-centers", "2", "--json")
    assert code == 0
    assert json.loads(told)["runs"][0]["truth"]["visitors"] == 47


def test_a_file_that_cannot_be_read_is_said_in_words(tmp_path: Path) -> None:
    file = tmp_path / "crowd.csv"
    assert (
        simulate(*SMALL, "--arrivals", str(file))[2]
        == f"greenroom: --arrivals {file}: No such file or directory\n"
    )
    file.write_bytes(b"0,1\n\xff")
    assert (
        simulate(*SMALL, "--arrivals", str(file))[2]
        == f"greenroom: --arrivals {file}: is not UTF-8 at byte 4\n"
    )


def test_everything_wrong_with_a_table_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "crowd.csv"
    file.write_text("second,visitors\n0,x\n-1,3\n5\n6,7,9\n")
    code, _, told = simulate(*SMALL, "--arrivals", str(file))
    assert code == 2
    assert [line.split(": ")[1] for line in told.splitlines()] == [
        "line 2",
        "line 3",
        "line 4",
        "line 5",
    ]
    assert read_rows("second,visitors\n", 1)[1][0].reason == "there are no arrivals in it"
    assert "altogether" in read_rows("0,2000000\n1,1\n", 1)[1][0].reason


def test_limits_that_are_missing_or_wrong_are_said_at_once() -> None:
    code, _, told = simulate("--new-users-per-minute", "0", "--queueing-method", "lottery")
    assert code == 2
    assert [line.split(": ")[0] for line in told.splitlines()] == [
        "--total-active-users",
        "--new-users-per-minute",
        "--queueing-method",
    ]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    for options in (["--trace", "nothing"], [*SMALL, "--curve", "zigzag"]):
        code, _, told = simulate(*options)
        assert code == 2
        assert "is not one of" in told
    assert simulate(*SMALL, "--arrivals", "/nowhere/crowd.csv")[0] == 2
    assert simulate(*SMALL, "--plot", "/nowhere/sale.svg")[0] == 2


def test_other_algorithms_stand_beside_ours() -> None:
    code, told, _ = simulate(*SMALL, "--compare")
    assert code == 0
    assert told.splitlines()[4].split() == ["greenroom", "even", "split", "utilisation", "counters"]
    (ended,) = (line.split() for line in told.splitlines() if line.startswith("sessions ended"))
    assert ended[2].isdigit()
    assert ended[3:] == ["-", "-", "-"], "nothing is published about it"


def test_a_campaign_says_how_many_seeds_broke_a_law() -> None:
    code, told, _ = simulate("--campaign", "2", "--seed", "100")
    assert code == 0
    assert told.startswith("2 seeds from 100: 0 broke an invariant")


def test_every_figure_that_is_shown_is_in_the_report() -> None:
    assert {name for name, _ in LINES} < set(SimulationReport.__dataclass_fields__)
