"""The modules that the compiled wheel has in compiled form, and how a process says which form runs."""

import ast
import os
import sys
import tomllib
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from greenroom.model.record import replace
from greenroom.model.visit import Estimate, Outcome, Standing
from greenroom.runtime.compiled import ONE_OF_THEM, is_compiled

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from native_records import problems  # noqa: E402 - no package

HOOK = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]["hooks"]["custom"]
MODULES: list[str] = HOOK["compiled"]


def file_of(module: str) -> Path:
    return (ROOT / "src").joinpath(*module.split(".")).with_suffix(".py")


def test_it_is_known_which_form_was_installed() -> None:
    assert is_compiled() is (os.environ.get("GREENROOM_COMPILED", "") not in ("", "0"))
    assert ONE_OF_THEM in MODULES


def test_the_list_is_in_order_and_names_modules_once() -> None:
    assert sorted(set(MODULES)) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_the_list_runs_in_the_form_that_was_installed(module: str) -> None:
    file = import_module(module).__file__
    assert file is not None
    assert file.endswith(".so" if is_compiled() else ".py")


@pytest.mark.parametrize("module", MODULES)
def test_no_class_of_a_compiled_module_is_something_else_when_it_is_compiled(module: str) -> None:
    assert problems(file_of(module).read_text()) == []


def test_records_are_the_same_in_both_forms() -> None:
    outcome = Outcome(Standing.WAITING, ahead=3, estimate=Estimate(1.0, 2.0, 3.0))
    assert (
        replace(outcome, ahead=4)
        == Outcome(Standing.WAITING, ahead=4, estimate=Estimate(1.0, 2.0, 3.0))
        != outcome
    )
    assert hash(outcome) == hash(replace(outcome, called=False))
    assert (
        repr(Estimate(1.0, 2.0, 3.0))
        == "Estimate(p25_s=1.0, p50_s=2.0, p75_s=3.0, most_s=0.0, change='')"
    )
    with pytest.raises(TypeError):
        replace(outcome, missing=1)


def test_records_that_are_nested_deeply_are_freed_whole() -> None:
    nested: tuple[Any, ...] = ()
    for number in range(10_000):  # CPython puts off what is nested more than fifty deep
        nested = (
            nested,
            Outcome(Standing.WAITING, ahead=number),
            Estimate(1.0, 2.0, float(number)),
        )
    del nested
    assert [Outcome(Standing.WAITING, ahead=number).ahead for number in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("module", MODULES)
def test_no_number_or_text_is_compared_by_identity(module: str) -> None:
    """Compiled code boxes integers anew: `is` is False for equal ones."""
    names = vars(import_module(module))
    wrong = [
        f"{module}:{node.lineno}: {operand.id}"
        for node in ast.walk(ast.parse(file_of(module).read_text()))
        if isinstance(node, ast.Compare)
        and any(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops)
        for operand in (node.left, *node.comparators)
        if isinstance(operand, ast.Name)
        and isinstance(value := names.get(operand.id), int | float | str | bytes)
        and not isinstance(value, Enum)
    ]
    assert wrong == []


def late_reads(source: str) -> list[str]:
    """Attributes that `__init__` assigns and a function inside it reads, which runs later."""
    found = []
    for init in ast.walk(ast.parse(source)):
        if not isinstance(init, ast.FunctionDef) or init.name != "__init__":
            continue
        inside = [one for one in ast.walk(init) if isinstance(one, ast.FunctionDef | ast.Lambda)]
        attributes = [
            [
                one
                for one in ast.walk(function)
                if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self"
            ]
            for function in inside
        ]
        assigned = {one.attr for one in attributes[0] if isinstance(one.ctx, ast.Store)}
        found += [
            f"{one.lineno}: {one.attr}"
            for within in attributes[1:]
            for one in within
            if isinstance(one.ctx, ast.Load) and one.attr in assigned
        ]
    return found


@pytest.mark.parametrize("module", MODULES)
def test_no_function_inside_init_reads_what_init_assigns(module: str) -> None:
    """Compiled, it takes the attribute for what was assigned there: a None for None for ever."""
    assert late_reads(file_of(module).read_text()) == []


def test_a_function_that_reads_what_init_assigns_is_found() -> None:
    source = (
        "class A:\n def __init__(self):\n  self.b = None\n  self.c = lambda: {}\n  self.d = [{}]"
    )
    assert late_reads(source.format("self.b", "self.b")) == ["4: b"]
    assert late_reads(source.format("self.e", "self.b")) == []


@pytest.mark.parametrize("module", MODULES)
def test_no_function_inside_a_function_has_a_decorator(module: str) -> None:
    """Compiled, a third function beside it finds no such name."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    wrong = [
        f"{module}:{inner.lineno}: {inner.name}"
        for outer in ast.walk(ast.parse(file_of(module).read_text()))
        if isinstance(outer, functions)
        for inner in ast.walk(outer)
        if inner is not outer and isinstance(inner, functions) and inner.decorator_list
    ]
    assert wrong == []
