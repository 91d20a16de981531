"""The documents of a configuration file: rooms with events and rules, lists, and the tables of
slices.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from greenroom.alerts import file_tables as alerting
from greenroom.capacity.sources import no_source_because
from greenroom.config_file.page_files import read_template, with_logo
from greenroom.config_file.sections import prometheus_target
from greenroom.configuration.events import EVENT, in_ms, value_problems
from greenroom.configuration.file_tables import (
    FILE_ZONE_ID,
    ID_PATTERN,
    NamedFiles,
    file_entry,
    file_id,
    read_document,
    step,
    tables,
)
from greenroom.configuration.rooms import ROOM
from greenroom.errors import InvalidConfig, Problem
from greenroom.health import checks as health
from greenroom.health.rules.origin import OriginChecks
from greenroom.model.configuration import Entry
from greenroom.model.event import EVENTS_PER_ROOM, Event, line_table_problems, schedule_problems
from greenroom.model.fields import (
    NAME_WORDS,
    Unique,
    field_problems,
    plural,
    spec,
    stand_in,
    wrong_fields,
)
from greenroom.model.health_check import HealthCheck
from greenroom.model.room import PUSHED, Room, limits_apart, room_problems
from greenroom.model.rule import (
    RULES_MAX,
    ListItem,
    Rule,
    RuleList,
    RuleSet,
)
from greenroom.outbound.policy import OutboundRefused
from greenroom.request.claims import Claims, Footprint
from greenroom.request.cookie_scope import cookie_scope, crosses_sites
from greenroom.request.routing import unreachable
from greenroom.rules import ListMembership, compile_lists, rule_problems
from greenroom.status_page import pages as status_pages
from greenroom.web.api_schema import ApiSchema
from greenroom.web.api_shapes import Several

SLICES = (health.TABLES, alerting.TABLES, status_pages.TABLES)
TABLES = ("lists", "rooms", *(name for one in SLICES for name in one.names))
"""Names of the tables that are documents."""

ROOMS_MAX = LISTS_MAX = 1_000
"""Keeps a broken generated file from exhausting the memory."""

RULE = ApiSchema.of(Rule)
LIST = ApiSchema.of(RuleList, shapes={"items": Several()})


def list_entries(lists: Iterable[RuleList]) -> Iterator[Entry[Any]]:
    for found in lists:
        yield file_entry(replace(found, items=()))
        for item in found.items:
            yield file_entry(ListItem(id=file_id("item", found.name, item), value=item), found.id)


def read_lists(
    raw: Any, problems: list[Problem]
) -> tuple[tuple[RuleList, ...], dict[str, ListMembership]]:
    """The lists, and what rules may be checked against, where bad lists are empty."""
    known: dict[str, ListMembership] = {}
    lists: list[RuleList] = []
    names = Unique("list")
    for at, entry in tables(raw, "lists", LISTS_MAX, problems):
        values, wrong = read_document(
            LIST, entry, at, partial(field_problems, RuleList), ignored=("id",)
        )
        problems += wrong
        if wrong:  # rules that name it have no problem of their own
            instead = stand_in(RuleList, values, {}, {"items": ()})
            known |= compile_lists([instead] if instead else [])
            continue
        found = RuleList(id=file_id("list", values["name"]), **values)
        if twice := names.problems(step(at, "name"), found.name):
            problems += twice
            continue
        try:
            known |= compile_lists([found])
            lists.append(found)
        except InvalidConfig as invalid:
            problems += [
                Problem(f"{at}{problem.pointer.removeprefix('lists[0]')}", problem.reason)
                for problem in invalid.problems
            ]
            known |= compile_lists([RuleList(name=found.name, kind=found.kind)])
    return tuple(lists), known


def read_rules(
    raw: Any,
    pointer: str,
    room_id: str,
    lists: Mapping[str, ListMembership],
    text_line: Callable[[str], int],
    problems: list[Problem],
) -> tuple[Rule, ...]:
    """Problems of an expression have a caret, and the line of the fault."""
    rules: list[Rule] = []
    for index, (at, entry) in enumerate(tables(raw, pointer, RULES_MAX, problems)):
        values, found = read_document(RULE, entry, at, partial(field_problems, Rule))
        expression = step(at, "expression")
        if isinstance(values.get("expression"), str) and not any(
            problem.pointer == expression for problem in found
        ):
            first = text_line(expression)
            found += [
                Problem(expression, problem.reason, first + problem.line - 1 if first else 0)
                for problem in rule_problems(values["expression"], expression, lists)
            ]
        problems += found
        if not found:
            rules.append(Rule(id=file_id(room_id, index, values["expression"]), **values))
    return tuple(rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventExtra:
    custom_page_file: str = spec(
        "file with the Mustache template during the event, instead of custom_page_html",
        "",
        low=1,
        high=4096,
    )


def read_events(
    raw: Any,
    pointer: str,
    room_id: str,
    files: NamedFiles,
    text_line: Callable[[str], int],
    problems: list[Problem],
) -> tuple[Event | None, ...]:
    """Adds what is wrong to `problems`; then the events are what is right in them."""
    events = []
    for at, entry in tables(raw, pointer, EVENTS_PER_ROOM, problems):
        values, found = _event_values(entry, at, files, text_line)
        problems += found
        own = file_id(room_id, values.get("name"))
        right = stand_in(Event, values, {}, {"id": own}) if found else Event(id=own, **values)
        events.append(right)
    problems += schedule_problems(events, pointer)
    return tuple(events)


def _event_values(
    raw: dict[str, Any],
    pointer: str,
    files: NamedFiles,
    text_line: Callable[[str], int],
) -> tuple[dict[str, Any], list[Problem]]:
    written = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in raw.items()
    }
    values, problems = read_document(EVENT, written, pointer, value_problems, EventExtra)
    problems += read_template(raw, values, pointer, files, text_line)
    return in_ms(values), problems


RULES_KEY, EVENTS_KEY = "rules", "events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    custom_page_file: str = spec(
        "file with the Mustache template, instead of custom_page_html; relative to the directory of"
        " the configuration file",
        "",
        low=1,
        high=4096,
    )
    id: str = spec(
        "stable identifier that tickets are bound to; default: derived from the name",
        "",
        low=1,
        high=64,
        pattern=ID_PATTERN,
        pattern_words=NAME_WORDS,
    )


@dataclass(slots=True)
class DocumentsRead:
    """The good documents, the pointers of these rooms by id, and every problem."""

    entries: list[Entry[Any]] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_documents(
    raw: Mapping[str, Any], files: NamedFiles, text_line: Callable[[str], int]
) -> DocumentsRead:
    """`text_line` returns the line on which a string value's text begins (0: unknown)."""
    read = DocumentsRead()
    lists, memberships = read_lists(raw.get("lists", []), read.problems)
    _read_rooms(raw.get("rooms", []), files, text_line, memberships, read)
    read.entries += list_entries(lists)
    for tables_of_slice in SLICES:
        read.entries += tables_of_slice.read(raw, files, read.problems)
    return read


