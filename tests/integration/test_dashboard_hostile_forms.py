"""Every form of every page, filled with hostile texts and sent as a browser would: no 500, and
nothing of it is ever markup.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import pytest
from dashboard_rig import DashboardRig, Visitor

from greenroom.dashboard.routes import ROUTES

HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}"
CASES = {
    "operator": ("operator", HOSTILE),
    "admin": ("admin", HOSTILE),
    "long": ("admin", "x" * 3_000),
    "numbers": ("admin", "-1"),
    "digits": ("admin", "٣\u202e"),
}
KEPT = ("_csrf", "revision", "typed", "number", "page_id", "note")
VALUES = {
    "zone_id": "z1",
    "room_id": "r1",
    "event_id": "e1",
    "list_id": "l1",
    "check_id": "h1",
    "policy_id": "p1",
    "rule_id": "r1-0",
    "note_id": "n1",
    "page_id": "sp1",
    "section": "howto",
    "document": "dashboard",
    "name": "limits",
}
LEFT_OUT = ("/sign-out", "/remove", "/account", "/two-step", "/sign-in")
"""What would take away the session, or what is being tested."""

LOOKS = [
    re.sub(r"\{(\w+)\}", lambda found: VALUES.get(found[1], "none"), row.path)
    for row in ROUTES
    if row.method == "GET"
]
STORED = (
    "/rooms",
    "/zones/z1/rooms/r1",
    "/zones/z1/rooms/r1/live",
    "/zones/z1/rooms/r1/rules",
    "/zones/z1/rooms/r1/events",
    "/lists",
)
SHOWN = (
    *STORED,
    "/lists/l1",
    "/health",
    "/notifications",
    "/status-page",
    "/audit",
    "/tokens",
    "/accounts",
    "/search?q=alert",
)


class Forms(HTMLParser):
    """The forms of a page that write: (action, fields with their values, buttons as (name, value,
    address)).
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str], list[tuple[str, str, str]]]] = []
        self._open = False
        self._select = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") == "post":
            self.found.append((given.get("action", ""), {}, []))
            self._open = True
        if not self._open:
            return
        action, fields, buttons = self.found[-1]
        if tag == "button":
            buttons.append(
                (given.get("name", ""), given.get("value", ""), given.get("formaction", action))
            )
        elif tag in ("input", "textarea", "select") and given.get("name"):
            fields.setdefault(given["name"], given.get("value", ""))
            self._select = given["name"] if tag == "select" else ""
        elif tag == "option" and self._select:
            fields[self._select] = fields[self._select] or given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "form"


def sent(visitor: Visitor, look: str, text: str) -> Iterator[tuple[str, int, str]]:
    """Fills the forms of a page with the text and presses each of their buttons."""
    forms = Forms()
    forms.feed(visitor.get(look).text)
    for _, fields, buttons in forms.found:
        filled = {name: value if name in KEPT else text for name, value in fields.items()}
        for name, value, address in buttons:
            path = address or look
            if not urlsplit(path).path.endswith(LEFT_OUT):
                answer = visitor.ask("POST", path, filled | ({name: value} if name else {}))
                yield path, answer.status_code, answer.text


@pytest.mark.parametrize(("role", "text"), CASES.values(), ids=CASES)
def test_every_form_survives_hostile_texts(dashboard: DashboardRig, role: str, text: str) -> None:
    visitor, problems, count = dashboard.person(role), [], 0
    for look in [path for path in LOOKS if not path.endswith(LEFT_OUT)]:
        for path, status, answer in sent(visitor, look, text):
            count += 1
            if status >= 500 or "<script>alert(2)" in answer:
                problems.append(f"{look} -> {path}: {status}")
    assert problems == []
    assert count > 45, "forms were not found"
    for path in SHOWN:
        assert "<script>alert(2)" not in visitor.get(path).text, path
        assert "<img src=x" not in visitor.get(path).text, path


def test_hostile_texts_arrive_where_they_are_allowed(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")
    for look in ("/zones/z1/rooms/r1/rules/new", "/status-page"):
        assert all(status < 500 for _, status, _ in sent(visitor, look, HOSTILE))
    assert "&lt;script&gt;alert(2)" in visitor.get("/status-page").text
