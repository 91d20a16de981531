"""One thing per name, and no name that only insiders understand: the field's own terms, so that newcomers can guess."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "greenroom"

SHARED: dict[str, str] = {"WaitingRoom": "the middleware, which users import from greenroom.asgi or greenroom.wsgi"}
"""Public names that several modules may define, each with the reason."""


def public_types(source: str) -> Iterator[str]:
    """Classes and aliases of types at the top of a module; type variables are private by nature."""
    for node in ast.parse(source).body:
        names = []
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and "TypeAlias" in ast.unparse(node.annotation):
            names = [node.target.id]
        yield from (name for name in names if name[0].isupper() and not name.isupper())


def _is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")


def owners() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in public_types(path.read_text()):
            found[name].append(str(path.relative_to(SOURCE)))
    return found


def test_no_public_type_has_two_owners() -> None:
    assert {name: paths for name, paths in owners().items() if len(paths) > 1 and name not in SHARED} == {}


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


RETIRED = {
    "office": "leader lease",
    "rota": "sync schedule",
    "switchboard": "coordinator registry",
    "letter": "sync batch",
    "letters": "sync batches",
    "wish": "permit request",
    "wishes": "permit requests",
    "thanks": "acknowledgement",
    "thankful": "to be acknowledged",
    "desk": "ConfigService",
    "calling": "queueing method",
    "callings": "queueing methods",
    "movers": "session transfers",
    "books": "ledger, ledger state",
    "shelf": "entry index",
    "shelves": "entry indexes",
    "blank": "ApiField",
    "blanks": "API fields",
    "door": "Authenticator, SystemUnderTest",
    "reception": "DecisionService",
    "brought": "TicketReader",
    "calendar": "RoomSchedule",
    "calendars": "schedules",
    "appointment": "ScheduledDraw",
    "workshop": "RoomCompiler",
    "sketch": "WaitTable",
    "luck": "random_bits",
    "rho": "disconnected_rate",
    "witness": "GroundTruth",
    "escrow": "LeaseModel",
    "deeds": "fault handlers",
    "errands": "what it really needs: a Protocol named after that",
    "trouble": "error_page, failure",
    "troubles": "failures",
    "troubled": "failing",
    "rehearsal": "dry_run",
    "rehearsed": "dry_run",
    "homes": "data_centers",
}
"""Words that were private metaphors -> the field's term. They are not to come back in identifiers and names of files."""

ALLOWED = {
    "_BLANK": "an empty line or a space, as everywhere",
    "_BLANK_REST": "an empty line or a space, as everywhere",
    "keep_blank_values": "a parameter of the standard library",
    "thanks": "the demo shop thanks its customers",
    "calling": "a call that is under way",
}

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words(name: str) -> set[str]:
    """`sync_rota`, `SyncRota`, `SYNC_ROTA` -> sync, rota."""
    return {word.lower() for word in _WORDS.findall(name)}


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """(line, name) of everything that a module names: classes, functions, parameters, variables, attributes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield node.lineno, name


def retired(name: str) -> list[str]:
    return [] if name in ALLOWED else sorted(words(name) & RETIRED.keys())


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_identifiers_use_the_terms_of_the_field(path: Path) -> None:
    found = {f"{line}: {name}: use {RETIRED[word]}" for line, name in identifiers(path.read_text()) for word in retired(name)}
    assert found == set()


def test_files_are_named_in_the_terms_of_the_field() -> None:
    files = [path for folder in ("src", "tests", "bench", "docs") for path in (ROOT / folder).rglob("*") if path.is_file()]
    named = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts for part in path.parts if retired(part)}
    assert named == set()


def test_functions_in_redis_use_the_terms_of_the_field() -> None:
    comments = re.compile(r"--.*|'[^']*'")
    for path in sorted(SOURCE.rglob("*.lua")):
        found = {name for name in re.findall(r"\w+", comments.sub("", path.read_text())) if retired(name)}
        assert found == set(), path.name


def test_the_list_of_allowed_names_is_needed() -> None:
    named = {name for path in SOURCE.rglob("*.py") for _, name in identifiers(path.read_text())}
    assert sorted(ALLOWED.keys() - named) == []


@pytest.mark.parametrize("name", ["sync_rota", "RedisOffice", "LETTERS_PER_S", "_luck", "test_event_calendar", "rho"])
def test_the_check_catches_a_retired_word(name: str) -> None:
    assert retired(name)
    assert [found for _, found in identifiers(f"{name} = 1\nthing.{name}") if retired(found)] == [name, name]


@pytest.mark.parametrize("name", ["officer", "newsletter", "throughput", "LeaderLease", "indoor_site"])
def test_the_check_lets_other_words_pass(name: str) -> None:
    assert retired(name) == []


PROSE = re.compile(
    r"\b(books|office|rota|switchboard|reception|workshop|sketch(?:es)?|witness|desk|shel(?:f|ves)|rho|luck)\b", re.IGNORECASE
)
"""Retired words that have no other meaning in comments and docstrings of the program."""

NOT_PROSE = re.compile(r"webhook\\\.office\\\.com|':books'|'head office'")


@pytest.mark.parametrize("path", sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.lua")]), ids=lambda path: str(path.relative_to(SOURCE)))
def test_comments_and_docstrings_use_the_terms_of_the_field(path: Path) -> None:
    lines = NOT_PROSE.sub("", path.read_text()).splitlines()
    assert [f"{number}: {line.strip()}" for number, line in enumerate(lines, 1) if PROSE.search(line)] == []
