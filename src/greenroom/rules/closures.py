"""The closures that expressions compile to. The missing value is None and counts as false in
conditions. A part with `[*]` reads a list of elements.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from greenroom.rules.facts import ReadFact
from greenroom.rules.kinds import BOOLEAN, ValueKind
from greenroom.rules.syntax import Each, Index


class TermClosure(NamedTuple):
    """With `each`, `read` returns a list (elements may be missing)."""

    kind: ValueKind
    read: ReadFact
    each: bool = False


def itself(value: Any) -> Any:
    return value


def every(read: ReadFact, test: Callable[[Any], Any]) -> ReadFact:
    return lambda x: None if (values := read(x)) is None else [test(value) for value in values]


def negated(part: TermClosure) -> ReadFact:
    read = part.read
    if part.kind == BOOLEAN:
        return lambda x: not read(x)
    return every(read, lambda truth: not truth)


def _and(reads: Sequence[ReadFact]) -> ReadFact:
    if len(reads) == 2:
        first, second = reads
        return lambda x: first(x) and second(x)

    def run(x: Any) -> bool:
        for read in reads:  # noqa: SIM110  # all() with a generator takes three times as long
            if not read(x):
                return False
        return True

    return run


def _or(reads: Sequence[ReadFact]) -> ReadFact:
    if len(reads) == 2:
        first, second = reads
        return lambda x: first(x) or second(x)

    def run(x: Any) -> bool:
        for read in reads:  # noqa: SIM110
            if read(x):
                return True
        return False

    return run


def _xor(reads: Sequence[ReadFact]) -> ReadFact:
    return lambda x: sum([1 for read in reads if read(x)]) % 2 == 1


JOINED: dict[str, Callable[[Sequence[ReadFact]], ReadFact]] = {"and": _and, "or": _or, "xor": _xor}
_COMBINED: dict[str, Callable[[Any], bool]] = {
    "and": all,
    "or": any,
    "xor": lambda row: sum(map(bool, row)) % 2 == 1,
}


def joined_lists(op: str, reads: Sequence[ReadFact]) -> ReadFact:
    """As far as the shortest list goes; missing when one list is."""
    combined = _COMBINED[op]

    def run(x: Any) -> list[bool] | None:
        columns = [read(x) for read in reads]
        if any(column is None for column in columns):
            return None
        return [combined(row) for row in zip(*columns, strict=False)]

    return run


def called(
    run: Callable[..., Any], args: Sequence[TermClosure], literals: Sequence[Any]
) -> ReadFact:
    """`literals`: the value of each literal argument, None for others."""
    read = args[0].read
    rest = literals[1:]
    if literals[0] is not None or any(value is None for value in rest):
        reads = [arg.read for arg in args]

        def general(x: Any) -> Any:
            values = [read(x) for read in reads]
            return None if any(value is None for value in values) else run(*values)

        return general
    if not rest:
        return lambda x: None if (value := read(x)) is None else run(value)
    if len(rest) == 1:
        second = rest[0]
        return lambda x: None if (value := read(x)) is None else run(value, second)
    return lambda x: None if (value := read(x)) is None else run(value, *rest)


def called_on_each(run: Callable[..., Any], args: Sequence[TermClosure]) -> ReadFact:
    """The other arguments are read once."""
    read = args[0].read
    others = [arg.read for arg in args[1:]]

    def each(x: Any) -> list[Any] | None:
        values, rest = read(x), [other(x) for other in others]
        if values is None:
            return None
        missing = any(value is None for value in rest)
        return [None if missing or value is None else run(value, *rest) for value in values]

    return each


def indexed(term: TermClosure, index: Index) -> TermClosure | None:
    name, of, read = term.kind.name, term.kind.of, term.read
    if of is None:
        return None
    if isinstance(index, Each):
        inner = read if name == "Array" else _map_values(term)
        return TermClosure(of, _flattened(read, name) if term.each else inner, each=True)
    wanted = "Map" if isinstance(index, str) else "Array"
    if name != wanted:
        return None
    pick = _entry(index) if isinstance(index, str) else _element(index)
    if term.each:
        return TermClosure(
            of, every(read, lambda value: None if value is None else pick(value)), each=True
        )
    return TermClosure(of, lambda x: None if (value := read(x)) is None else pick(value))


def _element(index: int) -> Callable[[Any], Any]:
    return lambda values: values[index] if index < len(values) else None


def _entry(key: str) -> Callable[[Any], Any]:
    return lambda values: values.get(key)


def _map_values(term: TermClosure) -> ReadFact:
    read = term.read
    return lambda x: None if (value := read(x)) is None else list(value.values())


def _flattened(read: ReadFact, name: str) -> ReadFact:
    def run(x: Any) -> list[Any] | None:
        outer = read(x)
        if outer is None:
            return None
        inner = [item for item in outer if item is not None]
        return [value for item in inner for value in (item if name == "Array" else item.values())]

    return run
