"""Custom pages: Mustache over a flat table of variables, compiled once. No partials, blocks or
dotted names; values are booleans, numbers or strings, so nothing can be called and rendering can
neither fail nor run long.
"""

import html
import re
from dataclasses import dataclass

from greenroom.errors import Problem
from greenroom.pages.variables import TEMPLATE_VARIABLES, PageVariables, Value, Variable

SIZE_MAX = 1_048_576
"""Bytes of UTF-8, the published limit."""

TAGS_MAX = 2_000
"""A page in twelve languages uses about 400; keeps the worst page under a millisecond."""

DEPTH_MAX = 16
"""Rendering recurses once per nested section."""

NAME_MAX = 100
"""A longer one is a tag that was never closed."""

PROBLEMS_MAX = 20
"""More would bury the first."""

DELIMITER_MAX = 8

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*|\.")
_BLANK_REST = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_SPELLINGS = {name.lower(): name for name in TEMPLATE_VARIABLES}
_REFUSED = {
    ">": "partials ({{>name}}) are refused: a page is one template",
    "<": "parents ({{<name}}) are refused: a page is one template",
    "$": "blocks ({{$name}}) are refused: a page is one template",
}
_CLOSERS = {"{": "}", "=": "="}
_STANDALONE = frozenset("#^/!=")


@dataclass(frozen=True, slots=True)
class _Shown:
    variable: Variable
    escaped: bool


@dataclass(frozen=True, slots=True)
class _Section:
    variable: Variable | None  # None: a name we do not have, which is never true
    inverted: bool
    inside: "list[_Node]"


_Node = str | _Shown | _Section


class Template:
    __slots__ = ("_nodes",)

    def __init__(self, nodes: list[_Node]) -> None:
        self._nodes = nodes

    def render(self, facts: PageVariables) -> bytes:
        shown: list[str] = []
        _render(self._nodes, facts, shown)
        return "".join(shown).encode()


def parse(source: str, pointer: str = "custom_page_html") -> Template | list[Problem]:
    """The page, or everything wrong with it (at most PROBLEMS_MAX); lines count from 1."""
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        return [
            Problem(
                pointer,
                "contains a lone surrogate, which UTF-8 cannot write",
                source.count("\n", 0, error.start) + 1,
            )
        ]
    if size > SIZE_MAX:
        return [Problem(pointer, f"must be at most {SIZE_MAX} bytes, not {size}")]
    parser = _Parser(source, pointer)
    parser.run()
    return parser.problems[:PROBLEMS_MAX] or Template(parser.nodes)


def template_problems(source: str, pointer: str) -> list[Problem]:
    found = parse(source, pointer)
    return [] if isinstance(found, Template) else found


def _render(nodes: list[_Node], facts: PageVariables, shown: list[str]) -> None:
    for node in nodes:
        if isinstance(node, str):
            shown.append(node)
        elif isinstance(node, _Shown):
            value = _literal(node.variable.read(facts))
            shown.append(html.escape(value) if node.escaped else value)
        elif bool(node.variable and node.variable.read(facts)) is not node.inverted:
            _render(node.inside, facts, shown)


