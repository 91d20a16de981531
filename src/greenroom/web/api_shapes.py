"""How the API writes one value in JSON: strings, choices, lists, nested records, times."""

from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Protocol, TypeVar, cast

from greenroom.errors import Problem
from greenroom.model.fields import (
    RecordField,
    Spec,
    described,
    field_problems,
    plain_type,
    specs,
    unknown_field,
    wrong_kind,
)
from greenroom.model.route import as_host
from greenroom.web.time_format import TIME_PATTERN, milliseconds

Json = dict[str, Any]
RecordType = TypeVar("RecordType")


class Shape(Protocol):
    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        """Meaningless when it adds to `problems`."""

    def show(self, value: Any) -> Any: ...

    def schema(self, rule: Spec, /) -> Json: ...


@dataclass(frozen=True, slots=True)
class Plain:
    """`caseless` lowers capitals. `format` replaces a long pattern in the schema. `absent` values
    mean the default. `or_null` shows empty text as null.
    """

    kind: type
    caseless: bool = False
    format: str = ""
    absent: tuple[Any, ...] = ()
    or_null: bool = False

    def read(self, _pointer: str, value: Any, _problems: list[Problem]) -> Any:
        # The record checks the bounds.
        if self.kind is int and isinstance(value, float) and value.is_integer():
            return int(value)  # JSON knows one kind of number only
        return value.lower() if self.caseless and isinstance(value, str) else value

    def show(self, value: Any) -> Any:
        # As at Cloudflare where its Terraform provider has no default: what a plan leaves out is
        # null there, and another answer would be a change in every plan.
        return None if self.or_null and value == "" else value

    def schema(self, rule: Spec) -> Json:
        if self.or_null:
            rule = replace(rule, nullable=True)
        if self.format:
            return _plain_schema(self.kind, replace(rule, pattern=""), self.caseless) | {
                "format": self.format
            }
        schema = _plain_schema(self.kind, rule, self.caseless)
        return {"anyOf": [schema, {"enum": list(self.absent)}]} if self.absent else schema


