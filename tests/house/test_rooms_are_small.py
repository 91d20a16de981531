"""Small rooms, sharp names, nothing unfinished: what keeps the source readable in one sitting."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "greenroom"
LINES_OF_A_FILE = 600
LINES_OF_A_FUNCTION = 85
NAMES_OF_ATTICS = frozenset(
    "util utils helper helpers common misc base manager managers lib stuff".split()
)

EVERYWHERE = [
    path
    for folder in ("src/greenroom", "tests", "bench", "docs", "scripts", "examples")
    for path in (ROOT / folder).rglob("*.py")
]


def found(look: Callable[[str], list]) -> dict[Path, list]:
    """What a check finds in the source, by file."""
    return {path: some for path in SOURCE.rglob("*.py") if (some := look(path.read_text()))}


tree = cache(ast.parse)


def long_functions(source: str) -> list[str]:
    nodes = [
        node
        for node in ast.walk(tree(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    lengths = [(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in nodes]
    return [f"{name}: {length} lines" for name, length in lengths if length > LINES_OF_A_FUNCTION]


def unfinished(source: str) -> list[int]:
    """Lines that name NotImplementedError (ruff finds the marks in comments)."""
    return [
        node.lineno
        for node in ast.walk(tree(source))
        if isinstance(node, ast.Name) and node.id == "NotImplementedError"
    ]


def test_a_file_can_be_read_in_one_sitting() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in EVERYWHERE}
    assert {path: length for path, length in lengths.items() if length > LINES_OF_A_FILE} == {}


def test_a_function_fits_on_a_screen() -> None:
    assert found(long_functions) == {}


def test_a_room_has_a_name_that_says_what_it_is_for() -> None:
    assert [
        path
        for path in SOURCE.rglob("*.py")
        if NAMES_OF_ATTICS & {*path.relative_to(SOURCE).with_suffix("").parts}
    ] == []


def test_nothing_is_left_unfinished() -> None:
    assert found(unfinished) == {}


def test_the_checks_catch_what_they_are_for() -> None:
    assert long_functions("def long():\n" + "    x = 1\n" * LINES_OF_A_FUNCTION) == [
        f"long: {LINES_OF_A_FUNCTION + 1} lines"
    ]
    assert unfinished("def later():\n    raise NotImplementedError") == [2]
