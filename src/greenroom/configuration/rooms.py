"""Waiting rooms: constraints on a room by itself, in its zone, and among all rooms."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from greenroom.configuration.zones import RoomClaims, zone_of
from greenroom.errors import Problem
from greenroom.model.branding import Branding, LocalMessage
from greenroom.model.change import Change, Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.event import Event, draws_by
from greenroom.model.fields import taken, vars_of, with_unit
from greenroom.model.room import LIMITS, OPERATED, Room, limits_apart, room_problems
from greenroom.model.route import CORS_ORIGIN, CookieAttributes, Route
from greenroom.model.zone import Zone
from greenroom.pages import template_problems
from greenroom.request.claims import Footprint, routes_of
from greenroom.request.routing import unreachable
from greenroom.web.api_schema import (
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
    Nested,
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
    pointed,
    refuse_if,
    too_many,
)
from greenroom.web.time_format import milliseconds, plain_moment
from greenroom.web.time_format import moment as written

ROOMS_MAX = 5_000

SeesZone = Callable[[str], bool]
"""Messages name no room of a hidden zone."""

_TIME = {"type": "string", "format": "date-time"}
_TIME_OR_NULL = {"type": ["string", "null"], "format": "date-time"}

ROOM = ApiSchema.of(
    Room,
    shapes={
        "host": HostName(str),
        "additional_routes": Several(Route, or_null=True, host="host"),
        "cookie_suffix": Plain(str, or_null=True),
        "cookie_attributes": Nested(CookieAttributes),
        "branding": Nested(Branding),
        "branding_messages": Several(LocalMessage),
        "enabled_origin_commands": Several(choices=("revoke",)),
        "cors_origins": Several(pattern=f"^{CORS_ORIGIN}$"),
        "priority_paths": Several(pattern="^/[^?#*;]*$"),
        "confirm_newcomers": Choice(),
        "queueing_method": Plain(str, caseless=True),
        "path": Plain(str, absent=("",)),
        "queueing_status_code": Plain(int, absent=(0,)),
    },
    more=(
        computed("created_on", "creation time", Shown(_TIME)),
        computed("modified_on", "time of the last change", Shown(_TIME)),
        computed(
            "next_event_prequeue_start_time",
            "start of the next event's pre-queue, if it has one",
            Shown(_TIME_OR_NULL),
        ),
        computed(
            "next_event_start_time",
            "start of the next event, if there is one",
            Shown(_TIME_OR_NULL),
        ),
        READ_ONLY,
        computed(
            "sessions_ended_time",
            "when an operator last ended all sessions; null: never",
            Shown(_TIME_OR_NULL),
            extension=True,
        ),
    ),
)


def room_of(known: Configuration, zone_id: str, room_id: str) -> Entry[Room]:
    """Raises Refused when the zone has no such room."""
    zone_of(known, zone_id)
    return entry_of(known.rooms, "waiting room", room_id, zone_id)


WRITTEN = ("event_start_ms", "event_end_ms", "prequeue_start_ms")


def written_time(event: Event, name: str) -> str | None:
    """As written; formatted when the text is not kept or is another moment."""
    at_ms = getattr(event, name)
    if at_ms is None:
        return None
    position = WRITTEN.index(name)
    kept = event.written_times[position] if position < len(event.written_times) else ""
    return kept if milliseconds(kept) == at_ms else plain_moment(at_ms)


def show(known: Configuration, entry: Entry[Room], now_ms: int) -> Json:
    upcoming = next_event(known, entry.id, now_ms)
    ended_ms = known.room_in_operation(entry.id).sessions_ended_ms if entry.id in known.rooms else 0
    values = {item.name: getattr(entry.record, item.name) for item in fields(Room)}
    return ROOM.show(
        values
        | {
            "created_on": written(entry.created_ms),
            "modified_on": written(entry.modified_ms),
            "next_event_prequeue_start_time": (
                written_time(upcoming, "prequeue_start_ms") if upcoming else None
            ),
            "next_event_start_time": written_time(upcoming, "event_start_ms") if upcoming else None,
            "read_only": entry.read_only,
            "sessions_ended_time": (written(ended_ms) if ended_ms else None),
        }
    )


def next_event(known: Configuration, room_id: str, now_ms: int) -> Event | None:
    coming = (
        event
        for event in known.events_of(room_id)
        if not event.suspended and event.event_start_ms > now_ms
    )
    return min(coming, key=lambda event: event.event_start_ms, default=None)


def own_zone_only(_zone_id: str) -> bool:
    return False


def create(
    zone_id: str, document: Any, sees: SeesZone = own_zone_only, claims: RoomClaims | None = None
) -> ConfigChange:
    """A refusal names a conflicting room only to those who see its zone. `claims`: those of all
    rooms, if the caller has them.
    """

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        zone = zone_of(known, zone_id)
        refuse_read_only(zone, "zone")
        return _put(known, zone, at.new_id(), document, at, sees, claims or RoomClaims.of(known))

    return plan


def change(
    zone_id: str, room_id: str, document: Any, whole: bool, sees: SeesZone = own_zone_only
) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        entry = room_of(known, zone_id, room_id)
        refuse_read_only(entry, "waiting room")
        wanted = document if whole else overlaid(show(known, entry, at.now_ms), document)
        return _put(
            known,
            known.zones[zone_id],
            room_id,
            wanted,
            at,
            sees,
            RoomClaims.of(known, without=room_id),
        )

    return plan


def delete(zone_id: str, room_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        refuse_read_only(room_of(known, zone_id, room_id), "waiting room")
        gone: list[Change] = [Remove("room", room_id)]
        if room_id in known.operations:
            gone.append(Remove("operation", room_id))
        return PlannedChange(gone, lambda _after: {"id": room_id})

    return plan


def _put(
    known: Configuration,
    zone: Entry[Zone],
    room_id: str,
    document: Any,
    at: ChangeContext,
    sees: SeesZone,
    others: RoomClaims,
) -> PlannedChange:
    values, faults = read_as(
        ROOM, document, lambda values: room_problems(values) + unreachable(values)
    )
    if room_id not in known.rooms:
        faults += too_many(known.rooms, ROOMS_MAX, "waiting rooms")
    wrong = {fault.pointer.split("/")[1] for fault in faults if fault.pointer}
    faults += _page_faults(values, wrong) + limit_faults(zone.record, values, wrong)
    faults += _zone_faults(zone, values, wrong, others)
    wrong |= {"cookie_suffix"} & {fault.pointer.removeprefix("/") for fault in faults}
    faults += _clash_faults(known, zone, values, wrong, sees, others)
    if values.get("line_table") is True:
        faults += _draw_faults(known, room_id)
    refuse_if(faults)
    there = known.rooms.get(room_id)
    room = Room(
        id=room_id, **{name: getattr(there.record, name) for name in OPERATED if there}, **values
    )
    return PlannedChange(
        [Put(room, zone.id)], lambda after: show(after, after.rooms[room_id], at.now_ms)
    )


def _page_faults(values: Mapping[str, Any], wrong: set[str]) -> list[ApiFault]:
    page = values.get("custom_page_html")
    if not page or "custom_page_html" in wrong:
        return []
    return faults_of(template_problems(page, "custom_page_html"), Code.TEMPLATE)


def limit_faults(zone: Zone, values: Mapping[str, Any], wrong: Iterable[str]) -> list[ApiFault]:
    """Of a room or an event."""
    faults = []
    for name in LIMITS:
        value = values.get(name)
        if value is not None and name not in wrong and value < zone.limit_floor:
            reason = (
                f"{name}: must be at least {zone.limit_floor}, not {value} (greenroom.limit_floor"
                " of the zone)"
            )
            faults.append(ApiFault(Code.INVALID, reason, f"/{name}"))
    minutes = values.get("session_duration")
    if minutes is not None and "session_duration" not in wrong and minutes > zone.session_ceiling:
        most = with_unit(zone.session_ceiling, "minutes")
        reason = (
            f"session_duration: must be at most {most}, not {minutes}"
            " (greenroom.session_ceiling of the zone)"
        )
        faults.append(ApiFault(Code.INVALID, reason, "/session_duration"))
    if not {*LIMITS} & {*wrong} and (reason := limits_apart(*map(values.get, LIMITS))):
        faults.append(ApiFault(Code.INVALID, reason, "/new_users_per_minute"))
    return faults


def _zone_faults(
    zone: Entry[Zone], values: Mapping[str, Any], wrong: set[str], others: RoomClaims
) -> list[ApiFault]:
    faults = []
    if "name" not in wrong and others.has_name(zone.id, values["name"]):
        faults += faults_of([taken("name", "waiting room", values["name"])], Code.TAKEN)
    suffix = values.get("cookie_suffix")
    if suffix and "cookie_suffix" not in wrong and others.has_suffix(zone.id, suffix):
        faults.append(
            ApiFault(
                Code.TAKEN,
                f"cookie_suffix: another waiting room of this zone already has {suffix}",
                "/cookie_suffix",
            )
        )
    for pointer, route in routes_of(values, wrong):
        name = pointer if pointer == "host" else f"{pointer}.host"
        if route.host == "*":
            faults.append(
                ApiFault(
                    Code.INVALID,
                    f"{name}: must be in the zone {zone.record.name}; `*` is for configuration"
                    " files",
                    pointed(name),
                )
            )
        elif not zone.record.covers(route.host.removeprefix("*.")):
            faults.append(
                ApiFault(
                    Code.OUTSIDE,
                    f"{name}: must be {zone.record.name} or a host below it, not {route.host}",
                    pointed(name),
                )
            )
    return faults


def _named(known: Configuration, other: Entry[Room], zone: Entry[Zone], sees: SeesZone) -> str:
    if other.parent == zone.id:
        return f"waiting room {other.record.name}"
    if sees(other.parent):
        above = known.zones.get(other.parent)
        return (
            f"waiting room {other.record.name} of"
            f" {f'the zone {above.record.name}' if above else 'the configuration file'}"
        )
    return "a waiting room of another zone"


def _clash_faults(
    known: Configuration,
    zone: Entry[Zone],
    values: Mapping[str, Any],
    wrong: set[str],
    sees: SeesZone,
    others: RoomClaims,
) -> list[ApiFault]:
    """Every host, path and cookie belongs to one room of the whole installation."""
    if zone.record.case_insensitive_paths:
        values = {**values, "case_insensitive_paths": True}
    faults = []
    for clash in others.clashes(Footprint.of_values(values, wrong)):
        reason = clash.reason(_named(known, clash.owner, zone, sees) if clash.owner else "")
        if clash.route:
            faults.append(ApiFault(Code.COVERED, reason, pointed(clash.pointer)))
        else:
            faults += faults_of([Problem(clash.pointer, reason)], Code.COOKIES_CLASH)
    return faults


def _draw_faults(known: Configuration, room_id: str) -> list[ApiFault]:
    drawing = [event.name for event in known.events_of(room_id) if draws_by(vars_of(event))]
    reason = "greenroom.line_table: must be false while an event of the room draws places"
    return (
        [ApiFault(Code.INVALID, f"{reason}: {', '.join(drawing)}", "/greenroom/line_table")]
        if drawing
        else []
    )
