"""The search box: rooms and what belongs to them, zones, lists, health checks, notifications,
settings, pages of the dashboard, and the documentation.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from starlette.responses import RedirectResponse, Response

from greenroom.configuration.rooms import ROOM
from greenroom.dashboard.documents import documents
from greenroom.dashboard.navigation import visible
from greenroom.dashboard.pages.rooms import LABELS
from greenroom.model.account import Role
from greenroom.model.configuration import Entry
from greenroom.model.room import Room
from greenroom.web.pages.forms import schema_field
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view

FOUND_MAX = 50
TYPED_MAX = 12


class SearchResult(NamedTuple):
    kind: str
    name: str
    path: str
    more: str = ""
    anchor: str = ""


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


def _events(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for room in page.person.rooms(page.known):
        for entry in page.known.events.of(room.id):
            if text in f"{entry.record.name} {entry.record.description}".lower():
                yield SearchResult(
                    "Event", entry.record.name, f"{_path(room)}/events", f"in {room.record.name}"
                )


def _rules(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for room in page.person.rooms(page.known):
        for rule in page.known.rules_of(room.id):
            if text in f"{rule.expression} {rule.description}".lower():
                yield SearchResult(
                    "Rule",
                    rule.description or rule.expression[:80],
                    f"{_path(room)}/rules",
                    f"in {room.record.name}",
                )


def _zones(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for entry in page.person.zones(page.known):
        if text in entry.record.name and not entry.read_only and page.person.may(Role.OPERATOR):
            yield SearchResult("Zone", entry.record.name, f"/zones/{entry.id}/edit")


def _lists(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for entry in page.known.lists.values() if not page.person.zone_ids else ():
        if text in f"${entry.record.name} {entry.record.description}".lower():
            yield SearchResult(
                "List", f"${entry.record.name}", f"/lists/{entry.id}", entry.record.description[:80]
            )


def _checks(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for entry in page.known.health_checks.values():
        check = entry.record
        if page.person.sees(entry.parent) and text in f"{check.name} {check.address}".lower():
            yield SearchResult(
                "Health check",
                check.name,
                f"/zones/{entry.parent}/health/{entry.id}",
                f"{check.type} {check.address}",
            )


def _notifications(page: PageRequest, text: str) -> Iterator[SearchResult]:
    if page.person.zone_ids:
        return
    may = page.person.may(Role.OPERATOR)
    for policy in page.known.alert_policies.values():
        if text in f"{policy.record.name} {policy.record.description}".lower():
            path = f"/notifications/policies/{policy.id}/edit" if may else "/notifications"
            yield SearchResult("Notification policy", policy.record.name, path)
    for webhook in page.known.webhooks.values():
        if text in webhook.record.name.lower():
            yield SearchResult("Webhook", webhook.record.name, "/notifications")


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


LOOKS: tuple[Callable[[PageRequest, str], Iterator[SearchResult]], ...] = (
    _rooms,
    _events,
    _rules,
    _zones,
    _lists,
    _checks,
    _notifications,
    _settings,
    _pages,
    _documents,
)
"""Each filters what the person may see."""


PAGES = (view("/search", search, filtered=True),)
