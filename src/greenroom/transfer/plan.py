"""Builds the configuration of a document with the use-cases of the API, so it can contain nothing
that the API would refuse. Sections that the document omits stay.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from greenroom.alerts import destinations, policies
from greenroom.alerts.silences import without_orphans
from greenroom.configuration import (
    events,
    list_items,
    lists,
    rooms,
    rules,
    zones,
)
from greenroom.configuration.zones import OriginProblems, RoomClaims
from greenroom.health import checks
from greenroom.model.change import Change, Draft, Put, carry_out, name_of
from greenroom.model.configuration import Configuration, R
from greenroom.model.fields import specs, stand_in
from greenroom.model.room import OPERATED, Room
from greenroom.model.rule import RuleList, RuleSet
from greenroom.model.zone import Zone
from greenroom.status_page import pages
from greenroom.web.api_schema import ApiSchema
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import ChangeContext, ConfigChange, DocumentSection, SectionEntry
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    refuse_if,
    within,
)

BESIDE_ZONES = (*destinations.SECTIONS, policies.SECTION, pages.SECTION)
IN_ZONES = (checks.SECTION,)
SECTIONS = ("lists", "zones", *(section.name for section in BESIDE_ZONES))

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

MOST: Mapping[str, int] = {
    "list": lists.LISTS_MAX,
    "zone": zones.ZONES_MAX,
    "room": rooms.ROOMS_MAX,
    **{section.kind: section.most for section in (*IN_ZONES, *BESIDE_ZONES)},
}
"""Includes the configuration file. Excess entries are only counted."""

_LEAST: Mapping[type, Mapping[str, Any]] = {
    Room: {"total_active_users": 1, "new_users_per_minute": 1},
    Zone: {"limit_floor": 1, "session_ceiling": specs(Zone)["session_ceiling"].high},
}
"""Values of a stand-in that make nothing else fail."""

_PLURALS = {
    "list": "lists",
    "zone": "zones",
    "room": "waiting rooms",
    **{section.kind: section.name.replace("_", " ") for section in (*IN_ZONES, *BESIDE_ZONES)},
}

_SECTIONS = {section.kind: section for section in (*IN_ZONES, *BESIDE_ZONES)}


class _Building:
    def __init__(self, known: Configuration, at: ChangeContext, untouched: Configuration) -> None:
        self.known = known
        self.at = at
        self.draft = Draft(untouched)
        self.made = self.draft.live()
        self.claims = RoomClaims()
        # a room of a file may lie in a zone that the document has still to make
        for entry in untouched.rooms.values():
            self.claims.add(entry, known.zones[entry.parent].record)
        self.faults: list[ApiFault] = []
        self.unplaced: list[str] = []
        """Pointers of zones without a usable name: it is unknown which hosts they cover."""
        self._seen = Counter({kind: len(untouched.index_of(kind)) for kind in MOST})
        self._ids: dict[str, dict[tuple[str, str], list[str]]] = {}

    def do(self, pointer: str, plan: ConfigChange, key: str = "") -> bool:
        new_id: Callable[[], str] = (lambda: key) if key else self.at.new_id
        try:
            self.take(plan(self.made, ChangeContext(self.at.now_ms, new_id)).changes)
        except Refused as refused:
            self.faults += within(refused.faults, pointer)
            return False
        return True

    def stand_in(
        self, schema: ApiSchema, record: type[R], document: Any, key: str, parent: str = ""
    ) -> R | None:
        """Replaces a refused record, so that its parts can be checked too."""
        if not isinstance(document, dict):
            return None
        unique = self.at.new_id()
        least = {"name": unique, "host": f"{unique}.invalid", **_LEAST.get(record, {})}
        if record is Zone:
            least["name"] = least["host"]
        described = specs(record)
        read = schema.read(document, [], [])
        values = {name: value for name, value in read.items() if name in described}
        least = {name: value for name, value in least.items() if name in described}
        made = stand_in(record, values, least, {"id": key})
        if made is not None:
            self.take([Put(made, parent)])
        return made

    def take(self, changes: Iterable[Change]) -> None:
        carry_out(changes, self.draft, self.at.now_ms)

    def id_of(self, kind: str, document: Any, parent: str = "") -> str:
        """Prefers the id of an entry that exists, by id or identity; then the document's own, if
        free; else a new one.
        """
        if not isinstance(document, dict):
            return self.at.new_id()
        made, given = self.made.index_of(kind), document.get("id")
        if isinstance(given, str) and given in self.known.index_of(kind) and given not in made:
            return given
        name = _identity(kind, document)
        known = self._known_ids(kind).get((parent, name), []) if isinstance(name, str) else []
        left = next((key for key in known if key not in made), None)
        if left is not None:
            return left
        fine = isinstance(given, str) and ID.fullmatch(given) and given not in made
        return str(given) if fine else self.at.new_id()

    def _known_ids(self, kind: str) -> dict[tuple[str, str], list[str]]:
        if kind not in self._ids:
            ids = self._ids[kind] = {}
            for entry in self.known.index_of(kind).values():
                section = _SECTIONS.get(kind)
                own = (
                    section.identity(section.show(entry))
                    if section
                    else name_of(kind, entry.record)
                )
                ids.setdefault((entry.parent, own), []).append(entry.id)
        return self._ids[kind]

    def parts(
        self, pointer: str, document: Mapping[str, Any], name: str, kind: str
    ) -> Iterator[tuple[str, Any]]:
        """Yields up to MOST; adds a fault when it is not a list."""
        found = document.get(name)
        if name not in document or (found is None and pointer):
            return  # null at the top would take everything of the kind away
        if not isinstance(found, list):
            self.faults.append(
                ApiFault(
                    Code.INVALID,
                    f"{f'{pointer}/{name}'.strip('/')}: must be a list",
                    f"{pointer}/{name}",
                )
            )
            return
        for index, part in enumerate(found):
            self._seen[kind] += 1
            if kind not in MOST or self._seen[kind] <= MOST[kind]:
                yield f"{pointer}/{name}/{index}", part

    def make(
        self, section: DocumentSection, pointer: str, document: Mapping[str, Any], parent: str = ""
    ) -> None:
        for at, part in self.parts(pointer, document, section.name, section.kind):
            key = self.id_of(section.kind, part, parent)
            wanted = SectionEntry(self.known, parent, key, _without(part))
            self.do(at, section.plan(wanted), key)

    def placed(self, fault: ApiFault) -> bool:
        return fault.code is not Code.OUTSIDE or not any(
            fault.pointer.startswith(f"{pointer}/") for pointer in self.unplaced
        )

    def too_many(self) -> list[ApiFault]:
        return [
            ApiFault(
                Code.TOO_MANY,
                f"{self._seen[kind]} {_PLURALS[kind]} are too many; at most {most} are allowed",
            )
            for kind, most in MOST.items()
            if self._seen[kind] > most
        ]


def _identity(kind: str, document: Mapping[str, Any]) -> Any:
    return _SECTIONS[kind].identity(document) if kind in _SECTIONS else document.get("name")


def wanted_configuration(
    known: Configuration, document: Any, at: ChangeContext, origin_problems: OriginProblems
) -> Configuration:
    """Raises Refused with all faults."""
    if not isinstance(document, dict):
        raise Refused(ApiFault(Code.BAD_BODY, "the document must be a table with zones and lists"))
    try:
        json.dumps(document, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise Refused(
            ApiFault(
                Code.BAD_BODY,
                "the document contains an unpaired surrogate, which cannot be stored or sent",
            )
        ) from None
    building = _Building(known, at, _untouched(known, document))
    building.faults += [
        ApiFault(
            Code.UNKNOWN_FIELD, f"{name}: unknown section; known sections: {', '.join(SECTIONS)}"
        )
        for name in document
        if name not in SECTIONS
    ]
    for pointer, part in building.parts("", document, "lists", "list"):
        _make_list(building, pointer, part)
    for pointer, part in building.parts("", document, "zones", "zone"):
        _make_zone(building, pointer, part, origin_problems)
    for section in BESIDE_ZONES:
        building.make(section, "", document)
    refuse_if([*building.too_many(), *filter(building.placed, building.faults)])
    return without_orphans(building.draft.finished())


def _untouched(known: Configuration, document: Json) -> Configuration:
    spoken: dict[str, tuple[str, ...]] = {
        "lists": ("list", "list_item"),
        "zones": ("zone", "room", "event", "rules", *(section.kind for section in IN_ZONES)),
        **{section.name: (section.kind,) for section in BESIDE_ZONES},
    }
    kinds = {kind for section, kinds in spoken.items() if section in document for kind in kinds}
    indexes = {
        kind: {key: entry for key, entry in known.index_of(kind).items() if entry.read_only}
        for kind in kinds
    }
    return known.with_indexes(known.revision, indexes)


def _make_list(building: _Building, pointer: str, document: Any) -> None:
    key = building.id_of("list", document)
    plain = _without(document, "items")
    made = building.do(pointer, lists.create(plain), key)
    if made or building.stand_in(lists.LIST, RuleList, plain, key):
        there = building.known.lists.get(key)
        if there and there.record.kind == document.get("kind"):
            building.take(Put(entry.record, key) for entry in building.known.list_items.of(key))
        items = document.get("items")
        building.do(
            f"{pointer}/items",
            list_items.add(
                key, [] if items is None else items, list_items.Operations(), whole=True
            ),
        )


def _make_zone(
    building: _Building, pointer: str, document: Any, origin_problems: OriginProblems
) -> None:
    key = building.id_of("zone", document)
    plain = _without(document, "settings", "waiting_rooms", *(section.name for section in IN_ZONES))
    if not building.do(pointer, zones.create(plain, origin_problems), key):
        instead = building.stand_in(zones.ZONE, Zone, plain, key)
        if not instead:
            return
        if instead.name != plain.get("name"):
            building.unplaced.append(pointer)
    if document.get("settings") is not None:
        building.do(
            f"{pointer}/settings", zones.change_settings(key, document["settings"], whole=True)
        )
    for at, part in building.parts(pointer, document, "waiting_rooms", "room"):
        _make_room(building, at, key, part)
    for section in IN_ZONES:
        building.make(section, pointer, document, key)


def _sees_all(_zone_id: str) -> bool:
    return True


def _make_room(building: _Building, pointer: str, zone_id: str, document: Any) -> None:
    key = building.id_of("room", document, zone_id)
    plain = _without(document, "events", "rules")
    if not building.do(
        pointer, rooms.create(zone_id, plain, _sees_all, building.claims), key
    ) and not building.stand_in(rooms.ROOM, Room, plain, key, zone_id):
        return
    building.claims.add(building.made.rooms[key], building.made.zones[zone_id].record)
    before = building.known.rooms.get(key)
    if before:  # no document says what operators' actions wrote, and it must not be forgotten
        operated = {name: getattr(before.record, name) for name in OPERATED}
        building.take([Put(replace(building.made.rooms[key].record, **operated), zone_id)])
    for at, part in building.parts(pointer, document, "events", "event"):
        building.do(
            at, events.create(zone_id, key, _without(part)), building.id_of("event", part, key)
        )
    bypass = document.get("rules")
    bypass = [] if bypass is None else bypass
    there = building.known.rules.get(key)
    if there and (bypass or not there.record.rules):
        # so that rules that stay keep their ids
        building.take([Put(RuleSet(id=key, rules=there.record.rules), key)])
    if bypass:
        parts = bypass if isinstance(bypass, list) else []
        given = (str(part.get("id")) for part in parts if isinstance(part, dict) and "id" in part)
        own = frozenset(filter(ID.fullmatch, given))
        building.do(f"{pointer}/rules", rules.replace_all(zone_id, key, bypass, own))


def _without(document: Any, *names: str) -> Any:
    return (
        {name: value for name, value in document.items() if name not in ("id", *names)}
        if isinstance(document, dict)
        else document
    )
