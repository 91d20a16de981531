"""A whole sale in the dashboard, from the first sign-in through planning and the hour of the sale to
the day after, as the online manager of a shop walks through it: with links and buttons alone.
"""

import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Literal, NamedTuple

from dashboard_browser import PASSWORD, DashboardBrowser, show_in, sign_in_link
from playwright.sync_api import Locator, Page, expect

HOST = "shop.example.com"
VISITOR = {
    "Host": HOST,
    "Accept": "text/html",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
}
ROOM = "autumn-sale"
AT_ONCE = 5
"""Active visitors, and new ones per minute: a dozen visitors make a line."""

LIVE_MS = 30_000
"""Figures of the live page come within a second or two, but on a busy machine."""

SIMULATION_MS = 120_000
TABS_MAX = 250
AT_FOCUS = (
    """(one) => !one.isConnected ? "replaced" : one === document.activeElement ? "reached" : "" """
)
"""Of an element that is looked up once: to find a role and a name takes longer than a key."""


class WindowForm(NamedTuple):
    name: str
    width: int
    height: int
    theme: Literal["light", "dark"] = "light"


FORMS = (
    WindowForm("desktop", 1280, 800),
    WindowForm("large", 1440, 900, "dark"),
    WindowForm("phone", 390, 844),
)


def settle(page: Page) -> None:
    """Returns when the page is loaded and its charts are drawn; the live page loads for ever."""
    page.wait_for_load_state("load")
    page.wait_for_timeout(400)  # charts and live figures come in after the load


def show_as(page: Page, form: WindowForm) -> None:
    page.set_viewport_size({"width": form.width, "height": form.height})
    show_in(page, form.theme)


Look = Callable[[Page, str], None]
"""Called with the page and the name of every screen of the walk."""


def fill_line(host: str, port: int, size: int = 12) -> None:
    """Visitors come, and those who are held come back once as they are told: they are in line."""

    def visit(cookie: str = "") -> tuple[int, str]:
        connection = HTTPConnection(host, port, timeout=60)
        try:
            connection.request("GET", "/", headers=VISITOR | ({"Cookie": cookie} if cookie else {}))
            answer = connection.getresponse()
            answer.read()
            given = (answer.headers["Set-Cookie"] or "").partition(";")[0]
            return int(answer.headers["Refresh"] or 0), given
        finally:
            connection.close()

    came = [visit() for _ in range(size)]
    time.sleep(max(refresh_s for refresh_s, _ in came))  # as the page says
    for refresh_s, cookie in came:
        if refresh_s:
            visit(cookie)


