"""The tests keep house rules too: virtual time instead of sleeps, the real thing instead of mocks,
one name per file.
"""

import ast
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from warm_start import output_of

TESTS = Path(__file__).resolve().parents[1]
WAITS = frozenset({"sleep", "wait_for_timeout"})
FLOORS_OF_TESTS = {
    "unit",
    "properties",
    "contracts",
    "integration",
    "e2e",
    "fuzz",
    "simulation",
    "house",
    "bench",
}


def bare_sleeps(source: str) -> list[int]:
    """Lines that wait in real time without a comment that says why; `sleep(0)` only lets others run
    and is free.
    """
    lines = source.splitlines()
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = (
            node.func.attr
            if isinstance(node.func, ast.Attribute)
            else node.func.id
            if isinstance(node.func, ast.Name)
            else ""
        )
        free = isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        if (
            name in WAITS
            and not free
            and not any("#" in line for line in lines[node.lineno - 1 : node.end_lineno])
        ):
            found.append(node.lineno)
    return found


def test_a_real_sleep_says_why() -> None:
    found = {path: bare_sleeps(path.read_text()) for path in TESTS.rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_check_catches_a_bare_sleep() -> None:
    assert bare_sleeps(
        "import time\ntime.sleep(1)\ntime.sleep(0)\ntime.sleep(1)  # the kernel needs a moment\n"
    ) == [2]


def test_every_test_file_has_a_name_of_its_own() -> None:
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_tests_live_in_the_known_folders() -> None:
    assert {
        path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")
    } <= FLOORS_OF_TESTS
    assert list(TESTS.rglob("__init__.py")) == []


def test_threads_start_processes_at_once() -> None:
    with ThreadPoolExecutor(8) as threads:
        outputs = list(threads.map(lambda _: output_of("--version"), range(32)))
    assert len(set(outputs)) == 1
    assert outputs[0].startswith("greenroom")
