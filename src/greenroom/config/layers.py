"""Merges the configuration file and the configuration made through the API, for the edge and for
the API.

The file is read-only here. What both claim (an id, a host and path, a cookie, the name of a list)
is a fault of the store's part, which is left out or held; everything else is used. A change that
would bring a new fault is refused before it is saved (`LayeredStore.judge`).
"""

import asyncio
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from greenroom.config.addresses import loop_problems, origin_problems
from greenroom.config.config import Config, UnitFault
from greenroom.config.documents import file_id
from greenroom.errors import InvalidConfig, Problem
from greenroom.gateway.origin.address import ZONE_POLICY
from greenroom.model.change import AuditEntry, AuditFilter, Change, Put, applied, name_of
from greenroom.model.configuration import (
    KIND_OF,
    KIND_WORDS,
    KINDS,
    Configuration,
    Entry,
    EntryIndex,
    R,
    Record,
    Unusable,
)
from greenroom.model.operation import operated
from greenroom.model.room import Room
from greenroom.model.route import Route
from greenroom.model.rule import ListItem, RuleSet
from greenroom.model.zone import NO_ORIGIN, Zone, in_zone
from greenroom.notifier import ChangeNotifier
from greenroom.outbound import Guard, OutboundRefused, read_target
from greenroom.outbound.guard import Listening
from greenroom.request.cookie_scope import CookieClaims, must_differ
from greenroom.request.routing import Coverage, KnownHosts, belongs_to, known_hosts
from greenroom.settings.process import Address
from greenroom.web.stores import ConfigStore

RESOLVE_S = 3.0
"""How long saving a zone waits for the name of its origin."""

FILE_ZONE_ID = file_id("the configuration file")
"""The zone of the file's rooms whose host lies in no zone of the store."""

UNREADABLE_TOLD = 100
"""Records that cannot be read and are named one by one: a list may have ten thousand items."""

COMPILED = ("zone", "room", "event", "rules", "list", "list_item", "health_check", "status_page")
"""Kinds that processes compile."""

CompileFaults = Callable[[Config, Config], list[UnitFault]]
"""(running, wanted) -> what of `wanted` that differs from `running` cannot be compiled."""


def _entry(record: Record, parent: str) -> Entry[Any]:
    return Entry(record, parent, 0, 0, 0, read_only=True)


def layered(
    file: Config, stored: Configuration, entry_of: Callable[[Record, str], Entry[Any]] = _entry
) -> Configuration:
    """The store's configuration with the file's records as read-only entries.

    What of the store has the id of one of these is in `unusable`, and nothing below it is used.
    """
    entries = [entry_of(record, parent) for record, parent in _file_records(file, stored)]
    lost: dict[tuple[str, str], Entry[Any]] = {}
    gone: list[tuple[str, str]] = []
    for kind, new in ((KIND_OF[type(entry.record)], entry) for entry in entries):
        old = stored.index_of(kind).get(new.id)
        if old is not None:
            reason = f"has the id of a {KIND_WORDS[kind]} in the configuration file"
            unusable = Unusable(old.id, name_of(kind, old.record), reason)
            lost[kind, old.id] = replace(old, record=unusable)
            gone += [(kind, old.id), *stored.below(kind, old.id)]
    return stored.changed(stored.revision, entries, gone, lost) if entries else stored