def _literal(value: Value) -> str:
    """Real templates put variables into scripts: `true`, `false`, `10`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@dataclass(slots=True)
class _Open:
    name: str
    line: int
    inverted: bool
    outside: list[_Node]


class _Parser:
    """One pass, linear also for hostile sources."""

    def __init__(self, source: str, pointer: str) -> None:
        self.source = source
        self.pointer = pointer
        self.nodes: list[_Node] = []
        self.problems: list[Problem] = []
        self._left, self._right = "{{", "}}"
        self._open: list[_Open] = []
        self._position = 0
        self._line = 1
        self._counted_to = 0

    def run(self) -> None:
        tags = 0
        while (start := self.source.find(self._left, self._position)) >= 0:
            tags += 1
            if tags > TAGS_MAX:
                self._problem(start, f"has more than {TAGS_MAX} tags")
                return
            if len(self.problems) >= PROBLEMS_MAX or not self._tag(start):
                return
        self._text(self.source[self._position :])
        for section in self._open:
            sign = "^" if section.inverted else "#"
            reason = (
                f"the section {{{{{sign}{section.name}}}}} is never closed with"
                f" {{{{/{section.name}}}}}"
            )
            self.problems.append(Problem(self.pointer, reason, section.line))

    def _tag(self, start: int) -> bool:
        inside = start + len(self._left)
        sign = self.source[inside : inside + 1]
        closing = _CLOSERS.get(sign, "") + self._right
        sign = sign if sign in "{&#^/!=><$" else ""
        end = self.source.find(closing, inside + len(sign))
        if end < 0:
            self._problem(start, f"a tag is opened here and never closed with {closing}")
            return False
        after = end + len(closing)
        text, content = self.source[self._position : start], self.source[inside + len(sign) : end]
        if sign and sign in _STANDALONE:
            text, after = self._standalone(text, after)
        self._text(text)
        self._position = after
        if sign == "=":
            self._delimiters(start, content.split())
        elif sign in _REFUSED:
            self._problem(start, _REFUSED[sign])
        elif sign != "!":
            self._named(start, sign, content.strip())
        return True

    def _standalone(self, text: str, after: int) -> tuple[str, int]:
        """Takes the whole line with it, as Mustache says."""
        clear = text.rstrip(" \t")
        begins = clear.endswith("\n") or (
            not clear and (self._position == 0 or self.source[self._position - 1] == "\n")
        )
        rest = _BLANK_REST.match(self.source, after)
        return (clear, rest.end()) if begins and rest else (text, after)

    def _delimiters(self, start: int, pair: list[str]) -> None:
        if len(pair) != 2 or any(len(mark) > DELIMITER_MAX or "=" in mark for mark in pair):
            self._problem(
                start, "new delimiters must be two short marks without =, such as {{=<% %>=}}"
            )
        else:
            self._left, self._right = pair

    def _named(self, start: int, sign: str, name: str) -> None:
        if "." in name and name != ".":
            self._problem(
                start, f"dotted names are refused, the variables are flat: {name[:NAME_MAX]!r}"
            )
        elif len(name) > NAME_MAX or not _NAME.fullmatch(name):
            self._problem(
                start,
                f"{name[:40]!r} is not the name of a variable; is a tag before it not closed?",
            )
        elif name not in TEMPLATE_VARIABLES and name.lower() in _SPELLINGS:
            self._problem(start, f"{name} is written {_SPELLINGS[name.lower()]}")
        elif sign in ("#", "^"):
            self._section(start, name, sign == "^")
        elif sign == "/":
            self._close(start, name)
        else:
            self._show(name, escaped=not sign)

    def _section(self, start: int, name: str, inverted: bool) -> None:
        if len(self._open) >= DEPTH_MAX:
            self._problem(start, f"sections are nested more than {DEPTH_MAX} deep")
        self._open.append(_Open(name, self._line_of(start), inverted, self.nodes))
        self.nodes = []

    def _close(self, start: int, name: str) -> None:
        if not self._open or self._open[-1].name != name:
            wanted = (
                f"{{{{/{self._open[-1].name}}}}} of line {self._open[-1].line}"
                if self._open
                else "nothing: no section is open"
            )
            self._problem(
                start, f"{{{{/{name}}}}} closes a section, but what is due here is {wanted}"
            )
            return
        section = self._open.pop()
        section.outside.append(_Section(self._variable(name), section.inverted, self.nodes))
        self.nodes = section.outside

    def _show(self, name: str, escaped: bool) -> None:
        variable = self._variable(name)
        if variable:
            self.nodes.append(_Shown(variable, escaped))

    def _variable(self, name: str) -> Variable | None:
        """An unknown name is empty, as Mustache says."""
        if name == ".":
            shown = [
                section.name
                for section in self._open
                if not section.inverted and section.name != "."
            ]
            name = shown[-1] if shown else ""
        return TEMPLATE_VARIABLES.get(name)

    def _text(self, text: str) -> None:
        if text:
            self.nodes.append(text)

    def _problem(self, position: int, reason: str) -> None:
        self.problems.append(Problem(self.pointer, reason, self._line_of(position)))

    def _line_of(self, position: int) -> int:
        self._line += self.source.count("\n", self._counted_to, position)
        self._counted_to = position
        return self._line
