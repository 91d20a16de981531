"""The whole configuration as one document: export, import and apply.

The document is made of what the API speaks: a zone holds its rooms, a room its events and rules, beside them stand the lists, the
policies and their destinations, and the status pages. Defaults and what only the store knows are left out, and tokens, silences and
notes altogether. A secret is written as MASK: where the store knows it, it stays, and elsewhere it has to be written in its place.

Making it true goes through the very use-cases of the API, so nothing gets in this way that the API would refuse. They build the wanted
configuration beside the known one, and what differs is one write: nothing at all the second time.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from greenroom.control import (
    alert_destinations,
    alert_policies,
    events,
    health_checks,
    list_items,
    lists,
    rooms,
    rules,
    status_pages,
    zones,
)
from greenroom.control.api_schema import EXTENSION, UNSET, ApiSchema
from greenroom.control.api_shapes import Json
from greenroom.control.config_service import ChangeContext, ConfigChange, PlannedChange
from greenroom.control.health_view import NoStates
from greenroom.control.notification_view import NoNotifications
from greenroom.control.refusals import ApiFault, Code, Refused, refuse_if, within
from greenroom.control.zones import OriginProblems
from greenroom.errors import InvalidConfig
from greenroom.model.change import NAMED_BY, Change, Put, Remove, Step, applied, name_of, told
from greenroom.model.configuration import KINDS, Configuration, Entry
from greenroom.model.room import OPERATED
from greenroom.model.rule import RuleSet

BESIDE_ZONES = {
    "webhooks": "webhook",
    "pagerduty_services": "pagerduty_service",
    "alert_policies": "alert_policy",
    "status_pages": "status_page",
}
SECTIONS = ("lists", "zones", *BESIDE_ZONES)
"""What a document may have at its top. One that is left out is not touched."""

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

MASK = "***"
"""What a secret is in a document."""

UNTOLD = frozenset({"token", "account"})
"""Kinds that are neither exported nor changed: a reader of the document must not gain access."""


def exported(known: Configuration) -> Json:
    """The document; what stands in a configuration file is not part of it."""
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
        "pagerduty_services": [{"id": entry.id, "name": entry.record.name, "routing_key": MASK} for entry in services],
        "alert_policies": [{"id": entry.id, **_brief(alert_policies.POLICY, alert_policies.show(entry))} for entry in policies],
        "status_pages": [{"id": entry.id, **_brief(status_pages.PAGE, status_pages.show(entry))} for entry in pages],
    }


def _webhook(entry: Entry[Any]) -> Json:
    secret = {"secret": MASK} if entry.record.secret else {}
    return {"id": entry.id, **_brief(alert_destinations.WEBHOOK, alert_destinations.show(entry, {})), **secret}


def _list(known: Configuration, entry: Entry[Any]) -> Json:
    kind = entry.record.kind
    items = [list_items.show(kind, item) for item in known.list_items.of(entry.id)]
    short = [{kind: item[kind]} | ({"comment": item["comment"]} if item["comment"] else {}) for item in items]
    return {"id": entry.id, **_brief(lists.LIST, lists.show(known, entry)), "items": short}


def _zone(known: Configuration, entry: Entry[Any]) -> Json:
    settings = _brief(zones.SETTINGS, zones.settings(entry))
    inside = [_room(known, room) for room in known.rooms.of(entry.id) if not room.read_only]
    checks = [_health_check(check) for check in known.health_checks.of(entry.id) if not check.read_only]
    return {
        "id": entry.id,
        **_brief(zones.ZONE, zones.show(entry), leave_out=("account", "type")),
        **({"settings": settings} if settings else {}),
        "waiting_rooms": inside,
        **({"health_checks": checks} if checks else {}),
    }


def _health_check(entry: Entry[Any]) -> Json:
    return {"id": entry.id, **_brief(health_checks.HEALTH_CHECK, health_checks.show(entry, NoStates()))}


def _room(known: Configuration, entry: Entry[Any]) -> Json:
    planned = [{"id": event.id, **_brief(events.EVENT, events.show(event))} for event in known.events.of(entry.id)]
    kept = known.rules.get(entry.id)
    bypass = [{"id": rule["id"], **_brief(rules.RULE, rule)} for rule in rules.show(kept.record.rules if kept else ())]
    shown = _brief(rooms.ROOM, rooms.show(known, entry, 0))
    return {"id": entry.id, **shown, **({"events": planned} if planned else {}), **({"rules": bypass} if bypass else {})}


def _brief(form: ApiSchema, shown: Json, leave_out: Iterable[str] = ()) -> Json:
    """Only fields that can be written, and only values that differ from the default."""
    ours = shown.get(EXTENSION, {})
    brief: Json = {}
    inner: Json = {}
    for api_field in form.fields:
        where = ours if api_field.rule.extension else shown
        if api_field.rule.read_only or api_field.name in leave_out or api_field.name not in where:
            continue
        if api_field.required or api_field.default is UNSET or where[api_field.name] != api_field.shape.show(api_field.default):
            (inner if api_field.rule.extension else brief)[api_field.name] = where[api_field.name]
    return brief | ({EXTENSION: inner} if inner else {})


def make_true(document: Any, origin_problems: OriginProblems, *, only_into_empty: bool = False) -> ConfigChange:
    """What the document says and nothing else from now on; answers with a line for each step. Raises Refused with every fault.

    `only_into_empty`: refused when there is something already that would be changed or taken away.
    """

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        wanted = _wanted(known, document, at, origin_problems)
        changes = differences(known, wanted, at.now_ms)
        after, steps = applied(known, changes, at.now_ms)
        if only_into_empty and any(step.before for step in steps):
            raise Refused(ApiFault(Code.IN_USE, "the store already has a configuration; use `greenroom apply` to change it"))
        lines = [_line(step, after if step.after else known) for step in steps]
        return PlannedChange(changes, lambda _after: lines)

    return plan


def differences(known: Configuration, wanted: Configuration, now_ms: int) -> list[Change]:
    """What turns the one into the other."""
    gone = {(kind, key) for kind in KINDS for key in known.index_of(kind) if kind not in UNTOLD and key not in wanted.index_of(kind)}
    removals: list[Change] = [
        Remove(kind, key) for kind, key in sorted(gone) if (KINDS[kind].parent, known.index_of(kind)[key].parent) not in gone
    ]
    left, _ = applied(known, removals, now_ms)
    puts: list[Change] = []
    for kind in KINDS:
        index_of = left.index_of(kind)
        for key, entry in wanted.index_of(kind).items():
            old = index_of.get(key)
            if kind not in UNTOLD and (old is None or old.record != entry.record or old.parent != entry.parent):
                puts.append(Put(entry.record, entry.parent))
    return removals + puts


def _line(step: Step, above: Configuration) -> str:
    """One step for people: `change waiting room shop: total_active_users 200 -> 300`."""
    before, after = told(step)
    what = f"{_WORDS[step.action]} {step.kind.replace('_', ' ')} {_path(step, above)}"
    if before is None or after is None:
        return what
    return f"{what}: {', '.join(f'{key} {_shown(before[key])} -> {_shown(after[key])}' for key in after)}"


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


@dataclass(slots=True)
class _Building:
    """The wanted configuration while it grows, and everything that was refused on the way."""

    known: Configuration
    at: ChangeContext
    made: Configuration
    faults: list[ApiFault] = field(default_factory=list)

    def do(self, pointer: str, plan: ConfigChange, key: str = "") -> bool:
        """Carries a plan out on what was made so far; `key` is the id of what it makes."""
        new_id: Callable[[], str] = (lambda: key) if key else self.at.new_id
        try:
            self.take(plan(self.made, ChangeContext(self.at.now_ms, new_id)).changes)
        except Refused as refused:
            self.faults += within(refused.faults, pointer)
            return False
        except InvalidConfig as error:
            self.faults += within([ApiFault(Code.TAKEN, problem.reason) for problem in error.problems], pointer)
            return False
        return True

    def take(self, changes: Iterable[Change]) -> None:
        """Answers without a network request."""
        self.made, _ = applied(self.made, list(changes), self.at.now_ms)

    def id_of(self, kind: str, document: Any, parent: str = "") -> str:
        """The id it has, or had under its name; else the one in the document if nothing else has it; else a new one."""
        if not isinstance(document, dict):
            return self.at.new_id()
        index_of, given = self.known.index_of(kind), document.get("id")
        if isinstance(given, str) and given in index_of and given not in self.made.index_of(kind):
            return given
        name = _name_in(kind, document)
        for entry in index_of.of(parent):
            own = entry.record.where if kind == "status_page" else name_of(kind, entry.record)
            if own == name and entry.id not in self.made.index_of(kind):
                return entry.id
        fine = isinstance(given, str) and ID.fullmatch(given) and given not in self.made.index_of(kind)
        return str(given) if fine else self.at.new_id()

    def parts(self, pointer: str, document: Mapping[str, Any], name: str) -> Iterable[tuple[str, Any]]:
        """(pointer, part) of a list inside a document; a fault when it is not a list."""
        found = document.get(name, [])
        if not isinstance(found, list):
            self.faults.append(ApiFault(Code.INVALID, f"{f'{pointer}/{name}'.strip('/')}: must be a list", f"{pointer}/{name}"))
            return []
        return [(f"{pointer}/{name}/{index}", part) for index, part in enumerate(found)]


def _name_in(kind: str, document: Mapping[str, Any]) -> Any:
    """By what a document without ids means the same thing again: its name, or the address of a status page."""
    if kind == "status_page":
        return f"{document.get('host', '')}{document.get('path', '/')}"
    return document.get(NAMED_BY.get(kind, "name"))


def _wanted(known: Configuration, document: Any, at: ChangeContext, origin_problems: OriginProblems) -> Configuration:
    if not isinstance(document, dict):
        raise Refused(ApiFault(Code.BAD_BODY, "the document must be a table with zones and lists"))
    try:
        json.dumps(document, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise Refused(ApiFault(Code.BAD_BODY, "the document contains an unpaired surrogate, which cannot be stored or sent")) from None
    refuse_if(
        ApiFault(Code.UNKNOWN_FIELD, f"{name}: unknown section; known sections: {', '.join(SECTIONS)}")
        for name in document
        if name not in SECTIONS
    )
    building = _Building(known, at, _untouched(known, document))
    for pointer, part in building.parts("", document, "lists"):
        _make_list(building, pointer, part)
    for pointer, part in building.parts("", document, "zones"):
        _make_zone(building, pointer, part, origin_problems)
    for section, kind in BESIDE_ZONES.items():
        for pointer, part in building.parts("", document, section):
            key = building.id_of(kind, part)
            building.do(pointer, _MAKERS[kind](building.known, key, _without(part)), key)
    refuse_if(building.faults)
    return _without_orphans(building.made)


def _without_orphans(made: Configuration) -> Configuration:
    """Silences go with their policies."""
    left = {
        key: entry for key, entry in made.silences.items() if not entry.record.policy_id or entry.record.policy_id in made.alert_policies
    }
    return made if len(left) == len(made.silences) else made.with_indexes(made.revision, {"silence": left})


def _untouched(known: Configuration, document: Json) -> Configuration:
    """What the document does not speak of: tokens, what stands in a file, and the sections that it leaves out."""
    spoken: dict[str, tuple[str, ...]] = {
        "lists": ("list", "list_item"),
        "zones": ("zone", "room", "event", "rules", "health_check"),
        **{section: (kind,) for section, kind in BESIDE_ZONES.items()},
    }
    kinds = {kind for section, kinds in spoken.items() if section in document for kind in kinds}
    indexes = {kind: {key: entry for key, entry in known.index_of(kind).items() if entry.read_only} for kind in kinds}
    return known.with_indexes(known.revision, indexes)


def _make_list(building: _Building, pointer: str, document: Any) -> None:
    key = building.id_of("list", document)
    if building.do(pointer, lists.create(_without(document, "items")), key):
        there = building.known.lists.get(key)
        if there and there.record.kind == document.get("kind"):
            building.take(Put(entry.record, key) for entry in building.known.list_items.of(key))
        items = document.get("items", [])
        building.do(f"{pointer}/items", list_items.add(key, items, list_items.Operations(), whole=True))


def _make_zone(building: _Building, pointer: str, document: Any, origin_problems: OriginProblems) -> None:
    key = building.id_of("zone", document)
    if not building.do(pointer, zones.create(_without(document, "settings", "waiting_rooms", "health_checks"), origin_problems), key):
        return
    if "settings" in document:
        building.do(f"{pointer}/settings", zones.change_settings(key, document["settings"], whole=True))
    for at, part in building.parts(pointer, document, "waiting_rooms"):
        _make_room(building, at, key, part)
    for at, part in building.parts(pointer, document, "health_checks"):
        building.do(at, health_checks.create(key, _without(part)), building.id_of("health_check", part, key))


def _sees_all(_zone_id: str) -> bool:
    """Who imports may see the whole account."""
    return True


def _make_room(building: _Building, pointer: str, zone_id: str, document: Any) -> None:
    key = building.id_of("room", document, zone_id)
    if not building.do(pointer, rooms.create(zone_id, _without(document, "events", "rules"), _sees_all), key):
        return
    before = building.known.rooms.get(key)
    if before:  # no document says what operators' actions wrote, and it must not be forgotten
        operated = {name: getattr(before.record, name) for name in OPERATED}
        building.take([Put(replace(building.made.rooms[key].record, **operated), zone_id)])
    for at, part in building.parts(pointer, document, "events"):
        building.do(at, events.create(zone_id, key, _without(part)), building.id_of("event", part, key))
    bypass = document.get("rules", [])
    there = building.known.rules.get(key)
    if there and (bypass or not there.record.rules):
        building.take([Put(RuleSet(id=key, rules=there.record.rules), key)])  # so that rules that stay keep their ids
    if bypass:
        building.do(f"{pointer}/rules", rules.replace_all(zone_id, key, bypass))


def _make_webhook(before: Configuration, key: str, document: Any) -> ConfigChange:
    """What is secret and is not written down stays what it was before."""
    old = before.webhooks.get(key)
    told = (
        {name: value for name, value in document.items() if (name, value) != ("secret", MASK)} if isinstance(document, dict) else document
    )

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        if isinstance(document, dict) and (old is None or old.read_only or document.get("url") != old.record.shown_url):
            _refuse_masked("secret", document.get("secret") == MASK)
            _refuse_masked("url", str(document.get("url", "")).endswith(MASK))
        base = known if old is None else known.changed(known.revision, [old])
        made = alert_destinations.read_webhook(base, None if old is None else key, told, NoNotifications(), lambda: key)
        return PlannedChange([Put(made)], lambda _after: None)

    return plan


def _make_service(before: Configuration, key: str, document: Any) -> ConfigChange:
    """As `_make_webhook`."""
    old = before.pagerduty_services.get(key)
    masked = isinstance(document, dict) and document.get("routing_key") == MASK

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        _refuse_masked("routing_key", masked and old is None)
        return alert_destinations.create_service(document, old.record.routing_key if masked and old else None)(known, at)

    return plan


def _refuse_masked(name: str, masked: bool) -> None:
    if masked:
        raise Refused(ApiFault(Code.REQUIRED, f"{name}: is not part of an export; write it in place of {MASK}", f"/{name}"))


_MAKERS: Mapping[str, Callable[[Configuration, str, Any], ConfigChange]] = {
    "webhook": _make_webhook,
    "pagerduty_service": _make_service,
    "alert_policy": lambda _before, _key, document: alert_policies.create(document),
    "status_page": lambda _before, _key, document: status_pages.create(document),
}


def _without(document: Any, *names: str) -> Any:
    """What the use-case of the thing itself reads."""
    return {name: value for name, value in document.items() if name not in ("id", *names)} if isinstance(document, dict) else document
