"""What is left, in the dashboard: a form, and the log of what visitors were told."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from greenroom.model.account import Role
from greenroom.model.change import AuditEntry
from greenroom.model.offer import OFFERS_MAX
from greenroom.offers import changes
from greenroom.web.api_shapes import Json
from greenroom.web.pages.forms import unchanged_since
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import DashboardSlice, action, view
from greenroom.web.refusals import Refused

OFFERS_PATH = "/zones/{zone_id}/rooms/{room_id}/offers"
EMPTY_ROWS = 3
LOG_SHOWN = 50
CHUNK = 1_000
"""Entries read at once while the log is exported."""

EXPORT_MAX = 100_000
"""Entries in one file, about 10 MB."""

_COLUMNS = ("when", "author", "offer", "price", "available", "as_of")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def show(page: PageRequest) -> Response:
    offers = changes.offers_of(page.known, page.zone.id, page.room.id)
    return _form(page, changes.show(offers), [])


def save(page: PageRequest) -> Response:
    room_id, rows = page.room.id, list(_rows(page))
    before = {
        one["name"]: one
        for one in changes.show(changes.offers_of(page.known, page.zone.id, room_id))
    }
    documents = [
        before[row["name"]] if _same(before.get(row["name"]), row) else row for row in rows
    ]
    plan = changes.replace_all(page.zone.id, room_id, documents)
    try:
        page.change(unchanged_since("offers", room_id, page.field("revision"), plan))
    except Refused as refused:
        problems = [_numbered(fault.message) for fault in refused.faults]
        return _form(page, rows, problems, refused.status)
    return page.redirect(page.request.url.path.removeprefix(page.prefix), notice="saved")


def export(page: PageRequest) -> Response:
    """The log as CSV, newest first."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(_COLUMNS)
    for entry in _entries(page):
        shown = changes.show_entry(entry)
        for one in shown["offers"] or [{}]:
            cells = (one.get(name, "") for name in ("name", "price", "available", "as_of"))
            rows.writerow([shown["when"], *map(_cell, (shown["author"], *cells))])
    name = f"offers-{page.room.record.name}.csv"
    return Response(
        out.getvalue(),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _entries(page: PageRequest) -> Iterator[AuditEntry]:
    before, count = None, 0
    while count < EXPORT_MAX:
        found = changes.log(page.config.store, page.room.id, CHUNK, before)
        yield from found
        if len(found) < CHUNK:
            return
        before, count = found[-1].number, count + len(found)


def _cell(value: Any) -> str:
    # A spreadsheet would run what looks like a formula.
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _rows(page: PageRequest) -> Iterator[Json]:
    """Rows of the form with a name; a number in digits as a number."""
    for row in range(OFFERS_MAX):
        name = page.field(f"name-{row}").strip()
        available = page.field(f"available-{row}").strip().lower()
        if name:
            plain = available.isascii() and available.isdigit() and len(available) < 10
            yield {
                "name": name,
                "price": page.field(f"price-{row}").strip(),
                "available": int(available) if plain else available,
            }


def _same(before: Json | None, row: Json) -> bool:
    """Such a row keeps its time."""
    return before is not None and all(before[name] == value for name, value in row.items())


def _numbered(message: str) -> str:
    """Faults count offers from 0; people count rows from 1."""
    number, colon, rest = message.partition(": ")
    return f"Row {int(number) + 1}: {rest}" if colon and number.isdigit() else message


def _form(page: PageRequest, rows: list[Json], problems: list[str], status: int = 200) -> Response:
    entry = page.known.offers.get(page.room.id)
    more = min(EMPTY_ROWS, OFFERS_MAX - len(rows))
    return page.render(
        "offers.html",
        status,
        entry=page.room,
        may=page.person.may(Role.OPERATOR) and not page.room.read_only,
        rows=[*rows, *[{"name": "", "price": "", "available": ""}] * more],
        problems=problems,
        revision=page.field("revision") or (str(entry.revision) if entry else ""),
        log=[
            changes.show_entry(one) | {"at_ms": one.at_ms}
            for one in changes.log(page.config.store, page.room.id, LOG_SHOWN)
        ],
    )


SLICE = DashboardSlice(
    __name__,
    (
        view(OFFERS_PATH, show),
        action(OFFERS_PATH, save),
        view(f"{OFFERS_PATH}/log.csv", export),
    ),
)
