"""`greenroom analytics`: what happened in a room, as a summary or as a file; from the store itself,
or from a running greenroom.
"""

import csv
import http.client
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol

import typer

from greenroom.analytics.metrics import DIMENSIONS, METRICS
from greenroom.analytics.outcomes import OUTCOMES
from greenroom.analytics.question import (
    AnalyticsAnswer,
    Order,
    Question,
    QuestionRefused,
    Row,
    Wanted,
)
from greenroom.cli.explain import TOKEN_VARIABLES
from greenroom.cli.show import complain, control_connection, say
from greenroom.errors import StorageFailed
from greenroom.model.fields import plural
from greenroom.settings.process import Server

analytics = typer.Typer(
    name="analytics", help="Show and export what happened in a room.", no_args_is_help=True
)

CANNOT_ASK = 2
ASK_PATH = "/client/v4/graphql"
TIMEOUT_S = 10
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60

BUCKETS = {
    "minute": "datetime",
    "5m": "datetimeFiveMinutes",
    "15m": "datetimeFifteenMinutes",
    "hour": "datetimeHour",
    "day": "date",
}
FORMATS = ("csv", "json", "parquet")
PAGE_S = 4 * 86_400
"""Time range of one question: 5,760 minutes of one room, below the 10,000 rows of an answer."""

_Room = Annotated[
    str, typer.Option("--room", metavar="ROOM", help="Name or id of the room.", show_default=False)
]
_Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Data directory of a stopped greenroom (default: as for `greenroom serve`).",
    ),
]
_Control = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS:PORT",
        help=f"Ask the running greenroom at this control address, such as {Server().control}.",
    ),
]
_Token = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN",
        help=f"Token with the scope `analytics` (default: ${' or $'.join(TOKEN_VARIABLES)}).",
        show_default=False,
    ),
]


class _Source(Protocol):
    def room_id(self, name: str) -> str: ...

    def answer(self, question: Question) -> AnalyticsAnswer: ...


@analytics.command()
def export(
    room: _Room,
    start: Annotated[
        str,
        typer.Option(
            "--from", metavar="TIME", help="Begin: 2030-01-01T10:00:00Z, or 7d.", show_default=False
        ),
    ],
    end: Annotated[
        str, typer.Option("--to", metavar="TIME", help="End, exclusive (default: now).")
    ] = "0m",
    by: Annotated[
        str, typer.Option("--by", metavar="BUCKET", help=f"Width of a row: {', '.join(BUCKETS)}.")
    ] = "minute",
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"{', '.join(FORMATS)}.")
    ] = "csv",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write (default: standard output)."
        ),
    ] = None,
    data: _Data = None,
    control: _Control = None,
    token: _Token = None,
) -> None:
    """Write one row for each minute (or hour, or day) of a room."""
    if by not in BUCKETS:
        _stop(f"--by must be one of {', '.join(BUCKETS)}, not {by!r}")
    if form not in FORMATS:
        _stop(f"--format must be one of {', '.join(FORMATS)}, not {form!r}")
    if form == "parquet" and output is None:
        _stop("--output is required for parquet")
    source = _source(data, control, token)
    rows = _rows(source, source.room_id(room), _moment(start), _moment(end), by)
    _write(rows, form, output)
    complain(f"{len(rows)} {plural(len(rows), 'row')}")


@analytics.command()
def show(
    room: Annotated[
        str, typer.Argument(metavar="ROOM", help="Name or id of the room.", show_default=False)
    ],
    last: Annotated[
        str, typer.Option(metavar="TIME", help="Time range up to now, such as 30m, 24h or 30d.")
    ] = "24h",
    data: _Data = None,
    control: _Control = None,
    token: _Token = None,
) -> None:
    """Show peaks, waits and limits of a room, with sparklines."""
    source = _source(data, control, token)
    start_s, end_s = _moment(last), _moment("0m")
    for line in _summary(source, source.room_id(room), room, start_s, end_s):
        say(line)


# -- where to ask ----------------------------------------------------------------------------------


def _source(data: Path | None, control: str | None, token: str | None) -> _Source:
    if control is not None:
        return _Running(
            control,
            token
            or next((found for name in TOKEN_VARIABLES if (found := os.environ.get(name))), ""),
        )
    from greenroom.config_file.load import default_data
    from greenroom.runtime.analytics import FILE, open_analytics_file

    try:
        path = (data or default_data()) / FILE
        if not path.exists():
            _stop(
                f"there are no analytics in {path.parent}: name the data directory with --data, or"
                " a running greenroom with --control"
            )
        return _Stopped(open_analytics_file(path))
    except (StorageFailed, RuntimeError) as error:
        hint = (
            "; a running greenroom is asked with --control" if "lock" in str(error).lower() else ""
        )
        _stop(f"{error}{hint}")


