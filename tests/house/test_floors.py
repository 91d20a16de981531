"""Imports go down only: the floors in pyproject.toml are complete, drawn the same in
ARCHITECTURE.md, and really checked.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "greenroom"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
CONTRACT = CONTRACTS[0]
FLOORS = [[room.strip(" ()") for room in layer.split("|")] for layer in CONTRACT["layers"]]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")


def rooms_in_the_source() -> set[str]:
    packages = {path.parent.name for path in SOURCE.glob("*/*.py")}
    return packages | {path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__"}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [LINT_IMPORTS, "--config", ROOT / "pyproject.toml", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_every_room_stands_on_exactly_one_floor() -> None:
    standing = [room for floor in FLOORS for room in floor]
    assert sorted(standing) == sorted(rooms_in_the_source())


def test_the_contract_leaves_no_room_out_and_forgives_no_import() -> None:
    assert CONTRACT["type"] == "layers"
    assert CONTRACT["exhaustive"] is True
    assert not CONTRACT.keys() & {"ignore_imports", "exhaustive_ignores"}


def test_no_package_may_hide_a_cycle() -> None:
    (acyclic,) = [contract for contract in CONTRACTS if contract["type"] == "acyclic_siblings"]
    assert acyclic["ancestors"] == ["greenroom"]
    assert acyclic.keys() == {"name", "type", "ancestors"}
    assert "exclude_type_checking_imports" not in (ROOT / "pyproject.toml").read_text()


def test_architecture_draws_the_same_floors_in_the_same_order() -> None:
    drawn = re.findall(
        r"^(\d+)  +((?:\w+)(?: \| \w+)*)(?:  .*)?$", (ROOT / "ARCHITECTURE.md").read_text(), re.M
    )
    assert [int(number) for number, _ in drawn] == list(reversed(range(len(FLOORS))))
    assert [set(rooms.split(" | ")) for _, rooms in drawn] == [set(floor) for floor in FLOORS]


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("errors.py", "import greenroom.model.room"),
        ("lookups/__init__.py", "import greenroom.outbound"),
        ("attic.py", ""),
        ("gateway/visitor/stream.py", "if TYPE_CHECKING:\n    import greenroom.gateway.server"),
        ("ledgers/sync/batch.py", "import greenroom.ledgers.redis.connect"),
    ],
    ids=[
        "an import that goes up",
        "an import between neighbours",
        "a room without a floor",
        "a hidden cycle",
        "Redis in a sync loop",
    ],
)
def test_the_check_catches(room: str, line: str, tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "greenroom", ignore=shutil.ignore_patterns("__pycache__"))
    assert lint(tmp_path).returncode == 0
    with (tmp_path / "greenroom" / room).open("a") as file:
        file.write(f"\n{line}\n")
    assert lint(tmp_path).returncode == 1