class HostName(Plain):
    """May be written with capitals and letters of any language."""

    def read(self, _pointer: str, value: Any, _problems: list[Problem]) -> Any:
        return as_host(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Choice:
    def read(self, _pointer: str, value: Any, _problems: list[Problem]) -> Any:
        # The record checks the values.
        return value

    def show(self, value: Any) -> Any:
        return value

    def schema(self, rule: Spec) -> Json:
        kinds = dict.fromkeys(_TYPES[type(choice)] for choice in rule.choices)
        return {"type": list(kinds), "enum": list(rule.choices)}


@dataclass(frozen=True, slots=True)
class Nested:
    record: type

    def read(self, pointer: str, value: Any, problems: list[Problem]) -> Any:
        """None (and a problem) when it is not an object of the right fields."""
        return read_nested(self.record, pointer, value, problems)

    def show(self, value: Any) -> Any:
        return {item.name: getattr(value, item.name) for item in fields(self.record)}

    def schema(self, _rule: Spec) -> Json:
        return _record_schema(self.record)


@dataclass(frozen=True, slots=True)
class Several:
    """`pattern` only describes the strings; the record checks them. `or_null` shows an empty list as
    null. `host` is a field of each record, read as HostName.
    """

    record: type | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    or_null: bool = False
    host: str = ""

    def read(self, pointer: str, value: Any, problems: list[Problem]) -> Any:
        if reason := wrong_kind(value, list):
            problems.append(Problem(pointer, reason))
            return ()
        if self.record is None:  # the record checks the strings
            return tuple(value)
        return tuple(
            read_nested(self.record, f"{pointer}[{index}]", self._spelt(item), problems)
            for index, item in enumerate(value)
        )

    def _spelt(self, item: Any) -> Any:
        written = item.get(self.host) if self.host and isinstance(item, dict) else None
        return item | {self.host: as_host(written)} if isinstance(written, str) else item

    def show(self, value: Any) -> Any:
        if self.or_null and not value:
            return None
        return (
            list(value)
            if self.record is None
            else [Nested(self.record).show(item) for item in value]
        )

    def schema(self, rule: Spec) -> Json:
        strings: Json = {"type": "string", **({"enum": list(self.choices)} if self.choices else {})}
        if self.pattern:
            strings["pattern"] = self.pattern
        listed: Json = {
            "type": ["array", "null"] if self.or_null else "array",
            "items": _record_schema(self.record) if self.record else strings,
        }
        return listed | ({} if rule.high is None else {"maxItems": rule.high})


@dataclass(frozen=True, slots=True)
class MomentField:
    """ISO 8601, kept as text so that it comes back as written."""

    def read(self, pointer: str, value: Any, problems: list[Problem]) -> Any:
        if value is not None and milliseconds(value) is None:
            problems.append(
                Problem(
                    pointer,
                    f"must be a time with a time zone such as 2026-05-01T10:00:00Z, not {value!r:.60}",
                )
            )
        return value

    def show(self, value: Any) -> Any:
        return value

    def schema(self, rule: Spec) -> Json:
        return {
            "type": ["string", "null"] if rule.nullable else "string",
            "format": "date-time",
            "pattern": TIME_PATTERN,
        }


@dataclass(frozen=True, slots=True)
class Shown:
    described: Json

    def read(self, _pointer: str, value: Any, _problems: list[Problem], /) -> Any:
        return value

    def show(self, value: Any) -> Any:
        return value

    def schema(self, _rule: Spec, /) -> Json:
        return self.described


def read_nested(
    record: type[RecordType], pointer: str, value: Any, problems: list[Problem]
) -> RecordType | None:
    """A record from an object; a default replaces what is wrong, so that the rest is checked too.
    None, with a problem, when a required field is missing.
    """
    if not isinstance(value, dict):
        problems.append(Problem(pointer, wrong_kind(value, record)))
        return None
    at, known = f"{pointer}." if pointer else "", described(cast(Any, record))
    names = [field.name for field in known]
    problems += [unknown_field(f"{at}{name}", name, names) for name in value if name not in names]
    values = {
        name: _as_held(inner) for name, inner in _given(record, value).items() if name in names
    }
    found = field_problems(record, values, at)
    problems += found
    wrong = {problem.pointer for problem in found}
    right = {
        field.name: _right_entries(field, values[field.name])
        for field in known
        if field.name in values and f"{at}{field.name}" not in wrong
    }
    return None if any(f.required and f.name not in right for f in known) else record(**right)


def _right_entries(field: RecordField, value: Any) -> Any:
    if field.item is None or not isinstance(value, tuple):
        return value
    return tuple(each for each in value if not wrong_kind(each, field.item))


def _as_held(value: Any) -> Any:
    """Lists as tuples, also inside an object; 80.0 as 80."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        return {key: _as_held(inner) for key, inner in value.items()}
    return Plain(int).read("", value, []) if isinstance(value, float) else value


def _given(record: type, value: Json) -> Json:
    optional = {
        item.name
        for item in fields(cast(Any, record))
        if item.default is not MISSING or item.default_factory is not MISSING
    }
    return {
        name: inner for name, inner in value.items() if inner is not None or name not in optional
    }


_TYPES = {int: "integer", str: "string", bool: "boolean"}


def _plain_schema(kind: type, rule: Spec, caseless: bool) -> Json:
    choices = list(rule.choices) + ([choice.upper() for choice in rule.choices] if caseless else [])
    schema: Json = {"type": [_TYPES[kind], "null"] if rule.nullable else _TYPES[kind]}
    if choices:
        schema["enum"] = [*choices, None] if rule.nullable else choices
        return schema
    low, high = ("minimum", "maximum") if kind is int else ("minLength", "maxLength")
    schema |= {
        word: bound for word, bound in ((low, rule.low), (high, rule.high)) if bound is not None
    }
    return schema | ({"pattern": f"^{rule.pattern}$"} if rule.pattern else {})


def _record_schema(record: type) -> Json:
    described = specs(record)
    items = fields(cast(Any, record))
    schema: Json = {
        "type": "object",
        "properties": {
            item.name: _plain_schema(plain_type(item.type), described[item.name], False)
            for item in items
        },
        "additionalProperties": False,
    }
    required = [item.name for item in items if item.default is MISSING]
    return schema | ({"required": required} if required else {})
