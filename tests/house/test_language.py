"""Documents, help, messages and docstrings use plain modern English: the words that we avoid do not come back."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from greenroom.cli import app

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "greenroom"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

AVOIDED = re.compile(
    r"\b(who(m)?ever|whatever|(some|any|no)body|anew|is had|(?<!there )(?-i:is none)|mend(s|ed|ing)?|look(s|ed|ing)? after|"
    r"stand(s|ing)? for|good for nothing|ours|theirs)\b",
    re.IGNORECASE,
)
"""Say who does what ("a visitor", "no process"), and `fix`, `again`, `means`, `there is no`."""

ALLOWED = frozenset({("CHANGELOG.md", "nobody")})  # quotes log messages of earlier versions


def avoided(text: str) -> list[str]:
    return [match[0].lower() for match in AVOIDED.finditer(text)]


def plain(text: str) -> str:
    """A document without its code blocks: programs may name things as they like."""
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of every string in a module that the program can use: all but docstrings."""
    tree = ast.parse(source)
    silent = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent:
            yield node.lineno, node.value


def prose(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of every docstring and comment in a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def helps(command: object) -> Iterator[str]:
    """Help of a command, of its options and of everything below it."""
    yield getattr(command, "help", None) or ""
    for param in getattr(command, "params", ()):
        yield getattr(param, "help", None) or ""
    for child in getattr(command, "commands", {}).values():
        yield from helps(child)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_use_plain_english(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    assert [word for word in avoided(plain(path.read_text())) if (name, word) not in ALLOWED] == []


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_texts_of_the_program_use_plain_english(path: Path) -> None:
    assert [(line, word) for line, text in texts(path.read_text()) for word in avoided(text)] == []


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_docstrings_and_comments_use_plain_english(path: Path) -> None:
    assert [(line, word) for line, text in prose(path.read_text()) for word in avoided(text)] == []


def test_help_of_commands_uses_plain_english() -> None:
    assert [word for text in helps(typer.main.get_command(app)) for word in avoided(text)] == []


@pytest.mark.parametrize(
    "text", ["whoever comes", "Nobody is let in", "begins anew", "it is none", "mended", "It stands for a room.", "a page of ours"]
)
def test_the_check_catches(text: str) -> None:
    assert avoided(text)


@pytest.mark.parametrize("text", ["recommended", "hours", "a stand", "newcomer", "looks at"])
def test_the_check_forgives(text: str) -> None:
    assert avoided(text) == []
