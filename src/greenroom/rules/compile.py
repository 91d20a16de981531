"""Checks the types of a parsed expression and compiles it to closures, in one pass that finds every
fault. A comparison behind `[*]` is a list of truths, for any() and all().
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

from greenroom.rules.compare import (
    OPERATORS,
    ListMembership,
    Members,
    item_problem,
    right_value,
)
from greenroom.rules.fields import FIELDS, absent
from greenroom.rules.functions import (
    ABSENT_FUNCTIONS,
    FUNCTIONS,
    TEXT_OF_ADDRESS,
    FunctionSpec,
)
from greenroom.rules.patterns import REGEXES_MAX
from greenroom.rules.reading import ReadFact, RequestFacts
from greenroom.rules.syntax import (
    BOOLEAN,
    BOOLEANS,
    INTEGER,
    IP,
    STRING,
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
    ValueKind,
    array,
)

# The closures that expressions compile to. The missing value is None and counts as false in
# conditions. A part with `[*]` reads a list of elements.


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


LIKENESS_MIN = 0.8


def checked(
    node: Node, lists: Mapping[str, ListMembership]
) -> Callable[[RequestFacts], bool | None]:
    """Raises RuleRefused with every fault."""
    check = _Check(lists)
    term = check.condition(node)
    if term and term.kind != BOOLEAN:
        check.fault(
            node, f"expected value of type {BOOLEAN}, but got {term.kind}; use any() or all()"
        )
    if check.faults or not term:
        raise RuleRefused(*sorted(check.faults))
    return term.read


class _Check:
    """Methods return None after noting a fault."""

    def __init__(self, lists: Mapping[str, ListMembership]) -> None:
        self.lists = lists
        self.faults: list[RuleFault] = []
        self.patterns = 0

    def fault(self, node: Node, reason: str) -> None:
        self.faults.append(RuleFault(*node.span, reason))

    def condition(self, node: Node) -> TermClosure | None:
        if isinstance(node, Truth):
            value = node.value
            return TermClosure(BOOLEAN, lambda _: value)
        if isinstance(node, Not):
            part = self.condition(node.part)
            return part and TermClosure(part.kind, negated(part))
        if isinstance(node, Logic):
            return self._logic(node)
        if isinstance(node, Compare):
            return self._comparison(node)
        return self._alone(node)

    def _alone(self, node: Node) -> TermClosure | None:
        term = self.value(cast("Field | Call", node))
        if term and (term.each or term.kind not in (BOOLEAN, BOOLEANS)):
            shape = f"{array(term.kind)} (by [*])" if term.each else term.kind
            self.fault(
                node, f"expected a comparison operator or a {BOOLEAN}, but this is of type {shape}"
            )
            return None
        return term

    def _logic(self, node: Logic) -> TermClosure | None:
        found = [self.condition(part) for part in node.parts]
        terms = [term for term in found if term]
        if len(terms) < len(found):
            return None
        kind = terms[0].kind
        for part, term in zip(node.parts, terms, strict=True):
            if term.kind != kind:
                self.fault(part, f"expected value of type {kind}, but got {term.kind}")
                return None
        reads = [term.read for term in terms]
        return TermClosure(
            kind, JOINED[node.op](reads) if kind == BOOLEAN else joined_lists(node.op, reads)
        )

    def _comparison(self, node: Compare) -> TermClosure | None:
        left = self.value(node.left)
        right = self._right(left.kind if left else None, node)
        if not left or right is None:
            return None
        test = OPERATORS[node.op].test
        if not left.each:
            return TermClosure(BOOLEAN, test(left.read, right))
        return TermClosure(BOOLEANS, every(left.read, test(itself, right)))

    def _right(self, kind: ValueKind | None, node: Compare) -> Any:
        right = node.right
        if isinstance(right, Pattern):
            self.patterns += 1
            if self.patterns > REGEXES_MAX:
                self.fault(right, f"more than {REGEXES_MAX} regular expressions")
                return None
        if kind is None:
            return None
        if kind not in OPERATORS[node.op].kinds:
            hint = "; write it alone or behind `not`" if kind == BOOLEAN else ""
            self.fault(node.left, f"cannot perform the operation {node.op} on type {kind}{hint}")
            return None
        if isinstance(right, ListName):
            return self._list(kind, right)
        if isinstance(right, Items) and self._bad_items(kind, right):
            return None
        try:
            return right_value(kind, node.op, right)
        except ValueError as error:
            self.fault(right, str(error))
            return None

    def _bad_items(self, kind: ValueKind, items: Items) -> bool:
        reasons = [(item, item_problem(kind, item)) for item in items.items]
        for item, reason in reasons:
            if reason:
                self.fault(item, reason)
        return any(reason for _, reason in reasons)

    def _list(self, kind: ValueKind, name: ListName) -> Members | None:
        found = self.lists.get(name.name)
        if found is None:
            self.fault(name, f"there is no list named {name.name}")
            return None
        if found.kind != kind:
            self.fault(name, f"the list {name.name} holds values of type {found.kind}, not {kind}")
            return None
        return found.members

    def value(self, node: Field | Call) -> TermClosure | None:
        if isinstance(node, Call):
            term, indexes = self._call(node), node.indexes
        else:
            term, indexes = self._field(node)
        for index in indexes:
            if term is None:
                return None
            found = indexed(term, index)
            if found is None:
                shown = (
                    "[*]"
                    if isinstance(index, Each)
                    else f'["{index}"]'
                    if isinstance(index, str)
                    else f"[{index}]"
                )
                self.fault(node, f"cannot access index {shown} for type {term.kind}")
            term = found
        return term

    def _field(self, node: Field) -> tuple[TermClosure | None, tuple[Index, ...]]:
        spec = FIELDS.get(node.name)
        if spec is None:
            reason = absent(node.name)
            known = [*FIELDS, *FUNCTIONS]
            self.fault(
                node,
                f"{node.name} is not available: {reason}"
                if reason
                else f"unknown identifier{_suggestion(node.name, known)}",
            )
            return None, ()
        if spec.entry and node.indexes and isinstance(node.indexes[0], str):
            entry, key = spec.entry, node.indexes[0]
            return TermClosure(
                cast("ValueKind", spec.kind.of), lambda facts: entry(facts, key)
            ), node.indexes[1:]
        return TermClosure(spec.kind, spec.read), node.indexes

    def _call(self, node: Call) -> TermClosure | None:
        spec = FUNCTIONS.get(node.name)
        if spec is None:
            reason = ABSENT_FUNCTIONS.get(node.name)
            self.fault(
                node,
                f"{node.name} {reason}"
                if reason
                else f"unknown identifier{_suggestion(node.name, FUNCTIONS)}",
            )
            return None
        most = len(spec.params) if not spec.repeats else len(node.args)
        if not spec.needed <= len(node.args) <= most:
            wanted = (
                f"{spec.needed}"
                if most == spec.needed
                else f"{spec.needed} or more"
                if spec.repeats
                else f"{spec.needed} to {most}"
            )
            self.fault(
                node,
                f"invalid number of arguments: {node.name} takes {wanted}, not {len(node.args)}",
            )
            return None
        terms = [self._argument(node, spec, place) for place in range(len(node.args))]
        if any(term is None for term in terms) or not self._literals_fit(node, spec):
            return None
        args = cast("list[TermClosure]", terms)
        if spec.gives is None and any(arg.kind != args[0].kind for arg in args):
            self.fault(node, f"all arguments of {node.name} must have the same type")
            return None
        run = TEXT_OF_ADDRESS if node.name == "to_string" and args[0].kind == IP else spec.run
        gives = spec.gives or args[0].kind
        literals = [_literal(part) for part in node.args]
        if args[0].each:
            return TermClosure(array(gives), called_on_each(run, args))
        return TermClosure(gives, called(run, args, literals))

    def _literals_fit(self, node: Call, spec: FunctionSpec) -> bool:
        reason = spec.refuse(
            *[value for part in node.args if (value := _literal(part)) is not None]
        )
        if reason:
            self.fault(node, reason)
        return not reason

    def _argument(self, node: Call, spec: FunctionSpec, place: int) -> TermClosure | None:
        param, part = spec.params[min(place, len(spec.params) - 1)], node.args[place]
        literal = _literal(part)
        which = f"argument {place + 1} ({param.name}) of {node.name}"
        if (literal is None and param.source == "literal") or (
            literal is not None and param.source == "field"
        ):
            wanted = (
                "a literal"
                if param.source == "literal"
                else "a field or a function call, not a literal"
            )
            self.fault(part, f"invalid kind of argument: {which} must be {wanted}")
            return None
        if literal is not None:
            term: TermClosure | None = TermClosure(
                STRING if isinstance(part, Text) else INTEGER, lambda _: literal
            )
        else:
            term = self.value(part) if isinstance(part, (Field, Call)) else self.condition(part)
        if term is None:
            return None
        if term.each and place:
            self.fault(part, "invalid use of [*]: only the first argument may have it")
            return None
        if term.kind not in param.kinds:
            wanted = " or ".join(map(str, param.kinds))
            self.fault(
                part,
                f"invalid type of {which}: expected value of type {wanted}, but got {term.kind}",
            )
            return None
        return term


def _literal(node: Node) -> Any:
    return node.value if isinstance(node, (Text, Number)) else None


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, 1, LIKENESS_MIN)
    return f", did you mean {near[0]}?" if near else ""
