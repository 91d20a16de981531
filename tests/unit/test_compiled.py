"""The modules that the compiled wheel has in compiled form, and how a process says which form runs."""

import ast
import os
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from greenroom.runtime.compiled import ONE_OF_THEM, is_compiled

ROOT = Path(__file__).resolve().parents[2]
HOOK = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
MODULES: list[str] = HOOK["compiled"]


def file_of(module: str) -> Path:
    return (ROOT / "src").joinpath(*module.split(".")).with_suffix(".py")


def options_of_classes(source: str) -> list[str]:
    """Classes with options behind their bases (`class A(Struct, frozen=True)`)."""
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef) and node.keywords]


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
def test_no_class_of_a_compiled_module_has_options_because_the_compiler_drops_them(module: str) -> None:
    assert options_of_classes(file_of(module).read_text()) == []


def test_options_of_classes_are_found() -> None:
    assert options_of_classes("class A(B, frozen=True): ...\nclass C(B): ...") == ["A"]
