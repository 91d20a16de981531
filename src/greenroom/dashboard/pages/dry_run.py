"""Dry run: what this room would do with an expected crowd, under its own limits and under others."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from greenroom.admission.schedule import effective
from greenroom.dashboard.parts import DRY_RUNS, DryRunState
from greenroom.errors import InvalidConfig
from greenroom.model.account import Role
from greenroom.model.configuration import Entry
from greenroom.model.event import Event
from greenroom.model.room import LIMITS, Room
from greenroom.web.pages.forms import Faults, FieldView
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import ApiFault, Code, Refused

DRY_RUN = "/zones/{zone_id}/rooms/{room_id}/dry-run"
SIMULATED = (*LIMITS, "session_duration", "disable_session_renewal", "queueing_method")

CURVES = (
    ("rush", "Most at the beginning, as when a sale opens"),
    ("flat", "Evenly"),
    ("bell", "Rising, then falling"),
)


class NumberField(NamedTuple):
    label: str
    default: str
    low: int
    high: int
    help: str


NUMBERS: Mapping[str, NumberField] = {
    "visitors": NumberField("Visitors", "10000", 1, 2_000_000, "How many you expect."),
    "minutes": NumberField("Arriving within (minutes)", "10", 1, 10_080, ""),
    "visit_minutes": NumberField(
        "Length of a visit",
        "2",
        1,
        1_440,
        "Minutes from being let in to the last click, on average.",
    ),
    "patience_minutes": NumberField(
        "Give up after (minutes)",
        "",
        0,
        10_000,
        "Average. Leave blank if everyone waits.",
    ),
    "early_percent": NumberField(
        "In the pre-queue (%)", "50", 0, 100, "Share of the visitors who come before the start."
    ),
    "total_active_users": NumberField(
        "Other limit: active visitors at once",
        "",
        1,
        2_147_483_647,
        "Leave blank for no comparison.",
    ),
    "new_users_per_minute": NumberField(
        "Other limit: new visitors per minute",
        "",
        1,
        2_147_483_647,
        "Leave blank for no comparison.",
    ),
}

ROWS_MAX = 100_000

CROWD = ("visitors", "minutes", "visit_minutes", "patience_minutes")
EARLY_MAX_S = 6 * 3_600.0
"""Until then no visitor is admitted, and all of them retry."""

ROWS = 12
"""Rows of the table under the chart."""


def show(page: PageRequest) -> Response:
    return _form(page, Faults())


def start(page: PageRequest) -> Response:
    runs, room = page.part(DRY_RUNS), page.room
    if runs is None:
        raise HTTPException(404)
    try:
        wanted = _wanted(page)
        run_id = runs.start(room.id, wanted)
        if run_id is None:
            raise Refused(
                ApiFault(
                    Code.TOO_MANY, "several dry runs are waiting already; try again in a minute"
                ),
                status=429,
            )
    except Refused as refused:
        return _form(page, Faults(refused.faults), refused.status)
    except InvalidConfig as error:
        faults = [
            ApiFault(
                Code.INVALID, f"{problem.pointer.removeprefix('rows: ')}: {problem.reason}", "/rows"
            )
            for problem in error.problems
        ]
        return _form(page, Faults(faults), 400)
    return page.redirect(
        f"/zones/{page.zone.id}/rooms/{room.id}/dry-run/{run_id}", **_asked(page.field)
    )


def _asked(read: Callable[[str], str]) -> dict[str, str]:
    """Inputs kept in the address; a table of arrivals is too long for it."""
    found = {name: read(name).strip()[:40] for name in (*NUMBERS, "curve", "event")}
    return {name: text for name, text in found.items() if text}


def result(page: PageRequest) -> Response:
    runs = page.part(DRY_RUNS)
    run = runs.find(page.path("run_id")) if runs else None
    if run is None or run.room_id != page.room.id:
        raise HTTPException(404)
    lines = _lines(run)
    return page.render(
        "dry_run_state.html" if page.is_fragment else "dry_run_result.html",
        entry=page.room,
        zone=page.zone,
        run=run,
        run_id=page.path("run_id"),
        asked=_asked(page.query),
        event=_event(page),
        lines=lines,
        lines_json=json.dumps([line._asdict() for line in lines]),
        moments=_moments(lines),
    )


def _wanted(page: PageRequest) -> dict[str, Any]:
    """Raises Refused with all faults."""
    faults: list[ApiFault] = []
    numbers = {name: _number(page, name, faults) for name in NUMBERS}
    rows, curve = page.field("rows").strip(), page.field("curve") or CURVES[0][0]
    if len(rows) > ROWS_MAX:
        faults.append(
            ApiFault(Code.INVALID, f"rows: must have at most {ROWS_MAX} characters", "/rows")
        )
    if curve not in dict(CURVES):
        faults.append(
            ApiFault(
                Code.INVALID,
                f"curve: must be one of {', '.join(dict(CURVES))}, not {curve[:40]!r}",
                "/curve",
            )
        )
    room = _room(page)
    own = {name: getattr(room, name) for name in SIMULATED}
    own["queueing_method"] = room.queueing_method if room.queueing_method == "random" else "fifo"
    other = own | {name: numbers[name] for name in LIMITS if numbers[name] is not None}
    if other["new_users_per_minute"] > other["total_active_users"]:
        reason = (
            "new_users_per_minute: must be at most the active visitors at once,"
            f" {other['total_active_users']}"
        )
        faults.append(ApiFault(Code.INVALID, reason, "/new_users_per_minute"))
    if faults:
        raise Refused(*faults)
    crowd = (
        {"rows": rows}
        if rows
        else {"visitors": numbers["visitors"], "minutes": numbers["minutes"], "curve": curve}
    )
    habits = {
        "visit_s": 60.0 * (numbers["visit_minutes"] or 0),
        "patience_s": 60.0 * (numbers["patience_minutes"] or 0),
    }
    return {
        "settings": [own, other] if other != own else [own],
        **crowd,
        **habits,
        **_before_start(page, numbers["early_percent"] or 0),
    }


def _before_start(page: PageRequest, early_percent: int) -> dict[str, Any]:
    event, early_s = _event(page), _early_s(page)
    if event is None or not early_s:
        return {}
    return {
        "prequeue_s": early_s,
        "early": early_percent / 100,
        "shuffle": event.record.shuffle_at_event_start,
    }


def _early_s(page: PageRequest) -> float:
    event = _event(page)
    return (
        min(EARLY_MAX_S, (event.record.event_start_ms - event.record.opens_ms) / 1000)
        if event
        else 0.0
    )


def _number(page: PageRequest, name: str, faults: list[ApiFault]) -> int | None:
    asked, text = NUMBERS[name], page.field(name).strip() or NUMBERS[name].default
    if not text:
        return None
    if (
        text.isascii()
        and text.isdigit()
        and len(text) < 11
        and asked.low <= int(text) <= asked.high
    ):
        return int(text)
    faults.append(
        ApiFault(
            Code.INVALID,
            f"{name}: must be a whole number from {asked.low} to {asked.high}, not {text[:30]!r}",
            f"/{name}",
        )
    )
    return None


def _event(page: PageRequest) -> Entry[Event] | None:
    """None means the settings of the room."""
    event = page.known.events.get(page.query("event") or page.field("event"))
    return event if event is not None and event.parent == page.room.id else None


def _room(page: PageRequest) -> Room:
    event = _event(page)
    return (
        effective(page.room.record, [event.record], event.record.event_start_ms).room
        if event
        else page.room.record
    )


def _form(page: PageRequest, faults: Faults, status: int = 200) -> Response:
    event, room = _event(page), _room(page)
    fields = {name: _field(page, name, asked, faults) for name, asked in NUMBERS.items()}
    early_s = _early_s(page)
    return page.render(
        "dry_run.html",
        status,
        entry=page.room,
        zone=page.zone,
        event=event,
        room=room,
        crowd=[fields[name] for name in (*CROWD, *(("early_percent",) if early_s else ()))],
        early_s=early_s,
        cut=early_s == EARLY_MAX_S,
        rows_max=ROWS_MAX,
        others=[fields[name] for name in LIMITS],
        curves=CURVES,
        curve=page.field("curve") or page.query("curve") or CURVES[0][0],
        rows=page.field("rows"),
        row_faults=faults.take("rows") + faults.take("curve"),
        problems=faults.general,
        available=page.part(DRY_RUNS) is not None,
    )


def _field(page: PageRequest, name: str, asked: NumberField, faults: Faults) -> FieldView:
    value = page.field(name) or page.query(name) or asked.default
    return FieldView(
        name=name,
        label=asked.label,
        kind="number",
        value=value,
        help=asked.help,
        problems=faults.take(name),
    )


class DryRunLine(NamedTuple):
    """`points`: (seconds since the start, waiting visitors)."""

    label: str
    points: list[tuple[float, int]]

    def at(self, second: float) -> int:
        return next((count for at_s, count in reversed(self.points) if at_s <= second), 0)


def _lines(run: DryRunState) -> list[DryRunLine]:
    labels = ("As configured", "With the other limits")
    return [
        DryRunLine(label, [(row[0] - one["prequeue_s"], row[2]) for row in one["series"]])
        for label, one in zip(labels, run.results or (), strict=False)
    ]


def _moments(lines: list[DryRunLine]) -> list[tuple[float, list[int]]]:
    """Returns (seconds since the first point, waiting visitors of each line)."""
    times = [at_s for line in lines for at_s, _ in line.points]
    if not times:
        return []
    first, last = min(times), max(times)
    step = (last - first) / ROWS or 1
    moments = [first + number * step for number in range(ROWS + 1)]
    return [(at_s - first, [line.at(at_s) for line in lines]) for at_s in moments]


PAGES = (
    view(DRY_RUN, show, Role.OPERATOR),
    action(DRY_RUN, start),
    view(f"{DRY_RUN}/{{run_id}}", result, Role.OPERATOR),
)
