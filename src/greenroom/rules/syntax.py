"""Parts of a parsed expression; parsing the output of `show` gives the same parts."""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

# Errors in expressions and their position, with a caret in the published style.


class RuleFault(NamedTuple):
    """Character offsets into the expression."""

    start: int
    end: int
    reason: str


class RuleRefused(Exception):
    def __init__(self, *faults: RuleFault) -> None:
        super().__init__("; ".join(fault.reason for fault in faults))
        self.faults = faults


def line_of(source: str, fault: RuleFault) -> int:
    return source.count("\n", 0, min(fault.start, len(source))) + 1


def draw(source: str, fault: RuleFault) -> str:
    """Lines and columns count from 1."""
    start = min(fault.start, len(source))
    first = source.rfind("\n", 0, start) + 1
    last = source.find("\n", start)
    line = source[first : last if last >= 0 else len(source)]
    column = start - first
    carets = "^" * max(1, min(fault.end - start, len(line) - column))
    shown = line.replace("\t", " ").rstrip("\r").encode(errors="replace").decode()
    return (
        "Filter parsing error"
        f" ({line_of(source, fault)}:{column + 1}):\n{shown}\n{' ' * column}{carets} {fault.reason}"
    )


# The types of the rules language.


@dataclass(frozen=True, slots=True)
class ValueKind:
    name: str
    of: "ValueKind | None" = None

    def __str__(self) -> str:
        return f"{self.name}<{self.of}>" if self.of else self.name


STRING = ValueKind("String")
INTEGER = ValueKind("Integer")
BOOLEAN = ValueKind("Boolean")
IP = ValueKind("IP address")


def array(of: ValueKind) -> ValueKind:
    return ValueKind("Array", of)


def mapping(of: ValueKind) -> ValueKind:
    return ValueKind("Map", of)


STRINGS = array(STRING)
BOOLEANS = array(BOOLEAN)
STRINGS_BY_NAME = mapping(STRINGS)


# Literals of the rules language. A String is bytes, held as one character per byte (latin-1).

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

_ESCAPE = re.compile(r'\\(?:x([0-9a-fA-F]{2})|([0-3][0-7]{2})|(["\\]))')


def as_bytes_text(text: str) -> str:
    return text if text.isascii() else text.encode().decode("latin-1")


def unescaped(body: str, offset: int) -> str:
    r"""Only `\"`, `\\`, `\xHH` and three octal digits are escapes. `offset` is where the body
    begins.
    """
    if "\\" not in body:
        return as_bytes_text(body)
    parts, at = [], 0
    while (found := body.find("\\", at)) >= 0:
        escape = _ESCAPE.match(body, found)
        if not escape:
            raise RuleRefused(
                RuleFault(
                    offset + found,
                    offset + found + 2,
                    'expected ", \\, xHH or three octal digits after \\',
                )
            )
        byte, octal, plain = escape.groups()
        parts += [
            as_bytes_text(body[at:found]),
            plain or chr(int(byte, 16) if byte else int(octal, 8)),
        ]
        at = escape.end()
    return "".join(parts) + as_bytes_text(body[at:])


def pattern_body(body: str) -> str:
    r"""Backslashes belong to the regular expression; only `\"` outside a class becomes a quote."""
    out, inside, at = [], False, 0
    while at < len(body):
        if body[at] == "\\":
            out.append('"' if body[at + 1] == '"' and not inside else body[at : at + 2])
            at += 2
            continue
        inside = body[at] == "[" or (inside and body[at] != "]")
        out.append(body[at])
        at += 1
    return "".join(out)


def quoted(value: str) -> str:
    return '"' + "".join(_SHOWN[ord(char)] for char in value) + '"'


_SHOWN = [chr(code) if 0x20 <= code < 0x7F else f"\\x{code:02x}" for code in range(256)]
_SHOWN[ord('"')], _SHOWN[ord("\\")] = '\\"', "\\\\"


def raw_quoted(text: str) -> str:
    longest = max((len(run) - 1 for run in re.findall(r'"#*', text)), default=-1)
    hashes = "#" * (longest + 1)
    return f'r{hashes}"{text}"{hashes}'


def integer(text: str) -> int | None:
    """64 bits: decimal, `0x`, or octal with a leading 0 (as published)."""
    if re.fullmatch(r"0x[0-9a-fA-F]+", text):
        value = int(text, 16)
    elif re.fullmatch(r"0[0-7]+", text):
        value = int(text, 8)
    elif re.fullmatch(r"-[0-9]{1,20}|[1-9][0-9]{0,19}|0", text):
        value = int(text)
    else:
        return None
    return value if INTEGER_MIN <= value <= INTEGER_MAX else None


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
