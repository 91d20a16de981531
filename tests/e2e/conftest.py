"""A real Chromium for a module of tests."""

from collections.abc import Iterator

import pytest
from dashboard_browser import chromium
from playwright.sync_api import Browser, expect

expect.set_options(
    timeout=60_000
)  # a busy machine takes longer than the five seconds that it waits by itself


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Every site is on this machine, by any name."""
    with chromium() as found:
        yield found
