"""Reads `[[rooms]]`: each room by itself, then conflicts between rooms."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from greenroom.config.config import ROOMS_MAX
from greenroom.config.event_entries import read_events
from greenroom.config.logo_entries import with_logo
from greenroom.config.records import read_record, unknown_keys
from greenroom.config.rule_entries import read_rules
from greenroom.config.template_entries import FILE_KEY, read_template
from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.branding import Branding, LocalMessage
from greenroom.model.event import Event, line_table_problems
from greenroom.model.fields import NAME_WORDS, check_value, spec, specs
from greenroom.model.room import CookieAttributes, Room, limits_apart, room_problems
from greenroom.model.route import Route
from greenroom.model.rule import Rule
from greenroom.request.cookie_scope import cookie_scope, crosses_sites, scope_clashes
from greenroom.request.routing import route_prefix, unreachable
from greenroom.rules import NO_LISTS, ListMembership

ID_PATTERN = r"[A-Za-z0-9_-]+"
CASELESS = ("queueing_method",)
"""Enumerations that the published API accepts in any case."""

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


KEYS = tuple(dict.fromkeys([*specs(Room), *specs(Extra), RULES_KEY, EVENTS_KEY]))


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
    entries = []
    for index, entry in enumerate(raw):
        pointer = step("rooms", index)
        fields_of_room = {
            key: value for key, value in entry.items() if key not in (RULES_KEY, EVENTS_KEY)
        }
        values, problems = _room_values(fields_of_room, pointer, folder, read.files, text_line)
        entries.append((pointer, values))
        read.problems += problems
        named = str(values.get("id") or room_id(str(values.get("name"))))
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
    read.problems += _names_twice(entries) + _ids_twice(entries) + _routes_twice(entries)
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
    problems = unknown_keys(raw, KEYS, pointer)
    values = {key: value for key, value in raw.items() if key in KEYS and key != FILE_KEY}
    for key in CASELESS:
        if isinstance(values.get(key), str):
            values[key] = values[key].lower()
    for key, rule in specs(Extra).items():
        wrong = check_value(step(pointer, key), raw[key], str, rule) if key in raw else None
        if wrong:
            problems.append(wrong)
    if isinstance(values.get("branding"), dict):
        values["branding"] = with_logo(
            values["branding"], step(pointer, "branding"), folder, files, problems
        )
    _read_lists(values, pointer, problems)
    problems += [
        found for found in room_problems(values, f"{pointer}.") if not _already(found, problems)
    ]
    problems += unreachable(values, f"{pointer}.")
    problems += read_template(raw, values, pointer, folder, files, text_line)
    return values, problems


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


def _already(found: Problem, problems: list[Problem]) -> bool:
    return any(found.pointer == other.pointer for other in problems)


def _read_lists(values: dict[str, Any], pointer: str, problems: list[Problem]) -> None:
    """Turns TOML's lists and tables into what a Room holds; reports and omits others."""
    lists = ("additional_routes", "enabled_origin_commands", "branding_messages", "cors_origins")
    wrong = [key for key in lists if not isinstance(values.get(key, []), list)]
    problems += [
        Problem(step(pointer, key), f"must be a list, not {values.pop(key)!r}") for key in wrong
    ]
    for key in ("enabled_origin_commands", "cors_origins"):
        if key in values:
            values[key] = tuple(map(str, values[key]))
    if "additional_routes" in values:
        at = step(pointer, "additional_routes")
        values["additional_routes"] = tuple(
            _route(entry, step(at, i), problems)
            for i, entry in enumerate(values["additional_routes"])
        )
    if "branding_messages" in values:
        at = step(pointer, "branding_messages")
        values["branding_messages"] = tuple(
            _message(entry, step(at, i), problems)
            for i, entry in enumerate(values["branding_messages"])
        )
    for name, kind in (("cookie_attributes", CookieAttributes), ("branding", Branding)):
        if name in values:
            record = read_record(kind, values.pop(name), step(pointer, name), problems)
            if record:
                values[name] = record


def _message(raw: Any, pointer: str, problems: list[Problem]) -> Any:
    """A LocalMessage for a table; anything else is for the room's own checks."""
    if not isinstance(raw, dict):
        return raw
    problems += unknown_keys(raw, [item.name for item in fields(LocalMessage)], pointer)
    return LocalMessage(raw.get("language", ""), raw.get("text", ""))


def _route(raw: Any, pointer: str, problems: list[Problem]) -> Any:
    """A Route for a table; anything else is for the room's own checks."""
    if not isinstance(raw, dict):
        return raw
    problems += unknown_keys(raw, [item.name for item in fields(Route)], pointer)
    return Route(raw.get("host", ""), raw.get("path", "/"))


def _names_twice(entries: list[tuple[str, dict[str, Any]]]) -> list[Problem]:
    first: dict[str, str] = {}
    return [
        Problem(
            step(pointer, "name"), f"{name!r}: there is already a room of this name ({first[name]})"
        )
        for pointer, values in entries
        if isinstance(name := values.get("name"), str)
        and first.setdefault(name, pointer) != pointer
    ]


def _ids_twice(entries: list[tuple[str, dict[str, Any]]]) -> list[Problem]:
    """Also a written id that equals the one made from another room's name; rooms of one name are
    reported as such.
    """
    first: dict[str, tuple[str, str]] = {}
    problems = []
    for pointer, values in entries:
        name, given = values.get("name"), values.get("id")
        if isinstance(name, str) and isinstance(given, str | None):
            found = given or room_id(name)
            other, other_name = first.setdefault(found, (pointer, name))
            if other_name != name:
                problems.append(
                    Problem(step(pointer, "id"), f"{found}: {other} already has this id")
                )
    return problems


def _routes_twice(entries: list[tuple[str, dict[str, Any]]]) -> list[Problem]:
    """Every host and path belongs to one room; paths that differ only in case conflict when either
    room ignores case.
    """
    seen: dict[tuple[str, str], list[tuple[str, str, bool]]] = {}
    problems = []
    for pointer, values in entries:
        any_case = values.get("case_insensitive_paths") is True
        for at, host, path in _routes(pointer, values):
            prefix = route_prefix(path)
            others = seen.setdefault((host, prefix.lower()), [])
            clash = next(
                (
                    other
                    for other, theirs, folded in others
                    if theirs == prefix or any_case or folded
                ),
                "",
            )
            if clash:
                problems.append(Problem(at, f"{host}{path} is already covered by {clash}"))
            others.append((at, prefix, any_case))
    return problems


def _routes(pointer: str, values: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(pointer, host, path) of every route that can be compared."""
    found = [(step(pointer, "path"), values.get("host"), values.get("path", "/"))]
    for index, route in enumerate(values.get("additional_routes", ())):
        if isinstance(route, Route):
            found.append((step(step(pointer, "additional_routes"), index), route.host, route.path))
    return [
        (at, host, path)
        for at, host, path in found
        if isinstance(host, str) and isinstance(path, str) and path.startswith("/")
    ]
