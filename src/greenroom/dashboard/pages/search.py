"""The search box: rooms, what slices find, settings, pages, and the documentation."""

import re
from collections.abc import Iterator
from itertools import islice

from starlette.responses import RedirectResponse, Response

from greenroom.configuration.rooms import ROOM
from greenroom.dashboard.documents import documents
from greenroom.dashboard.navigation import visible
from greenroom.dashboard.pages.rooms import LABELS
from greenroom.dashboard.slices import SLICES
from greenroom.model.account import Role
from greenroom.model.configuration import Entry
from greenroom.model.room import Room
from greenroom.web.pages.forms import schema_field
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import SearchResult, SearchSource, view

FOUND_MAX = 50
TYPED_MAX = 12


def search(page: PageRequest) -> Response:
    text = page.query("q").strip().lower()
    found = [one for look in LOOKS for one in islice(look(page, text), FOUND_MAX)] if text else []
    found = found or list(islice(_mentions(text), FOUND_MAX if text else 0))
    if page.is_fragment:
        return page.render("search_found.html", asked=text, found=found[:TYPED_MAX])
    if len(found) == 1:
        return RedirectResponse(page.url(found[0].path) + found[0].anchor, 303)
    return page.render("search.html", asked=page.query("q"), found=found)


def _rooms(page: PageRequest, text: str) -> Iterator[SearchResult]:
    fits = [
        entry
        for entry in page.person.rooms(page.known)
        if text in f"{entry.record.name} {entry.record.host}{entry.record.path}".lower()
    ]
    for one in sorted(fits, key=lambda entry: entry.record.name):
        yield SearchResult(
            "Room", one.record.name, _path(one), f"{one.record.host}{one.record.path}"
        )


def _path(room: Entry[Room]) -> str:
    return f"/zones/{room.parent}/rooms/{room.id}"


def _settings(page: PageRequest, text: str) -> Iterator[SearchResult]:
    rooms = list(islice(page.person.rooms(page.known), 2))
    path = (
        f"{_path(rooms[0])}/edit"
        if len(rooms) == 1 and page.person.may(Role.OPERATOR)
        else "/rooms"
    )
    for name, label in LABELS.items():
        if text in f"{label} {name}".lower():
            yield SearchResult("Setting of a room", label, path, schema_field(ROOM, name).rule.help)


def _pages(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for _, items in visible(page.person):
        for item in items:
            if text in item.label.lower():
                yield SearchResult("Page", item.label, item.path)


def _documents(_page: PageRequest, text: str) -> Iterator[SearchResult]:
    wanted = re.compile(rf"(?<!\w){re.escape(text)}")
    for one in documents().values():
        if wanted.search(one.title.lower()):
            yield SearchResult("Documentation", one.title, one.path)
        for heading in one.headings:
            if wanted.search(heading.text.lower()):
                yield SearchResult(
                    "Documentation", heading.text, one.path, f"in {one.title}", f"#{heading.anchor}"
                )


def _mentions(text: str) -> Iterator[SearchResult]:
    for one in documents().values():
        if text in one.text.lower():
            yield SearchResult("Documentation", one.title, one.path, "mentions it")


LOOKS: tuple[SearchSource, ...] = (
    _rooms,
    *(search for one in SLICES for search in one.searches),
    _settings,
    _pages,
    _documents,
)


PAGES = (view("/search", search, filtered=True),)
