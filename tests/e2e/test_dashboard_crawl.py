"""Every link from `/` is followed, signed in as each role: no 404, no 500, nothing in the
console, and no page moves under the reader.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from dashboard_browser import AXE, chromium, is_wrong, violations_in_both_themes
from live_rig import LiveRig, plain_origin
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Response
from warm_start import output_of

from greenroom.dashboard.navigation import NAVIGATION, ROOM_TABS
from greenroom.model.zone import ACCOUNT_ID

ROLES = ("viewer", "operator", "admin")
PASSWORD = "correct horse battery"
PAGES_MAX = 150
QUERIES_MAX = 3
"""Links to one path that differ in their query, such as earlier and later spans of the analytics,
which never end, and pages of the documentation.
"""

LEFT_OUT = ("/csv", ".csv", ".toml", ".json", "/export", "/sign-out")
"""What a browser keeps as a file, and what ends the session of the crawl."""

SHIFT_MAX = 0.01
"""Good is 0.1; a hundredth is a line of text that moves by a few pixels."""

LINKS = """() => [...document.querySelectorAll("a[href]:not([download])")].map((one) => one.href)"""
SHIFTS = """window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({type: "layout-shift", buffered: true});"""
MOVE = "() => { const one = document.createElement('div'); one.style.height = '300px'; document.body.prepend(one); }"


@pytest.fixture(scope="module")
def rig(shared_greenroom: Any) -> Iterator[LiveRig]:
    assert AXE.is_file(), "run python scripts/build_dashboard.py"
    with plain_origin() as origin:
        found = LiveRig.start(shared_greenroom, origin)
        room = f"/zones/{found.zone_id}/waiting_rooms/{found.room_id}"
        made = found.api.ask(
            "POST", f"/accounts/{ACCOUNT_ID}/rules/lists", {"name": "office", "kind": "ip"}
        ).result
        items = [{"ip": f"192.0.2.{number}", "comment": "head office"} for number in range(1, 6)]
        found.api.ask(  # noqa: B018 - fails if refused
            "POST", f"/accounts/{ACCOUNT_ID}/rules/lists/{made['id']}/items", items
        ).result
        found.api.ask(  # noqa: B018 - fails if refused
            "POST",
            f"{room}/rules",
            {"action": "bypass_waiting_room", "expression": 'http.host eq "a"'},
        ).result
        sale = {
            "name": "spring",
            "event_start_time": "2040-01-01T10:00:00Z",
            "event_end_time": "2040-01-01T12:00:00Z",
        }
        found.api.ask("POST", f"{room}/events", sale).result  # noqa: B018
        for role in ROLES:
            account = ("account", "add", role, "--role", role, "--password-stdin")
            output_of(*account, "--data", str(shared_greenroom.data), stdin=PASSWORD)
        found.list_id = made["id"]  # type: ignore[attr-defined]
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def signed_in(browser: Browser, rig: LiveRig, role: str) -> BrowserContext:
    context = browser.new_context(bypass_csp=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{rig.base}/sign-in")
    page.get_by_label("User name").fill(role)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/rooms")
    page.close()
    return context


def crawl(start: str, links_of: Callable[[str], list[str]]) -> dict[str, str]:
    """Every page that links lead to, with the page that links to it."""
    queries: Counter[str] = Counter()
    waiting, seen = [start], {start: ""}
    while waiting:
        at = waiting.pop(0)
        for link in (urldefrag(found).url for found in links_of(at)):
            path = re.sub("^/help/.*", "/help/", urlsplit(link).path)
            if (
                link.startswith(start)
                and link not in seen
                and not path.endswith(LEFT_OUT)
                and queries[path] < QUERIES_MAX
            ):
                queries[path] += 1
                seen[link] = at
                waiting.append(link)
        assert len(seen) <= PAGES_MAX, f"more than {PAGES_MAX} pages: {sorted(seen)[-20:]}"
    return seen


@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_every_link_leads_somewhere(browser: Browser, rig: LiveRig, role: str) -> None:
    context = signed_in(browser, rig, role)
    page = context.new_page()
    problems: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if is_wrong(message):
            problems.append(f"console of {page.url}: {message.text}")

    def answered(response: Response) -> None:
        if response.status >= 400:
            problems.append(f"{response.status} {response.url}")

    def links_of(at: str) -> list[str]:
        page.goto(at)
        return page.evaluate(LINKS)

    page.on("console", heard)
    page.on("pageerror", lambda error: problems.append(f"script of {page.url}: {error}"))
    page.on("response", answered)
    seen = crawl(f"{rig.base}/", links_of)
    context.close()
    assert problems == [], seen
    least = 20 if role == "viewer" else 40
    assert len(seen) >= least, sorted(seen)


def test_every_link_of_an_operator_leads_somewhere(browser: Browser, rig: LiveRig) -> None:
    """Without scripts: an operator's pages have fewer forms than an admin's, and more than a viewer's."""
    context = signed_in(browser, rig, "operator")
    problems: list[str] = []

    def links_of(at: str) -> list[str]:
        answer = context.request.get(at, headers={"Accept": "text/html"})
        if answer.status >= 400:
            problems.append(f"{answer.status} {at}")
        anchors = re.findall(r"<a\b[^>]*>", answer.text())
        found = [
            re.search(r'\shref="([^"]*)"', one)
            for one in anchors
            if not re.search(r"\sdownload", one)
        ]
        return [urljoin(answer.url, unescape(link[1])) for link in found if link]

    seen = crawl(f"{rig.base}/", links_of)
    context.close()
    assert problems == [], seen
    assert len(seen) >= 40, sorted(seen)


