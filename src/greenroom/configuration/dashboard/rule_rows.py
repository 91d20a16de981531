"""Rules as rows: all conditions of a group have to hold (`and`), and one group (`or`). Any other
expression is edited as text.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from greenroom.rules import FIELDS, parse
from greenroom.rules.patterns import PatternRefused, wildcard
from greenroom.rules.syntax import (
    BOOLEAN,
    INTEGER,
    IP,
    STRING,
    STRINGS_BY_NAME,
    Bare,
    Call,
    Compare,
    Each,
    Field,
    Items,
    ListName,
    Logic,
    Node,
    Not,
    RuleRefused,
    Text,
    ValueKind,
    as_bytes_text,
    quoted,
)

ROWS_MAX, GROUPS_MAX, VALUES_MAX = 30, 10, 200


class ConditionRow(NamedTuple):
    """Several values are on lines of their own."""

    field: str
    operator: str
    value: str = ""
    key: str = ""


Groups = Sequence[Sequence[ConditionRow]]

ROW_FIELDS: dict[str, str] = {
    "ip.src": "Visitor's address",
    "ip.src.country": "Country",
    "ip.src.continent": "Continent",
    "ip.src.asnum": "Network (AS number)",
    "http.request.uri.path": "Path",
    "http.request.uri.query": "Query",
    "http.host": "Host",
    "http.request.method": "Method",
    "http.user_agent": "Browser (User-Agent)",
    "http.referer": "Referer",
    "http.request.headers": "Header named",
    "http.request.cookies": "Cookie named",
    "http.request.uri.args": "Query argument named",
    "cf.client.bot": "Verified crawler",
    "ssl": "Encrypted connection",
}


class RowOperator(NamedTuple):
    label: str
    kinds: tuple[ValueKind, ...]
    several: bool = False
    takes_value: bool = True


_TEXT = (STRING, STRINGS_BY_NAME)

ROW_OPERATORS: dict[str, RowOperator] = {
    "eq": RowOperator("is", (*_TEXT, INTEGER)),
    "ne": RowOperator("is not", (STRING, INTEGER)),
    "in": RowOperator("is one of", (*_TEXT, INTEGER, IP), several=True),
    "not in": RowOperator("is not one of", (STRING, INTEGER, IP), several=True),
    "in list": RowOperator("is in list", (STRING, INTEGER, IP)),
    "not in list": RowOperator("is not in list", (STRING, INTEGER, IP)),
    "contains": RowOperator("contains", _TEXT),
    "starts_with": RowOperator("begins with", (STRING,)),
    "ends_with": RowOperator("ends with", (STRING,)),
    "wildcard": RowOperator("fits the pattern (* is anything)", _TEXT),
    "lt": RowOperator("is less than", (INTEGER,)),
    "gt": RowOperator("is more than", (INTEGER,)),
    "true": RowOperator("yes", (BOOLEAN,), takes_value=False),
    "false": RowOperator("no", (BOOLEAN,), takes_value=False),
}

_LITERALS = {
    IP: re.compile(r"[0-9A-Fa-f:.]{2,45}(/[0-9]{1,3})?"),
    INTEGER: re.compile(r"-?[0-9]{1,18}"),
}
_LIST = re.compile(r"\$?([a-z0-9_]{1,50})")
_PREFIXES = ("starts_with", "ends_with")


def kind_of_field(field: str) -> ValueKind:
    """Raises KeyError for a field that rows do not offer."""
    if field not in ROW_FIELDS:
        raise KeyError(field)
    return FIELDS[field].kind


def operators_of(field: str) -> list[str]:
    kind = kind_of_field(field)
    return [word for word, operator in ROW_OPERATORS.items() if kind in operator.kinds]


# Rows as an expression


def row_problem(row: ConditionRow) -> str:
    if row.field not in ROW_FIELDS:
        return f"{row.field[:100]!r} is not a field that conditions offer"
    label, operator = ROW_FIELDS[row.field], ROW_OPERATORS.get(row.operator)
    if operator is None or row.operator not in operators_of(row.field):
        return f"{label}: choose how to compare"
    if kind_of_field(row.field) is STRINGS_BY_NAME and not row.key.strip():
        return f"{label}: the name is missing"
    if not operator.takes_value:
        return ""
    if row.operator.endswith("in list"):
        return "" if _LIST.fullmatch(row.value.strip()) else f"{label}: choose a list"
    return _values_problem(label, row, operator)


def _values_problem(label: str, row: ConditionRow, operator: RowOperator) -> str:
    values = _values(row)
    if not values or (not operator.several and len(values) > 1):
        return f"{label}: enter {'one value per line' if operator.several else 'one value'}"
    if len(values) > VALUES_MAX:
        return f"{label}: at most {VALUES_MAX} values; use a list for more"
    if row.operator == "wildcard":
        try:
            wildcard(as_bytes_text(values[0]), strict=False)
        except PatternRefused as refused:
            return f"{label}: {refused}"
    literal = _LITERALS.get(kind_of_field(row.field))
    wrong = [value for value in values if literal is not None and not literal.fullmatch(value)]
    return (
        f"{label}: {wrong[0][:60]!r} is not"
        f" {'an address or a network' if row.field == 'ip.src' else 'a whole number'}"
        if wrong
        else ""
    )


def expression_of(groups: Groups) -> str:
    """Raises ValueError with every problem, one on each line."""
    problems = [problem for group in groups for row in group if (problem := row_problem(row))]
    if not any(groups):
        problems.append("add at least one condition")
    if problems:
        raise ValueError("\n".join(problems))
    texts = [[_text(row) for row in group] for group in groups if group]
    if len(texts) == 1:
        return " and ".join(texts[0])
    return " or ".join(
        f"({' and '.join(group)})" if len(group) > 1 else group[0] for group in texts
    )


def _values(row: ConditionRow) -> list[str]:
    text = row.value
    if kind_of_field(row.field) in _LITERALS:  # no address or number has a comma; other texts may
        text = text.replace(",", "\n")
    lines = text.splitlines() if ROW_OPERATORS[row.operator].several else [row.value]
    return [line.strip() for line in lines if line.strip()]


def _text(row: ConditionRow) -> str:
    kind = kind_of_field(row.field)
    if kind is BOOLEAN:
        return row.field if row.operator == "true" else f"not {row.field}"
    if kind is STRINGS_BY_NAME:
        return f"any({_compared(f'{row.field}[{quoted(as_bytes_text(row.key.strip()))}][*]', row)})"
    if row.operator in _PREFIXES:
        return f"{row.operator}({row.field}, {_literal(row.field, _values(row)[0])})"
    return _compared(row.field, row)


def _compared(left: str, row: ConditionRow) -> str:
    negated, operator = row.operator.startswith("not "), row.operator.removeprefix("not ")
    if operator == "in list":
        text = f"{left} in ${row.value.strip().removeprefix('$')}"
    elif operator == "in":
        text = f"{left} in {{{' '.join(_literal(row.field, value) for value in _values(row))}}}"
    else:
        text = f"{left} {operator} {_literal(row.field, _values(row)[0])}"
    return f"not {text}" if negated else text


def _literal(field: str, value: str) -> str:
    return value if kind_of_field(field) in _LITERALS else quoted(as_bytes_text(value))


# An expression as rows


def rows_of(expression: str) -> list[list[ConditionRow]] | None:
    """None: malformed, or not expressible as rows."""
    try:
        parsed = parse(expression)
    except RuleRefused:
        return None
    groups = []
    for part in _parts(parsed, "or"):
        rows = [_row(node) for node in _parts(part, "and")]
        if None in rows or len(rows) > ROWS_MAX:
            return None
        groups.append([row for row in rows if row is not None])
    return (
        groups
        if len(groups) <= GROUPS_MAX
        and not any(row_problem(row) for group in groups for row in group)
        else None
    )


def _parts(node: Node, operator: str) -> Sequence[Node]:
    return node.parts if isinstance(node, Logic) and node.op == operator else (node,)


def _row(node: Node) -> ConditionRow | None:
    if isinstance(node, Not):
        return _negated(_row(node.part))
    if isinstance(node, Field) and node.name in ROW_FIELDS and not node.indexes:
        return ConditionRow(node.name, "true") if kind_of_field(node.name) is BOOLEAN else None
    if isinstance(node, Call) and not node.indexes:
        return _called(node)
    return _comparison(node) if isinstance(node, Compare) else None


def _negated(row: ConditionRow | None) -> ConditionRow | None:
    turned = {"true": "false", "in": "not in", "in list": "not in list"}
    if row is None or row.key or row.operator not in turned:
        return None
    return row._replace(operator=turned[row.operator])


def _called(node: Call) -> ConditionRow | None:
    if node.name in _PREFIXES and len(node.args) == 2:
        left, right = node.args
        if (
            isinstance(left, Field)
            and not left.indexes
            and left.name in ROW_FIELDS
            and isinstance(right, Text)
        ):
            return ConditionRow(left.name, node.name, _shown(right.value))
    if node.name == "any" and len(node.args) == 1 and isinstance(node.args[0], Compare):
        return _comparison(node.args[0], keyed=True)
    return None


def _comparison(node: Compare, *, keyed: bool = False) -> ConditionRow | None:
    left, key = node.left, ""
    if not isinstance(left, Field) or left.name not in ROW_FIELDS:
        return None
    if keyed:
        if (
            len(left.indexes) != 2
            or not isinstance(left.indexes[0], str)
            or left.indexes[1] is not Each.EACH
        ):
            return None
        key = _shown(left.indexes[0])
    elif left.indexes:
        return None
    operator = "in list" if isinstance(node.right, ListName) else node.op
    value = _value(node.right)
    return None if value is None else ConditionRow(left.name, operator, value, key)


def _value(right: Node) -> str | None:
    if isinstance(right, ListName):
        return right.name
    if isinstance(right, Items):
        return "\n".join(_SHOWN[type(item)](item) for item in right.items)
    return _SHOWN[type(right)](right) if type(right) in _SHOWN else None


def _shown(value: str) -> str:
    """What is no UTF-8 stays readable, and is refused when the row is written again."""
    return value.encode("latin-1").decode("utf-8", "replace")


_SHOWN: dict[type, Callable[..., str]] = {
    Text: lambda node: _shown(node.value),
    Bare: lambda node: str(node.text),
}
