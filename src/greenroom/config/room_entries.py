"""Reads `[[rooms]]`: each room by itself, then conflicts between rooms."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenroom.config.config import ROOMS_MAX
from greenroom.config.event_entries import read_events
from greenroom.config.logo_entries import with_logo
from greenroom.config.records import read_document
from greenroom.config.rule_entries import read_rules
from greenroom.config.template_entries import read_template
from greenroom.config.toml_lines import step
from greenroom.configuration.rooms import ROOM, routes_of
from greenroom.errors import Problem
from greenroom.model.event import Event, line_table_problems
from greenroom.model.fields import NAME_WORDS, Unique, field_problems, spec, specs, wrong_fields
from greenroom.model.room import Room, limits_apart, room_problems
from greenroom.model.rule import Rule
from greenroom.request.cookie_scope import cookie_scope, crosses_sites, scope_clashes
from greenroom.request.routing import Coverage, belongs_to, unreachable
from greenroom.rules import NO_LISTS, ListMembership

ID_PATTERN = r"[A-Za-z0-9_-]+"
RULES_KEY, EVENTS_KEY = "rules", "events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Keys of a room in a file that are not its fields."""

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
class RoomsRead:
    """The good rooms, their events and rules by id, the template files, and every problem."""

    rooms: list[Room] = field(default_factory=list)
    events: dict[str, tuple[Event, ...]] = field(default_factory=dict)
    rules: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def room_id(name: str) -> str:
    """Depends on the name only, so tickets survive restarts and reordering."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def read_rooms(
    raw: Any,
    folder: Path,
    text_line: Callable[[str], int],
    lists: Mapping[str, ListMembership] = NO_LISTS,
) -> RoomsRead:
    """`text_line` returns the line on which a string value's text begins (0: unknown); `lists`:
    what rules may name.
    """
    read = RoomsRead()
    if not isinstance(raw, list) or not all(isinstance(entry, dict) for entry in raw):
        read.problems.append(Problem("rooms", "must be written as [[rooms]] tables"))
    elif len(raw) > ROOMS_MAX:
        read.problems.append(Problem("rooms", f"must be at most {ROOMS_MAX} rooms, not {len(raw)}"))
    if read.problems:
        return read
    names, ids = Unique("waiting room"), Unique("waiting room with the id")
    covered: Coverage[str] = Coverage()
    for index, entry in enumerate(raw):
        pointer = step("rooms", index)
        fields_of_room = {
            key: value for key, value in entry.items() if key not in (RULES_KEY, EVENTS_KEY)
        }
        values, problems = _room_values(fields_of_room, pointer, folder, read.files, text_line)
        wrong = wrong_fields(problems, f"{pointer}.")
        named = str(values.get("id") or room_id(str(values.get("name"))))
        if not wrong & {"name", "id"}:
            problems += names.problems(step(pointer, "name"), values["name"]) or ids.problems(
                step(pointer, "id"), named
            )
        problems += _route_problems(covered, values, wrong, pointer)
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
            folder,
            read.files,
            text_line,
            read.problems,
        )
        if values.get("line_table") is True:
            read.problems += line_table_problems(events, step(pointer, EVENTS_KEY))
        if not problems:
            read.rooms.append(Room(**{"id": named, **values}))
            read.events[named] = events
            read.rules[named] = rules
    if len(read.rooms) == len(raw):
        read.problems += scope_clashes(read.rooms)
        read.notes += [
            f"room {room.name}: {note}"
            for room in read.rooms
            for note in (*_cookie_notes(room), *_limit_notes(room))
        ]
    return read


def _limit_notes(room: Room) -> list[str]:
    reason = limits_apart(room.total_active_users, room.new_users_per_minute)
    return [f"{reason}; the API refuses such a room"] if reason else []


def _room_values(
    raw: dict[str, Any],
    pointer: str,
    folder: Path,
    files: list[Path],
    text_line: Callable[[str], int],
) -> tuple[dict[str, Any], list[Problem]]:
    """Values for Room(...), when there are no problems."""
    extra = {name: raw[name] for name in specs(Extra) if name in raw}
    problems = field_problems(Extra, extra, f"{pointer}.")
    if isinstance(raw.get("branding"), dict):
        at = step(pointer, "branding")
        raw = {**raw, "branding": with_logo(raw["branding"], at, folder, files, problems)}
    values, found = read_document(
        ROOM,
        raw,
        pointer,
        lambda room: room_problems(room) + unreachable(room),
        tuple(specs(Extra)),
    )
    problems += found + read_template(raw, values, pointer, folder, files, text_line)
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
        f"room {named}: cookies are SameSite=Lax ({why}), so a return from a payment or sign-in on"
        " another site (POST) comes without ticket"
    ]


def _cookie_notes(room: Room) -> list[str]:
    problem = cookie_scope(room.routes, room.case_insensitive_paths).problem
    return [problem.reason] if problem else []


def _route_problems(
    covered: Coverage[str], values: Mapping[str, Any], wrong: set[str], pointer: str
) -> list[Problem]:
    """Every host and path belongs to one room."""
    own = f"waiting room {values.get('name')}"
    any_case = values.get("case_insensitive_paths") is True
    return [
        Problem(
            f"{pointer}.{at}",
            belongs_to(route, "another route of this room" if owner == own else owner),
        )
        for at, route in routes_of(values, wrong)
        if (owner := covered.claim(own, route, any_case))
    ]
