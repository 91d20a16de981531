"""The external form of a record: JSON to values, values to JSON, and the JSON schema. Fields that
Cloudflare does not have are in an object `greenroom`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, cast

from greenroom.errors import Problem
from greenroom.model.fields import Spec, plain_type, specs, unknown_field
from greenroom.web.api_shapes import (
    Json,
    Plain,
    Shape,
    Shown,
)
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    faults_of,
    refuse_if,
    within,
)

EXTENSION = "greenroom"

NEEDED: Any = object()

UNSET: Any = object()


@dataclass(frozen=True, slots=True)
class ApiField:
    """`default` is the record's own value, or NEEDED."""

    name: str
    rule: Spec
    shape: Shape
    default: Any = NEEDED

    @property
    def required(self) -> bool:
        return self.default is NEEDED and not self.rule.read_only

    def means_default(self, value: Any) -> bool:
        """Null, and what older clients send for a field that was not set."""
        if value is None:
            return self.default is not NEEDED
        absent = self.shape.absent if isinstance(self.shape, Plain) else ()
        return any(value == zero and type(value) is type(zero) for zero in absent)


@dataclass(frozen=True, slots=True)
class ApiSchema:
    """`read_only` fields may be sent back and are ignored."""

    fields: tuple[ApiField, ...]

    @classmethod
    def of(
        cls,
        record: type,
        shapes: Mapping[str, Shape] | None = None,
        more: Sequence[ApiField] = (),
        without: Sequence[str] = (),
    ) -> "ApiSchema":
        """`more` are computed fields."""
        described, known = specs(record), shapes or {}
        own = [
            ApiField(
                item.name,
                described[item.name],
                known.get(item.name) or Plain(plain_type(item.type)),
                _default(item),
            )
            for item in fields(cast(Any, record))
            if item.name in described and item.name not in without
        ]
        return cls((*own, *more))

    def read(self, document: Json, problems: list[Problem], unknown: list[Problem]) -> Json:
        """Missing required ones are left out. Reports only wrong JSON; the record checks its
        bounds. Unknown names go to `unknown`.
        """
        ours = document.get(EXTENSION) if self.has_ours else None
        if ours is None:
            ours = {}
        if not isinstance(ours, dict):
            problems.append(Problem(EXTENSION, "must be an object"))
            ours = {}
        unknown += self._unknown(document, False) + self._unknown(ours, True)
        return self._values(
            lambda field: (
                (ours, f"{EXTENSION}.{field.name}")
                if field.rule.extension
                else (document, field.name)
            ),
            problems,
        )

    def read_table(
        self,
        table: Mapping[str, Any],
        beside: Sequence[str],
        problems: list[Problem],
        unknown: list[Problem],
    ) -> Json:
        """As `read`, from a table of a configuration file: extensions stand beside the other
        fields, `beside` are keys that are not fields, and read-only fields are unknown.
        """
        names = [field.name for field in self.fields if not field.rule.read_only]
        unknown += [
            unknown_field(name, name, [*names, *beside])
            for name in table
            if name not in names and name not in beside
        ]
        return self._values(lambda field: (table, field.name), problems)

    def _values(
        self,
        place: Callable[[ApiField], tuple[Mapping[str, Any], str]],
        problems: list[Problem],
    ) -> Json:
        values = {}
        for field in self.fields:
            if field.rule.read_only:
                continue
            where, pointer = place(field)
            if field.name in where and not field.means_default(where[field.name]):
                values[field.name] = field.shape.read(pointer, where[field.name], problems)
            elif field.default is not NEEDED and field.default is not UNSET:
                values[field.name] = field.default
        return values

    def _unknown(self, document: Mapping[str, Any], ours: bool) -> list[Problem]:
        names = [api_field.name for api_field in self.fields if api_field.rule.extension is ours]
        known = [*names, EXTENSION] if self.has_ours and not ours else names
        return [
            unknown_field(f"{EXTENSION}.{name}" if ours else name, name, known)
            for name in document
            if name not in known
        ]

    @property
    def has_ours(self) -> bool:
        return any(api_field.rule.extension for api_field in self.fields)

    def missing(self, values: Mapping[str, Any], problems: Iterable[Problem]) -> list[Problem]:
        said = {problem.pointer for problem in problems}
        return [
            Problem(field.name, f"is required: {field.rule.help}")
            for field in self.fields
            if field.required and field.name not in values and field.name not in said
        ]

    def show(self, values: Mapping[str, Any]) -> Json:
        shown: Json = {}
        ours: Json = {}
        for api_field in self.fields:
            if api_field.name in values:
                (ours if api_field.rule.extension else shown)[api_field.name] = (
                    api_field.shape.show(values[api_field.name])
                )
        return shown | ({EXTENSION: ours} if ours else {})

    def brief(self, shown: Json, leave_out: Iterable[str] = ()) -> Json:
        """What `show` returned without defaults and what only the server writes."""
        ours = shown.get(EXTENSION, {})
        brief: Json = {}
        inner: Json = {}
        for api_field in self.fields:
            name, extension = api_field.name, api_field.rule.extension
            where = ours if extension else shown
            if api_field.rule.read_only or name in leave_out or name not in where:
                continue
            if (
                api_field.required
                or api_field.default is UNSET
                or where[name] != api_field.shape.show(api_field.default)
            ):
                (inner if extension else brief)[name] = where[name]
        return brief | ({EXTENSION: inner} if inner else {})

    def pointers(self, problems: Sequence[Problem]) -> list[Problem]:
        """Extensions are in their object."""
        ours = {api_field.name for api_field in self.fields if api_field.rule.extension}
        return [
            (
                Problem(f"{EXTENSION}.{found.pointer}", found.reason, found.line)
                if found.pointer.partition("[")[0] in ours
                else found
            )
            for found in problems
        ]

    def schema(self, what: str) -> Json:
        """`whole` (POST, PUT), `edit` (PATCH) or `answer`."""
        answer = what == "answer"
        groups: dict[bool, Json] = {}
        for ours in (False, True):
            properties = {
                api_field.name: _field_schema(api_field, what)
                for api_field in self.fields
                if api_field.rule.extension is ours
            }
            needed = [
                api_field
                for api_field in self.fields
                if api_field.rule.extension is ours and api_field.default is not UNSET
            ]
            required = [
                api_field.name
                for api_field in needed
                if answer or (what == "whole" and api_field.required)
            ]
            groups[ours] = {
                "type": "object",
                "properties": properties,
                "additionalProperties": False,
            }
            if required:
                groups[ours]["required"] = required
        whole = groups[False]
        if groups[True]["properties"]:
            whole["properties"][EXTENSION] = {
                **groups[True],
                "description": "What Cloudflare does not have.",
            }
            if answer:
                whole["required"].append(EXTENSION)
        return whole if answer else _with_nulls(whole)


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
    """Shown, and ignored when sent unless `writable`."""
    rule = Spec(
        meaning, extension=extension, read_only=not writable, choices=choices, example=example
    )
    return ApiField(name, rule, shape, UNSET if writable else NEEDED)