class SaleWalk:
    """With `keyboard` the mouse is never used: what cannot be reached with Tab fails the walk.
    `fill_line` returns when visitors wait.
    """

    def __init__(
        self,
        at: DashboardBrowser,
        look: Look,
        fill_line: Callable[[], None],
        *,
        keyboard: bool = False,
    ) -> None:
        self._at, self._page, self._keyboard = at, at.page, keyboard
        self._look_at, self._fill_line = look, fill_line

    def walk(self, output: str) -> None:
        """`output` is what greenroom printed at its start."""
        self._sign_in(output)
        self._make_room()
        self._plan()
        self._rehearse()
        self._set_alert()
        self._run_sale()
        self._look_back()
        assert self._at.complaints == []

    # -- hands ------------------------------------------------------------------------------------

    def _reach(self, target: Locator) -> None:
        expect(target).to_be_visible()
        one = target.element_handle()
        for _ in range(TABS_MAX):
            at = one.evaluate(AT_FOCUS)
            if at == "reached":
                return
            if at == "replaced":  # the live page makes its parts again
                one = target.element_handle()
                continue
            self._page.keyboard.press("Tab")
        raise AssertionError(f"{target} on {self._page.url} cannot be reached with Tab")

    def _press(self, role: Literal["link", "button"], name: str, within: str = "body") -> None:
        """Returns on the next page."""
        target = self._page.locator(within).get_by_role(role, name=name, exact=True).first
        if self._keyboard:
            self._reach(target)
        with self._page.expect_navigation(wait_until="load"):
            if self._keyboard:
                self._page.keyboard.press("Enter")
            else:
                target.click()

    def _type(self, label: str, text: str) -> None:
        target = self._page.get_by_label(label, exact=True)
        if not self._keyboard:
            target.fill(text)
            return
        self._reach(target)
        self._page.keyboard.press("Control+a")
        self._page.keyboard.type(text)

    def _menu(self, name: str) -> None:
        """A page of the navigation, which is folded up on a phone."""
        menu = self._page.locator(".sidebar summary")
        if menu.is_visible():
            menu.click()
        self._press("link", name, within=".sidebar")

    def _tab(self, name: str) -> None:
        self._press("link", name, within=".tabs")

    def _look(self, name: str) -> None:
        self._look_at(self._page, name)

    # -- the walk ---------------------------------------------------------------------------------

    def _sign_in(self, output: str) -> None:
        self._at.go(sign_in_link(output))
        self._look("welcome")
        self._type("User name", "mia")
        self._type("Password", PASSWORD)
        self._press("button", "Create the account")
        self._page.wait_for_url("**/rooms*")
        self._look("no-rooms")

    def _make_room(self) -> None:
        self._press("link", "New zone")
        self._type("Domain", f"https://{HOST.partition('.')[2]}/")
        self._look("new-zone")
        self._press("button", "Create the zone")
        self._type("Name", ROOM)
        self._type("Host", HOST)
        self._type("Active visitors at once", str(AT_ONCE))
        self._type("New visitors per minute", str(AT_ONCE))
        self._look("new-room")
        self._press("button", "Review")
        expect(self._page.get_by_text(f"At most {AT_ONCE} people")).to_be_visible()
        self._look("review-room")
        self._press("button", "Create the room")
        expect(self._page.get_by_role("heading", name=ROOM)).to_be_visible()

    def _plan(self) -> None:
        self._tab("Waiting page")
        self._look("waiting-page")
        self._tab("Events")
        self._look("no-events")
        self._press("link", "New event", within="main")
        self._type("Name", "friday")
        expect(self._page.get_by_text("then the event for 2 h")).to_be_visible()
        self._look("new-event")
        self._press("button", "Review")
        self._look("review-event")
        self._press("button", "Create the event")
        expect(self._page.get_by_role("link", name="Dry run of friday")).to_be_visible()
        self._look("events")
        self._tab("Overview")
        self._look("overview")

    def _rehearse(self) -> None:
        self._tab("Dry run")
        self._type("Visitors", "60")
        self._type("Other limit: active visitors at once", "60")
        self._type("Other limit: new visitors per minute", "60")
        self._look("dry-run")
        self._press("button", "Start the dry run")
        expect(self._page.get_by_text("What would happen")).to_be_visible(timeout=SIMULATION_MS)
        self._look("dry-run-result")

    def _set_alert(self) -> None:
        self._menu("Notifications")
        self._look("notifications")
        self._press("link", "New policy", within="main")
        self._look("new-alert")

    def _run_sale(self) -> None:
        self._menu("Rooms")
        self._fill_line()
        self._look("rooms")
        self._press("link", ROOM, within="main")
        self._tab("Live")
        title = self._page.locator('[data-live="title"]')
        waiting = self._page.locator('[data-live="waiting"]')
        expect(waiting).not_to_have_text("0", timeout=LIVE_MS)
        self._look("live")
        self._act("3", "Hold everybody", "Hold all new visitors", look="live-hold")
        expect(title).to_have_text("You hold all new visitors", timeout=LIVE_MS)
        self._look("live-held")
        self._act("3", "Let visitors in again", "Let visitors in again")
        expect(title).not_to_have_text("You hold all new visitors", timeout=LIVE_MS)
        self._act("2", "Let more in", "Let them in", look="live-let-more-in")
        self._look("live-letting-in")

    def _act(self, key: str, link: str, button: str, look: str = "") -> None:
        """Opens an action beside the figures, and confirms it."""
        if self._keyboard:
            self._page.keyboard.press(key)
        else:
            self._page.locator(".live-bar").get_by_role("link", name=link, exact=True).click()
        panel = self._page.locator("#live-panel")
        expect(panel).to_be_visible()
        if look:
            self._look(look)
        self._press("button", button, within="#live-panel")
        expect(self._page.locator("#live-toast")).to_be_visible()

    def _look_back(self) -> None:
        self._tab("Analytics")
        self._look("analytics")
        for name in ("Events", "Status page", "Health checks", "Route tester", "Zones"):
            self._menu(name)
            self._look(name.lower().replace(" ", "-") if name != "Events" else "all-events")
        self._menu("Audit log")
        expect(self._page.get_by_text("on hold").first).to_be_visible()
        self._look("audit-log")
