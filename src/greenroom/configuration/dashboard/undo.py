"""Undoes a person's last change through the use case that makes such changes, while it is recent,
its result unchanged, and its kind in UNDO_KINDS.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from greenroom.configuration import (
    events,
    list_items,
    lists,
    rooms,
    rules,
)
from greenroom.configuration.list_items import Operations
from greenroom.configuration.operations import operation_changes
from greenroom.model.account import Role
from greenroom.model.change import AuditEntry, Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.event import Event
from greenroom.model.operation import HOLD, MESSAGE, TAKE_OVER, RoomOperations
from greenroom.model.room import Room
from greenroom.model.rule import ListItem, Rule
from greenroom.web.api_schema import EXTENSION
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    ConfigService,
    PlannedChange,
)
from greenroom.web.pages.forms import flat, schema_field
from greenroom.web.pages.request import PageRequest, Person
from greenroom.web.pages.routing import action
from greenroom.web.refusals import ApiFault, Code, Refused

UNDO_MS = 30 * 60_000

LOOKED_AT = 20

ENTRIES_MAX = 500

IDENTITY = frozenset(
    {
        "host",
        "path",
        "additional_routes",
        "case_insensitive_paths",
        "cookie_suffix",
        "cookie_attributes",
    }
)
"""Visitors are known by these fields."""

NOTICES_WITH_UNDO = ("saved", "created", "removed")

GONE = "there is nothing to undo any more: it was changed since, or too long ago"

_no_operations = Operations()


class LastChange(NamedTuple):
    """Entries of one write, newest first."""

    entries: Sequence[AuditEntry]
    plan: ConfigChange
    path: str

    @property
    def number(self) -> str:
        return str(self.entries[0].number)

    @property
    def said(self) -> list[tuple[str, Any, Any]]:
        before, after = self.entries[0].before or {}, self.entries[0].after or {}
        return [
            (name, after.get(name), value)
            for name, value in before.items()
            if name != "written_times"
        ]


def last_change(
    service: ConfigService,
    known: Configuration,
    person: Person,
    *,
    of: Collection[str] = (),
    most: int = ENTRIES_MAX,
) -> LastChange | None:
    """None: nothing to undo. `of`: the last change of these ids, if this person made it."""
    log = service.store.audit(most + 1)
    last = next((one for one in log if (one.id in of if of else one.author == person.author)), None)
    if (
        last is None
        or last.author != person.author
        or service.clock.now_ms() - last.at_ms > UNDO_MS
    ):
        return None
    written = [one for one in log if one.revision == last.revision]
    make = UNDO_KINDS.get(last.kind)
    if (
        make is None
        or len(written) > most
        or len({(one.kind, one.parent) for one in written}) > 1
        or any(map(_is_cut, written))
    ):
        return None
    if not all(_as_left(known, one) for one in written):
        return None
    found = make(known, person, written)
    return LastChange(written, _when_as_left(written, found[0]), found[1]) if found else None


def number_of_change(service: ConfigService, person: Person, notice: str, since: int) -> str:
    """Empty: it cannot be undone."""
    if notice not in NOTICES_WITH_UNDO or not person.may(Role.OPERATOR):
        return ""
    found = last_change(service, service.store.read(), person)
    return found.number if found and found.entries[0].revision > since else ""


def offered(page: Any) -> LastChange | None:
    if page.request.method != "GET" or not page.query("undo") or not page.person.may(Role.OPERATOR):
        return None
    found = last_change(page.config, page.known, page.person)
    return found if found and found.number == page.query("undo") else None


def _is_cut(one: AuditEntry) -> bool:
    values = [*(one.before or {}).values(), *(one.after or {}).values()]
    return any(
        isinstance(value, Mapping) and value.keys() == {"bytes", "sha256"} for value in values
    )


def _as_left(known: Configuration, one: AuditEntry) -> bool:
    entry = known.index_of(one.kind).get(one.id)
    return (
        entry is None if one.after is None else entry is not None and entry.revision == one.revision
    )


def _when_as_left(written: Sequence[AuditEntry], plan: ConfigChange) -> ConfigChange:
    def careful(known: Configuration, at: ChangeContext) -> PlannedChange:
        if not all(_as_left(known, one) for one in written):
            raise Refused(ApiFault(Code.CHANGED_MEANWHILE, GONE))
        return plan(known, at)

    return careful


WayBack = tuple[ConfigChange, str] | None


def _room_before(known: Configuration, person: Person, written: Sequence[AuditEntry]) -> WayBack:
    one = written[0]
    entry: Entry[Room] | None = known.rooms.get(one.id)
    writable = {field.name for field in rooms.ROOM.fields if not field.rule.read_only} - IDENTITY
    if (
        entry is None
        or one.before is None
        or one.after is None
        or not one.before.keys() <= writable
        or not person.sees(entry.parent)
    ):
        return None
    shown = flat(
        rooms.show(known, replace(entry, record=_former(entry.record, one.before)), one.at_ms)
    )
    document: Json = {}
    for name in one.before:
        (
            document.setdefault(EXTENSION, {})
            if schema_field(rooms.ROOM, name).rule.extension
            else document
        )[name] = shown[name]
    return rooms.change(
        entry.parent, one.id, document, whole=False, sees=person.sees
    ), f"/zones/{entry.parent}/rooms/{one.id}"


def _event_before(known: Configuration, person: Person, written: Sequence[AuditEntry]) -> WayBack:
    one = written[0]
    room = known.rooms.get(one.parent)
    if room is None or not person.sees(room.parent):
        return None
    path, place = f"/zones/{room.parent}/rooms/{room.id}/events", (room.parent, room.id)
    if one.before is None:
        return events.delete(*place, one.id), path
    if one.after is None:
        record = msgspec.convert(dict(one.before), type=Event)
        return events.create(*place, _writable(events.show(Entry(record, room.id, 0, 0, 0)))), path
    entry = known.events[one.id]
    document = events.show(replace(entry, record=_former(entry.record, one.before)))
    return events.change(*place, one.id, _writable(document), whole=True), path


def _rules_before(known: Configuration, person: Person, written: Sequence[AuditEntry]) -> WayBack:
    one = written[0]
    room = known.rooms.get(one.id)
    if room is None or one.after is None or not person.sees(room.parent):
        return None
    former = msgspec.convert((one.before or {}).get("rules", ()), type=tuple[Rule, ...])
    return rules.replace_all(
        room.parent, room.id, rules.show(former)
    ), f"/zones/{room.parent}/rooms/{room.id}/rules"


def _list_before(_known: Configuration, person: Person, written: Sequence[AuditEntry]) -> WayBack:
    one = written[0]
    return (lists.delete(one.id), "/lists") if one.before is None and not person.zone_ids else None


def _items_before(known: Configuration, person: Person, written: Sequence[AuditEntry]) -> WayBack:
    entry = known.lists.get(written[0].parent)
    if entry is None or person.zone_ids:
        return None
    items: dict[str, ListItem] = {item.id: item.record for item in known.list_items.of(entry.id)}
    for one in written:
        if one.before is None:
            del items[one.id]
        else:
            now: Json = msgspec.to_builtins(items[one.id]) if one.id in items else {}
            items[one.id] = msgspec.convert(now | dict(one.before), type=ListItem)
    kind = entry.record.kind
    documents = [list_items.show(kind, Entry(item, entry.id, 0, 0, 0)) for item in items.values()]
    wanted = [{kind: document[kind], "comment": document["comment"]} for document in documents]
    return list_items.add(entry.id, wanted, _no_operations, whole=True), f"/lists/{entry.id}"


def _operation_before(
    known: Configuration, person: Person, written: Sequence[AuditEntry]
) -> WayBack:
    """None for what cannot be undone: admitted visitors, ended sessions."""
    one = written[0]
    room, record = known.rooms.get(one.id), known.operations.get(one.id)
    changed = {kind for kind, _, _ in operation_changes(one)}
    if room is None or not person.sees(room.parent) or not changed <= {HOLD, MESSAGE, TAKE_OVER}:
        return None
    former = None
    if one.before is not None:
        values: Json = msgspec.to_builtins(record.record) if record else {}
        former = msgspec.convert(values | dict(one.before), type=RoomOperations)

    def plan(_known: Configuration, _at: ChangeContext) -> PlannedChange:
        change = Put(former) if former else Remove("operation", one.id)
        return PlannedChange([change], lambda _after: None)

    return plan, f"/zones/{room.parent}/rooms/{room.id}/live"


def _former(record: Any, before: Mapping[str, Any]) -> Any:
    values: Json = msgspec.to_builtins(record)
    return msgspec.convert(values | dict(before), type=type(record))


def _writable(document: Json) -> Json:
    return {
        field.name: document[field.name]
        for field in events.EVENT.fields
        if not field.rule.read_only and field.name in document
    }


UNDO_KINDS: Mapping[str, Callable[[Configuration, Person, Sequence[AuditEntry]], WayBack]] = {
    "room": _room_before,
    "event": _event_before,
    "operation": _operation_before,
    "rules": _rules_before,
    "list": _list_before,
    "list_item": _items_before,
}
"""Removed rooms, zones and lists are not brought back."""


def undo(page: PageRequest) -> Response:
    found = last_change(page.config, page.known, page.person)
    if found is None or found.number != page.field("number"):
        raise Refused(ApiFault(Code.CHANGED_MEANWHILE, GONE))
    page.change(found.plan)
    return page.redirect(found.path, notice="undone")


PAGES = (action("/undo", undo, filtered=True),)
