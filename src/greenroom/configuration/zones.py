"""Zones: the domains of rooms, and the settings that the rooms of a zone share."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from ipaddress import collapse_addresses, ip_network
from typing import Any

from greenroom.errors import Problem
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.fields import Spec, taken
from greenroom.model.room import Room
from greenroom.model.zone import ACCOUNT_ID, Zone, in_zone, zone_problems
from greenroom.request.claims import Claims, Clash, Footprint
from greenroom.web.api_schema import (
    EXTENSION,
    READ_ONLY,
    ApiSchema,
    computed,
    overlaid,
    read_as,
)
from greenroom.web.api_shapes import (
    Choice,
    HostName,
    Json,
    Plain,
    Several,
    Shown,
)
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    entry_of,
    refuse_read_only,
)
from greenroom.web.refusals import (
    ApiFault,
    Code,
    faults_of,
    refuse_if,
    too_many,
)
from greenroom.web.time_format import moment as written

# What rooms occupy: names, cookie suffixes, hosts with paths, cookies. Bulk changes keep one,
# because building it reads every room.


class RoomClaims:
    def __init__(self) -> None:
        self._names: set[tuple[str, str]] = set()
        self._suffixes: set[tuple[str, str]] = set()
        self._claims: Claims[Entry[Room]] = Claims()

    @classmethod
    def of(cls, known: Configuration, without: str = "") -> "RoomClaims":
        claims = cls()
        for entry in known.rooms.values():
            if entry.id != without:
                claims.add(entry, known.zones[entry.parent].record)
        return claims

    def add(self, entry: Entry[Room], zone: Zone) -> None:
        room = entry.record if entry.read_only else in_zone(entry.record, zone)
        self._names.add((entry.parent, room.name))
        self._suffixes.add((entry.parent, room.cookie_suffix))
        self._claims.add(entry, Footprint.of(room))

    def has_name(self, zone_id: str, name: str) -> bool:
        return (zone_id, name) in self._names

    def has_suffix(self, zone_id: str, suffix: str) -> bool:
        return (zone_id, suffix) in self._suffixes

    def clashes(self, found: Footprint) -> list[Clash[Entry[Room]]]:
        return self._claims.clashes(found)


WIDEST_TRUST = 8
"""Of the widest network that a zone may trust: trusted proxies have no connection limit."""

ACCOUNT_NAME = "greenroom"
ZONES_MAX = 1_000

CRAWLERS = "search_engine_crawler_bypass"
NOT_HERE = ("account_id", CRAWLERS)

OriginProblems = Callable[[str, str], list[Problem]]


@dataclass(frozen=True, slots=True)
class _Account:
    def read(self, pointer: str, value: Any, problems: list[Problem], /) -> Any:
        wanted = value.get("id") if isinstance(value, dict) else value
        if not isinstance(value, dict) or not isinstance(wanted, str | None):
            problems.append(Problem(pointer, "must be an object with id"))
        elif wanted not in (None, ACCOUNT_ID):
            problems.append(
                Problem(f"{pointer}.id", f"must be {ACCOUNT_ID}, the account of this installation")
            )
        return value

    def show(self, value: Any) -> Any:
        return value

    def schema(self, _rule: Spec, /) -> Json:
        return {
            "type": "object",
            "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
        }


_OBJECT = {"type": "object"}
_TIME = {"type": "string", "format": "date-time"}
_STRINGS = {"type": "array", "items": {"type": "string"}}
_NOTHING = {"type": ["string", "null"]}


ZONE = ApiSchema.of(
    Zone,
    shapes={
        "name": HostName(str, format="hostname"),
        "trusted_proxies": Several(),
        "merge_slashes": Choice(),
    },
    without=NOT_HERE,
    more=(
        computed("account", "the account it belongs to", _Account(), writable=True),
        computed(
            "type", "type of the zone: always full", Plain(str), writable=True, choices=("full",)
        ),
        computed(
            "jump_start", "accepted and ignored: greenroom serves no DNS", Shown({}), writable=True
        ),
        computed(
            "vanity_name_servers",
            "accepted and ignored: greenroom serves no DNS",
            Shown({}),
            writable=True,
        ),
        computed("status", "always active", Shown({"type": "string", "enum": ["active"]})),
        computed("created_on", "creation time", Shown(_TIME)),
        computed("modified_on", "time of the last change", Shown(_TIME)),
        computed("activated_on", "creation time", Shown(_TIME)),
        computed("development_mode", "always 0", Shown({"type": "number"})),
        computed("name_servers", "always empty: greenroom serves no DNS", Shown(_STRINGS)),
        computed("original_name_servers", "always empty", Shown(_STRINGS)),
        computed("original_registrar", "always null", Shown(_NOTHING)),
        computed("original_dnshost", "always null", Shown(_NOTHING)),
        computed("meta", "always empty", Shown(_OBJECT)),
        computed("owner", "always empty", Shown(_OBJECT)),
        computed("plan", "always empty", Shown(_OBJECT)),
        computed("permissions", "always empty", Shown(_STRINGS)),
        READ_ONLY,
    ),
)

SETTINGS = ApiSchema.of(Zone, without=[item.name for item in fields(Zone) if item.name != CRAWLERS])


def zone_of(known: Configuration, zone_id: str) -> Entry[Zone]:
    """Raises Refused when there is none."""
    return entry_of(known.zones, "zone", zone_id)


def show_account() -> Json:
    return {
        "id": ACCOUNT_ID,
        "name": ACCOUNT_NAME,
        "type": "standard",
        "settings": {"enforce_twofactor": False},
    }


def show(entry: Entry[Zone]) -> Json:
    values = {item.name: getattr(entry.record, item.name) for item in fields(Zone)}
    created, modified = written(entry.created_ms), written(entry.modified_ms)
    return ZONE.show(
        values
        | {
            "account": {"id": entry.record.account_id, "name": ACCOUNT_NAME},
            "type": "full",
            "status": "active",
            "created_on": created,
            "modified_on": modified,
            "activated_on": created,
            "development_mode": 0,
            "name_servers": [],
            "original_name_servers": [],
            "original_registrar": None,
            "original_dnshost": None,
            "meta": {},
            "owner": {},
            "plan": {},
            "permissions": [],
            "read_only": entry.read_only,
        }
    )


def create(document: Any, origin_problems: OriginProblems) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        zone_id = at.new_id()
        values, faults = _read(known, document, origin_problems, zone_id)
        refuse_if(faults + too_many(known.zones, ZONES_MAX, "zones"))
        return _put(Zone(id=zone_id, **values))

    return plan


def edit(zone_id: str, document: Any, origin_problems: OriginProblems) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = zone_of(known, zone_id)
        refuse_read_only(entry, "zone")
        wanted = overlaid(show(entry), document)
        values, faults = _read(known, wanted, origin_problems, zone_id)
        said = {fault.pointer for fault in faults}
        if "/name" not in said and values["name"] != entry.record.name:
            reason = "name: cannot be changed; create a new zone"
            faults.append(ApiFault(Code.INVALID, reason, "/name"))
        if values.get("case_insensitive_paths") is True:
            faults += _case_faults(known, entry)
        refuse_if(faults)
        zone = Zone(id=zone_id, **values)
        return _put(
            replace(zone, search_engine_crawler_bypass=entry.record.search_engine_crawler_bypass)
        )

    return plan


def delete(zone_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        refuse_read_only(zone_of(known, zone_id), "zone")
        return PlannedChange([Remove("zone", zone_id)], lambda _after: {"id": zone_id})

    return plan


def settings(entry: Entry[Zone]) -> Json:
    return {CRAWLERS: entry.record.search_engine_crawler_bypass}


def change_settings(zone_id: str, document: Any, whole: bool) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = zone_of(known, zone_id)
        refuse_read_only(entry, "zone")
        values, faults = read_as(
            SETTINGS, document if whole else overlaid(settings(entry), document)
        )
        faults += [] if faults else faults_of(zone_problems({"name": entry.record.name, **values}))
        refuse_if(faults)
        return PlannedChange(
            [Put(replace(entry.record, **values))], lambda after: settings(after.zones[zone_id])
        )

    return plan


def _put(zone: Zone) -> PlannedChange:
    return PlannedChange([Put(zone)], lambda after: show(after.zones[zone.id]))


def _read(
    known: Configuration, document: Any, origin_problems: OriginProblems, zone_id: str
) -> tuple[Json, list[ApiFault]]:
    values, faults = read_as(ZONE, document, zone_problems)
    kind = values.pop("type", "full")
    for ignored in ("account", "jump_start", "vanity_name_servers"):
        values.pop(ignored, None)
    if kind != "full":
        faults.append(
            ApiFault(
                Code.INVALID, "type: must be full, because greenroom proxies the zone", "/type"
            )
        )
    name, origin = values.get("name"), values.get("origin")
    if isinstance(origin, str) and origin:
        faults += faults_of(origin_problems(f"{EXTENSION}.origin", origin))
    before = known.zones[zone_id].record.trusted_proxies if zone_id in known.zones else ()
    given = values.get("trusted_proxies")
    trusted = [each for each in given if isinstance(each, str)] if isinstance(given, tuple) else []
    if not set(trusted) <= set(before) and is_wide(trusted):
        faults.append(
            ApiFault(
                Code.INVALID,
                f"{EXTENSION}.trusted_proxies: must be at most a network of /{WIDEST_TRUST}, as one"
                f" or in parts, not {', '.join(trusted[:4])}{', …' if len(trusted) > 4 else ''}",
                f"/{EXTENSION}/trusted_proxies",
            )
        )
    if any(entry.record.name == name and entry.id != zone_id for entry in known.zones.values()):
        faults += faults_of([taken("name", "zone", name)], Code.TAKEN)
    return values, faults


def is_wide(networks: Iterable[str]) -> bool:
    """Malformed networks are judged elsewhere."""
    known: dict[int, list[Any]] = {4: [], 6: []}
    for text in networks:
        with contextlib.suppress(ValueError):
            network = ip_network(text)
            known[network.version].append(network)
    return any(
        sum(network.num_addresses for network in collapse_addresses(found))
        > 2 ** (found[0].max_prefixlen - WIDEST_TRUST)
        for found in known.values()
        if found
    )


def _case_faults(known: Configuration, zone: Entry[Zone]) -> list[ApiFault]:
    """Of rooms that clash once their paths ignore case."""
    if zone.record.case_insensitive_paths:
        return []
    folding = replace(zone.record, case_insensitive_paths=True)
    own = [entry for entry in known.rooms.of(zone.id) if not entry.read_only]
    ids = {entry.id for entry in own}
    claims = RoomClaims()
    for entry in known.rooms.values():
        if entry.id not in ids:
            claims.add(entry, known.zones[entry.parent].record)
    faults = []
    for entry in own:
        faults += [
            ApiFault(
                Code.COVERED if clash.route else Code.COOKIES_CLASH,
                f"{EXTENSION}.case_insensitive_paths: waiting room {entry.record.name}:"
                f" {clash.pointer}: {clash.reason('another waiting room')}",
                f"/{EXTENSION}/case_insensitive_paths",
            )
            for clash in claims.clashes(Footprint.of(in_zone(entry.record, folding)))
        ]
        claims.add(entry, folding)
    return faults


ZoneFilter = Callable[[Entry[Zone]], bool]

_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "equal": lambda name, wanted: name == wanted,
    "not_equal": lambda name, wanted: name != wanted,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda name, wanted: wanted in name,
}


def text_filter(text: str) -> Callable[[str], bool]:
    """`text` may begin with an operator and a colon."""
    word, colon, wanted = text.partition(":")
    sensitive = word.endswith("_case_sensitive")
    compare = _OPERATORS.get(word.removesuffix("_case_sensitive")) if colon else None
    if compare is None:
        compare, wanted, sensitive = _OPERATORS["equal"], text, False
    found, sought = compare, wanted if sensitive else wanted.lower()
    return lambda name: found(name if sensitive else name.lower(), sought)


def always(_entry: Entry[Zone]) -> bool:
    return True


def never(_entry: Entry[Zone]) -> bool:
    return False


def selected(
    known: Configuration, filters: Sequence[ZoneFilter], every: bool, descending: bool
) -> list[Entry[Zone]]:
    chosen = [
        entry
        for entry in known.zones.values()
        if not filters or (all if every else any)(let(entry) for let in filters)
    ]
    return sorted(chosen, key=lambda entry: entry.record.name, reverse=descending)
