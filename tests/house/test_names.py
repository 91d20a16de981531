"""One thing per name, and no name that only insiders understand: the field's own terms, so that
newcomers can guess.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "greenroom"

SHARED: dict[str, str] = {
    "WaitingRoom": "the middleware, which users import from greenroom.asgi or greenroom.wsgi"
}
"""Public names that several modules may define, each with the reason."""


def public_types(source: str) -> Iterator[str]:
    """Classes and aliases of types at the top of a module; type variables are private by nature."""
    for node in ast.parse(source).body:
        names = []
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and "TypeAlias" in ast.unparse(node.annotation)
        ):
            names = [node.target.id]
        yield from (name for name in names if name[0].isupper() and not name.isupper())


def _is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")


@cache
def owners() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in public_types(path.read_text()):
            found[name].append(str(path.relative_to(SOURCE)))
    return found


def test_no_public_type_has_two_owners() -> None:
    assert {
        name: paths for name, paths in owners().items() if len(paths) > 1 and name not in SHARED
    } == {}


def test_the_list_of_shared_names_is_needed() -> None:
    found = owners()
    assert [name for name in SHARED if len(found[name]) < 2] == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("class Door: ...", ["Door"]),
        ("Then = Callable[[int], None]\nLIMIT = 1\nsmall = 2", ["Then"]),
        ("Json: TypeAlias = str", ["Json"]),
        ("Item = TypeVar('Item')\n_Hidden = int", []),
        ("def outer():\n    class Inner: ...", []),
    ],
)
def test_the_check_sees(source: str, names: list[str]) -> None:
    assert list(public_types(source)) == names
