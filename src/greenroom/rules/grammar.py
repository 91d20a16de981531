"""The grammar of Cloudflare's Ruleset Engine and its parser: not binds tightest, then and, xor, or.
Unquoted literals are kept as text (`Bare`) until the types are known. Words need no blank around
them (`ssl andssl`), as in the published parser.
"""

from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from greenroom.model.rule import EXPRESSION_MAX
from greenroom.rules.syntax import (
    Bare,
    Call,
    Compare,
    Each,
    Field,
    Index,
    Items,
    ListName,
    Logic,
    Node,
    Not,
    Number,
    Pattern,
    RuleFault,
    RuleRefused,
    Text,
    Truth,
    as_bytes_text,
    integer,
    pattern_body,
    unescaped,
)

DEPTH_MAX = 128
"""As in the published parser."""

INDEX_MAX = 2**32 - 1

PARSED_CACHED = 4_096
"""At most about 40 MB."""

GRAMMAR = r"""
?expression: or_
?or_:  xor_ (_OR xor_)*
?xor_: and_ (_XOR and_)*
?and_: not_ (_AND not_)*
?not_: NOT not_                           -> negation
     | LPAR or_ ")"                       -> group
     | value                              -> alone
     | value COMPARES (TEXT | RAW | BARE) -> compare
     | value MATCHES (REGEX | RAW)        -> matches
     | value WILDCARD (TEXT | RAW)        -> compare
     | value "in" LBRACE item* "}"        -> among
     | value "in" LIST                    -> listed
value: NAME index*                        -> field
     | NAME "(" (arg ("," arg)*)? ")" index* -> call
index: "[" (INT | TEXT | EACH) "]"
arg:   not_ | TEXT | RAW | INT
item:  TEXT | RAW | BARE

_OR:      "or" | "||"
_XOR:     "xor" | "^^"
_AND:     "and" | "&&"
NOT.2:    "not" | "!"
COMPARES: "eq" | "==" | "ne" | "!=" | "le" | "<=" | "lt" | "<" | "ge" | ">=" | "gt" | ">" | "contains"
MATCHES:  "matches" | "~"
WILDCARD: /(strict[ \t\r\n]+)?wildcard/
EACH:     "*"
LPAR:     "("
LBRACE:   "{"
NAME:     /[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z0-9_]+)*/
LIST:     /\$[a-z0-9_.]+/
INT:      /-?[0-9][0-9a-zA-Z]*/
TEXT:     /"(\\.|[^"\\])*"/s
REGEX:    /"(\\.|\[(\\.|[^\]\\])*\]|[^"\\\[])*"/s
RAW.2:    /r(?P<hashes>#{0,255})".*?"(?P=hashes)/s
BARE:     /-?(0x[0-9A-Fa-f]*|[0-9A-Fa-f:]+([.][0-9A-Fa-f:]+)*)(\/[0-9A-Fa-f:]*)?(\.\.-?(0x[0-9A-Fa-f]*|[0-9A-Fa-f:]+([.][0-9A-Fa-f:]+)*))?/
%ignore /[ \t\r\n]+/
"""

WORDS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "~": "matches"}

_WANTED = {
    "COMPARES": "a comparison operator",
    "LIST": "a list name ($name)",
    "LBRACE": "a set in braces",
    "BARE": "a literal",
    "REGEX": "a quoted regular expression",
    "NAME": "a field or a function",
    "INT": "an integer",
}
_CLOSERS = {"RPAR": '")"', "RSQB": '"]"', "TEXT": "a quoted string"}


@lru_cache(PARSED_CACHED)
def parse(source: str) -> Node:
    """Raises RuleRefused with one fault."""
    if len(source) > EXPRESSION_MAX:
        raise RuleRefused(
            RuleFault(
                EXPRESSION_MAX,
                len(source),
                f"the expression is longer than {EXPRESSION_MAX} characters",
            )
        )
    if not source.strip(" \t\r\n"):
        raise RuleRefused(RuleFault(0, 0, "the expression is empty"))
    try:
        source.encode()
    except UnicodeEncodeError as error:
        raise RuleRefused(RuleFault(error.start, error.end, "not a Unicode character")) from None
    try:
        return cast(
            "Node", _parser().parse(source)
        )  # the transformer makes nodes of the tree at once
    except UnexpectedInput as error:
        raise RuleRefused(_syntax_fault(source, error)) from None


@cache
def _parser() -> Lark:
    return Lark(
        GRAMMAR, start="expression", parser="lalr", lexer="contextual", transformer=_Parts()
    )


def _syntax_fault(source: str, error: UnexpectedInput) -> RuleFault:
    if isinstance(error, UnexpectedToken):
        wanted = _wanted(error.accepts or error.expected)
        if error.token.type == "$END":
            end = len(source.rstrip(" \t\r\n"))
            return RuleFault(end, end, f"the expression ends too early{wanted}")
        return RuleFault(
            error.token.start_pos or 0, error.token.end_pos or 0, f"unrecognised input{wanted}"
        )
    start = error.pos_in_stream or 0
    if source[start] == '"':
        return RuleFault(start, len(source), "could not find an ending quote")
    wanted = _wanted(error.allowed) if isinstance(error, UnexpectedCharacters) else ""
    return RuleFault(start, start + 1, f"unrecognised input{wanted}")


