"""What the compiler of the wheel gets in the place of a module: native classes that do what records
do, and final constants.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

from greenroom.model.record import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from native_records import native, problems

RECORDS = """
'''What it is for.'''
from __future__ import annotations
import msgspec
LIMIT = 1
class Seen(msgspec.Struct, frozen=True, gc=False):
    \"\"\"One.\"\"\"
    at_ms: int
    by: str = "nobody"
    names: dict[str, int] = {}
    @property
    def late(self) -> bool:
        return self.at_ms > LIMIT
    def later(self, by_ms: int) -> int:
        return self.at_ms + by_ms
class Open(msgspec.Struct):
    at_ms: int
    seen: list[int] = []
"""


def run(source: str) -> dict[str, Any]:
    there: dict[str, Any] = {"__name__": "made"}
    exec(source, there)
    return there


SOURCE = run(RECORDS)
NATIVE = run(native(RECORDS).replace("if TYPE_CHECKING", "if True"))


@pytest.fixture(params=[SOURCE, NATIVE], ids=["source", "native"])
def form(request: pytest.FixtureRequest) -> Any:
    """The module of `RECORDS` as it is in the source, and as the compiler gets it: every test here
    is true of both.
    """
    return request.param


def test_fields_properties_methods_and_the_docstring_are_there(form: Any) -> None:
    seen = form["Seen"](5)
    assert (seen.at_ms, seen.by, seen.names, seen.late, seen.later(2), form["Seen"].__doc__) == (
        5,
        "nobody",
        {},
        True,
        7,
        "One.",
    )
    assert form["Seen"].__struct_fields__ == ("at_ms", "by", "names")
    assert form["__doc__"] == "What it is for."


def test_fields_are_given_by_place_or_by_name(form: Any) -> None:
    assert form["Seen"](5, "me") == form["Seen"](by="me", at_ms=5, names={})
    with pytest.raises(TypeError):
        form["Seen"]()
    with pytest.raises(TypeError):
        form["Seen"](5, missing=1)


def test_every_record_has_empty_collections_of_its_own(form: Any) -> None:
    one, other = form["Open"](1), form["Open"](1)
    one.seen.append(1)
    assert other.seen == []
    assert form["Open"](1, seen := []).seen is seen


def test_records_are_equal_when_all_fields_are_and_of_one_class(form: Any) -> None:
    assert form["Seen"](5) != form["Seen"](6)
    assert form["Seen"](5) != form["Seen"](5, "me")
    assert form["Seen"](5) != 5
    assert form["Seen"](5) != form["Open"](5)


def test_only_a_frozen_record_has_a_hash_and_it_goes_by_its_fields(form: Any) -> None:
    assert (
        hash(form["Seen"](5, "me", ()))
        == hash(form["Seen"](5, "me", ()))
        != hash(form["Seen"](6, "me", ()))
    )
    with pytest.raises(TypeError):
        hash(form["Open"](1))


def test_a_record_with_changes_is_another_one(form: Any) -> None:
    seen = form["Seen"](5)
    assert repr(replace(seen, by="me")) == "Seen(at_ms=5, by='me', names={})"
    assert seen.by == "nobody"
    with pytest.raises(TypeError):
        replace(seen, missing=1)


@pytest.mark.parametrize("default", ["[]", "{}", "set()"])
def test_the_collections_that_are_made_for_each_record_are_those_of_msgspec(default: str) -> None:
    """`set()` is a call, which msgspec takes for an empty set: it is refused rather than shared by
    all.
    """
    source = f"import msgspec\nclass A(msgspec.Struct):\n    of: set[int] | list[int] | dict[int, int] = {default}\n"
    made = run(source)["A"]
    assert made().of is not made().of
    if default == "set()":
        assert problems(source)
    else:
        there = run(native(source).replace("if TYPE_CHECKING", "if True"))["A"]
        assert there().of is not there().of


OTHER_KINDS = {
    "class A(msgspec.Struct, array_like=True):\n    x: int": "line 1: A has the option array_like: records have frozen and gc",
    "class A(msgspec.Struct, kw_only=True, gc=False):\n    x: int": "line 1: A has the option kw_only",
    "class A(msgspec.Struct, Generic[T]):\n    x: T": "line 1: A has other bases than msgspec.Struct",
    "class A(Struct):\n    x: int": "line 1: A is a record only if its base is called msgspec.Struct",
    "class A(B, gc=False):\n    x: int": "line 1: A has the option gc: compiled classes have none",
    "@final\nclass A(msgspec.Struct):\n    x: int": "line 2: A has a decorator",
    "def f():\n    class A(msgspec.Struct):\n        x: int": "line 2: A is inside of something",
    "class A(msgspec.Struct):\n    x: int\n    def __post_init__(self): pass": "line 1: A has __post_init__, which would not be called",
    "class A(msgspec.Struct):\n    x: int\n    def __eq__(self, other): pass": "line 1: A has __eq__ of its own",
    "class A(msgspec.Struct):\n    x: ClassVar[int] = 1": "line 1: A has an attribute that is no field: x: ClassVar[int] = 1",
    "class A(msgspec.Struct):\n    x: int = msgspec.field(default=1)": "line 1: A has a default that is called for: x: int = msgspec.field",
    "class A(msgspec.Struct):\n    x: int\n    MOST = 5": "line 1: A has something that is neither a field nor a method: MOST = 5",
}


@pytest.mark.parametrize("source", OTHER_KINDS)
def test_a_kind_of_record_that_would_become_something_else_ends_the_build(source: str) -> None:
    (found,) = problems(source)
    assert found.startswith(OTHER_KINDS[source])
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the words are compared
        native(source)
    assert str(refused.value) == found


def test_all_problems_are_told_at_once() -> None:
    assert (
        len(
            problems(
                "@final\nclass A(msgspec.Struct, B, order=True):\n    x: int = f()\nclass C(D, gc=False): ..."
            )
        )
        == 5
    )


def test_what_the_source_has_besides_records_stays_as_it_is() -> None:
    plain = (
        "class A(Protocol):\n    x: int\n\nclass B(A):\n\n    def f(self) -> int:\n        return 1"
    )
    assert native(plain).endswith(plain)


CONSTANTS = """
LIMIT, low = 1, 2
SHARES = (0.25, 0.5)
KEPT: int = 3
Name = dict[str, int]
T = TypeVar("T")
_sum = 0
again = 1
again = 2
both = other = 3
seen += 1
def add() -> None:
    global _sum
    _sum += 1
    local = 1
"""


def test_what_is_assigned_once_without_a_type_is_final_in_compiled_code() -> None:
    made = native(CONSTANTS)
    assert (
        "LIMIT: Final = 1\nlow: Final = 2\nSHARES = (0.25, 0.5)\nKEPT: int = 3\nName = dict[str, int]\nT = TypeVar('T')\n_sum = 0\n"
        in made
    )
    assert made.count("Final = ") == 2


def test_a_module_begins_with_its_docstring_and_what_it_imports_from_the_future() -> None:
    first = native("'Words.'\nfrom __future__ import annotations\nimport os").splitlines()
    assert first[:2] == ['"""Words."""', "from __future__ import annotations"]
    assert first[2].startswith("from typing import")
    assert native("import os").startswith("from typing import")
