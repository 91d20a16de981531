"""Events of a room: times, overrides, and the resulting settings."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from greenroom.configuration.rooms import WRITTEN, limit_faults, room_of, written_time
from greenroom.errors import Problem
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.event import (
    NO_DRAW,
    OVERRIDES,
    Event,
    draws_by,
    event_problems,
    schedule_problems,
)
from greenroom.model.fields import Spec
from greenroom.model.room import Room
from greenroom.pages import template_problems
from greenroom.web.api_schema import (
    ApiField,
    ApiSchema,
    computed,
    overlaid,
    read_as,
)
from greenroom.web.api_shapes import (
    Json,
    MomentField,
    Plain,
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
)
from greenroom.web.time_format import milliseconds
from greenroom.web.time_format import moment as written

TIMES = {
    "event_start_time": "event_start_ms",
    "event_end_time": "event_end_ms",
    "prequeue_start_time": "prequeue_start_ms",
}

_API_NAMES = {ours: name for name, ours in TIMES.items()}
_TIME = {"type": "string", "format": "date-time"}
_COMPUTED = (
    computed("created_on", "creation time", Shown(_TIME)),
    computed("modified_on", "time of the last change", Shown(_TIME)),
)

EVENT = ApiSchema.of(
    Event,
    shapes={"queueing_method": Plain(str, caseless=True)},
    without=(*WRITTEN, "written_times"),
    more=(
        ApiField(
            "event_start_time",
            Spec("start of the event, ISO 8601", example="2030-01-01T11:00:00Z"),
            MomentField(),
        ),
        ApiField(
            "event_end_time",
            Spec("end of the event, at least one minute later", example="2030-01-01T17:00:00Z"),
            MomentField(),
        ),
        ApiField(
            "prequeue_start_time",
            Spec("start of the pre-queue, at least five minutes before the event", nullable=True),
            MomentField(),
            None,
        ),
        *_COMPUTED,
    ),
)

DETAILS = ApiSchema(
    tuple(api_field for api_field in EVENT.fields if not api_field.name.startswith("turnstile"))
)
"""Null fields have the room's values."""


def event_of(known: Configuration, zone_id: str, room_id: str, event_id: str) -> Entry[Event]:
    """Raises Refused when the room has no such event."""
    room_of(known, zone_id, room_id)
    return entry_of(known.events, "event", event_id, room_id)


def show(
    entry: Entry[Event], form: ApiSchema = EVENT, inherited: Mapping[str, Any] | None = None
) -> Json:
    event = entry.record
    values = {item.name: getattr(event, item.name) for item in fields(Event)}
    values |= {name: value for name, value in (inherited or {}).items() if values[name] is None}
    values |= {name: written_time(event, ours) for name, ours in TIMES.items()}
    return form.show(
        values
        | {"created_on": written(entry.created_ms), "modified_on": written(entry.modified_ms)}
    )


def details(known: Configuration, entry: Entry[Event]) -> Json:
    room: Room = known.rooms[entry.parent].record
    return show(entry, DETAILS, {name: getattr(room, name) for name in OVERRIDES})


def create(zone_id: str, room_id: str, document: Any) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        refuse_read_only(room_of(known, zone_id, room_id), "waiting room")
        return _put(known, zone_id, room_id, at.new_id(), document)

    return plan


def change(zone_id: str, room_id: str, event_id: str, document: Any, whole: bool) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = event_of(known, zone_id, room_id, event_id)
        refuse_read_only(entry, "event")
        return _put(
            known,
            zone_id,
            room_id,
            event_id,
            document if whole else overlaid(show(entry), document),
        )

    return plan


def delete(zone_id: str, room_id: str, event_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        refuse_read_only(event_of(known, zone_id, room_id, event_id), "event")
        return PlannedChange([Remove("event", event_id)], lambda _after: {"id": event_id})

    return plan


def _put(
    known: Configuration, zone_id: str, room_id: str, event_id: str, document: Any
) -> PlannedChange:
    values, faults = read_as(EVENT, document, value_problems)
    wrong = {fault.pointer.split("/")[1] for fault in faults if fault.pointer}
    faults += limit_faults(known.zones[zone_id].record, values, wrong)
    page = values.get("custom_page_html")
    if page and "custom_page_html" not in wrong:
        faults += faults_of(template_problems(page, "custom_page_html"), Code.TEMPLATE)
    if not wrong & {"name", *TIMES}:
        span = Event(
            id=event_id,
            **{
                name: value
                for name, value in in_ms(values).items()
                if name in ("name", *TIMES.values())
            },
        )
        others = [entry.record for entry in known.events.of(room_id) if entry.id != event_id]
        faults += _schedule_faults(schedule_problems([*others, span]))
    if known.rooms[room_id].record.line_table and (name := draws_by(values)) not in ("", *wrong):
        faults.append(ApiFault(Code.INVALID, f"{name}: {NO_DRAW}", f"/{name}"))
    refuse_if(faults)
    event = Event(
        id=event_id, written_times=tuple(values[name] or "" for name in TIMES), **in_ms(values)
    )
    return PlannedChange([Put(event, room_id)], lambda after: show(after.events[event_id]))


def in_ms(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in values.items() if name not in TIMES}
    return kept | {TIMES[name]: milliseconds(values[name]) for name in TIMES if name in values}


def value_problems(values: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with an event by itself, by the names of the API."""
    return [
        Problem(_API_NAMES.get(found.pointer, found.pointer), found.reason)
        for found in event_problems(in_ms(values))
    ]


def _schedule_faults(problems: list[Problem]) -> list[ApiFault]:
    faults = []
    for found in problems:
        if found.pointer.endswith(".name"):
            faults.append(ApiFault(Code.TAKEN, f"name: {found.reason}", "/name"))
        elif found.pointer == "events":
            faults.append(ApiFault(Code.TOO_MANY, found.reason))
        else:
            faults.append(
                ApiFault(
                    Code.EVENTS_OVERLAP, f"event_start_time: {found.reason}", "/event_start_time"
                )
            )
    return faults
