"""Merges the configuration file and the configuration made through the API, for the edge and for the API.

The file is read-only here. What both claim (an id, a host and path, a cookie, the name of a list) is a problem, and problems are found
before anything is taken over: a file that clashes with the store is refused, and so is a revision that clashes with the file.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from greenroom.config.addresses import loop_problems, origin_problems
from greenroom.config.settings import Address, Config
from greenroom.core.cookie_scope import scope_clashes
from greenroom.core.hosts import KnownHosts, known_hosts
from greenroom.core.path_readings import PathPolicy
from greenroom.core.routing import Coverage
from greenroom.errors import InvalidConfig, Problem
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.origin.guard import ZONE_POLICY
from greenroom.model.change import AuditEntry, Change
from greenroom.model.configuration import Configuration, Entry, Record
from greenroom.model.room import Room
from greenroom.model.rule import ListItem, RuleList, RuleSet
from greenroom.model.status_page import StatusPage
from greenroom.model.zone import Zone
from greenroom.outbound import Guard, OutboundRefused, read_target
from greenroom.ports import ConfigStore

RESOLVE_S = 3.0
"""How long a caller who saves a zone waits for the name of its origin."""

FILE_ZONE_ID = hashlib.sha256(b"the configuration file").hexdigest()[:32]
"""The zone of rooms in the file whose host lies in no zone of the store."""


def merged(file: Config, stored: Configuration) -> Config:
    """The file's configuration with everything of the store in it. Raises InvalidConfig with every problem."""
    zones = {entry.id: entry.record for entry in stored.zones.values()}
    rooms = [_in_zone(entry.record, zones[entry.parent]) for entry in stored.rooms.values()]
    lists = stored.rule_lists()
    problems = [
        *_taken_twice(file.rooms, rooms),
        *_lists_twice(file.lists, lists),
        *_checks_twice(file, stored),
        *_pages_twice(file, stored),
    ]
    if not problems:
        problems = scope_clashes([*file.rooms, *rooms])
    origins = {}
    for zone in zones.values():
        if zone.origin:
            wrong = zone_origin_problems(
                listeners_of(file), f"zone {zone.name}: origin", zone.origin
            )
            problems += wrong
            if not wrong:
                origins[zone.name] = Origin.of(zone.origin, of_zone=True)
    if problems:
        raise InvalidConfig(problems)
    return replace(
        file,
        rooms=(*file.rooms, *rooms),
        zones={entry.id: zones[entry.parent] for entry in stored.rooms.values()},
        zone_names=tuple(zone.name for zone in zones.values()),
        zone_origins=origins,
        events={
            **file.events,
            **{
                room.id: events for room in rooms if (events := _records(stored.events.of(room.id)))
            },
        },
        rules={**file.rules, **{entry.id: entry.record.rules for entry in stored.rules.values()}},
        lists=(*file.lists, *lists),
        health_checks=(*file.health_checks, *stored.health_checks.records()),
        status_pages=(*file.status_pages, *stored.status_pages.records()),
        zone_paths={
            zone.name: PathPolicy(zone.ambiguous_paths == "pass", zone.merge_slashes)
            for zone in zones.values()
        },
        zone_proxies={
            zone.name: zone.trusted_proxies for zone in zones.values() if zone.trusted_proxies
        },
    )


def listeners_of(config: Config, **taken: Address | None) -> dict[str, Address]:
    """Every address on which greenroom listens, by its key; `taken` are those that it really has, where another was written."""
    written = {
        "listen": config.listen,
        "control": config.control,
        "decide": config.decide,
        "status_listen": config.status_listen,
    }
    return {key: address for key, address in (written | taken).items() if address is not None}


def served_hosts(config: Config) -> KnownHosts | None:
    """The hosts that are served; None: every host."""
    if config.other_hosts == "pass":
        return None
    return known_hosts(
        (route.host for room in config.rooms for route in room.routes),
        config.zone_names,
        config.origins,
    )


