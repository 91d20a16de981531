"""How a record looks from outside: JSON to values, values to JSON, and the JSON schema of both, from one table of entries.

A form is made from a record's own described fields. What JSON writes differently (a list of objects, a time) has a Shape.
Fields that Cloudflare does not have stand in an object `greenroom`, so that nobody takes them for theirs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from typing import Any, Protocol, cast

from greenroom.control.times import TIME_PATTERN, milliseconds
from greenroom.errors import Problem
from greenroom.model.fields import Spec, check_value, plain_type, specs

OURS = "greenroom"
"""The object that holds what Cloudflare does not have."""

Json = dict[str, Any]


class Shape(Protocol):
    """How one kind of value is written in JSON."""

    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        """The value as the record holds it; what is wrong is added to `problems`, and then the answer is of no use."""

    def show(self, value: Any) -> Any:
        """The value as JSON holds it."""

    def schema(self, rule: Spec, /) -> Json:
        """The JSON schema of what `read` accepts."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A string, a number or a truth value. `caseless`: capitals do not matter, and are answered in lower case."""

    kind: type
    caseless: bool = False

    def read(self, _pointer: str, value: Any, _problems: list[Problem]) -> Any:
        """Whether the value is within bounds is for the record to say."""
        if self.kind is int and isinstance(value, float) and value.is_integer():
            return int(value)  # JSON knows one kind of number only
        return value.lower() if self.caseless and isinstance(value, str) else value

    def show(self, value: Any) -> Any:
        """As it is."""
        return value

    def schema(self, rule: Spec) -> Json:
        """Bounds included."""
        return _plain_schema(self.kind, rule, self.caseless)


@dataclass(frozen=True, slots=True)
class Nested:
    """One record inside another."""

    record: type

    def read(self, pointer: str, value: Any, problems: list[Problem]) -> Any:
        """None (and a problem) when it is not an object of the right entries."""
        return read_nested(self.record, pointer, value, problems)

    def show(self, value: Any) -> Any:
        """An object."""
        return {item.name: getattr(value, item.name) for item in fields(self.record)}

    def schema(self, _rule: Spec) -> Json:
        """Of the inner record."""
        return _record_schema(self.record)


@dataclass(frozen=True, slots=True)
class Several:
    """A list of strings, or of records when `record` is given."""

    record: type | None = None
    choices: tuple[str, ...] = ()

    def read(self, pointer: str, value: Any, problems: list[Problem]) -> Any:
        """A tuple."""
        if not isinstance(value, list):
            problems.append(Problem(pointer, f"must be a list, not {value!r:.60}"))
            return ()
        if self.record is None:
            wrong = [index for index, item in enumerate(value) if not isinstance(item, str)]
            problems += [Problem(f"{pointer}[{index}]", "must be a string") for index in wrong]
            return () if wrong else tuple(value)
        return tuple(read_nested(self.record, f"{pointer}[{index}]", item, problems) for index, item in enumerate(value))

    def show(self, value: Any) -> Any:
        """A list."""
        return list(value) if self.record is None else [Nested(self.record).show(item) for item in value]

    def schema(self, rule: Spec) -> Json:
        """Of the list and its items."""
        strings: Json = {"type": "string", **({"enum": list(self.choices)} if self.choices else {})}
        listed: Json = {"type": "array", "items": _record_schema(self.record) if self.record else strings}
        return listed | ({} if rule.high is None else {"maxItems": rule.high})


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in ISO 8601; the record holds the very text, so that it comes back as it was written."""

    def read(self, pointer: str, value: Any, problems: list[Problem]) -> Any:
        """The text itself, when it names a moment."""
        if value is not None and milliseconds(value) is None:
            problems.append(Problem(pointer, f"must be a time such as 2021-01-01T11:00:00Z, not {value!r:.60}"))
        return value

    def show(self, value: Any) -> Any:
        """As it was written."""
        return value

    def schema(self, rule: Spec) -> Json:
        """Date, time and zone."""
        return {"type": ["string", "null"] if rule.nullable else "string", "format": "date-time", "pattern": TIME_PATTERN}


@dataclass(frozen=True, slots=True)
class Entry:
    """One field from outside. `default` is the record's own value; MISSING means that it must be given."""

    name: str
    rule: Spec
    shape: Shape
    default: Any = MISSING

    @property
    def required(self) -> bool:
        """Whether it must be given when something is made or replaced."""
        return self.default is MISSING and not self.rule.read_only


