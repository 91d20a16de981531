"""Health checks of a zone: validation, changes, and how the API shows them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from greenroom.configuration.file_tables import (
    FILE_ZONE_ID,
    ID_PATTERN,
    FileTables,
    NamedFiles,
    TableRead,
    file_entry,
    file_id,
    read_document,
    read_named,
)
from greenroom.configuration.zones import zone_of
from greenroom.errors import Problem
from greenroom.health.rules.condition import shown_status
from greenroom.health.rules.roster import GLOBAL
from greenroom.health.service import HealthService
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.fields import NAME_WORDS, Spec, plain_type, spec, specs, with_unit
from greenroom.model.health_check import (
    ALL_REGIONS,
    CHECKS_MAX,
    CONFIGS,
    HEADER_VALUE_MAX,
    HEADERS_MAX,
    PORTS,
    REGIONS,
    STATUSES,
    TYPES,
    HealthCheck,
    HttpCheck,
    TcpCheck,
    effective,
    health_check_problems,
)
from greenroom.web.api_schema import (
    READ_ONLY,
    ApiSchema,
    computed,
    overlaid,
    read_as,
)
from greenroom.web.api_shapes import (
    Json,
    Plain,
    Several,
    Shown,
    read_nested,
)
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    DocumentSection,
    PlannedChange,
    entry_of,
    opaque_id,
    refuse_read_only,
)
from greenroom.web.refusals import (
    ApiFault,
    not_found,
    refuse_if,
    too_many,
)
from greenroom.web.time_format import moment as written


@dataclass(frozen=True, slots=True)
class CheckPart:
    record: type

    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        if value is None:
            return None
        return read_nested(self.record, pointer, value, problems)

    def show(self, value: Any) -> Any:
        if value is None:
            return None
        shown = {
            item.name: _as_json(getattr(value, item.name))
            for item in fields(cast(Any, self.record))
        }
        # null for the reason in Plain.show
        return shown | {name: None for name in _OR_NULL if shown.get(name) in ("", [])}

    def schema(self, _rule: Spec, /) -> Json:
        # 0 is accepted for a port and means the default.
        described = specs(self.record)
        properties = {}
        for item in fields(cast(Any, self.record)):
            rule = described[item.name]
            properties[item.name] = _OWN_SCHEMAS.get(item.name) or Plain(
                plain_type(item.type)
            ).schema(rule)
        return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


_OR_NULL = ("expected_codes", "expected_body")
_OWN_SCHEMAS: Mapping[str, Json] = {
    "expected_body": Plain(str, or_null=True).schema(specs(HttpCheck)["expected_body"]),
    "expected_codes": {
        "type": ["array", "null"],
        "items": {"type": "string", "pattern": "^[1-5]([0-9]{2}|[xX]{2})$"},
        "maxItems": specs(HttpCheck)["expected_codes"].high,
    },
    "header": {
        "type": ["object", "null"],
        "maxProperties": HEADERS_MAX,
        "additionalProperties": {
            "type": "array",
            "items": {"type": "string", "maxLength": HEADER_VALUE_MAX},
            "minItems": 1,
            "maxItems": HEADERS_MAX,
        },
    },
}


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return {key: list(inner) for key, inner in value.items()} if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True)
class DefaultNumber:
    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        # `effective` puts the default in place of 0.
        return Plain(int).read(pointer, value, problems)

    def show(self, value: Any) -> Any:
        return value

    def schema(self, rule: Spec, /) -> Json:
        return {"type": "integer", "minimum": 0, "maximum": rule.high}


@dataclass(frozen=True, slots=True)
class Regions:
    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        return Several().read(pointer, value, problems)

    def show(self, value: Any) -> Any:
        return None if value is None else list(value)

    def schema(self, rule: Spec, /) -> Json:
        codes = {"type": "string", "enum": [*REGIONS, ALL_REGIONS]}
        return {"type": ["array", "null"], "items": codes, "minItems": 1, "maxItems": rule.high}


@dataclass(frozen=True, slots=True)
class Kind:
    def read(self, _pointer: str, value: Any, _problems: list[Problem], /) -> Any:
        return value.upper() if isinstance(value, str) else value

    def show(self, value: Any) -> Any:
        return value

    def schema(self, _rule: Spec, /) -> Json:
        return {"type": "string", "enum": [*TYPES, *(kind.lower() for kind in TYPES)]}


_TIME = {"type": "string", "format": "date-time"}
_ZEROS = ("interval", "timeout", "retries", "consecutive_fails", "consecutive_successes")

HEALTH_CHECK = ApiSchema.of(
    HealthCheck,
    shapes={
        "http_config": CheckPart(HttpCheck),
        "tcp_config": CheckPart(TcpCheck),
        "check_regions": Regions(),
        "type": Kind(),
        "description": Plain(str, or_null=True),
        **dict.fromkeys(_ZEROS, DefaultNumber()),
    },
    more=(
        computed("created_on", "creation time", Shown(_TIME)),
        computed("modified_on", "time of the last change", Shown(_TIME)),
        computed(
            "status",
            "what the origin is at the moment",
            Shown({"type": "string", "enum": list(STATUSES)}),
        ),
        computed(
            "failure_reason",
            "why the origin is unhealthy; empty otherwise",
            Shown({"type": "string"}),
        ),
        computed(
            "regions",
            "what each region says; `Global` is greenroom's own agent in place of all regions",
            Shown(
                {
                    "type": "object",
                    "additionalProperties": {"type": "string", "enum": list(STATUSES)},
                }
            ),
            extension=True,
        ),
        computed(
            "status_since",
            "when the status changed last; null: never",
            Shown({**_TIME, "type": ["string", "null"]}),
            extension=True,
        ),
        READ_ONLY,
    ),
)


def check_of(known: Configuration, zone_id: str, check_id: str) -> Entry[HealthCheck]:
    zone_of(known, zone_id)
    return entry_of(known.health_checks, "health check", check_id, zone_id)


def show(entry: Entry[HealthCheck], view: HealthService | None) -> Json:
    """`view` None: no health checks run, and the status is unknown."""
    check, state = entry.record, view.condition(entry.id) if view else None
    regions = view.regions(entry.id) if view else {}
    status = shown_status(state, check)
    values = {item.name: getattr(check, item.name) for item in fields(HealthCheck)}
    return HEALTH_CHECK.show(
        values
        | {
            "created_on": written(entry.created_ms),
            "modified_on": written(entry.modified_ms),
            "status": status,
            "failure_reason": state.reason if state and status == "unhealthy" else "",
            "regions": {region or GLOBAL: says for region, says in regions.items()},
            "status_since": written(state.since_ms) if state and state.since_ms else None,
            "read_only": entry.read_only,
        }
    )


def create(zone_id: str, document: Any, view: HealthService | None = None) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        refuse_read_only(zone_of(known, zone_id), "zone")
        full = too_many(known.health_checks, CHECKS_MAX, "health checks")
        return _put(zone_id, at.new_id(), document, view, full)

    return plan


def change(
    zone_id: str, check_id: str, document: Any, whole: bool, view: HealthService | None = None
) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = check_of(known, zone_id, check_id)
        refuse_read_only(entry, "health check")
        return _put(zone_id, check_id, document if whole else _edited(entry, document), view)

    return plan


def delete(zone_id: str, check_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        refuse_read_only(check_of(known, zone_id, check_id), "health check")
        return PlannedChange([Remove("health_check", check_id)], lambda _after: {"id": check_id})

    return plan


def preview(view: HealthService, zone_id: str, document: Any) -> Json:
    check = HealthCheck(id=opaque_id(), **checked(document))
    return _show_preview(view, check, view.previews.add(check, zone_id))


def show_preview(view: HealthService, zone_id: str, check_id: str) -> Json:
    found = view.previews.get(check_id, zone_id)
    if found is None:
        raise not_found("preview of a health check", check_id)
    return _show_preview(view, found[1], found[0])


def end_preview(view: HealthService, zone_id: str, check_id: str) -> Json:
    show_preview(view, zone_id, check_id)
    view.previews.remove(check_id)
    return {"id": check_id}


def _show_preview(view: HealthService, check: HealthCheck, made_ms: int) -> Json:
    return show(Entry(check, "", made_ms, made_ms, 0), view)


SECTION = DocumentSection(
    "health_checks",
    "health_check",
    CHECKS_MAX,
    lambda entry: HEALTH_CHECK.brief(show(entry, None)),
    lambda wanted: create(wanted.parent, wanted.document),
)


def _edited(entry: Entry[HealthCheck], document: Any) -> Any:
    """The default port follows a new type."""
    before = show(entry, None)
    merged = overlaid(before, document)
    kind = merged.get("type") if isinstance(merged, dict) else None
    if not isinstance(kind, str) or kind.upper() not in TYPES or kind.upper() == entry.record.type:
        return merged
    name = CONFIGS[kind.upper()][0]
    part, given = merged.get(name), document.get(name)
    if (
        isinstance(part, dict)
        and not (isinstance(given, dict) and "port" in given)
        and part.get("port") == PORTS[entry.record.type]
    ):
        part["port"] = 0
    return merged


def checked(document: Any, more: Iterable[ApiFault] = ()) -> Json:
    """Raises Refused with all faults, including `more`."""
    values, faults = read_as(
        HEALTH_CHECK, document, lambda values: health_check_problems(effective(values))
    )
    refuse_if([*faults, *more])
    return effective(values)


def _put(
    zone_id: str,
    check_id: str,
    document: Any,
    view: HealthService | None,
    more: Iterable[ApiFault] = (),
) -> PlannedChange:
    check = HealthCheck(id=check_id, **checked(document, more))
    return PlannedChange(
        [Put(check, zone_id)], lambda after: show(after.health_checks[check_id], view)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileExtra:
    id: str = spec(
        "stable identifier that its history is kept under; default: made from the name",
        "",
        low=1,
        high=64,
        pattern=ID_PATTERN,
        pattern_words=NAME_WORDS,
    )


def _read_file(
    raw: Mapping[str, Any], _files: NamedFiles, problems: list[Problem]
) -> list[Entry[Any]]:
    found = read_named(
        raw.get("health_checks", []),
        "health_checks",
        CHECKS_MAX,
        "health check",
        _file_values,
        problems,
    )
    return [file_entry(HealthCheck(**values), FILE_ZONE_ID) for values in found]


def _file_values(raw: dict[str, Any], pointer: str) -> TableRead:
    values, problems = read_document(
        HEALTH_CHECK,
        raw,
        pointer,
        lambda check: health_check_problems(effective(check)),
        FileExtra,
    )
    named = raw.get("id", file_id("health check", values.get("name")))
    return effective(values) | {"id": named}, problems


def _file_lines(documents: Configuration) -> Iterator[str]:
    for check in documents.health_checks.records():
        off = ", suspended" if check.suspended else ""
        at = f"{check.type} {check.address}, port {check.port}"
        yield f"check      {check.name}: {at}, every {with_unit(check.interval, 'seconds')}{off}"


TABLES = FileTables(("health_checks",), _read_file, _file_lines)
