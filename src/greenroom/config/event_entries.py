"""Reads `[[rooms.events]]`: each event by itself, then those of one room together."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from greenroom.config.records import read_document
from greenroom.config.template_entries import read_template
from greenroom.config.toml_lines import step
from greenroom.configuration.events import EVENT, in_ms, value_problems
from greenroom.errors import Problem
from greenroom.model.event import EVENTS_PER_ROOM, Event, schedule_problems
from greenroom.model.fields import field_problems, spec, specs


@dataclass(frozen=True, slots=True, kw_only=True)
class EventExtra:
    """Keys of an event in a file that are not its fields."""

    custom_page_file: str = spec(
        "file with the Mustache template during the event, instead of custom_page_html",
        "",
        low=1,
        high=4096,
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
    extra = {name: raw[name] for name in specs(EventExtra) if name in raw}
    problems = field_problems(EventExtra, extra, f"{pointer}.")
    written = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in raw.items()
    }
    values, found = read_document(EVENT, written, pointer, value_problems, tuple(specs(EventExtra)))
    problems += found + read_template(raw, values, pointer, folder, files, text_line)
    return in_ms(values), problems