def room_id(name: str) -> str:
    return file_id(name)


def _read_rooms(
    raw: Any,
    files: NamedFiles,
    text_line: Callable[[str], int],
    lists: Mapping[str, ListMembership],
    read: DocumentsRead,
) -> None:
    """`lists`: what rules may name."""
    names, ids = Unique("waiting room"), Unique("waiting room with the id")
    claims: Claims[str] = Claims()
    for pointer, entry in tables(raw, "rooms", ROOMS_MAX, read.problems):
        fields_of_room = {
            key: value for key, value in entry.items() if key not in (RULES_KEY, EVENTS_KEY)
        }
        values, problems = _room_values(fields_of_room, pointer, files, text_line)
        wrong = wrong_fields(problems, f"{pointer}.")
        named = str(values.get("id") or room_id(str(values.get("name"))))
        if not wrong & {"name", "id"}:
            problems += names.problems(step(pointer, "name"), values["name"]) or ids.problems(
                step(pointer, "id"), named
            )
        room = None if problems else Room(**{"id": named, **values})
        place = Footprint.of(room) if room else Footprint.of_values(values, wrong)
        problems += [
            Problem(f"{pointer}.{clash.pointer}", clash.reason(clash.owner or ""))
            for clash in claims.clashes(place)
        ]
        claims.add(f"waiting room {values.get('name')}", place)
        read.problems += problems
        rules = read_rules(
            entry.get(RULES_KEY, []),
            step(pointer, RULES_KEY),
            named,
            lists,
            text_line,
            read.problems,
        )
        events = read_events(
            entry.get(EVENTS_KEY, []),
            step(pointer, EVENTS_KEY),
            named,
            files,
            text_line,
            read.problems,
        )
        if values.get("line_table") is True:
            read.problems += line_table_problems(events, step(pointer, EVENTS_KEY))
        if room and not problems:
            read.places[named] = pointer
            read.entries.append(file_entry(room, FILE_ZONE_ID))
            read.entries += [file_entry(event, named) for event in filter(None, events)]
            if rules:
                read.entries.append(file_entry(RuleSet(id=named, rules=rules), named))
            notes = [*_cookie_notes(room), *_limit_notes("a room", room)]
            for event in filter(None, events):
                notes += [f"event {event.name}: {note}" for note in _limit_notes("an event", event)]
            read.notes += [f"room {room.name}: {note}" for note in notes]