def _wanted(names: Any) -> str:
    known = [text for name, text in _WANTED.items() if name in names]
    closers = [text for name, text in _CLOSERS.items() if name in names]
    return f", expected {' or '.join(known or closers)}" if known or closers else ""


def _deeper(span: tuple[int, int], *parts: Node) -> int:
    depth = 1 + max([part.depth for part in parts], default=0)
    if depth > DEPTH_MAX:
        raise RuleRefused(RuleFault(*span, f"maximum nesting depth exceeded (limit: {DEPTH_MAX})"))
    return depth


def _literal(token: Token) -> Text | Bare | Pattern | Number:
    start, end = span = (token.start_pos or 0, token.end_pos or 0)
    if token.type == "BARE":
        return Bare(str(token), span=span)
    if token.type == "RAW":
        hashes = token.index('"')
        return Text(as_bytes_text(token[hashes + 1 : -hashes]), span=span)
    if token.type == "TEXT":
        return Text(unescaped(token[1:-1], start + 1), span=span)
    value = integer(token)
    if value is None:
        raise RuleRefused(RuleFault(start, end, "expected a 64-bit integer"))
    return Number(value, span=span)


class _Parts(Transformer[Token, Node]):
    """A method for each grammar rule."""

    def or_(self, parts: list[Node]) -> Node:
        return self._chain("or", parts)

    def xor_(self, parts: list[Node]) -> Node:
        return self._chain("xor", parts)

    def and_(self, parts: list[Node]) -> Node:
        return self._chain("and", parts)

    def _chain(self, op: str, parts: list[Node]) -> Node:
        span = (parts[0].span[0], parts[-1].span[1])
        return Logic(op, tuple(parts), span=span, depth=_deeper(span, *parts))

    def negation(self, found: list[Any]) -> Node:
        word, part = found
        span = (word.start_pos, part.span[1])
        return Not(part, span=span, depth=_deeper(span, part))

    def group(self, found: list[Any]) -> Node:
        opening, part = found
        span = (opening.start_pos, part.span[1] + 1)
        wider: Node = replace(part, span=span, depth=_deeper(span, part))
        return wider

    def alone(self, found: list[Any]) -> Node:
        (value,) = found
        if value in (Field("true"), Field("false")):
            return Truth(value.name == "true", span=value.span)
        return cast("Node", value)

    def compare(self, found: list[Any]) -> Node:
        left, op, right = found
        word = WORDS.get(op) or ("strict wildcard" if op.startswith("strict") else str(op))
        return self._comparison(left, word, _literal(right))

    def matches(self, found: list[Any]) -> Node:
        left, _, right = found
        opening = right.index('"')
        body = right[opening + 1 : -1 - right[:opening].count("#")]
        pattern = body if right.type == "RAW" else pattern_body(body)
        return self._comparison(
            left, "matches", Pattern(pattern, span=(right.start_pos, right.end_pos))
        )

    def among(self, found: list[Any]) -> Node:
        left, opening, *items = found
        end = items[-1].span[1] if items else opening.end_pos
        return self._comparison(left, "in", Items(tuple(items), span=(opening.start_pos, end)))

    def listed(self, found: list[Any]) -> Node:
        left, name = found
        return self._comparison(left, "in", ListName(name[1:], span=(name.start_pos, name.end_pos)))

    def _comparison(self, left: Any, op: str, right: Any) -> Node:
        return Compare(left, op, right, span=(left.span[0], right.span[1]), depth=left.depth)

    def item(self, found: list[Any]) -> Any:
        return _literal(found[0])

    def arg(self, found: list[Any]) -> Any:
        return _literal(found[0]) if isinstance(found[0], Token) else found[0]

    def field(self, found: list[Any]) -> Node:
        name, *indexes = found
        return Field(str(name), tuple(item for item, _ in indexes), span=self._reach(name, indexes))

    def call(self, found: list[Any]) -> Node:
        name, *rest = found
        args = [item for item in rest if isinstance(item, Node)]
        indexes = rest[len(args) :]
        span = self._reach(name, indexes)
        return Call(
            str(name),
            tuple(args),
            tuple(item for item, _ in indexes),
            span=span,
            depth=_deeper(span, *args),
        )

    def _reach(self, name: Any, indexes: list[Any]) -> tuple[int, int]:
        return (name.start_pos, indexes[-1][1] + 1 if indexes else name.end_pos)

    def index(self, found: list[Any]) -> tuple[Index, int]:
        token = found[0]
        if token.type == "EACH":
            return Each.EACH, token.end_pos
        literal = _literal(token)
        if isinstance(literal, Number) and not 0 <= literal.value <= INDEX_MAX:
            raise RuleRefused(
                RuleFault(
                    token.start_pos, token.end_pos, f"an index must be between 0 and {INDEX_MAX}"
                )
            )
        return cast("Text | Number", literal).value, token.end_pos