class _Stopped:
    def __init__(self, keeper: Any) -> None:
        self._keeper = keeper

    def room_id(self, name: str) -> str:
        found = [room for room, place in self._keeper.rooms.items() if name in (room, place.name)]
        return (
            str(found[0])
            if found
            else _no_room(name, [place.name or room for room, place in self._keeper.rooms.items()])
        )

    def answer(self, question: Question) -> AnalyticsAnswer:
        found: AnalyticsAnswer = self._keeper.answer(question)
        return found


class _Running:
    def __init__(self, control: str, token: str) -> None:
        self._control = control
        self._token = token
        if not token:
            _stop(
                "a running greenroom requires a token: use --token (greenroom token create NAME"
                " --scope analytics makes one)"
            )

    def room_id(self, name: str) -> str:
        rooms = self._ask("GET", "/status")["rooms"]
        found = [room["id"] for room in rooms if name in (room["id"], room["name"])]
        return str(found[0]) if found else _no_room(name, [str(room["name"]) for room in rooms])

    def answer(self, question: Question) -> AnalyticsAnswer:
        body = self._ask("POST", ASK_PATH, {"query": _graphql(question)})
        if body.get("errors"):
            _stop("; ".join(str(error.get("message")) for error in body["errors"]))
        rows = [row for zone in body["data"]["viewer"]["zones"] for row in zone["found"]]
        notes = body.get("extensions", {}).get("greenroom", {})
        shown = [_as_row(row, question) for row in rows]
        return AnalyticsAnswer(
            shown, notes.get("incompleteMinutes", 0), notes.get("generatedMinutes", 0)
        )

    def _ask(self, method: str, path: str, document: Any = None) -> Any:
        connection = control_connection(self._control, TIMEOUT_S)
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, path, body, {"Authorization": f"Bearer {self._token}"})
            answer: Any = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            _stop(f"cannot ask {self._control}: {error}")
        finally:
            connection.close()
        return answer


def _graphql(question: Question) -> str:
    rooms = json.dumps(sorted(question.rooms or ()))
    times = f'datetime_geq: "{_iso(question.start_s)}", datetime_lt: "{_iso(question.end_s)}"'
    order = ", ".join(
        "_".join(filter(None, (one.aggregate, one.name, "DESC" if one.descending else "ASC")))
        for one in question.order
    )
    name = "waitingRoomAnalyticsAdaptive" + ("" if question.raw else "Groups")
    if question.raw:
        selection = " ".join([*question.dimensions, *(found.metric for found in question.metrics)])
    else:
        groups: dict[str, list[str]] = (
            {"dimensions": list(question.dimensions)} if question.dimensions else {}
        )
        for aggregate, metric in question.metrics:
            groups.setdefault(aggregate, []).append(metric)
        selection = "count " + " ".join(
            f"{group} {{ {' '.join(names)} }}" for group, names in groups.items()
        )
    arguments = (
        f"limit: {question.limit}, orderBy: [{order}], filter: {{waitingRoomId_in: {rooms},"
        f" {times}}}"
    )
    return f"{{ viewer {{ zones {{ found: {name}({arguments}) {{ {selection} }} }} }} }}"


def _as_row(row: dict[str, Any], question: Question) -> Row:
    if question.raw:
        return {("", name): value for name, value in row.items()}
    dimensions = {("", name): value for name, value in row.get("dimensions", {}).items()}
    return {
        **dimensions,
        ("", "count"): row["count"],
        **{found: row[found.aggregate][found.metric] for found in question.metrics},
    }


# -- rows ------------------------------------------------------------------------------------------


def _rows(source: _Source, room_id: str, start_s: int, end_s: int, by: str) -> list[dict[str, Any]]:
    dimension = BUCKETS[by]
    raw = by == "minute"
    wanted = [
        Wanted("" if raw else aggregate, metric.name)
        for metric in METRICS.values()
        for aggregate in _ways(metric, raw)
    ]
    step_s = (
        PAGE_S // DIMENSIONS[dimension].bucket_s * DIMENSIONS[dimension].bucket_s
        or DIMENSIONS[dimension].bucket_s
    )
    found: list[dict[str, Any]] = []
    width = DIMENSIONS[dimension].bucket_s
    at_s = start_s // width * width
    while at_s < end_s:
        order = (Order("", dimension),)
        question = Question(
            at_s,
            min(at_s + step_s, end_s),
            frozenset({room_id}),
            (dimension,),
            tuple(wanted),
            None,
            order,
            10_000,
            raw,
        )
        try:
            rows = source.answer(question).rows
        except (QuestionRefused, StorageFailed) as error:
            _stop(str(error))
        found += [
            {"_".join(filter(None, key)): value for key, value in row.items()} for row in rows
        ]
        at_s += step_s
    return found


def _ways(metric: Any, raw: bool) -> Sequence[str]:
    return ([""] if metric.raw else []) if raw else list(metric.aggregates)


