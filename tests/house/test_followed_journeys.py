"""The pages that follow one request, change or probe use names that exist in the code, and are short
enough to be read at once.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "greenroom"
PAGES = sorted((ROOT / "docs" / "explanation").glob("follow-one-*.md"))
STEPS_MOST = 10


def named(text: str) -> list[str]:
    """Names of code in backticks; paths are checked with those of all documents."""
    return [name for name in re.findall(r"`([^`\n]+)`", text) if "/" not in name]


def members(owner: ast.ClassDef) -> Iterator[str]:
    """What an instance of a class has, by what its body says."""
    for node in ast.walk(owner):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@cache
def names_in_the_code() -> tuple[set[str], dict[str, set[str]]]:
    """Everything at the top of a module, and the members of every class."""
    top, classes = set[str](), defaultdict[str, set[str]](set)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                top.add(node.name)
            if isinstance(node, ast.ClassDef):
                classes[node.name] |= set(members(node))
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                top |= {target.id for target in targets if isinstance(target, ast.Name)}
    return top, classes


def unknown(text: str) -> list[str]:
    """Names in a text that lead nowhere."""
    top, classes = names_in_the_code()
    found = []
    for name in named(text):
        owner, _, member = name.partition(".")
        if not (member in classes[owner] if member else owner in top):
            found.append(name)
    return found


def test_there_are_pages() -> None:
    assert len(PAGES) == 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_on_the_page_exists_in_the_code(page: Path) -> None:
    assert unknown(page.read_text()) == []
    assert len(named(page.read_text())) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_has_few_steps(page: Path) -> None:
    steps = [int(number) for number in re.findall(r"^(\d+)\. ", page.read_text(), re.M)]
    assert steps == list(range(1, len(steps) + 1))
    assert 5 < len(steps) <= STEPS_MOST


def test_the_check_catches_a_name_that_is_gone() -> None:
    text = "`Reception.receive` asks `DecisionService.decide_all`, `decide_all` and `DecisionService.receive` in `admission/decide.py`"
    assert unknown(text) == ["Reception.receive", "DecisionService.decide_all", "decide_all"]
