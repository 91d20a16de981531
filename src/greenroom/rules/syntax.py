"""Parts of a parsed expression; parsing the output of `show` gives the same parts."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from greenroom.rules.literals import quoted, raw_quoted


class Each(Enum):
    EACH = "*"


Index = int | str | Each


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`span` (character offsets) and `depth` (nesting below) do not count for equality."""

    span: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text(Node):
    """One character of `value` is one byte (latin-1)."""

    value: str


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    """Right of `matches`, as written."""

    source: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    value: int


@dataclass(frozen=True, slots=True)
class Bare(Node):
    """An unquoted literal or range; the type of the left side says how it is read."""

    text: str


@dataclass(frozen=True, slots=True)
class Items(Node):
    items: tuple[Text | Bare, ...]


@dataclass(frozen=True, slots=True)
class ListName(Node):
    """Without the `$`."""

    name: str


@dataclass(frozen=True, slots=True)
class Field(Node):
    name: str
    indexes: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Call(Node):
    name: str
    args: tuple[Node, ...]
    indexes: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`op` is the word form."""

    left: Field | Call
    op: str
    right: Text | Pattern | Bare | Items | ListName


@dataclass(frozen=True, slots=True)
class Truth(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class Not(Node):
    part: Node


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """`or`, `xor` or `and`; a chain of one operator is one Logic, so a long one is not deep."""

    op: str
    parts: tuple[Node, ...]


_BINDS = {"or": 1, "xor": 2, "and": 3}


def show(node: Node) -> str:
    """With word operators, and parentheses only where needed."""
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