def _limit_notes(kind: str, record: Room | Event) -> list[str]:
    reason = limits_apart(record.total_active_users, record.new_users_per_minute)
    return [f"{reason}; the API refuses such {kind}"] if reason else []


def _room_values(
    raw: dict[str, Any],
    pointer: str,
    files: NamedFiles,
    text_line: Callable[[str], int],
) -> tuple[dict[str, Any], list[Problem]]:
    """Values for Room(...), when there are no problems."""
    problems: list[Problem] = []
    if isinstance(raw.get("branding"), dict):
        at = step(pointer, "branding")
        raw = {**raw, "branding": with_logo(raw["branding"], at, files, problems)}
    values, found = read_document(
        ROOM,
        raw,
        pointer,
        lambda room: room_problems(room) + unreachable(room),
        Extra,
    )
    problems += found + read_template(raw, values, pointer, files, text_line)
    return values | ({"id": raw["id"]} if "id" in raw else {}), problems


def foreign_form_notes(rooms: Sequence[Room], https: bool) -> list[str]:
    """Rooms whose tickets browsers omit from forms that another site sends. `https`: visitors use
    HTTPS, as far as is known.
    """
    lax = [room.name for room in rooms if not crosses_sites(room, https)]
    if not lax:
        return []
    why = (
        "cookie_attributes says so"
        if https
        else "no TLS, trusted_proxies or always_use_https is set"
    )
    named = f"{', '.join(lax[:3])}{' and more' if len(lax) > 3 else ''}"
    return [
        f"{plural(len(lax), 'room')} {named}: cookies are SameSite=Lax ({why}), so a return from a"
        " payment or sign-in on another site (POST) comes without ticket"
    ]


def _cookie_notes(room: Room) -> list[str]:
    problem = cookie_scope(room.routes, room.case_insensitive_paths).problem
    return [problem.reason] if problem else []


def capacity_problems(
    rooms: Iterable[Room], checks: Iterable[HealthCheck], answers: bool
) -> Iterator[tuple[Room, str, str]]:
    """(room, field, reason) where nothing could measure the origin."""
    known: OriginChecks | None = None
    for room in rooms:
        if room.capacity_metrics not in ("", PUSHED):
            try:
                prometheus_target(room.capacity_metrics)
            except OutboundRefused as error:
                yield room, "capacity_metrics", str(error)
        if room.capacity != "fixed":
            known = known or OriginChecks(checks)
            checked = bool(known.of(room, None))
            if reason := no_source_because(room, answers=answers, checked=checked):
                yield room, "capacity", reason