READ_ONLY = computed(
    "read_only",
    "true: it comes from a configuration file and can only be changed there",
    Shown({"type": "boolean"}),
    extension=True,
)


def required(form: ApiSchema, *names: str) -> ApiSchema:
    return ApiSchema(
        tuple(
            replace(api_field, default=NEEDED) if api_field.name in names else api_field
            for api_field in form.fields
        )
    )


def read_as(
    form: ApiSchema, document: Any, problems_of: Callable[[Json], list[Problem]] | None = None
) -> tuple[Json, list[ApiFault]]:
    """And all faults. A field that JSON got wrong is not checked again by the record. Raises
    Refused when the document is not an object.
    """
    if not isinstance(document, dict):
        raise Refused(ApiFault(Code.BAD_BODY, "the body must be a JSON object"))
    problems: list[Problem] = []
    unknown: list[Problem] = []
    values = form.read(document, problems, unknown)
    faults = faults_of(unknown, Code.UNKNOWN_FIELD) + faults_of(problems)
    if problems_of:
        faults += faults_of(form.pointers(not_said(problems, problems_of(values))))
    said_already = [Problem(fault.pointer.lstrip("/"), "") for fault in faults]
    return values, faults + faults_of(form.missing(values, said_already))


def read_each(
    documents: Any, most: int, what: str, read: Callable[[Any], tuple[Json, list[ApiFault]]]
) -> list[Json]:
    """The values of each; `what` names them to people. Raises Refused with every fault of each."""
    if not isinstance(documents, list):
        raise Refused(ApiFault(Code.BAD_BODY, f"the body must be a JSON array of {what}"))
    if len(documents) > most:
        reason = f"a room has at most {most} {what}, not {len(documents)}"
        raise Refused(ApiFault(Code.TOO_MANY, reason))
    found: list[Json] = []
    faults: list[ApiFault] = []
    for index, document in enumerate(documents):
        if not isinstance(document, dict):
            faults.append(ApiFault(Code.BAD_BODY, f"{index}: must be a JSON object", f"/{index}"))
            continue
        values, wrong = read(document)
        found.append(values)
        faults += within(wrong, f"/{index}")
    refuse_if(faults)
    return found


