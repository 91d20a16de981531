"""A window of Chromium, and the server whose waiting page it shows."""

from collections.abc import Iterator

import pytest
from dashboard_browser import CHROMIUM
from page_rig import PATIENCE_MS, Gateway, page_gateway
from playwright.sync_api import Browser, BrowserContext, Page


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with page_gateway() as found:
        yield found


ASKABLE = "Object.defineProperty(Notification, 'permission', { get: () => 'default', configurable: true })"
"""The headless shell denies notifications; the page offers them, as in the whole browser."""


@pytest.fixture
def context(request: pytest.FixtureRequest, browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(locale="en-US", timezone_id="Europe/Berlin")
    opened.set_default_timeout(PATIENCE_MS)
    if getattr(request.module, "BROWSER", CHROMIUM) == CHROMIUM:
        opened.add_init_script(ASKABLE)
    yield opened
    for page in opened.pages:
        page.unroute_all(
            behavior="ignoreErrors"
        )  # closing waits for handlers, and a page that reloads itself starts another one
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
