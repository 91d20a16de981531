"""Reads `[[rooms.events]]`: each event by itself, then those of one room together."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from greenroom.config.records import unknown_keys
from greenroom.config.template_entries import FILE_KEY, read_template
from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.event import EVENTS_PER_ROOM, Event, event_problems, schedule_problems
from greenroom.model.fields import check_value, spec, specs
from greenroom.web.time_format import milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EventExtra:
    """Keys of an event in a file that are not its fields."""

    event_start_time: str = spec(
        "start of the event: `2026-05-01T10:00:00Z`, with its time zone; quotes are optional"
    )
    event_end_time: str = spec("end of the event, at least one minute later")
    prequeue_start_time: str = spec(
        "start of the pre-queue, at least five minutes before the event; empty: no pre-queue", ""
    )
    custom_page_file: str = spec(
        "file with the Mustache template during the event, instead of custom_page_html",
        "",
        low=1,
        high=4096,
    )


TIMES = {
    "event_start_time": "event_start_ms",
    "event_end_time": "event_end_ms",
    "prequeue_start_time": "prequeue_start_ms",
}
KEYS = (
    *TIMES,
    FILE_KEY,
    *(
        name
        for name, rule in specs(Event).items()
        if not rule.read_only and name not in TIMES.values()
    ),
)


def event_id(room_id: str, name: str) -> str:
    """Depends on names only, so a held draw is known again after a restart."""
    return hashlib.sha256(f"{room_id}/{name}".encode()).hexdigest()[:32]


def read_events(
    raw: Any,
    pointer: str,
    room_id: str,
    folder: Path,
    files: list[Path],
    text_line: Callable[[str], int],
    problems: list[Problem],
) -> tuple[Event, ...]:
    """Adds what is wrong to `problems`."""
    if not isinstance(raw, list) or not all(isinstance(entry, dict) for entry in raw):
        problems.append(
            Problem(
                pointer,
                "must be written as [[rooms.events]] tables with a name, event_start_time and"
                " event_end_time",
            )
        )
        return ()
    events = []
    for index, entry in enumerate(raw[: EVENTS_PER_ROOM + 1]):
        at = step(pointer, index)
        values, found = _event_values(entry, at, folder, files, text_line)
        problems += found
        if not found:
            events.append(Event(id=event_id(room_id, values["name"]), **values))
    problems += (
        schedule_problems(events, pointer) if len(events) == len(raw[: EVENTS_PER_ROOM + 1]) else []
    )
    return tuple(events)


def _event_values(
    raw: dict[str, Any],
    pointer: str,
    folder: Path,
    files: list[Path],
    text_line: Callable[[str], int],
) -> tuple[dict[str, Any], list[Problem]]:
    problems = unknown_keys(raw, KEYS, pointer)
    values = {
        key: value
        for key, value in raw.items()
        if key in KEYS and key not in TIMES and key != FILE_KEY
    }
    if isinstance(values.get("queueing_method"), str):
        values["queueing_method"] = values["queueing_method"].lower()
    for key, rule in specs(EventExtra).items():
        if key in TIMES:
            values |= _time(raw, key, step(pointer, key), problems)
        elif key in raw:
            wrong = check_value(step(pointer, key), raw[key], str, rule)
            problems += [wrong] if wrong else []
    problems += (
        [
            Problem(_as_written(found.pointer), found.reason)
            for found in event_problems(values, f"{pointer}.")
        ]
        if not problems
        else []
    )
    problems += read_template(raw, values, pointer, folder, files, text_line)
    return values, problems


def _time(raw: dict[str, Any], key: str, at: str, problems: list[Problem]) -> dict[str, int]:
    """Returns the time under this key, by the name of the event's field; nothing when there is
    none.
    """
    if key not in raw and key == "prequeue_start_time":
        return {}
    written = raw.get(key)
    found = milliseconds(written.isoformat() if isinstance(written, datetime) else written)
    if found is not None:
        return {TIMES[key]: found}
    reason = (
        "is required: " + specs(EventExtra)[key].help
        if key not in raw
        else f"must be a time with a time zone such as 2026-05-01T10:00:00Z, not {written}"
    )
    problems.append(Problem(at, reason))
    return {}


def _as_written(pointer: str) -> str:
    """The pointer with the key that stands in the file."""
    for key, name in TIMES.items():
        pointer = pointer.replace(name, key)
    return pointer
