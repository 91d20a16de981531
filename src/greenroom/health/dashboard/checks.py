"""Health checks: which origins are well, what each check has seen, and making and changing one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from starlette.responses import Response

from greenroom.health import checks as health_checks
from greenroom.health import figures
from greenroom.health import history as health_history
from greenroom.health.alerts import TYPE
from greenroom.health.dashboard.parts import HEALTH_VIEW
from greenroom.health.probes import CannotProbe
from greenroom.health.rules.memory import EventQuestion
from greenroom.health.service import HealthService
from greenroom.model.account import Role
from greenroom.model.configuration import Entry
from greenroom.model.fields import form_fields, specs
from greenroom.model.health_check import ALL_REGIONS, CONFIGS, HealthCheck, HttpCheck
from greenroom.model.probe import REASON_WORDS, ProbeResult
from greenroom.model.zone import Zone
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import ConfigChange, opaque_id
from greenroom.web.pages.forms import (
    Faults,
    FieldView,
    field_view,
    help_of,
    read_value,
    schema_field,
    unchanged_since,
)
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import SearchResult, action, view
from greenroom.web.refusals import ApiFault, Refused

CHECK_PATH = "/zones/{zone_id}/health/{check_id}"
DAY_MS = 24 * 3_600_000
EVENTS_SHOWN = 100
STEP_MS = 3_600_000

TONES = {"healthy": "green", "unhealthy": "red", "unknown": "yellow", "suspended": "gray"}
WORDS = {
    "healthy": "Healthy",
    "unhealthy": "Unhealthy",
    "unknown": "Pending first check",
    "suspended": "Suspended",
}

FORM = form_fields(HealthCheck, "name", "protocol", "server", "how", "note")
PART_FORM = form_fields(HttpCheck, "request", "more")

PART_KINDS = {"port": int, "follow_redirects": bool, "allow_insecure": bool}


REGION_WORDS: Mapping[str, str] = {
    ALL_REGIONS: "All regions",
    "WNAM": "Western North America",
    "ENAM": "Eastern North America",
    "WEU": "Western Europe",
    "EEU": "Eastern Europe",
    "NSAM": "Northern South America",
    "SSAM": "Southern South America",
    "OC": "Oceania",
    "ME": "Middle East",
    "NAF": "Northern Africa",
    "SAF": "Southern Africa",
    "IN": "India",
    "SEAS": "Southeast Asia",
    "NEAS": "Northeast Asia",
}


class TrialResult(NamedTuple):
    """`problem`: why nothing was probed."""

    problem: str
    check: HealthCheck | None = None
    result: ProbeResult | None = None
    phases: Sequence[figures.ProbePhase] = ()


class CheckRow(NamedTuple):
    entry: Entry[HealthCheck]
    zone: Zone
    shown: Json


def table(page: PageRequest) -> Response:
    health = _view(page)
    entries = [
        entry for entry in page.known.health_checks.values() if page.person.sees(entry.parent)
    ]
    rows = [
        CheckRow(entry, page.known.zones[entry.parent].record, health_checks.show(entry, health))
        for entry in entries
    ]
    urgent = {"unhealthy": 0, "unknown": 1}
    rows.sort(key=lambda row: (urgent.get(row.shown["status"], 2), row.entry.record.name))
    return page.render(
        "health.html",
        rows=rows,
        zones=page.person.own_zones(page.known),
        tones=TONES,
        words=WORDS,
        running=health is not None,
    )


def show(page: PageRequest) -> Response:
    entry, states = _check(page), _view(page)
    detail, share, events = None, figures.UptimeShare(), list[tuple[int, Json]]()
    if states is not None:
        begin, end = page.now_ms - DAY_MS, page.now_ms + 1
        span = figures.span_for(states.history, [entry.id], begin, end, STEP_MS)
        detail = figures.latency(states.history, entry.id, span)
        share = figures.whole(figures.availability(states.history, [entry.id], span))[entry.id]
        question = EventQuestion(begin, end, [entry.id], probes=True, limit=EVENTS_SHOWN)
        events = [
            (kept.number, health_history.show(kept.event)) for kept in states.history.log(question)
        ]
    shown = health_checks.show(entry, states)
    return page.render(
        "health_check.html",
        entry=entry,
        zone=page.zone,
        shown=shown,
        policies=None if page.person.zone_ids else _policies(page, entry),
        detail=detail,
        share=share,
        events=events,
        tones=TONES,
        words=WORDS,
        waterfall_of=figures.waterfall,
    )


def _policies(page: PageRequest, check: Entry[HealthCheck]) -> list[Entry[Any]]:
    about = {
        "health_check_id": (check.id, check.record.name),
        "status": ("Unhealthy",),
        "zones": (check.parent,),
    }
    return page.known.notifying((TYPE,), about)


def new(page: PageRequest) -> Response:
    return _form(
        page, {"type": "HTTPS", "address": page.own_zone.record.name, "name": "origin"}, Faults()
    )


def create(page: PageRequest) -> Response:
    return _saved(page, health_checks.create(page.zone.id, _document(page), _view(page)))


def edit(page: PageRequest) -> Response:
    entry = _check(page)
    return _form(page, _values(health_checks.show(entry, None)), Faults(), entry)


async def try_new(page: PageRequest) -> Response:
    return await _tried(page, None)


async def try_edited(page: PageRequest) -> Response:
    return await _tried(page, _check(page))


async def _tried(page: PageRequest, entry: Entry[HealthCheck] | None) -> Response:
    """Probes once, without saving the form."""
    view, document = _view(page), _document(page)
    trial = TrialResult("This process runs no health checks, so it cannot try one.")
    try:
        values = health_checks.checked(document)
        check = HealthCheck(id=entry.id if entry else opaque_id(), **values)
        if view is not None:
            result = await view.previews.once(check)
            trial = TrialResult("", check, result, figures.waterfall(result))
    except Refused as refused:
        faults = Faults(map(_beside, refused.faults))
        return _form(page, _sent(page), faults, entry, refused.status)
    except CannotProbe as error:
        trial = TrialResult(f"It cannot be tried at the moment: {error}.")
    return _form(page, _sent(page), Faults(), entry, trial=trial)


def save(page: PageRequest) -> Response:
    entry = _check(page)
    plan = health_checks.change(page.zone.id, entry.id, _document(page), False, _view(page))
    return _saved(
        page, unchanged_since("health_check", entry.id, page.field("revision"), plan), entry
    )


def remove(page: PageRequest) -> Response:
    page.change(health_checks.delete(page.zone.id, _check(page).id))
    return page.redirect("/health", notice="removed")


def _view(page: PageRequest) -> HealthService | None:
    return page.part(HEALTH_VIEW)


def _check(page: PageRequest) -> Entry[HealthCheck]:
    return health_checks.check_of(page.known, page.zone.id, page.path("check_id"))


def _values(shown: Json) -> Json:
    part = shown.get(CONFIGS[shown["type"]][0]) or {}
    part = {name: value for name, value in part.items() if value is not None}
    codes = part.get("expected_codes")
    lines = [
        f"{name}: {value}" for name, all_ in (part.get("header") or {}).items() for value in all_
    ]
    found = {**shown, **part, "description": shown["description"] or "", "header": "\n".join(lines)}
    return {**found, **({"expected_codes": ", ".join(codes)} if codes else {})}


def _document(page: PageRequest) -> Json:
    schema = health_checks.HEALTH_CHECK
    document: Json = {}
    for name in FORM:
        value = read_value(
            _plain(schema_field(schema, name).default), page.field(name), present=name in page.form
        )
        document[name] = value
    document["check_regions"] = list(page.form.get("check_regions", ())) or None
    part_name, record = CONFIGS.get(str(document["type"]).upper(), CONFIGS["HTTP"])
    names = [
        name
        for name in PART_FORM
        if name in specs(record) and (record is HttpCheck or name == "port")
    ]
    part = {
        name: read_value(PART_KINDS.get(name, str), page.field(name), present=name in page.form)
        for name in names
    }
    if "expected_codes" in part:
        part["expected_codes"] = [
            code.strip() for code in part["expected_codes"].split(",") if code.strip()
        ]
    if "header" in part:
        part["header"] = _headers(page.field("header"))
    document[part_name] = {
        name: value for name, value in part.items() if value != "" or name == "expected_body"
    }
    return document


def _headers(text: str) -> dict[str, list[str]] | None:
    """A line without a colon becomes a name without values, which is refused by that name."""
    found: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        found.setdefault(name.strip(), []).extend([value.strip()] if colon else [])
    return found or None


def _plain(default: object) -> type:
    return type(default) if type(default) in (bool, int) else str


def _saved(
    page: PageRequest, plan: ConfigChange, entry: Entry[HealthCheck] | None = None
) -> Response:
    try:
        made = page.change(plan)
    except Refused as refused:
        faults = Faults(map(_beside, refused.faults))
        return _form(page, _sent(page), faults, entry, refused.status)
    return page.redirect(
        f"/zones/{page.zone.id}/health/{made['id']}", notice="saved" if entry else "created"
    )


def _sent(page: PageRequest) -> Json:
    document = _document(page)
    part = document.get("http_config") or document.get("tcp_config") or {}
    texts = {name: page.field(name) for name in ("expected_codes", "header")}
    return {**document, **part, **texts}


def _beside(fault: ApiFault) -> ApiFault:
    part, _, name = fault.pointer.strip("/").partition("/")
    if part not in ("http_config", "tcp_config") or not name:
        return fault
    name = name.partition("/")[0].partition("[")[0]
    return ApiFault(fault.code, fault.message.removeprefix(f"{part}."), f"/{name}")


def _form(
    page: PageRequest,
    values: Mapping[str, Any],
    faults: Faults,
    entry: Entry[HealthCheck] | None = None,
    status: int = 200,
    trial: TrialResult | None = None,
) -> Response:
    chosen = values.get("check_regions") or ()
    region_problems = faults.take("check_regions")
    fields = [_field(name, values, faults) for name in FORM]
    part = [_part_field(name, values, faults) for name in PART_FORM]
    return page.render(
        "health_form.html",
        status,
        zone=page.zone,
        entry=entry,
        what=fields[:3],
        part=part,
        how=fields[3:],
        regions=[(name, words, name in chosen) for name, words in REGION_WORDS.items()],
        region_problems=region_problems,
        trial=trial,
        words=REASON_WORDS,
        base=page.url(f"/zones/{page.zone.id}/health/{f'{entry.id}/edit' if entry else 'new'}"),
        problems=faults.general,
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
    )


def _field(name: str, values: Mapping[str, Any], faults: Faults) -> FieldView:
    default = schema_field(health_checks.HEALTH_CHECK, name).default
    value = values.get(name, default if isinstance(default, (str, int, bool)) else "")
    made = field_view(health_checks.HEALTH_CHECK, name, value, faults)
    kind = {bool: "checkbox", int: "number"}.get(_plain(default), made.kind)
    return replace(made, kind=kind)


def _part_field(name: str, values: Mapping[str, Any], faults: Faults) -> FieldView:
    rule, default = specs(HttpCheck)[name], getattr(HttpCheck(), name)
    shown = ", ".join(default) if isinstance(default, tuple) else default
    kind = (
        "select"
        if rule.choices
        else "textarea"
        if name == "header"
        else {bool: "checkbox", int: "number"}.get(type(default), "text")
    )
    return FieldView(
        name=name,
        label=PART_FORM[name].label,
        kind=kind,
        value=values.get(name, "" if shown is None else shown),
        help=help_of(rule),
        choices=tuple((str(choice), str(choice)) for choice in rule.choices),
        problems=faults.take(name),
    )


def find(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for entry in page.known.health_checks.values():
        check = entry.record
        if page.person.sees(entry.parent) and text in f"{check.name} {check.address}".lower():
            yield SearchResult(
                "Health check",
                check.name,
                f"/zones/{entry.parent}/health/{entry.id}",
                f"{check.type} {check.address}",
            )


PAGES = (
    view("/health", table, filtered=True),
    view("/zones/{zone_id}/health/new", new, Role.OPERATOR),
    action("/zones/{zone_id}/health/new/try", try_new),
    action("/zones/{zone_id}/health/new", create),
    view(CHECK_PATH, show),
    view(f"{CHECK_PATH}/edit", edit, Role.OPERATOR),
    action(f"{CHECK_PATH}/edit", save),
    action(f"{CHECK_PATH}/edit/try", try_edited),
    action(f"{CHECK_PATH}/remove", remove),
)