def merged(file: Config, stored: Configuration) -> Config:
    """What processes use of file and store. Never fails: `faults` has what cannot be used.

    Of two conflicting things, the file's counts, then the store's older one. An unusable room holds
    its visitors, where no other room covers the route.
    """
    known = layered(file, stored)
    faults: list[UnitFault] = []
    zones = {entry.id: entry.record for entry in known.zones.values() if not entry.read_only}
    stored_zones = _usable_zones(file, zones.values(), faults)
    closed = {fault.zone_id for fault in faults} | {
        zone_id for kind, zone_id in known.unusable if kind == "zone"
    }
    faults += _unreadable(known)
    rooms, held = _usable_rooms(file, known, closed, faults)
    lists = _unclaimed(known.lists, lambda found: found.name, "is", faults)
    pages = _unclaimed(
        known.status_pages, lambda page: page.where, "is at the address of a page that is", faults
    )
    return replace(
        file,
        rooms=tuple(_operated(room, stored) for room in (*file.rooms, *rooms)),
        zones={room.id: zones[known.rooms[room.id].parent] for room in rooms},
        stored_zones=stored_zones,
        events={
            room_id: tuple(entry.record for entry in events)
            for room_id in known.rooms
            if room_id not in held and (events := known.events.of(room_id))
        },
        rules={
            entry.id: entry.record.rules for entry in known.rules.values() if entry.id not in held
        },
        offers={entry.id: entry.record.offers for entry in known.offers.values()},
        lists=tuple(known.rule_list(entry) for entry in lists),
        health_checks=tuple(entry.record for entry in _file_first(known.health_checks)),
        status_pages=tuple(entry.record for entry in pages),
        faults=tuple(faults),
    )


def _operated(room: Room, stored: Configuration) -> Room:
    found = stored.operations.get(room.id)
    return operated(room, found.record if found else None)


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
) -> list[Entry[R]]:
    """Leaves out entries of the store that claim what one of the file has."""
    taken = {claim(entry.record) for entry in index.values() if entry.read_only}
    usable = []
    for entry in _file_first(index):
        if entry.read_only or claim(entry.record) not in taken:
            usable.append(entry)
        else:
            kind = KIND_OF[type(entry.record)]
            unit = f"{kind.replace('_', ' ')} {name_of(kind, entry.record)}"
            faults.append(UnitFault(unit, f"{what} already in the configuration file"))
    return usable


def _usable_zones(file: Config, zones: Iterable[Zone], faults: list[UnitFault]) -> tuple[Zone, ...]:
    usable, listeners = [], listeners_of(file)
    for zone in zones:
        wrong = zone_origin_problems(listeners, "origin", zone.origin) if zone.origin else []
        faults += [UnitFault(f"zone {zone.name}", str(problem), zone.id) for problem in wrong]
        usable.append(replace(zone, origin=NO_ORIGIN) if wrong else zone)
    return tuple(usable)


def _usable_rooms(
    file: Config, known: Configuration, closed: Container[str], faults: list[UnitFault]
) -> tuple[list[Room], set[str]]:
    """Rooms of the store, and ids of those that conflict or are in a zone of `closed`: these hold
    their visitors.
    """
    covered: Coverage[Room] = Coverage()
    cookies: CookieClaims[Room] = CookieClaims()
    for room in file.rooms:
        for route in room.routes:
            covered.claim(room, route, room.case_insensitive_paths)
        cookies.claim(room, room)
    rooms, held = [], set()
    for entry in known.rooms.values():
        if entry.read_only:
            continue
        room = in_zone(entry.record, known.zones[entry.parent].record)
        free = []
        for route in room.routes:
            taken = covered.claim(room, route, room.case_insensitive_paths)
            if taken is None:
                free.append(route)
            else:
                told = "another route of it" if taken is room else "another waiting room"
                reasons = (belongs_to(route, by) for by in (f"waiting room {taken.name}", told))
                faults.append(_clash(entry, *reasons))
        clash = cookies.holder(room) if len(free) == len(room.routes) else None
        if clash:
            other, what = clash
            owners = f"waiting room {other.name}", "another waiting room"
            reasons = (f"cookie_suffix: {must_differ(owner, what)}" for owner in owners)
            faults.append(_clash(entry, *reasons))
        lost = ("room", room.id) in known.unusable
        if clash or lost or entry.parent in closed or len(free) < len(room.routes):
            if not free:
                continue
            room = held_room(room, free)
            held.add(room.id)
        cookies.claim(room, room)
        rooms.append(room)
    return rooms, held


