"""The parts of a parsed expression, and how to print them: parsing the output of `show` gives the
same parts.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from greenroom.rules.literals import quoted, raw_quoted


class Each(Enum):
    """The index `[*]`."""

    EACH = "*"


Index = int | str | Each


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of an expression. `span` (character offsets) and `depth` (nesting below) are not part
    of its identity.
    """

    span: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string literal; one character of `value` is one byte (latin-1)."""

    value: str


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    """The regular expression on the right of `matches`, as the operator wrote it."""

    source: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    """An integer given to a function."""

    value: int


@dataclass(frozen=True, slots=True)
class Bare(Node):
    """An unquoted literal or range of a comparison; the type of the left side says how it is read."""

    text: str


@dataclass(frozen=True, slots=True)
class Items(Node):
    """An inline set."""

    items: tuple[Text | Bare, ...]


@dataclass(frozen=True, slots=True)
class ListName(Node):
    """A named list, without the `$`."""

    name: str


@dataclass(frozen=True, slots=True)
class Field(Node):
    """A field of the request, or a place inside it."""

    name: str
    indexes: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function call, or a place inside its result."""

    name: str
    args: tuple[Node, ...]
    indexes: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A comparison; `op` is the word form."""

    left: Field | Call
    op: str
    right: Text | Pattern | Bare | Items | ListName


@dataclass(frozen=True, slots=True)
class Truth(Node):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Not(Node):
    """Negation."""

    part: Node


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """Two or more parts joined by `or`, `xor` or `and`; a chain of one operator is one Logic, so a
    long one is not deep.
    """

    op: str
    parts: tuple[Node, ...]


_BINDS = {"or": 1, "xor": 2, "and": 3}


def show(node: Node) -> str:
    """The expression as text: word operators, parentheses only where they are needed."""
    text: str = _WRITERS[type(node)](node)
    return text


def _group(node: Node, above: int) -> str:
    text = show(node)
    return f"({text})" if isinstance(node, Logic) and _BINDS[node.op] <= above else text


def _places(indexes: tuple[Index, ...]) -> str:
    return "".join(
        f"[{'*' if item is Each.EACH else quoted(item) if isinstance(item, str) else item}]"
        for item in indexes
    )


_WRITERS: dict[type, Any] = {
    Text: lambda node: quoted(node.value),
    Pattern: lambda node: raw_quoted(node.source),
    Number: lambda node: str(node.value),
    Bare: lambda node: node.text,
    Items: lambda node: "{" + " ".join(map(show, node.items)) + "}",
    ListName: lambda node: f"${node.name}",
    Field: lambda node: node.name + _places(node.indexes),
    Call: lambda node: (
        f"{node.name}({', '.join(_group(arg, 3) for arg in node.args)}){_places(node.indexes)}"
    ),
    Compare: lambda node: f"{show(node.left)} {node.op} {show(node.right)}",
    Truth: lambda node: "true" if node.value else "false",
    Not: lambda node: f"not {_group(node.part, 3)}",
    Logic: lambda node: f" {node.op} ".join(_group(part, _BINDS[node.op]) for part in node.parts),
}