def not_said(problems: Sequence[Problem], found: Iterable[Problem]) -> list[Problem]:
    """What was `found` where, below and around which there are none of these problems."""
    said = {f"{problem.pointer.removeprefix(f'{EXTENSION}.')}." for problem in problems}
    said = {pointer.replace("[", ".[") for pointer in said}

    def is_new(problem: Problem) -> bool:
        at = f"{problem.pointer}.".replace("[", ".[")
        return not any(at.startswith(known) or known.startswith(at) for known in said)

    return [problem for problem in found if is_new(problem)]


def overlaid(document: Mapping[str, Any], edit: Any) -> Any:
    """Objects merge, everything else is replaced; null removes the field."""
    if not isinstance(edit, dict):
        return edit
    merged = dict(document)
    for name, value in edit.items():
        inner = merged.get(name)
        merged[name] = overlaid(inner, value) if isinstance(inner, dict) else value
    return merged


def _default(item: Any) -> Any:
    if item.default_factory is not MISSING:
        return item.default_factory()
    return NEEDED if item.default is MISSING else item.default


def _with_nulls(schema: Json) -> Json:
    found = dict(schema)
    if "properties" in schema:
        needed = schema.get("required", ())
        found["properties"] = {
            name: inner if inner.get("readOnly") else _body_field(inner, name not in needed)
            for name, inner in schema["properties"].items()
        }
    if isinstance(schema.get("items"), dict):
        found["items"] = _with_nulls(schema["items"])
    return found


def _body_field(schema: Json, optional: bool) -> Json:
    inner = _with_nulls(schema)
    return _or_null(inner) if optional else inner


def _or_null(schema: Json) -> Json:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    kinds = schema.get("type")
    if kinds is None:
        return schema
    listed = kinds if isinstance(kinds, list) else [kinds]
    found = {**schema, "type": listed if "null" in listed else [*listed, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        found["enum"] = [*schema["enum"], None]
    return found


def _field_schema(api_field: ApiField, what: str) -> Json:
    schema = api_field.shape.schema(api_field.rule)
    if (
        what == "whole"
        and not api_field.rule.read_only
        and api_field.default is not NEEDED
        and api_field.default is not UNSET
    ):
        schema = {**schema, "default": api_field.shape.show(api_field.default)}
    text = api_field.rule.help + (f", in {api_field.rule.unit}" if api_field.rule.unit else "")
    described = {**schema, "description": text[:1].upper() + text[1:] + "."}
    if api_field.rule.example is not None:
        described["examples"] = [api_field.rule.example]
    return described | ({"readOnly": True} if api_field.rule.read_only else {})