def _clash(entry: Entry[Room], reason: str, told: str) -> UnitFault:
    return UnitFault(f"room {entry.record.name}", reason, entry.parent, told)


def held_room(room: Room, routes: Sequence[Route] = ()) -> Room:
    """Replaces an unusable room: holds its visitors on the built-in page, with a cookie of its own."""
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


def listeners_of(config: Config, **taken: Address | None) -> dict[str, Address]:
    """By key; `taken` are real addresses, where another was written."""
    written = {
        "listen": config.listen,
        "control": config.control,
        "decide": config.decide,
        "status_listen": config.status_listen,
    }
    return {key: address for key, address in (written | taken).items() if address is not None}


def served_hosts(config: Config) -> KnownHosts | None:
    """None: every host."""
    if config.other_hosts == "pass":
        return None
    return known_hosts(
        (route.host for room in config.rooms for route in room.routes),
        [zone.name for zone in config.stored_zones],
        config.origins,
    )


def zone_origin_problems(listeners: Mapping[str, Address], pointer: str, url: str) -> list[Problem]:
    """A zone's origin as written: no URL of an origin, one of our own listeners, or a link-local
    address.

    What a name leads to is checked with each connection, and when the zone is saved
    (`resolved_origin_problems`).
    """
    wrong = origin_problems(pointer, url) or loop_problems(pointer, url, listeners)
    if wrong:
        return wrong
    try:
        refused = ZONE_POLICY.target_problem(read_target(url))
    except OutboundRefused as error:
        refused = str(error)
    return [Problem(pointer, refused)] if refused else []


def resolved_origin_problems(
    listeners: Mapping[str, Address], pointer: str, url: str, listening: Listening = tuple
) -> list[Problem]:
    """As `zone_origin_problems`, and what the name leads to now. May wait RESOLVE_S, so call it in
    a thread.

    `listening` returns the listeners of every process. A name without an address is no problem: it
    may get one, and each connection checks again.
    """
    wrong = zone_origin_problems(listeners, pointer, url)
    if wrong:
        return wrong
    guard = Guard(
        ZONE_POLICY,
        listening=lambda: [
            *((address.host, address.port) for address in listeners.values()),
            *listening(),
        ],
    )
    try:
        asyncio.run(asyncio.wait_for(guard.check(read_target(url)), RESOLVE_S))
    except OutboundRefused as error:
        return [Problem(pointer, str(error))]
    except (OSError, TimeoutError):
        return []
    return []