def zone_origin_problems(listeners: Mapping[str, Address], pointer: str, url: str) -> list[Problem]:
    """What is wrong with the origin of a zone as it is written: not a URL of an origin, one of our own listeners, or a link-local address.

    What a name leads to is judged when a connection is made, and when the zone is saved (`resolved_origin_problems`).
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
    listeners: Mapping[str, Address], pointer: str, url: str
) -> list[Problem]:
    """As `zone_origin_problems`, and what its name leads to now. It may wait RESOLVE_S for a name, so call it in a thread.

    A name without an address is no problem: it may get one, and each connection judges it again.
    """
    wrong = zone_origin_problems(listeners, pointer, url)
    if wrong:
        return wrong
    guard = Guard(
        ZONE_POLICY,
        listening=lambda: [(address.host, address.port) for address in listeners.values()],
    )
    try:
        asyncio.run(asyncio.wait_for(guard.check(read_target(url)), RESOLVE_S))
    except OutboundRefused as error:
        return [Problem(pointer, str(error))]
    except (OSError, TimeoutError):
        return []
    return []


def _records(entries: Sequence[Entry[Any]]) -> tuple[Any, ...]:
    return tuple(entry.record for entry in entries)


def _in_zone(room: Room, zone: Zone) -> Room:
    """The room with what its zone adds to it."""
    if zone.paused and not room.suspended:
        room = replace(room, suspended=True)
    if zone.case_insensitive_paths and not room.case_insensitive_paths:
        room = replace(room, case_insensitive_paths=True)
    return room


def _taken_twice(file: Iterable[Room], stored: Iterable[Room]) -> Iterator[Problem]:
    covered: Coverage[str] = Coverage()
    ids: dict[str, str] = {}
    for room in (*file, *stored):
        other = ids.setdefault(room.id, room.name)
        if other != room.name:
            yield Problem(f"room {room.name}", f"has the id of room {other}")
        for route in room.routes:
            taken = covered.claim(room.name, route, room.case_insensitive_paths)
            if taken is not None:
                yield Problem(
                    f"room {room.name}",
                    f"{route.host}{route.path} is already covered by room {taken}",
                )


def _lists_twice(file: Iterable[RuleList], stored: Iterable[RuleList]) -> Iterator[Problem]:
    names = {found.name for found in file}
    yield from (
        Problem(f"list {found.name}", "is already in the configuration file")
        for found in stored
        if found.name in names
    )


def _checks_twice(file: Config, stored: Configuration) -> Iterator[Problem]:
    for check in file.health_checks:
        if check.id in stored.health_checks:
            other = stored.health_checks[check.id].record.name
            yield Problem(
                f"health check {check.name}",
                f"has the id of health check {other}, which was made through the API",
            )


def _pages_twice(file: Config, stored: Configuration) -> Iterator[Problem]:
    taken = {page.where for page in file.status_pages}
    for page in stored.status_pages.records():
        if page.where in taken:
            yield Problem(
                f"status page {page.title}",
                f"{page.where} is already the address of a page in the configuration file",
            )


class LayeredStore:
    """A configuration store whose readers also see what stands in the file, marked read-only. See `ports.ConfigStore`."""

    def __init__(
        self, store: ConfigStore, file: Callable[[], Config], now_ms: Callable[[], int]
    ) -> None:
        """`file` gives the file's configuration as it is used now; it is asked in any thread."""
        self._store = store
        self._file = file
        self._now_ms = now_ms
        self._known: tuple[Configuration, Config, Configuration] | None = None
        self._first_seen_ms: dict[tuple[type, str], tuple[Record, int, int]] = {}

    def revision(self) -> int:
        """Of the store alone: what stands in the file has none."""
        return self._store.revision()

    def read(self) -> Configuration:
        """Both layers."""
        return self._both(self._store.read())

    def write(
        self, changes: Sequence[Change], *, expected: int, author: str, now_ms: int
    ) -> Configuration:
        """Goes to the store; both layers afterwards."""
        return self._both(
            self._store.write(changes, expected=expected, author=author, now_ms=now_ms)
        )

    def note(
        self, kind: str, id: str, *, author: str, now_ms: int, after: Mapping[str, Any]
    ) -> None:
        """Of the store alone."""
        self._store.note(kind, id, author=author, now_ms=now_ms, after=after)

    def audit(
        self, limit: int, before: int | None = None, *, removed_from: str = ""
    ) -> list[AuditEntry]:
        """Of the store alone."""
        return self._store.audit(limit, before, removed_from=removed_from)

    def watch(self, changed: Callable[[], None]) -> None:
        """Of the store alone."""
        self._store.watch(changed)

    def close(self) -> None:
        """Closes the store."""
        self._store.close()

    def _both(self, stored: Configuration) -> Configuration:
        file, known = self._file(), self._known
        if known and known[0] is stored and known[1] is file:
            return known[2]
        both = stored.changed(
            stored.revision,
            [self._entry(record, parent) for record, parent in file_records(file, stored)],
        )
        self._known = stored, file, both
        return both

    def _entry(self, record: Record, parent: str) -> Entry[Any]:
        """Made when it was first seen by this process, modified when it was first seen to differ."""
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


def file_records(file: Config, stored: Configuration) -> Iterator[tuple[Record, str]]:
    """(record, parent) of everything in the file; rooms and checks are in the zone of the store that covers their host, else in its own."""
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
        yield StatusPage(id=_id("status page", page.where), **vars(page)), ""
    for found in file.lists:
        list_id = _id("list", found.name)
        yield replace(found, id=list_id, items=()), ""
        for item in found.items:
            yield ListItem(id=_id("item", found.name, item), value=item), list_id


def with_alerting(file: Config, stored: Configuration) -> Configuration:
    """The configuration of the store with the policies and destinations of the file: what is needed to tell who is told."""
    records = file.alerting.records()
    return (
        stored.changed(
            stored.revision, [Entry(record, "", 0, 0, 0, read_only=True) for record in records]
        )
        if records
        else stored
    )


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


def _id(*parts: str) -> str:
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:32]
