"""The event form: times in the viewer's zone, empty overrides where the room's value counts, and
the review.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from greenroom.configuration import events, rooms
from greenroom.configuration.dashboard.event_page import own_html
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.event import OVERRIDES as OVERRIDDEN
from greenroom.model.event import Event
from greenroom.model.fields import described
from greenroom.model.room import Room
from greenroom.web.api_shapes import Json
from greenroom.web.pages.forms import Faults, FieldView, flat, read_value
from greenroom.web.time_format import from_input, local_input, milliseconds, plain_moment

TIMES = {
    "prequeue_start_time": (
        "Pre-queue opens",
        (
            "Visitors can join from now. Nobody gets in until the start. At least five minutes"
            " before the start."
        ),
    ),
    "event_start_time": (
        "Start",
        "Visitors are admitted from now, with the settings below.",
    ),
    "event_end_time": ("End", "The room goes back to its own settings."),
}
_FIELDS = {field.name: field for field in described(Room)}
OVERRIDES = {
    name: (form.label, _FIELDS[name].kind)
    for name in OVERRIDDEN
    if (form := _FIELDS[name].rule.form)
}
"""Label and kind, as in the room's form; blank: the room's."""

EVENT_LABELS: Mapping[str, str] = {
    **{name: label for name, (label, _) in TIMES.items()},
    **{name: label for name, (label, _) in OVERRIDES.items()},
}

METHODS = _FIELDS["queueing_method"].rule.choice_labels()
YES_NO = {"true": "Yes", "false": "No"}


def document_of_event(
    form: Mapping[str, Sequence[str]], zone: str, entry: Entry[Event] | None = None
) -> Json:
    """Text that is no time stays text: the schema reports it. An unchanged time is `entry`'s,
    because a field cannot distinguish the two equal hours when clocks are set back.
    """
    before = flat(events.show(entry)) if entry else {}
    shown = shown_values(before, zone)

    def sent(name: str) -> str:
        return (form.get(name) or [""])[-1].strip()

    document: Json = {"name": sent("name"), "description": (form.get("description") or [""])[-1]}
    for name in TIMES:
        if before.get(name) and sent(name) == shown[name]:
            document[name] = before[name]
            continue
        at_ms = from_input(sent(name), zone)
        document[name] = plain_moment(at_ms) if at_ms is not None else sent(name) or None
    for name in ("shuffle_at_event_start", "suspended"):
        document[name] = name in form
    for name, (_, kind) in OVERRIDES.items():
        document[name] = _override(kind, sent(name))
    if "custom_page_html" in form:
        document["custom_page_html"] = own_html(form["custom_page_html"][-1]) or None
    return document


def fresh_values(now_ms: int, zone: str) -> dict[str, Any]:
    """Tomorrow at ten for two hours, with a pre-queue of half an hour."""
    tomorrow = datetime.fromtimestamp(now_ms / 1000, ZoneInfo(zone)) + timedelta(days=1)
    start = tomorrow.replace(hour=10, minute=0, second=0, microsecond=0, tzinfo=None)
    moved = {"prequeue_start_time": -30, "event_start_time": 0, "event_end_time": 120}
    return {
        name: (start + timedelta(minutes=minutes)).isoformat(timespec="minutes")
        for name, minutes in moved.items()
    }


def _override(kind: type, text: str) -> Any:
    if not text:
        return None
    return text == "true" if kind is bool else read_value(kind, text, present=True)


def values_of(entry: Entry[Event], zone: str) -> dict[str, Any]:
    return shown_values(flat(events.show(entry)), zone)


def shown_values(document: Mapping[str, Any], zone: str) -> dict[str, Any]:
    values = dict(document)
    for name in TIMES:
        at_ms = milliseconds(values.get(name))
        values[name] = local_input(at_ms, zone) if at_ms is not None else values.get(name) or ""
    for name, (_, kind) in OVERRIDES.items():
        value = values.get(name)
        values[name] = "" if value is None else str(value).lower() if kind is bool else value
    values["custom_page_html"] = values.get("custom_page_html") or ""
    return values


class EventFields(NamedTuple):
    about: list[FieldView]
    times: list[FieldView]
    overrides: list[FieldView]


def fields_of(room: Room, values: Mapping[str, Any], faults: Faults) -> EventFields:
    def told(name: str) -> str:
        rule = next(one.rule for one in events.EVENT.fields if one.name == name)
        return rule.help[:1].upper() + rule.help[1:] + "."

    about = [
        _field("name", "Name", values, faults, help=told("name"), placeholder="friday-sale"),
        _field("description", "Note", values, faults, kind="textarea", help=told("description")),
        _field(
            "suspended",
            "Suspend the event",
            values,
            faults,
            kind="checkbox",
            help=told("suspended"),
        ),
    ]
    times = [
        _field(name, label, values, faults, kind="datetime-local", help=text)
        for name, (label, text) in TIMES.items()
    ]
    draw = "Everyone here before the start has an equal chance. Later arrivals join the end."
    times.append(
        _field(
            "shuffle_at_event_start",
            "Randomize the pre-queue at the start",
            values,
            faults,
            kind="checkbox",
            help=draw,
        )
    )
    return EventFields(
        about, times, [_override_field(name, room, values, faults) for name in OVERRIDES]
    )


def _override_field(name: str, room: Room, values: Mapping[str, Any], faults: Faults) -> FieldView:
    label, kind = OVERRIDES[name]
    inherited = getattr(room, name)
    if kind is int:
        return _field(
            name,
            label,
            values,
            faults,
            kind="number",
            unit=_FIELDS[name].rule.unit,
            help=f"Room setting: {inherited:,}",
        )
    words = _FIELDS[name].rule.choice_labels() or YES_NO
    now = words[str(inherited).lower()]
    return _field(
        name,
        label,
        values,
        faults,
        kind="select",
        choices=(("", f"Room setting: {now.lower()}"), *words.items()),
    )


def _field(
    name: str, label: str, values: Mapping[str, Any], faults: Faults, **more: Any
) -> FieldView:
    return FieldView(
        **{
            "name": name,
            "label": label,
            "kind": "text",
            "value": values.get(name, ""),
            "problems": faults.take(name),
            **more,
        }
    )


class OverrideLine(NamedTuple):
    """`own` when the event overrides the room."""

    label: str
    room: Any
    event: Any
    own: bool


def review_lines(
    known: Configuration, room: Entry[Room], document: Mapping[str, Any], now_ms: int
) -> list[OverrideLine]:
    outside = flat(rooms.show(known, room, now_ms))
    lines = []
    for name, (label, _) in OVERRIDES.items():
        own = document.get(name)
        lines.append(
            OverrideLine(
                label,
                _word(outside[name]),
                _word(outside[name] if own is None else own),
                own is not None,
            )
        )
    own_page = document.get("custom_page_html")
    room_page = _page_word(outside["custom_page_html"])
    page = _page_word(own_page) if own_page else room_page
    return [*lines, OverrideLine("Waiting page", room_page, page, bool(own_page))]


def _page_word(html: str | None) -> str:
    return f"own HTML, {len(html):,} characters" if html else "built-in page"


def _word(value: Any) -> Any:
    return METHODS.get(value, value) if isinstance(value, str) else value
