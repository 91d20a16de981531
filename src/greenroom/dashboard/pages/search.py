"""The search box: rooms, zones and pages of the dashboard."""

from typing import NamedTuple

from starlette.responses import Response

from greenroom.dashboard.navigation import visible
from greenroom.dashboard.request import PageRequest
from greenroom.dashboard.routing import view

FOUND_MAX = 50
"""Results of each kind that are shown."""


class SearchResult(NamedTuple):
    """One result: what it is, its name, where it leads, and a word more."""

    kind: str
    name: str
    path: str
    more: str = ""


def search(page: PageRequest) -> Response:
    """What fits; the only result is opened at once."""
    text = page.query("q").strip().lower()
    found = [*_rooms(page, text), *_zones(page, text), *_pages(page, text)] if text else []
    if len(found) == 1:
        return page.redirect(found[0].path)
    return page.render("search.html", asked=page.query("q"), found=found)


def _rooms(page: PageRequest, text: str) -> list[SearchResult]:
    fits = [
        entry for entry in page.person.rooms(page.known) if text in f"{entry.record.name} {entry.record.host}{entry.record.path}".lower()
    ]
    named = sorted(fits, key=lambda entry: entry.record.name)[:FOUND_MAX]
    return [
        SearchResult("Room", one.record.name, f"/zones/{one.parent}/rooms/{one.id}", f"{one.record.host}{one.record.path}") for one in named
    ]


def _zones(page: PageRequest, text: str) -> list[SearchResult]:
    fits = [entry for entry in page.person.zones(page.known) if text in entry.record.name and not entry.read_only]
    return [SearchResult("Zone", entry.record.name, f"/zones/{entry.id}/edit") for entry in fits[:FOUND_MAX]]


def _pages(page: PageRequest, text: str) -> list[SearchResult]:
    items = [item for _, items in visible(page.person) for item in items]
    return [SearchResult("Page", item.label, item.path) for item in items if text in item.label.lower()]


PAGES = (view("/search", search, filtered=True),)
