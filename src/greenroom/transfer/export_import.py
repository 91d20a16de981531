"""The whole configuration as one document, in the API's forms. It omits defaults, tokens, silences
and notes; a secret is MASK and stays where the store knows it. Applying writes the differences at
once, so a second time changes nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import tomli_w

from greenroom.alerts import destinations as alert_destinations
from greenroom.alerts import policies as alert_policies
from greenroom.configuration import (
    events,
    list_items,
    lists,
    rooms,
    rules,
    zones,
)
from greenroom.configuration.zones import OriginProblems
from greenroom.errors import InvalidConfig
from greenroom.health import checks as health_checks
from greenroom.model.change import Change, Put, Remove, Step, applied, name_of, told
from greenroom.model.configuration import KINDS, Configuration, Entry
from greenroom.status_page import pages as status_pages
from greenroom.transfer.plan import MASK, wanted_configuration
from greenroom.web.api_schema import EXTENSION, UNSET, ApiSchema
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import ChangeContext, ConfigChange, PlannedChange
from greenroom.web.refusals import ApiFault, Code, Refused

# Writes plain values as readable TOML, which the standard library can only read.


def toml_text(document: Mapping[str, Any]) -> str:
    r"""Omits nulls. TOML may turn `\r\n` in several lines into `\n`, so a document with such a text
    has single lines only.
    """
    plain = _without_nulls(document)
    return tomli_w.dumps(plain, multiline_strings=not _has_crlf(plain))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _has_crlf(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_crlf(inner) for inner in value.values())
    if isinstance(value, list):
        return any(map(_has_crlf, value))
    return isinstance(value, str) and "\r\n" in value


UNTOLD = frozenset({"token", "account", "offers"})
"""Readers of the document must not gain access; offers are of the moment."""


def exported(known: Configuration) -> Json:
    own = [entry for entry in known.zones.values() if not entry.read_only]
    return {
        "lists": [_list(known, entry) for entry in known.lists.values() if not entry.read_only],
        "zones": [_zone(known, entry) for entry in own],
        **{section: told for section, told in _beside_zones(known).items() if told},
    }


def _beside_zones(known: Configuration) -> Json:
    hooks = [entry for entry in known.webhooks.values() if not entry.read_only]
    services = [entry for entry in known.pagerduty_services.values() if not entry.read_only]
    policies = [entry for entry in known.alert_policies.values() if not entry.read_only]
    pages = [entry for entry in known.status_pages.values() if not entry.read_only]
    return {
        "webhooks": [_webhook(entry) for entry in hooks],
        "pagerduty_services": [
            {"id": entry.id, "name": entry.record.name, "routing_key": MASK} for entry in services
        ],
        "alert_policies": [
            {"id": entry.id, **_brief(alert_policies.POLICY, alert_policies.show(entry))}
            for entry in policies
        ],
        "status_pages": [
            {"id": entry.id, **_brief(status_pages.PAGE, status_pages.show(entry))}
            for entry in pages
        ],
    }


def _webhook(entry: Entry[Any]) -> Json:
    secret = {"secret": MASK} if entry.record.secret else {}
    return {
        "id": entry.id,
        **_brief(alert_destinations.WEBHOOK, alert_destinations.show(entry, {})),
        **secret,
    }


def _list(known: Configuration, entry: Entry[Any]) -> Json:
    kind = entry.record.kind
    items = [list_items.show(kind, item) for item in known.list_items.of(entry.id)]
    short = [
        {kind: item[kind]} | ({"comment": item["comment"]} if item["comment"] else {})
        for item in items
    ]
    return {"id": entry.id, **_brief(lists.LIST, lists.show(known, entry)), "items": short}


def _zone(known: Configuration, entry: Entry[Any]) -> Json:
    settings = _brief(zones.SETTINGS, zones.settings(entry))
    inside = [_room(known, room) for room in known.rooms.of(entry.id) if not room.read_only]
    checks = [
        _health_check(check) for check in known.health_checks.of(entry.id) if not check.read_only
    ]
    return {
        "id": entry.id,
        **_brief(zones.ZONE, zones.show(entry), leave_out=("account", "type")),
        **({"settings": settings} if settings else {}),
        "waiting_rooms": inside,
        **({"health_checks": checks} if checks else {}),
    }


def _health_check(entry: Entry[Any]) -> Json:
    return {
        "id": entry.id,
        **_brief(health_checks.HEALTH_CHECK, health_checks.show(entry, None)),
    }


def _room(known: Configuration, entry: Entry[Any]) -> Json:
    planned = [
        {"id": event.id, **_brief(events.EVENT, events.show(event))}
        for event in known.events.of(entry.id)
    ]
    bypass = [
        {"id": rule["id"], **_brief(rules.RULE, rule)}
        for rule in rules.show(known.rules_of(entry.id))
    ]
    shown = _brief(rooms.ROOM, rooms.show(known, entry, 0))
    return {
        "id": entry.id,
        **shown,
        **({"events": planned} if planned else {}),
        **({"rules": bypass} if bypass else {}),
    }


def _brief(form: ApiSchema, shown: Json, leave_out: Iterable[str] = ()) -> Json:
    ours = shown.get(EXTENSION, {})
    brief: Json = {}
    inner: Json = {}
    for api_field in form.fields:
        where = ours if api_field.rule.extension else shown
        if api_field.rule.read_only or api_field.name in leave_out or api_field.name not in where:
            continue
        if (
            api_field.required
            or api_field.default is UNSET
            or where[api_field.name] != api_field.shape.show(api_field.default)
        ):
            (inner if api_field.rule.extension else brief)[api_field.name] = where[api_field.name]
    return brief | ({EXTENSION: inner} if inner else {})


def make_true(
    document: Any, origin_problems: OriginProblems, *, only_into_empty: bool = False
) -> ConfigChange:
    """Answers a line for each step. Raises Refused with every fault. `only_into_empty`: refused
    when it would change or delete something.
    """

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        wanted = wanted_configuration(known, document, at, origin_problems)
        changes = differences(known, wanted, at.now_ms)
        try:
            after, steps = applied(known, changes, at.now_ms)
        except InvalidConfig as error:
            raise Refused(
                *(ApiFault(Code.TAKEN, problem.reason) for problem in error.problems)
            ) from None
        if only_into_empty and any(step.before for step in steps):
            raise Refused(
                ApiFault(
                    Code.IN_USE,
                    "the store already has a configuration; use `greenroom apply` to change it",
                )
            )
        lines = [
            _line(step, after if step.after else known)
            for step in steps
            if not step.entry.read_only
        ]
        return PlannedChange(changes, lambda _after: lines)

    return plan


def differences(known: Configuration, wanted: Configuration, now_ms: int) -> list[Change]:
    gone = {
        (kind, key)
        for kind in KINDS
        for key in known.index_of(kind)
        if kind not in UNTOLD and key not in wanted.index_of(kind)
    }
    removals: list[Change] = [
        Remove(kind, key)
        for kind, key in sorted(gone)
        if (KINDS[kind].parent, known.index_of(kind)[key].parent) not in gone
    ]
    left, _ = applied(known, removals, now_ms)
    puts: list[Change] = []
    for kind in KINDS:
        index_of = left.index_of(kind)
        for key, entry in wanted.index_of(kind).items():
            old = index_of.get(key)
            if (
                kind not in UNTOLD
                and not entry.read_only
                and (old is None or old.record != entry.record or old.parent != entry.parent)
            ):
                puts.append(Put(entry.record, entry.parent))
    return removals + puts


def _line(step: Step, above: Configuration) -> str:
    before, after = told(step)
    what = f"{_WORDS[step.action]} {step.kind.replace('_', ' ')} {_path(step, above)}"
    if before is None or after is None:
        return what
    return (
        f"{what}:"
        f" {', '.join(f'{key} {_shown(before[key])} -> {_shown(after[key])}' for key in after)}"
    )


_WORDS = {"created": "make", "changed": "change", "removed": "remove"}


def _path(step: Step, above: Configuration) -> str:
    kind, parent, names = step.kind, step.entry.parent, [] if step.kind == "rules" else [step.name]
    while kind := KINDS[kind].parent:
        entry = above.index_of(kind).get(parent)
        if entry is None:
            break
        names.append(name_of(kind, entry.record))
        parent = entry.parent
    return " of ".join(names)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
