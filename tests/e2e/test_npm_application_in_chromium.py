"""Vite's development server, from npm, behind an empty room in Chromium: modules, styles, a form,
and its hot reload over a WebSocket.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.conftest import StartGreenroom, eventually
from vite_application import answers, serving

PATIENCE_MS = 30_000
ROOM = """
origin = "{origin}"
[[rooms]]
name = "main"
host = "vite.localhost"
total_active_users = 10
new_users_per_minute = 100
"""
READY, COLD = "Tea is ready", "Tea is cold"


@pytest.fixture
def vite(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[tuple[Path, int]]:
    """The folder of its source, and its port."""
    port = free_port()
    with serving(tmp_path, port) as application:
        log = tmp_path / "vite.log"
        eventually(lambda: answers(port), lambda: f"Vite answers: {log.read_text()[-2000:]}", 60)
        yield application, port


def journey(page: Page, application: Path, url: str) -> Counter[tuple[str, str, int]]:
    """Loads the page, sees an edited module without a reload, and sends the form; what was asked
    for: method, path, status.
    """
    asked: list[tuple[str, str, int]] = []
    sockets: list[str] = []
    page.set_default_timeout(PATIENCE_MS)
    page.on(
        "response",
        lambda answer: asked.append(
            (answer.request.method, answer.url.partition(url)[2].partition("?")[0], answer.status)
        ),
    )
    page.on("websocket", lambda socket: sockets.append(socket.url))
    words = application / "src" / "words.js"
    page.goto(f"{url}/")
    expect(page.locator("h1")).to_have_text(READY)
    expect(page.locator("h1")).to_have_css("color", "rgb(1, 2, 3)")
    expect(page.locator("body")).to_have_attribute("data-tea", "oolong")
    eventually(
        lambda: page.evaluate("document.getElementById('cup').naturalWidth") == 20,
        "the picture is there",
        30,
    )
    page.evaluate("window.same = true")
    words.write_text(words.read_text().replace(READY, COLD))
    expect(page.locator("h1")).to_have_text(COLD)
    assert page.evaluate("window.same"), "changed in its place, over the WebSocket"
    assert sockets, "the hot reload is connected"
    assert all(socket.startswith(url.replace("http", "ws", 1)) for socket in sockets), (
        "by the same way as the page"
    )
    words.write_text(words.read_text().replace(COLD, READY))
    expect(page.locator("h1")).to_have_text(READY)  # or the next journey would see the change
    page.get_by_role("button", name="Order").click()
    expect(page.locator("#order")).to_have_text("POST tea=Earl+Grey+%26+milk")
    return Counter(asked)


def test_a_development_server_from_npm_works_as_without_greenroom(
    browser: Browser, vite: tuple[Path, int], greenroom: StartGreenroom
) -> None:
    application, port = vite
    running = greenroom.config(ROOM.format(origin=f"http://127.0.0.1:{port}"))
    journeys = []
    for at in (port, port, running.address[1]):  # the first one makes Vite put its modules together
        context = browser.new_context()
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))  # type: ignore[misc]
        journeys.append(journey(page, application, f"http://vite.localhost:{at}"))
        assert errors == []
        context.close()
    assert journeys[2] == journeys[1]
    assert running.room()["active_users"] == 1
