"""A planned event of a room: temporary settings, with an optional pre-queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import NAME_WORDS, field_problems, spec, vars_of, wrong_fields
from greenroom.model.room import (
    LIMIT_MAX,
    LIMITS,
    METHODS,
    SESSION_LONGEST,
    TEMPLATE_MAX,
    TURNSTILE_ACTIONS,
    TURNSTILE_MODES,
)

PREQUEUE_LEAST_MS = 300_000
EVENT_LEAST_MS = 60_000
EVENTS_PER_ROOM = 5

NO_DRAW = "must not draw places while the room has line_table, which tells places by arrival"

OVERRIDES = (
    "total_active_users",
    "new_users_per_minute",
    "session_duration",
    "disable_session_renewal",
    "queueing_method",
    "custom_page_html",
    "turnstile_mode",
    "turnstile_action",
)
"""Null inherits the room's current value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Bounds and defaults as published by Cloudflare; the API checks its own minimum of 200 for the
    two limits.
    """

    id: str = spec("opaque identifier, unique", "", read_only=True)
    name: str = spec(
        "unique name within the room",
        example="sale",
        pattern=r"[A-Za-z0-9_-]+",
        pattern_words=NAME_WORDS,
        low=1,
        high=200,
    )
    event_start_ms: int = spec("start of the event", unit="ms", low=0)
    event_end_ms: int = spec("end of the event, at least one minute later", unit="ms", low=0)
    prequeue_start_ms: int | None = spec(
        "start of the pre-queue, at least five minutes before the event",
        None,
        unit="ms",
        low=0,
        nullable=True,
    )
    shuffle_at_event_start: bool = spec("shuffle the visitors in the pre-queue at the start", False)
    suspended: bool = spec("a suspended event does not run", False)
    description: str = spec("only your team sees it", "", high=10_000)
    total_active_users: int | None = spec(
        "active visitors during the event", None, low=1, high=LIMIT_MAX, nullable=True
    )
    new_users_per_minute: int | None = spec(
        "admissions a minute during the event", None, low=1, high=LIMIT_MAX, nullable=True
    )
    session_duration: int | None = spec(
        "session length during the event",
        None,
        unit="minutes",
        low=1,
        high=SESSION_LONGEST,
        nullable=True,
    )
    disable_session_renewal: bool | None = spec(
        "fixed session length during the event", None, nullable=True
    )
    queueing_method: str | None = spec(
        "queueing method during the event", None, choices=METHODS, nullable=True
    )
    custom_page_html: str | None = spec(
        "template during the event", None, high=TEMPLATE_MAX, nullable=True
    )
    turnstile_mode: str | None = spec(
        "kept for compatible configurations", None, choices=TURNSTILE_MODES, nullable=True
    )
    turnstile_action: str | None = spec(
        "kept for compatible configurations", None, choices=TURNSTILE_ACTIONS, nullable=True
    )
    written_times: tuple[str, ...] = spec(
        "start, end and pre-queue (or empty) as the operator wrote them", (), high=3, read_only=True
    )

    def __post_init__(self) -> None:
        problems = event_problems(vars_of(self))
        if problems:
            raise InvalidConfig(problems)

    @property
    def opens_ms(self) -> int:
        return self.event_start_ms if self.prequeue_start_ms is None else self.prequeue_start_ms


def event_problems(values: Mapping[str, Any]) -> list[Problem]:
    problems = field_problems(Event, values)
    if not wrong_fields(problems) & set(_TIMING):
        problems += _timing_problems(values)
    return problems + _together_problems(values)


_TIMING = ("event_start_ms", "event_end_ms", "prequeue_start_ms")


def _timing_problems(values: Mapping[str, Any]) -> list[Problem]:
    problems = []
    start, end, prequeue = (
        values["event_start_ms"],
        values["event_end_ms"],
        values.get("prequeue_start_ms"),
    )
    if end - start < EVENT_LEAST_MS:
        problems.append(Problem("event_end_ms", "must be at least one minute after the start"))
    if prequeue is not None and start - prequeue < PREQUEUE_LEAST_MS:
        problems.append(
            Problem("prequeue_start_ms", "must be at least five minutes before the start")
        )
    if values.get("shuffle_at_event_start") and prequeue is None:
        problems.append(Problem("shuffle_at_event_start", "needs prequeue_start_time"))
    return problems


def _together_problems(values: Mapping[str, Any]) -> list[Problem]:
    given = [name for name in LIMITS if values.get(name) is not None]
    if len(given) != 1:
        return []
    missing = LIMITS[1 - LIMITS.index(given[0])]
    return [Problem(missing, f"must be given together with {given[0]}")]


def schedule_problems(events: Sequence[Event | None], pointer: str = "events") -> list[Problem]:
    """None stands for an event with a wrong name or times."""
    problems = []
    if len(events) > EVENTS_PER_ROOM:
        problems.append(
            Problem(
                pointer, f"must be at most {EVENTS_PER_ROOM} events in a room, not {len(events)}"
            )
        )
    names: set[str] = set()
    known = [(index, event) for index, event in enumerate(events) if event]
    for index, event in known:
        if event.name in names:
            problems.append(
                Problem(
                    f"{pointer}[{index}].name",
                    f"{event.name!r} is already the name of another event of this room",
                )
            )
        names.add(event.name)
    ordered = sorted(known, key=lambda found: found[1].opens_ms)
    for (_, before), (index, after) in pairwise(ordered):
        if after.opens_ms < before.event_end_ms:
            at = f"{pointer}[{index}]"
            problems.append(
                Problem(
                    at,
                    f"{after.name!r} opens before {before.name!r} has ended; events of one room"
                    " must not overlap",
                )
            )
    return problems


def draws_by(values: Mapping[str, Any]) -> str:
    """The field by which an event with these values draws places; empty: it draws none."""
    if values.get("shuffle_at_event_start") is True:
        return "shuffle_at_event_start"
    return "queueing_method" if values.get("queueing_method") == "random" else ""


def line_table_problems(events: Sequence[Event | None], pointer: str) -> list[Problem]:
    return [
        Problem(f"{pointer}[{index}].{name}", NO_DRAW)
        for index, event in enumerate(events)
        if event and (name := draws_by(vars_of(event)))
    ]
