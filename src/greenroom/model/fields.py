"""The description of a record's fields, for validation, schemas, documents and forms."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin

from greenroom.errors import InvalidConfig, Problem

# In text from outside these could move the cursor, fake a log line or hide text.
CONTROLS = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""ASCII and Latin-1 controls, line separators, and marks that change the direction."""

T = TypeVar("T")

_CONTROL = re.compile(f"[{CONTROLS}]")


def printable(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def plural(count: float, one: str, many: str = "") -> str:
    return one if count == 1 else many or f"{one}s"


def with_unit(count: int, units: str) -> str:
    """`1 minute` or `2 minutes`, from a unit in the plural."""
    one = units.removesuffix("s") if units != "entries" else "entry"
    return f"{count} {one if count == 1 else units}"


def is_printable(text: str) -> bool:
    return _CONTROL.search(text) is None


SEALED = "sealed:[0-9a-f]{12}:[A-Za-z0-9_-]{38,12000}"
"""The word, the key's id, the sealed text (`keys.sealed_secrets`). The longest secret is a URL of
2,048 characters of up to four bytes.
"""


def is_sealed(text: str) -> bool:
    return text.startswith("sealed:") and re.fullmatch(SEALED, text) is not None


def key_of_sealed(sealed: str) -> str:
    return sealed.split(":")[1]


SPEC = "spec"
KNOWN_TOLD = 12
"""Known names in the problem of an unknown one."""

NAME_WORDS = "have only letters (a to z, A to Z), digits, - and _"


@dataclass(frozen=True, slots=True)
class FormSpec:
    """How a form shows a field. `help` and `choices` (labels, in the order of Spec.choices) replace
    the Spec's, which are for programmers. `lines`: a list, one entry on each line.
    """

    section: str
    label: str
    help: str = ""
    choices: tuple[str, ...] = ()
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """`low` and `high` are inclusive, and bound a string's length.

    `pattern_words` describes `pattern`, after "must". `extension`: Cloudflare does not have it.
    `one_line`: no control characters. `sealed`: a secret sealed on disks, and in memory where its
    key is missing; the limits are those of the secret itself. `form` is None where no form shows it.
    """

    help: str
    unit: str = ""
    low: int | None = None
    high: int | None = None
    choices: tuple[Any, ...] = ()
    pattern: str = ""
    pattern_words: str = ""
    nullable: bool = False
    extension: bool = False
    read_only: bool = False
    one_line: bool = False
    sealed: bool = False
    example: Any = None
    form: FormSpec | None = None

    def choice_labels(self) -> dict[str, str]:
        names = [written(choice) for choice in self.choices]
        labels = self.form.choices if self.form else ()
        return dict(zip(names, labels or names, strict=True))


def spec(help: str, default: Any = MISSING, **limits: Any) -> Any:
    """List and dict defaults are copied for each record."""
    metadata = {SPEC: Spec(help, **limits)}
    if isinstance(default, (list, dict)):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def same_as(record: type, name: str) -> Any:
    """The field of another record as a setting."""
    (found,) = (item for item in fields(record) if item.name == name)
    rule = replace(found.metadata[SPEC], extension=False, form=None)
    return field(default=found.default, metadata={SPEC: rule})


def specs(record: type) -> dict[str, Spec]:
    return {item.name: item.metadata[SPEC] for item in fields(record) if SPEC in item.metadata}


def form_fields(record: type, *sections: str) -> dict[str, FormSpec]:
    """By field, of these sections in this order (default: all)."""
    found = {name: rule.form for name, rule in specs(record).items() if rule.form}
    if not sections:
        return found
    return {
        name: form
        for section in sections
        for name, form in found.items()
        if form.section == section
    }


def written(choice: Any) -> str:
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


class RecordField(NamedTuple):
    name: str
    kind: Any
    item: Any
    rule: Spec
    required: bool


@cache
def described(record: type) -> tuple[RecordField, ...]:
    return tuple(
        RecordField(
            item.name,
            plain_type(item.type),
            _item_type(item.type),
            item.metadata[SPEC],
            item.default is MISSING and item.default_factory is MISSING,
        )
        for item in fields(record)
        if SPEC in item.metadata
    )


def field_problems(
    record: type, values: Mapping[str, Any], pointer: str = "", *, whole: bool = True
) -> list[Problem]:
    """Problems of each field by itself; missing fields too, if `values` are a `whole` record.
    `pointer` is empty or ends with a dot.
    """
    problems: list[Problem] = []
    for name, kind, item, rule, required in described(record):
        at = f"{pointer}{name}"
        if name not in values:
            if required and whole:
                problems.append(Problem(at, f"is required: {rule.help}"))
            continue
        value = values[name]
        found = check_value(at, value, kind, rule)
        if found:
            problems.append(found)
        elif item is not None and value is not None:
            problems += [
                Problem(f"{at}[{index}]", reason)
                for index, each in enumerate(value)
                if (reason := wrong_kind(each, item, rule))
            ]
        elif isinstance(kind, type) and is_dataclass(kind) and value is not None:
            problems += field_problems(kind, vars_of(value), f"{at}.")
    return problems


def wrong_fields(problems: Iterable[Problem], pointer: str = "") -> set[str]:
    return {found.pointer.removeprefix(pointer).partition("[")[0] for found in problems}


def stand_in(
    record: type[T],
    values: Mapping[str, Any],
    least: Mapping[str, Any],
    always: Mapping[str, Any],
    needed: Iterable[str] = (),
) -> T | None:
    """A record of the values that are right alone and together, with `least` for the others. None if
    something without a default or `needed` is missing.
    """
    alone = _starts(field_problems(record, values, whole=False))
    right = {name: value for name, value in values.items() if name not in alone} | {**always}
    needed = {*needed, *(field.name for field in described(cast(Any, record)) if field.required)}
    while needed <= {*least, *right}:
        try:
            return record(**{**least, **right})
        except InvalidConfig as error:
            wrong = _starts(error.problems) & right.keys() - always.keys()
            if not wrong:
                return None
            for name in wrong:
                del right[name]
    return None


def _starts(problems: Iterable[Problem]) -> set[str]:
    return {re.split(r"[.\[]", found.pointer)[0] for found in problems}


def taken(pointer: str, what: str, value: object) -> Problem:
    article = "an" if what[0] in "aeio" else "a"
    return Problem(pointer, f"there is {article} {what} {value} already")


class Unique:
    def __init__(self, what: str) -> None:
        self._what = what
        self._known: set[object] = set()

    def problems(self, pointer: str, value: object) -> list[Problem]:
        if value in self._known:
            return [taken(pointer, self._what, value)]
        self._known.add(value)
        return []


def vars_of(record: Any) -> dict[str, Any]:
    return {item.name: getattr(record, item.name) for item in fields(record)}


def unknown_field(pointer: str, name: str, known: Iterable[str]) -> Problem:
    """With a suggestion, or with all known names if they are few."""
    names = list(known)
    near = get_close_matches(name.lower().replace("-", "_"), names, n=1)
    if near:
        return Problem(pointer, f"unknown field; did you mean {near[0]}?")
    few = f"; known fields: {', '.join(names)}" if len(names) <= KNOWN_TOLD else ""
    return Problem(pointer, f"unknown field{few}")


def check_value(pointer: str, value: Any, kind: type | UnionType, rule: Spec) -> Problem | None:
    """`kind`: a plain type; for a union only `choices` count."""
    if value is None:
        return None if rule.nullable else Problem(pointer, "must not be null")
    reason = wrong_kind(value, kind, rule)
    if not reason and not (rule.sealed and isinstance(value, str) and is_sealed(value)):
        for check in _CHECKS:  # every field of every room
            if reason := check(value, rule):
                break
    return Problem(pointer, reason) if reason else None


def wrong_kind(value: Any, kind: Any, rule: Spec | None = None) -> str:
    """Why `value` is not of this kind; empty if it is."""
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return ""
    if rule and rule.choices:
        return _one_of(rule, value)
    if isinstance(kind, UnionType):
        return "has a wrong type"
    name = _NAMES.get(kind) or _object_of(kind)
    return (
        f"must be {name}, and is empty" if value == "" else f"must be {name}, not {_shown(value)}"
    )


def _object_of(record: type) -> str:
    names = list(specs(record))
    return f"an object with {' and '.join(names)}" if len(names) == 2 else "an object"


def _not_text(value: Any, _: Spec) -> str:
    if isinstance(value, str) and not value.isascii() and re.search("[\ud800-\udfff]", value):
        return (
            "must be Unicode text: it contains an unpaired surrogate, which cannot be stored or"
            " sent"
        )
    return ""


def _no_choice(value: Any, rule: Spec) -> str:
    return _one_of(rule, value) if rule.choices and value not in rule.choices else ""


INTEGER_MAX = (1 << 53) - 1
"""For fields without another limit: clocks add it to a time, and JavaScript reads it."""


def _wrong_size(value: Any, rule: Spec) -> str:
    if isinstance(value, int):
        size, units = value, rule.unit
    elif hasattr(value, "__len__"):
        size, units = len(value), "characters" if isinstance(value, str) else "entries"
    else:
        return ""
    if size == 0 and rule.low == 1 and not isinstance(value, int):
        return "must not be empty"
    if rule.low is not None and size < rule.low:
        return f"must be at least {with_unit(rule.low, units).strip()}, not {_shown(size)}"
    high = INTEGER_MAX if rule.high is None and isinstance(value, int) else rule.high
    if high is not None and size > high:
        return f"must be at most {with_unit(high, units).strip()}, not {_shown(size)}"
    return ""


def _several_lines(value: Any, rule: Spec) -> str:
    if rule.one_line and isinstance(value, str) and not is_printable(value):
        return f"must be one line without control characters, not {_shown(printable(value))}"
    return ""


def _other_pattern(value: Any, rule: Spec) -> str:
    if rule.pattern and isinstance(value, str) and not re.fullmatch(rule.pattern, value):
        told = "" if rule.sealed else f", not {_shown(value)}"
        return f"must {rule.pattern_words or f'match {rule.pattern}'}{told}"
    return ""


_CHECKS = (_not_text, _no_choice, _wrong_size, _several_lines, _other_pattern)


def plain_type(annotation: Any) -> Any:
    """`int | None` is int, `tuple[Route, ...]` is tuple, `bool | str` is itself."""
    origin = get_origin(annotation)
    if origin is UnionType and NoneType not in get_args(annotation):
        return annotation
    if isinstance(origin, type) and get_args(annotation):
        members = [member for member in get_args(annotation) if member is not NoneType]
        return origin if NoneType not in get_args(annotation) else plain_type(members[0])
    return annotation if isinstance(annotation, type) else object


def _item_type(annotation: Any) -> Any:
    """`str` of `tuple[str, ...]`, also where it may be None; None for anything else."""
    for kind in (annotation, *get_args(annotation)):
        if get_origin(kind) is tuple and get_args(kind)[1:] == (...,):
            return get_args(kind)[0]
    return None


_NAMES = {
    int: "a whole number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    tuple: "a list",
    dict: "an object",
}


def _one_of(rule: Spec, value: Any) -> str:
    return f"must be one of {', '.join(map(written, rule.choices))}, not {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as in TOML and JSON
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 60 else text[:57] + "..."
