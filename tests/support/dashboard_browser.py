"""A real Chromium in front of the dashboard: it fails a test when a page breaks the content
security policy or a script throws.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

AXE = (
    Path(__file__).resolve().parents[2]
    / ".tools"
    / "npm"
    / "node_modules"
    / "axe-core"
    / "axe.min.js"
)
WHOLE_CHROMIUM = "/usr/bin/chromium"
"""For what is the browser's own, such as settings and notifications, and for whole ways through a shop."""
CHROMIUM = shutil.which("chromium-headless-shell") or WHOLE_CHROMIUM
"""The same engine without the browser around it: a page takes half of the processor time, a context
a third.
"""
FONTS = {"FONTCONFIG_FILE": str(Path(__file__).with_name("fonts.conf"))}
HERE = "--host-resolver-rules=MAP * 127.0.0.1"
"""Every site is on this machine, by any name."""

ARGUMENTS = [
    HERE,
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]
LOOK = """async (rules) => (await axe.run(document, {runOnly: rules, resultTypes: ["violations"]})).violations"""
"""Every rule is checked; telling of thousands of elements without faults would take most of the
time.
"""
TWO_FRAMES = """() => new Promise((done, failed) => {
  setTimeout(() => failed(new Error("no frame in 30 s: " + document.visibilityState)), 30000);
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
PASSWORD = "correct horse battery"
BROKEN_OFF = ("htmx:sendAbort", "htmx:afterRequest")
"""What htmx says of a request that leaving the page has broken off."""


def is_wrong(message: ConsoleMessage) -> bool:
    return message.type == "error" and not message.text.startswith(BROKEN_OFF)


def sign_in_link(output: str) -> str:
    """The link that greenroom printed."""
    found = re.search(r"^sign in\s+(\S+)", output, re.M)
    assert found, output
    return found[1]


@dataclass
class DashboardBrowser:
    """One browser window and everything it complained about."""

    context: BrowserContext
    base: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("pageerror", lambda error: self.complaints.append(f"{self.page.url}: {error}"))
        self.page.on("console", lambda message: self._heard(message))

    def _heard(self, message: ConsoleMessage) -> None:
        if is_wrong(message) and "Failed to load resource" not in message.text:
            self.complaints.append(f"{self.page.url}: {message.text}")

    def go(self, path: str) -> Page:
        self.page.goto(path if path.startswith("http") else self.base + path)
        return self.page

    def first_sign_in(self, output: str, name: str = "ada") -> Page:
        """From the printed link to an account of one's own."""
        page = self.go(sign_in_link(output))
        page.get_by_label("User name").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Create the account").click()
        page.wait_for_url("**/rooms")
        return page

    def violations(self, rules: list[str] = RULES) -> list[str]:
        """What axe-core finds on the page as it is. It is put in beside the policy, which applies
        to the page's own scripts.
        """
        return violations(self.page, rules)


def violations(page: Page, rules: list[str] = RULES) -> list[str]:
    """What axe-core finds on any page, as `DashboardBrowser.violations`."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text() + "\n;0")
    found = page.evaluate(LOOK, rules)
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0].get('failureSummary', '')}"
        for one in found
    ]


def show_in(page: Page, theme: Literal["light", "dark"]) -> None:
    """Returns when the page has changed its colours: its scripts are told with the next frame."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.evaluate(TWO_FRAMES)


def violations_in_both_themes(page: Page) -> list[str]:
    """Every rule in the dark; in the light those again that a colour can break."""
    show_in(page, "dark")
    found = violations(page)
    show_in(page, "light")
    return found + violations(page, OF_COLOURS)


@contextmanager
def chromium(executable: str = CHROMIUM) -> Iterator[Browser]:
    """Debian's browser, with the fonts of fonts.conf and no others."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=ARGUMENTS, env={**os.environ, **FONTS}
        )
        yield browser
        browser.close()
