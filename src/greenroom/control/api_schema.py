"""The external form of a record: JSON to values, values to JSON, and the JSON schema of both, from one table of fields.

A form is made from a record's own described fields. What JSON writes differently (a list of objects, a time) has a Shape.
Fields that Cloudflare does not have are in an object `greenroom`, so that they cannot be mistaken for published ones.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Protocol, cast

from greenroom.control.refusals import ApiFault, Code, Refused, faults_of
from greenroom.control.time_format import TIME_PATTERN, milliseconds
from greenroom.errors import Problem
from greenroom.model.fields import Spec, check_value, plain_type, specs

EXTENSION = "greenroom"
"""The object that holds what Cloudflare does not have."""

Json = dict[str, Any]

NEEDED: Any = object()
"""Default of a field that must be given."""

UNSET: Any = object()
"""Default of a field that may be left out and then has no value at all."""


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
    """A string, a number or a truth value. `caseless`: capitals do not matter, and are answered in lower case.

    `format` says in a word what the schema would otherwise say in a long pattern. `absent` are values that mean the default: what older
    clients send for a field that was not set.
    """

    kind: type
    caseless: bool = False
    format: str = ""
    absent: tuple[Any, ...] = ()

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
        if self.format:
            return _plain_schema(self.kind, replace(rule, pattern=""), self.caseless) | {"format": self.format}
        schema = _plain_schema(self.kind, rule, self.caseless)
        return {"anyOf": [schema, {"enum": list(self.absent)}]} if self.absent else schema


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few values that are not all of one kind, such as false, true and "auto"."""

    def read(self, _pointer: str, value: Any, _problems: list[Problem]) -> Any:
        """Which values there are is for the record to say."""
        return value

    def show(self, value: Any) -> Any:
        """As it is."""
        return value

    def schema(self, rule: Spec) -> Json:
        """The values."""
        kinds = dict.fromkeys(_TYPES[type(choice)] for choice in rule.choices)
        return {"type": list(kinds), "enum": list(rule.choices)}


@dataclass(frozen=True, slots=True)
class Nested:
    """One record inside another."""

    record: type

    def read(self, pointer: str, value: Any, problems: list[Problem]) -> Any:
        """None (and a problem) when it is not an object of the right fields."""
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
class MomentField:
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
class Shown:
    """A value that is made here and never read."""

    described: Json

    def read(self, _pointer: str, value: Any, _problems: list[Problem], /) -> Any:
        """Never called: the shape is only shown."""
        return value

    def show(self, value: Any) -> Any:
        """As it is."""
        return value

    def schema(self, _rule: Spec, /) -> Json:
        """As it was given."""
        return self.described


@dataclass(frozen=True, slots=True)
class ApiField:
    """One field from outside. `default` is the record's own value; NEEDED means that it must be given."""

    name: str
    rule: Spec
    shape: Shape
    default: Any = NEEDED

    @property
    def required(self) -> bool:
        """Whether it must be given when something is made or replaced."""
        return self.default is NEEDED and not self.rule.read_only

    def means_default(self, value: Any) -> bool:
        """Whether this is how older clients leave the field out."""
        absent = self.shape.absent if isinstance(self.shape, Plain) else ()
        return any(value == zero and type(value) is type(zero) for zero in absent)


