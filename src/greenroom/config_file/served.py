"""Merges file and store into the ProcessConfig that processes use. In a conflict (id, host and
path, cookie, list name) the store's entry is a fault and is left out or held. A change with a new
fault is refused before it is saved (`LayeredStore.judge`).
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from typing import Any

from greenroom.config_file.addresses import zone_origin_problems
from greenroom.config_file.documents import capacity_problems
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.file_tables import file_id
from greenroom.configuration.layers import UnitFault, layered
from greenroom.model.change import name_of
from greenroom.model.configuration import (
    KIND_OF,
    KINDS,
    Configuration,
    Entry,
    EntryIndex,
    R,
)
from greenroom.model.operation import operated
from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.model.zone import NO_ORIGIN, in_zone
from greenroom.request.claims import Claims, Clash, Footprint
from greenroom.request.routing import KnownHosts, known_hosts

UNREADABLE_TOLD = 100
"""Records that cannot be read and are named one by one: a list may have ten thousand items."""


def served(file: ProcessConfig, stored: Configuration) -> ProcessConfig:
    """`file` with the documents of both. Never fails: `faults` has what cannot be used.

    Of two conflicting things, the file's counts, then the store's older one. An unusable room holds
    its visitors, where no other room covers the route.
    """
    known = layered(file.documents, stored)
    faults: list[UnitFault] = []
    zones = _usable_zones(file, known, faults)
    closed = {fault.zone_id for fault in faults} | {
        zone_id for kind, zone_id in known.unusable if kind == "zone"
    }
    faults += _unreadable(known)
    rooms, held = _usable_rooms(known, closed, faults)
    indexes: dict[str, dict[str, Entry[Any]]] = {
        "zone": zones,
        "room": rooms,
        "list": _unclaimed(known.lists, lambda found: found.name, "is", faults),
        "status_page": _unclaimed(
            known.status_pages,
            lambda page: page.where,
            "is at the address of a page that is",
            faults,
        ),
    }
    if held:
        for kind in ("event", "rules"):  # an event, or a rule, would end the hold
            entries = known.index_of(kind)
            indexes[kind] = {
                key: entry for key, entry in entries.items() if entry.parent not in held
            }
    documents = known.with_indexes(known.revision, indexes)
    found = replace(file, documents=documents)
    own = {entry.id: entry for entry in rooms.values() if not entry.read_only}
    faults += [
        UnitFault(f"room {room.name}", f"{name}: {reason}", own[room.id].parent)
        for room, name, reason in capacity_problems(
            (entry.record for entry in own.values()),
            documents.health_checks.records(),
            found.sees_answers,
        )
    ]
    return replace(found, faults=tuple(faults))


def new_faults(
    file: ProcessConfig,
    before: Configuration,
    after: Configuration,
    compile_faults: Callable[
        [ProcessConfig, ProcessConfig], list[UnitFault]
    ] = lambda _running, _wanted: [],
) -> list[UnitFault]:
    """As `NewFaults`; `compile_faults` compiles what differs."""
    running, wanted = served(file, before), served(file, after)
    new = [fault for fault in wanted.faults if fault not in running.faults]
    return new + compile_faults(running, wanted)


def _unreadable(known: Configuration) -> Iterator[UnitFault]:
    """One for each record that cannot be used; what belongs to one is not named again."""
    first = [
        (kind, entry)
        for (kind, _), entry in known.unusable.items()
        if kind not in KINDS or (KINDS[kind].parent, entry.parent) not in known.unusable
    ]
    for kind, entry in first[:UNREADABLE_TOLD]:
        room = known.rooms.get(entry.parent)
        zone_id = entry.id if kind == "zone" else room.parent if room else entry.parent
        name = entry.record.name
        unit = f"{kind.replace('_', ' ')} {name + f' ({entry.id})' if name else entry.id}"
        yield UnitFault(unit, entry.record.reason, zone_id if zone_id in known.zones else "")
    if len(first) > UNREADABLE_TOLD:
        yield UnitFault("the store", f"{len(first) - UNREADABLE_TOLD} more records like these")


def _file_first(index: EntryIndex[R]) -> list[Entry[R]]:
    return sorted(index.values(), key=lambda entry: not entry.read_only)


def _unclaimed(
    index: EntryIndex[R], claim: Callable[[R], str], what: str, faults: list[UnitFault]
) -> dict[str, Entry[R]]:
    """Omits stored entries whose claim an entry of the file has."""
    taken = {claim(entry.record) for entry in index.values() if entry.read_only}
    usable = {}
    for entry in _file_first(index):
        if entry.read_only or claim(entry.record) not in taken:
            usable[entry.id] = entry
        else:
            kind = KIND_OF[type(entry.record)]
            unit = f"{kind.replace('_', ' ')} {name_of(kind, entry.record)}"
            faults.append(UnitFault(unit, f"{what} already in the configuration file"))
    return usable


def _usable_zones(
    file: ProcessConfig, known: Configuration, faults: list[UnitFault]
) -> dict[str, Entry[Any]]:
    usable, listeners = dict(known.zones), file.listeners()
    for entry in known.zones.values():
        zone = entry.record
        if entry.read_only or not zone.origin:
            continue
        wrong = zone_origin_problems(listeners, "origin", zone.origin)
        faults += [UnitFault(f"zone {zone.name}", str(problem), zone.id) for problem in wrong]
        if wrong:
            usable[entry.id] = replace(entry, record=replace(zone, origin=NO_ORIGIN))
    return usable


def _usable_rooms(
    known: Configuration, closed: Container[str], faults: list[UnitFault]
) -> tuple[dict[str, Entry[Room]], set[str]]:
    """Rooms as processes run them, and ids of held ones: in conflict, or in a zone of `closed`."""
    claims: Claims[Room] = Claims()
    rooms, held = {}, set()
    for entry in _file_first(known.rooms):
        room = entry.record
        if not entry.read_only:
            room = in_zone(room, known.zones[entry.parent].record)
        place = Footprint.of(room)
        clashes = claims.clashes(place)
        faults += [_fault(entry, clash) for clash in clashes]
        lost = entry.parent in closed or ("room", room.id) in known.unusable
        if clashes or (lost and not entry.read_only):
            taken = {clash.pointer for clash in clashes}
            free = [route for pointer, route in place.routes if pointer not in taken]
            if not free:
                continue
            room = held_room(room, free)
            held.add(room.id)
            place = Footprint.of(room)
        claims.add(room, place)
        operations = known.operations.get(room.id)
        room = operated(room, operations.record if operations else None)
        rooms[room.id] = entry if room is entry.record else replace(entry, record=room)
    return rooms, held


def _fault(entry: Entry[Room], clash: Clash[Room]) -> UnitFault:
    at = "" if clash.route else f"{clash.pointer}: "
    owner = f"waiting room {clash.owner.name}" if clash.owner else ""
    return UnitFault(
        f"room {entry.record.name}",
        at + clash.reason(owner),
        entry.parent,
        at + clash.reason("another waiting room"),
    )


def held_room(room: Room, routes: Sequence[Route] = ()) -> Room:
    """The replacement of an unusable room: holds its visitors on the built-in page, with its own
    cookie.
    """
    first, *more = routes or room.routes
    return replace(
        room,
        host=first.host,
        path=first.path,
        additional_routes=tuple(more),
        cookie_suffix=file_id("held", room.id),
        custom_page_html="",
        queue_all=True,
    )


def served_hosts(config: ProcessConfig) -> KnownHosts | None:
    """None: every host."""
    if config.other_hosts == "pass":
        return None
    return known_hosts(
        (route.host for room in config.rooms for route in room.routes),
        [zone.name for zone in config.stored_zones],
        config.origins,
    )