MAIN_PAGES = [item.path for item in NAVIGATION if not item.path.startswith("/explorer")]
ROOM_PAGES = [tab.path for tab in ROOM_TABS]


def test_no_main_page_moves_while_it_loads(browser: Browser, rig: LiveRig) -> None:
    context = signed_in(browser, rig, "admin")
    context.add_init_script(SHIFTS)
    page = context.new_page()
    found = {}
    for path in [f"{rig.base}{path}" for path in MAIN_PAGES] + [
        f"{rig.path}{path}" for path in ROOM_PAGES
    ]:
        shifts = []
        while len(shifts) < 3 and min(shifts, default=1) > SHIFT_MAX:
            page.goto(path)
            page.wait_for_load_state("load")
            page.wait_for_timeout(600)  # charts and live figures come in after the load
            shifts.append(page.evaluate("window.shifted"))
        if (
            min(shifts) > SHIFT_MAX
        ):  # a machine that stands still moves a page once, not three times
            found[urlsplit(path).path] = shifts
    page.goto(f"{rig.base}/about")
    page.wait_for_timeout(600)  # what the browser moves within 500 ms of an input does not count
    page.evaluate(MOVE)
    page.wait_for_function(f"window.shifted > {SHIFT_MAX}")  # or the measurement sees nothing
    context.close()
    assert found == {}


def test_a_list_with_items_has_no_violations_and_is_reached_by_keyboard(
    browser: Browser, rig: LiveRig
) -> None:
    context = signed_in(browser, rig, "operator")
    page = context.new_page()
    page.goto(f"{rig.base}/lists/{rig.list_id}")  # type: ignore[attr-defined]
    assert "192.0.2.5" in page.content()
    assert violations_in_both_themes(page) == []
    wanted = page.locator(
        "main :is(a[href], button, input:not([type=hidden]), textarea, summary):visible"
    ).count()
    reached = set()
    for _ in range(wanted + 40):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "() => document.activeElement.closest('main') && document.activeElement.outerHTML.slice(0, 200)"
            )
        )
    assert wanted >= 5
    assert len(reached - {None}) >= min(wanted, 5)
    context.close()