@dataclass(frozen=True, slots=True)
class ApiSchema:
    """A table of fields. What is `read_only` may be sent back, and is not looked at."""

    fields: tuple[ApiField, ...]

    @classmethod
    def of(
        cls, record: type, shapes: Mapping[str, Shape] | None = None, more: Sequence[ApiField] = (), without: Sequence[str] = ()
    ) -> "ApiSchema":
        """Of every described field of a record; `more` are fields that are computed and only shown."""
        described, known = specs(record), shapes or {}
        own = [
            ApiField(item.name, described[item.name], known.get(item.name) or Plain(plain_type(item.type)), _default(item))
            for item in fields(cast(Any, record))
            if item.name in described and item.name not in without
        ]
        return cls((*own, *more))

    def read(self, document: Json, problems: list[Problem], unknown: list[Problem]) -> Json:
        """The values of a whole document, defaults filled in, by name; what is missing is left out.

        The record itself says what is out of bounds; here only what JSON got wrong becomes a problem. Names that
        that are not known go to `unknown`.
        """
        ours = document.get(EXTENSION, {}) if self.has_ours else {}
        if not isinstance(ours, dict):
            problems.append(Problem(EXTENSION, "must be an object"))
            ours = {}
        unknown += self._unknown(document, False) + self._unknown(ours, True)
        values = {}
        for api_field in self.fields:
            if api_field.rule.read_only:
                continue
            where, pointer = (ours, f"{EXTENSION}.{api_field.name}") if api_field.rule.extension else (document, api_field.name)
            if api_field.name in where and not api_field.means_default(where[api_field.name]):
                values[api_field.name] = api_field.shape.read(pointer, where[api_field.name], problems)
            elif api_field.default is not NEEDED and api_field.default is not UNSET:
                values[api_field.name] = api_field.default
        return values

    def _unknown(self, document: Mapping[str, Any], ours: bool) -> list[Problem]:
        names = [api_field.name for api_field in self.fields if api_field.rule.extension is ours]
        known = [*names, EXTENSION] if self.has_ours and not ours else names
        return [unknown_name(f"{EXTENSION}.{name}" if ours else name, name, known) for name in document if name not in known]

    @property
    def has_ours(self) -> bool:
        """Whether some of it is not Cloudflare's."""
        return any(api_field.rule.extension for api_field in self.fields)

    def show(self, values: Mapping[str, Any]) -> Json:
        """The whole document, in the order of the table."""
        shown: Json = {}
        ours: Json = {}
        for api_field in self.fields:
            if api_field.name in values:
                (ours if api_field.rule.extension else shown)[api_field.name] = api_field.shape.show(values[api_field.name])
        return shown | ({EXTENSION: ours} if ours else {})

    def pointers(self, problems: Sequence[Problem]) -> list[Problem]:
        """The record's problems where the sender finds the field: extensions are inside their object."""
        ours = {api_field.name for api_field in self.fields if api_field.rule.extension}
        return [
            Problem(f"{EXTENSION}.{found.pointer}", found.reason, found.line) if found.pointer.partition("[")[0] in ours else found
            for found in problems
        ]

    def schema(self, what: str) -> Json:
        """The JSON schema of a `whole` (POST, PUT), of an `edit` (PATCH) or of an `answer`."""
        answer = what == "answer"
        groups: dict[bool, Json] = {}
        for ours in (False, True):
            properties = {api_field.name: _field_schema(api_field, what) for api_field in self.fields if api_field.rule.extension is ours}
            needed = [api_field for api_field in self.fields if api_field.rule.extension is ours and api_field.default is not UNSET]
            required = [api_field.name for api_field in needed if answer or (what == "whole" and api_field.required)]
            groups[ours] = {"type": "object", "properties": properties, "additionalProperties": False}
            if required:
                groups[ours]["required"] = required
        whole = groups[False]
        if groups[True]["properties"]:
            whole["properties"][EXTENSION] = {**groups[True], "description": "What Cloudflare does not have."}
            if answer:
                whole["required"].append(EXTENSION)
        return whole


def computed(
    name: str,
    meaning: str,
    shape: Shape,
    *,
    writable: bool = False,
    extension: bool = False,
    choices: tuple[Any, ...] = (),
    example: Any = None,
) -> ApiField:
    """A field that no record holds: shown, and ignored when it is sent back, unless it is `writable`; then it may be left out."""
    rule = Spec(meaning, extension=extension, read_only=not writable, choices=choices, example=example)
    return ApiField(name, rule, shape, UNSET if writable else NEEDED)


def required(form: ApiSchema, *names: str) -> ApiSchema:
    """The form with some defaults taken away: here these must be given."""
    return ApiSchema(tuple(replace(api_field, default=NEEDED) if api_field.name in names else api_field for api_field in form.fields))


def read_as(form: ApiSchema, document: Any, problems_of: Callable[[Json], list[Problem]] | None = None) -> tuple[Json, list[ApiFault]]:
    """The values of a document and everything wrong with it, the record's own rules (`problems_of`) included.

    What JSON got wrong is said once: the record is not asked about a field that is wrong already. Raises Refused when the
    document is no object at all.
    """
    if not isinstance(document, dict):
        raise Refused(ApiFault(Code.BAD_BODY, "the body must be a JSON object"))
    problems: list[Problem] = []
    unknown: list[Problem] = []
    values = form.read(document, problems, unknown)
    faults = faults_of(unknown, Code.UNKNOWN_FIELD) + faults_of(problems)
    wrong = {_field(found.pointer.removeprefix(f"{EXTENSION}.")) for found in problems}
    if problems_of:
        faults += faults_of(form.pointers([found for found in problems_of(values) if _field(found.pointer) not in wrong]))
    said_already = {fault.pointer for fault in faults}
    missing = [
        api_field
        for api_field in form.fields
        if api_field.required and api_field.name not in values and f"/{api_field.name}" not in said_already
    ]
    faults += faults_of(Problem(api_field.name, f"is required: {api_field.rule.help}") for api_field in missing)
    return values, faults


def _field(pointer: str) -> str:
    return re.split(r"[.\[]", pointer, maxsplit=1)[0]


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
    """An unknown name, with a suggestion."""
    near = get_close_matches(name.lower().replace("-", "_"), known, n=1)
    return Problem(pointer, "unknown field" + (f"; did you mean {near[0]}?" if near else ""))


def _default(item: Any) -> Any:
    if item.default_factory is not MISSING:
        return item.default_factory()
    return NEEDED if item.default is MISSING else item.default


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


def _field_schema(api_field: ApiField, what: str) -> Json:
    schema = api_field.shape.schema(api_field.rule)
    if what == "whole" and not api_field.rule.read_only and api_field.default is not NEEDED and api_field.default is not UNSET:
        schema = {**schema, "default": api_field.shape.show(api_field.default)}
    text = api_field.rule.help + (f", in {api_field.rule.unit}" if api_field.rule.unit else "")
    described = {**schema, "description": text[:1].upper() + text[1:] + "."}
    if api_field.rule.example is not None:
        described["examples"] = [api_field.rule.example]
    return described | ({"readOnly": True} if api_field.rule.read_only else {})