class LayeredStore:
    """A store whose readers also see the file's records, marked read-only."""

    def __init__(
        self,
        store: ConfigStore,
        file: Callable[[], Config],
        now_ms: Callable[[], int],
        compile_faults: CompileFaults = lambda _running, _wanted: [],
    ) -> None:
        """`file` and `compile_faults` are called in any thread; `file` returns the file's current
        configuration.
        """
        self._store = store
        self._compile_faults = compile_faults
        self._file = file
        self._now_ms = now_ms
        self._known: tuple[Configuration, Config, Configuration] | None = None
        self._first_seen_ms: dict[tuple[type, str], tuple[Record, int, int]] = {}

    def revision(self) -> int:
        # What stands in the file has no revision.
        return self._store.revision()

    def read(self) -> Configuration:
        return self.over(self._store.read())

    def judge(self, changes: Sequence[Change], *, expected: int, now_ms: int) -> list[Problem]:
        # By the functions with which processes compile a configuration.
        touched = {
            KIND_OF[type(change.record)] if isinstance(change, Put) else change.kind
            for change in changes
        }
        if touched.isdisjoint(COMPILED):
            return []
        file, stored = self._file(), self._store.read()
        if stored.revision != expected:
            return []
        try:
            after, steps = applied(stored, changes, now_ms)
        except InvalidConfig as error:
            return list(error.problems)
        before, wanted = merged(file, stored), merged(file, after)
        new = [fault for fault in wanted.faults if fault not in before.faults]
        new += self._compile_faults(before, wanted)
        own = {"", *(step.entry.id for step in steps), *(step.entry.parent for step in steps)}
        own |= {after.rooms[one].parent for one in own if one in after.rooms}
        return [
            (
                Problem(fault.unit, fault.told or fault.reason)
                if fault.zone_id in own
                else Problem(
                    "a waiting room of another zone", "could not be used after this change"
                )
            )
            for fault in new
        ]

    def write(
        self, changes: Sequence[Change], *, expected: int, author: str, now_ms: int
    ) -> Configuration:
        return self.over(
            self._store.write(changes, expected=expected, author=author, now_ms=now_ms)
        )

    def note(
        self, kind: str, id: str, *, author: str, now_ms: int, after: Mapping[str, Any]
    ) -> None:
        self._store.note(kind, id, author=author, now_ms=now_ms, after=after)

    def audit(
        self,
        limit: int,
        before: int | None = None,
        *,
        removed_from: str = "",
        about: tuple[str, str] | None = None,
        where: AuditFilter | None = None,
    ) -> list[AuditEntry]:
        return self._store.audit(limit, before, removed_from=removed_from, about=about, where=where)

    @property
    def changes(self) -> ChangeNotifier:
        return self._store.changes

    def close(self) -> None:
        self._store.close()

    def over(self, stored: Configuration) -> Configuration:
        """Adds the file's records to a configuration of the store."""
        file, known = self._file(), self._known
        if known and known[0] is stored and known[1] is file:
            return known[2]
        both = layered(file, stored, self._entry)
        self._known = stored, file, both
        return both

    def _entry(self, record: Record, parent: str) -> Entry[Any]:
        """Created when this process first saw the record, modified when it first saw it differ."""
        key = type(record), record.id
        before, created_ms, modified_ms = self._first_seen_ms.get(key) or (
            record,
            now := self._now_ms(),
            now,
        )
        if before != record:
            modified_ms = self._now_ms()
        self._first_seen_ms[key] = record, created_ms, modified_ms
        return Entry(record, parent, created_ms, modified_ms, 0, read_only=True)


def _file_records(file: Config, stored: Configuration) -> Iterator[tuple[Record, str]]:
    """(record, parent); rooms and checks are in the store's zone that covers their host, else in
    the file's.
    """
    zone_ids = {room.id: _home(room.host, stored) for room in file.rooms}
    checked = {check.id: _home(check.served_host, stored) for check in file.health_checks}
    if FILE_ZONE_ID in {*zone_ids.values(), *checked.values()}:
        yield _file_zone(file), ""
    for room in file.rooms:
        yield room, zone_ids[room.id]
        for event in file.events.get(room.id, ()):
            yield event, room.id
        if file.rules.get(room.id):
            yield RuleSet(id=room.id, rules=file.rules[room.id]), room.id
    for check in file.health_checks:
        yield check, checked[check.id]
    for record in file.alerting.records():
        yield record, ""
    for page in file.status_pages:
        yield page, ""
    for found in file.lists:
        yield replace(found, items=()), ""
        for item in found.items:
            yield ListItem(id=file_id("item", found.name, item), value=item), found.id


def _home(host: str, stored: Configuration) -> str:
    covering = [entry for entry in stored.zones.values() if entry.record.covers(host)]
    return max(covering, key=lambda entry: len(entry.record.name)).id if covering else FILE_ZONE_ID


def _file_zone(file: Config) -> Zone:
    return Zone(
        id=FILE_ZONE_ID,
        name="file",
        origin=file.origin.url if file.origin else "",
        limit_floor=1,
        always_use_https=file.always_use_https,
        search_engine_crawler_bypass=file.search_engine_crawler_bypass,
        ambiguous_paths=file.ambiguous_paths,
        merge_slashes=file.merge_slashes,
        pass_well_known=file.pass_well_known,
    )
