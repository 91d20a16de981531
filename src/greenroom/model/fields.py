"""The description of a record's field: bounds, unit, help. For validation, schemas, documents and
forms.
"""

import re
from dataclasses import MISSING, dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from greenroom.errors import Problem
from greenroom.model.printable import is_printable, printable
from greenroom.model.sealed import is_sealed

SPEC = "spec"
NAME_WORDS = "have only letters (a to z, A to Z), digits, - and _"


@dataclass(frozen=True, slots=True)
class FormSpec:
    """How a form shows a field. `help` and `choices` (labels, in the order of Spec.choices) replace
    the Spec's, which are written for programmers. `lines`: a list, one entry on each line.
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
        """The labels of choices by what is written for them."""
        names = [written(choice) for choice in self.choices]
        labels = self.form.choices if self.form else ()
        return dict(zip(names, labels or names, strict=True))


def spec(help: str, default: Any = MISSING, **limits: Any) -> Any:
    """List and dict defaults are copied for each record."""
    metadata = {SPEC: Spec(help, **limits)}
    if isinstance(default, (list, dict)):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def specs(record: type) -> dict[str, Spec]:
    return {item.name: item.metadata[SPEC] for item in fields(record) if SPEC in item.metadata}


def form_fields(record: type, *sections: str) -> dict[str, FormSpec]:
    """Of these sections in this order (all when none is given), by field."""
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


def check_value(pointer: str, value: Any, kind: type | UnionType, rule: Spec) -> Problem | None:
    """`kind` is a plain type; for a union only `choices` count."""
    if value is None:
        return None if rule.nullable else Problem(pointer, "must not be null")
    reason = _wrong_kind(value, kind, rule)
    if not reason and not (rule.sealed and isinstance(value, str) and is_sealed(value)):
        reason = next(filter(None, (check(value, rule) for check in _CHECKS)), "")
    return Problem(pointer, reason) if reason else None


def _wrong_kind(value: Any, kind: type | UnionType, rule: Spec) -> str:
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return ""
    if isinstance(kind, UnionType):
        return _one_of(rule, value)
    name = _NAMES.get(kind, kind.__name__)
    return (
        f"must be {name}, and is empty" if value == "" else f"must be {name}, not {_shown(value)}"
    )


def _not_text(value: Any, _: Spec) -> str:
    if isinstance(value, str) and not value.isascii() and re.search("[\ud800-\udfff]", value):
        return (
            "must be Unicode text: it contains an unpaired surrogate, which cannot be stored or"
            " sent"
        )
    return ""


def _no_choice(value: Any, rule: Spec) -> str:
    return _one_of(rule, value) if rule.choices and value not in rule.choices else ""


def _wrong_size(value: Any, rule: Spec) -> str:
    if isinstance(value, int):
        size, measured = value, ""
    elif hasattr(value, "__len__"):
        size, measured = len(value), " characters" if isinstance(value, str) else " entries"
    else:
        return ""
    if size == 0 and rule.low == 1 and measured:
        return "must not be empty"
    unit = f"{measured} {rule.unit}" if rule.unit else measured
    if rule.low is not None and size < rule.low:
        return f"must be at least {rule.low}{unit}, not {_shown(size)}"
    if rule.high is not None and size > rule.high:
        return f"must be at most {rule.high}{unit}, not {_shown(size)}"
    return ""


def _several_lines(value: Any, rule: Spec) -> str:
    if rule.one_line and isinstance(value, str) and not is_printable(value):
        return f"must be one line without control characters, not {_shown(printable(value))}"
    return ""


def _other_pattern(value: Any, rule: Spec) -> str:
    if rule.pattern and isinstance(value, str) and not re.fullmatch(rule.pattern, value):
        return f"must {rule.pattern_words or f'match {rule.pattern}'}, not {_shown(value)}"
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


_NAMES = {
    int: "a whole number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def _one_of(rule: Spec, value: Any) -> str:
    return f"must be one of {', '.join(map(written, rule.choices))}, not {_shown(value)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