@dataclass(frozen=True, slots=True)
class Form:
    """A table of entries. What is `read_only` may be sent back, and is not looked at."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, record: type, shapes: Mapping[str, Shape] | None = None, more: Sequence[Entry] = (), without: Sequence[str] = ()) -> "Form":
        """Of every described field of a record; `more` are entries that are computed and only shown."""
        described, known = specs(record), shapes or {}
        entries = [
            Entry(item.name, described[item.name], known.get(item.name) or Plain(plain_type(item.type)), _default(item))
            for item in fields(cast(Any, record))
            if item.name in described and item.name not in without
        ]
        return cls((*entries, *more))

    def read(self, document: Any, problems: list[Problem], unknown: list[Problem]) -> Json:
        """The values of a whole document, defaults filled in, by name; what is missing is left out.

        The record itself says what is out of bounds; here only what JSON got wrong becomes a problem. Names that
        nobody knows go to `unknown`.
        """
        if not isinstance(document, dict):
            problems.append(Problem("", "must be an object"))
            return {}
        ours = document.get(OURS, {}) if self.has_ours else {}
        if not isinstance(ours, dict):
            problems.append(Problem(OURS, "must be an object"))
            ours = {}
        unknown += self._unknown(document, False) + self._unknown(ours, True)
        values = {}
        for entry in self.entries:
            if entry.rule.read_only:
                continue
            where, pointer = (ours, f"{OURS}.{entry.name}") if entry.rule.extension else (document, entry.name)
            if entry.name in where:
                values[entry.name] = entry.shape.read(pointer, where[entry.name], problems)
            elif entry.default is not MISSING:
                values[entry.name] = entry.default
        return values

    def _unknown(self, document: Mapping[str, Any], ours: bool) -> list[Problem]:
        names = [entry.name for entry in self.entries if entry.rule.extension is ours]
        known = [*names, OURS] if self.has_ours and not ours else names
        return [unknown_name(f"{OURS}.{name}" if ours else name, name, known) for name in document if name not in known]

    @property
    def has_ours(self) -> bool:
        """Whether some of it is not Cloudflare's."""
        return any(entry.rule.extension for entry in self.entries)

    def show(self, values: Mapping[str, Any]) -> Json:
        """The whole document, in the order of the table."""
        shown: Json = {}
        ours: Json = {}
        for entry in self.entries:
            if entry.name in values:
                (ours if entry.rule.extension else shown)[entry.name] = entry.shape.show(values[entry.name])
        return shown | ({OURS: ours} if ours else {})

    def pointers(self, problems: Sequence[Problem]) -> list[Problem]:
        """The record's problems where the sender finds the field: ours are inside their object."""
        ours = {entry.name for entry in self.entries if entry.rule.extension}
        return [
            Problem(f"{OURS}.{found.pointer}", found.reason, found.line) if found.pointer.partition("[")[0] in ours else found
            for found in problems
        ]

    def schema(self, what: str) -> Json:
        """The JSON schema of a `whole` (POST, PUT), of an `edit` (PATCH) or of an `answer`."""
        answer = what == "answer"
        groups: dict[bool, Json] = {}
        for ours in (False, True):
            properties = {entry.name: _entry_schema(entry) for entry in self.entries if entry.rule.extension is ours}
            required = [e.name for e in self.entries if e.rule.extension is ours and (answer or (what == "whole" and e.required))]
            groups[ours] = {"type": "object", "properties": properties, "additionalProperties": False}
            if required:
                groups[ours]["required"] = required
        whole = groups[False]
        if groups[True]["properties"]:
            whole["properties"][OURS] = {**groups[True], "description": "What Cloudflare does not have."}
            if answer:
                whole["required"].append(OURS)
        return whole


def overlaid(document: Mapping[str, Any], edit: Any) -> Any:
    """A document with an edit laid over it: objects are merged, everything else is replaced (null too: it is a value here)."""
    if not isinstance(edit, dict):
        return edit
    merged = dict(document)
    for name, value in edit.items():
        inner = merged.get(name)
        merged[name] = overlaid(inner, value) if isinstance(inner, dict) else value
    return merged


def read_nested(record: type, pointer: str, value: Any, problems: list[Problem]) -> Any:
    """A record written as an object, or None and the problems."""
    if not isinstance(value, dict):
        problems.append(Problem(pointer, "must be an object"))
        return None
    described = specs(record)
    found = [unknown_name(f"{pointer}.{name}", name, list(described)) for name in value if name not in described]
    for item in fields(cast(Any, record)):
        at = f"{pointer}.{item.name}"
        if item.name in value:
            found += filter(None, [check_value(at, value[item.name], plain_type(item.type), described[item.name])])
        elif item.default is MISSING:
            found.append(Problem(at, f"is required: {described[item.name].help}"))
    problems += found
    return None if found else record(**value)


def unknown_name(pointer: str, name: str, known: Sequence[str]) -> Problem:
    """A name that nobody knows, with the one that was probably meant."""
    near = get_close_matches(name.lower().replace("-", "_"), known, n=1)
    return Problem(pointer, "is not a field here" + (f"; did you mean {near[0]}?" if near else ""))


def _default(item: Any) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


_TYPES = {int: "integer", str: "string", bool: "boolean"}


def _plain_schema(kind: type, rule: Spec, caseless: bool) -> Json:
    choices = list(rule.choices) + ([choice.upper() for choice in rule.choices] if caseless else [])
    schema: Json = {"type": [_TYPES[kind], "null"] if rule.nullable else _TYPES[kind]}
    if choices:
        schema["enum"] = [*choices, None] if rule.nullable else choices
        return schema
    low, high = ("minimum", "maximum") if kind is int else ("minLength", "maxLength")
    schema |= {word: bound for word, bound in ((low, rule.low), (high, rule.high)) if bound is not None}
    return schema | ({"pattern": f"^{rule.pattern}$"} if rule.pattern else {})


def _record_schema(record: type) -> Json:
    described = specs(record)
    items = fields(cast(Any, record))
    schema: Json = {
        "type": "object",
        "properties": {item.name: _plain_schema(plain_type(item.type), described[item.name], False) for item in items},
        "additionalProperties": False,
    }
    required = [item.name for item in items if item.default is MISSING]
    return schema | ({"required": required} if required else {})


def _entry_schema(entry: Entry) -> Json:
    schema = entry.shape.schema(entry.rule)
    text = entry.rule.help + (f", in {entry.rule.unit}" if entry.rule.unit else "")
    return {**schema, "description": text[:1].upper() + text[1:] + "."} | ({"readOnly": True} if entry.rule.read_only else {})