def _write(rows: list[dict[str, Any]], form: str, output: Path | None) -> None:
    if form == "parquet" and output is not None:
        from greenroom.analytics.store.duck import write_parquet

        try:
            write_parquet(rows, output)
        except StorageFailed as error:
            _stop(str(error))
        return
    try:
        file = output.open("w", newline="", encoding="utf-8") if output else sys.stdout
    except OSError as error:
        _stop(f"cannot write {output}: {error.strerror}")
    try:
        if form == "json":
            file.write(json.dumps(rows, indent=1) + "\n")
        elif rows:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    finally:
        if output:
            file.close()


# -- summary ---------------------------------------------------------------------------------------

GONE = ("gave_up", "abandoned", "revoked")

_TOTALS = (
    Wanted("max", "totalActiveUsers"), Wanted("max", "totalQueuedUsers"), Wanted("max", "newUsersPerMinute"),
    Wanted("max", "totalActiveUsersConfig"), Wanted("max", "newUsersPerMinuteConfig"), Wanted("sum", "newUsersPerMinute"),
    Wanted("sum", "usersWaited"), *(Wanted("sum", OUTCOMES[name].metric) for name in GONE),
    *(Wanted("percentile", f"{stem}P{percent}") for stem in ("totalTimeWaited", "timeOnOrigin") for percent in (50, 75, 95)),
)  # fmt: skip


def _summary(source: _Source, room_id: str, name: str, start_s: int, end_s: int) -> list[str]:
    rooms = frozenset({room_id})
    width_s = (end_s - start_s) // WIDTH
    dimension = next(
        (one for one in BUCKETS.values() if DIMENSIONS[one].bucket_s >= width_s), "date"
    )
    series = (
        Wanted("max", "totalActiveUsers"),
        Wanted("max", "totalQueuedUsers"),
        Wanted("max", "newUsersPerMinute"),
    )
    bucket_s = DIMENSIONS[dimension].bucket_s
    start_s = start_s // bucket_s * bucket_s
    try:
        found = source.answer(Question(start_s, end_s, rooms, (), _TOTALS))
        line = source.answer(
            Question(start_s, end_s, rooms, (dimension,), series, None, (Order("", dimension),))
        )
    except (QuestionRefused, StorageFailed) as error:
        _stop(str(error))
    if not found.rows:
        return [f"room {name}: nothing was recorded from {_iso(start_s)} to {_iso(end_s)}"]
    total = found.rows[0]
    shown = [f"room {name}: {_iso(start_s)} to {_iso(end_s)}"]
    if found.generated:
        shown.append("GENERATED DATA for trying things out: no visitor made it")
    if found.incomplete:
        shown.append(f"{found.incomplete} minute(s) incomplete: a process was killed")
    limits = (total["max", "totalActiveUsersConfig"], None, total["max", "newUsersPerMinuteConfig"])
    for wanted, label, limit in zip(
        series, ("active users", "queued users", "new users/min"), limits, strict=True
    ):
        bars = _sparkline([float(row[wanted] or 0) for row in line.rows])
        shown.append(
            f"{label:14} {bars}  peak {total[wanted]}"
            + (f" of {limit}" if limit is not None else "")
        )
    shown.append(_times("time in queue", "totalTimeWaited", total))
    shown.append(_times("time on origin", "timeOnOrigin", total))
    counts = [
        f"{label} {total['sum', metric]}"
        for label, metric in (
            (OUTCOMES["admitted"].label, OUTCOMES["admitted"].metric),
            ("From the line", "usersWaited"),
            *((OUTCOMES[name].label, OUTCOMES[name].metric) for name in GONE),
        )
    ]
    return [*shown, f"{'visitors':14} {', '.join(counts).lower()}"]


def _times(label: str, stem: str, total: Row) -> str:
    low, high, top = (
        float(total["percentile", f"{stem}P{percent}"] or 0) for percent in (50, 75, 95)
    )
    return f"{label:14} typical {_span(low)} to {_span(high)}, top 5 % {_span(top)} and more"


def _span(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _sparkline(values: Sequence[float]) -> str:
    highest = max(values, default=0)
    return "".join(
        BARS[round(value / highest * (len(BARS) - 1))] if highest else BARS[0] for value in values
    )


# -- times -----------------------------------------------------------------------------------------

AGO_MAX = 10_000
"""Minutes, hours or days; 27 years are enough."""

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def _moment(text: str) -> int:
    """A time, or how long ago, as Unix seconds."""
    now = datetime.now(UTC)
    if text[-1:] in _UNITS and text[:-1].isdigit():
        found = now - timedelta(**{_UNITS[text[-1]]: min(int(text[:-1]), AGO_MAX)})
        return int(found.timestamp()) // 60 * 60 + (60 if text == "0m" else 0)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        _stop(f"a time is 2030-01-01T10:00:00Z, or 30m, 24h or 7d ago, not {text!r}")
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _no_room(name: str, known: Sequence[str]) -> NoReturn:
    _stop(f"there is no room {name!r}; there are: {', '.join(sorted(known)[:20]) or 'none'}")


def _stop(reason: str) -> NoReturn:
    complain(f"greenroom: {reason}")
    raise typer.Exit(CANNOT_ASK)
