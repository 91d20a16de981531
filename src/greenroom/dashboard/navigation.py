"""The navigation, and the notices after something was done."""

import re
from collections.abc import Mapping
from itertools import groupby
from typing import NamedTuple

from greenroom.model.account import Role
from greenroom.web.pages.request import Person


class NavigationItem(NamedTuple):
    group: str
    label: str
    path: str
    icon: str
    role: Role = Role.VIEWER
    whole: bool = False


NAVIGATION = (
    NavigationItem("Daily work", "Rooms", "/rooms", "rooms"),
    NavigationItem("Daily work", "Events", "/events", "events"),
    NavigationItem("Daily work", "Status page", "/status-page", "pages", whole=True),
    NavigationItem("Daily work", "Health analytics", "/health/analytics", "analytics"),
    NavigationItem("Daily work", "Route tester", "/explain", "explain", whole=True),
    NavigationItem("Daily work", "Audit log", "/audit", "audit", whole=True),
    NavigationItem("Setup", "Zones", "/zones", "zones"),
    NavigationItem("Setup", "Health checks", "/health", "health"),
    NavigationItem("Setup", "Notifications", "/notifications", "bell", whole=True),
    NavigationItem("Setup", "Lists", "/lists", "rules", whole=True),
    NavigationItem("Installation", "Accounts", "/accounts", "accounts", Role.ADMIN, whole=True),
    NavigationItem("Installation", "API tokens", "/tokens", "token", Role.ADMIN, whole=True),
    NavigationItem("Installation", "Ticket keys", "/keys", "keys", Role.ADMIN, whole=True),
    NavigationItem("Installation", "Processes", "/processes", "processes", whole=True),
    NavigationItem("Installation", "Problems", "/problems", "problems", whole=True),
    NavigationItem(
        "Installation", "Export and import", "/transfer", "transfer", Role.ADMIN, whole=True
    ),
    NavigationItem("Installation", "GraphQL explorer", "/explorer", "analytics"),
    NavigationItem("Help", "Documentation", "/help", "help"),
    NavigationItem("Help", "About", "/about", "about"),
)


class RoomTab(NamedTuple):
    label: str
    path: str
    role: Role = Role.VIEWER


ROOM_TABS = (
    RoomTab("Overview", ""),
    RoomTab("Live", "/live"),
    RoomTab("Analytics", "/analytics"),
    RoomTab("Events", "/events"),
    RoomTab("Dry run", "/dry-run", Role.OPERATOR),
    RoomTab("Settings", "/edit", Role.OPERATOR),
    RoomTab("Waiting page", "/page"),
    RoomTab("Rules", "/rules"),
    RoomTab("Offers", "/offers"),
)


def visible(person: Person) -> list[tuple[str, list[NavigationItem]]]:
    shown = [
        item
        for item in NAVIGATION
        if person.may(item.role) and not (item.whole and person.zone_ids)
    ]
    return [(group, list(items)) for group, items in groupby(shown, key=lambda item: item.group)]


NAMED: Mapping[str, str] = {
    "created": "{name} created. Next: set up its waiting page, schedule an event, do a dry run.",
    "saved": "{name} saved.",
}

NOTICES: Mapping[str, str] = {
    "created": "Created.",
    "saved": "Saved.",
    "page-saved": "Saved. The status page follows within ten seconds.",
    "published": "Published. The status page shows it within ten seconds.",
    "removed": "Removed.",
    "revoked": "Revoked.",
    "tested": "Every destination took the test.",
    "untested": "Created, but its test failed: see the log.",
    "silent": "Silenced.",
    "signed-out": "You are signed out.",
    "did-limits": "Limits changed.",
    "did-let-in": "Letting extra visitors in.",
    "did-hold": "New visitors are on hold.",
    "did-release": "Visitors are let in again.",
    "did-reject": "New visitors see a “closed” page.",
    "did-accept": "New visitors are accepted again.",
    "did-take-over": "The limit stays as you set it.",
    "did-follow": "The room follows its origin again.",
    "did-message": "Message posted.",
    "did-extend": "Event extended.",
    "did-end-event": "Event ended.",
    "did-end-sessions": "All sessions ended.",
    "did-suspend": "Room suspended.",
    "did-resume": "Room resumed.",
    "given-up": "Given up. Other data centers get its units when its last session must have ended.",
    "undone": "Your last change was undone.",
    "unchanged": "Nothing was changed.",
}


def current(path: str) -> str:
    """A room's pages lie below its zone, and count as pages of rooms."""
    if re.match(r"/zones/[^/]+/rooms(/|$)", path):
        return "/rooms"
    if re.match(r"/zones/[^/]+/health(/|$)", path):
        return "/health"
    return max(
        (item.path for item in NAVIGATION if f"{path}/".startswith(f"{item.path}/")),
        key=len,
        default="",
    )
