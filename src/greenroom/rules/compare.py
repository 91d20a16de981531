"""Comparison operators: the types they take, and their closures. A missing value compares as false."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from greenroom.rules.addresses import Range, address_key, address_range
from greenroom.rules.patterns import Search, search, wildcard
from greenroom.rules.reading import ReadFact
from greenroom.rules.syntax import (
    INTEGER,
    IP,
    STRING,
    Bare,
    Items,
    Pattern,
    Text,
    ValueKind,
    integer,
)

Test = Callable[[Any], bool]

Bounds = tuple[int, ...]
"""A value is inside when an odd number of bounds are at or before it."""

Members = frozenset[Any] | Bounds | Callable[[Any], bool]


class Operator(NamedTuple):
    kinds: tuple[ValueKind, ...]
    test: Callable[[ReadFact, Any], Test]
    help: str


class ListMembership(NamedTuple):
    kind: ValueKind
    members: Members


def _equal(read: ReadFact, right: Any) -> Test:
    return lambda x: read(x) == right


def _unequal(read: ReadFact, right: Any) -> Test:
    return lambda x: (value := read(x)) is not None and value != right


def _less(read: ReadFact, right: Any) -> Test:
    return lambda x: (value := read(x)) is not None and value < right


def _at_most(read: ReadFact, right: Any) -> Test:
    return lambda x: (value := read(x)) is not None and value <= right


def _greater(read: ReadFact, right: Any) -> Test:
    return lambda x: (value := read(x)) is not None and value > right


def _at_least(read: ReadFact, right: Any) -> Test:
    return lambda x: (value := read(x)) is not None and value >= right


def _contains(read: ReadFact, right: str) -> Test:
    return lambda x: (value := read(x)) is not None and right in value


def _passes(read: ReadFact, passes: Callable[[Any], bool]) -> Test:
    return lambda x: (value := read(x)) is not None and passes(value)


def _in_set(read: ReadFact, members: Members) -> Test:
    if isinstance(members, frozenset):
        return lambda x: read(x) in members
    if isinstance(members, tuple):
        return lambda x: (value := read(x)) is not None and bisect_right(members, value) % 2 == 1
    return _passes(read, members)


_ORDERED = (STRING, INTEGER)
_ANY = (STRING, IP, INTEGER)

OPERATORS: dict[str, Operator] = {
    "eq": Operator(
        _ANY, _equal, "equal; an IP address compares with an address, not with a network"
    ),
    "ne": Operator(_ANY, _unequal, "not equal"),
    "lt": Operator(_ORDERED, _less, "less, bytewise for strings"),
    "le": Operator(_ORDERED, _at_most, "less or equal"),
    "gt": Operator(_ORDERED, _greater, "greater"),
    "ge": Operator(_ORDERED, _at_least, "greater or equal"),
    "contains": Operator((STRING,), _contains, "has this part; case matters"),
    "matches": Operator(
        (STRING,), _passes, "the regular expression occurs somewhere; case matters"
    ),
    "wildcard": Operator(
        (STRING,), _passes, "the whole value fits; `*` is any run of characters; case is ignored"
    ),
    "strict wildcard": Operator((STRING,), _passes, "as wildcard, but case matters"),
    "in": Operator(_ANY, _in_set, "is one of an inline set or a named list"),
}


def right_value(kind: ValueKind, op: str, right: Text | Bare | Pattern | Items) -> Any:
    """Raises ValueError with the reason."""
    if isinstance(right, Pattern):
        return search(right.source)
    if isinstance(right, Items):
        return _members(
            kind, [item.value if isinstance(item, Text) else item for item in right.items]
        )
    if isinstance(right, Text):
        if kind != STRING:
            raise ValueError(_EXPECTED[kind])
        return _wildcard(right.value, op) if "wildcard" in op else right.value
    return _READ[kind](right.text)


def _wildcard(pattern: str, op: str) -> Search:
    return wildcard(pattern, strict=op.startswith("strict"))


def _no_string(_: str) -> Any:
    raise ValueError(_EXPECTED[STRING])


def _integer(text: str) -> int:
    value = integer(text)
    if value is None:
        raise ValueError(_EXPECTED[INTEGER])
    return value


def _integer_range(text: str) -> Range:
    first, dots, last = text.partition("..")
    low = _integer(first)
    high = _integer(last) if dots else low
    if low > high:
        raise ValueError("incompatible range bounds")
    return low, high


_EXPECTED = {
    STRING: "expected a quoted string",
    INTEGER: "expected a 64-bit integer",
    IP: "expected an IP address",
}
_READ: Mapping[ValueKind, Callable[[str], Any]] = {
    STRING: _no_string,
    INTEGER: _integer,
    IP: address_key,
}
_RANGE: Mapping[ValueKind, Callable[[str], Any]] = {
    STRING: _no_string,
    INTEGER: _integer_range,
    IP: address_range,
}


def item_problem(kind: ValueKind, item: Text | Bare) -> str | None:
    if isinstance(item, Text):
        return None if kind == STRING else _EXPECTED[kind]
    try:
        _RANGE[kind](item.text)
    except ValueError as error:
        return str(error)
    return None


def _members(kind: ValueKind, items: list[str | Bare]) -> Members:
    if kind == STRING:
        return frozenset(items)
    return in_ranges(_RANGE[kind](item.text) for item in items if isinstance(item, Bare))


def in_ranges(ranges: Iterable[Range]) -> frozenset[int] | Bounds:
    """A set when all ranges are single, else merged bounds."""
    merged: list[Range] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    if all(low == high for low, high in merged):
        return frozenset(low for low, _ in merged)
    return tuple(bound for low, high in merged for bound in (low, high + 1))
