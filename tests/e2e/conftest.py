"""A real Chromium for a module of tests, and both official clients of the API."""

from collections.abc import Iterator
from typing import Any

import pytest
from api_rig import Api
from dashboard_browser import CHROMIUM, chromium
from playwright.sync_api import Browser, expect

expect.set_options(
    timeout=60_000
)  # a busy machine takes longer than the five seconds that it waits by itself


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Every site is on this machine, by any name. A file says `BROWSER = WHOLE_CHROMIUM` where it
    needs what only the whole browser has.
    """
    with chromium(getattr(request.module, "BROWSER", CHROMIUM)) as found:
        yield found


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def cf(request: pytest.FixtureRequest, api: Api) -> Any:
    """An official client of each kind, of the file's `api`."""
    return api.sdk(asynchronous=request.param)
