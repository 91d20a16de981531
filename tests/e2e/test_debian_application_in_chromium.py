"""Fossil, a server of Debian, behind an empty room in Chromium: pages, scripts, signing in, a
ticket in a form, an upload, as without greenroom.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.conftest import StartGreenroom, eventually

PATIENCE_MS = 30_000
PASSWORD = "secret-42"
NAMES = re.compile("[0-9a-f]{10,40}")
"""Of tickets, which are drawn."""
ROOM = """
origin = "{origin}"
[[rooms]]
name = "main"
host = "fossil.localhost"
total_active_users = 10
new_users_per_minute = 100
"""


@pytest.fixture
def fossil(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[int]:
    """Its port; a new repository, in which `admin` may do everything."""
    home, port = tmp_path / "home", free_port()
    home.mkdir()
    environment = {"HOME": str(home), "FOSSIL_USER": "admin", "PATH": "/usr/bin:/bin"}
    for arguments in (
        ("new", "shop.fossil", "--project-name", "Shop"),
        ("user", "password", "admin", PASSWORD, "-R", "shop.fossil"),
    ):
        subprocess.run(
            ["fossil", *arguments],
            cwd=home,
            env=environment,
            check=True,
            capture_output=True,
            timeout=60,
        )
    with (tmp_path / "fossil.log").open("wb") as log:
        serving = ["fossil", "server", "shop.fossil", "--localhost", "--port", str(port)]
        server = subprocess.Popen(serving, cwd=home, env=environment, stdout=log, stderr=log)
    eventually(lambda: answers(port), "Fossil answers")
    yield port
    server.terminate()
    server.wait(30)


def answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/login", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def journey(page: Page, url: str, title: str) -> list[tuple[str, str, int]]:
    """Signs in, writes a ticket, attaches a picture to it, and reads it; each request that was
    made: method, path, status. A page loads its parts at once, so answers come in any order.
    """
    seen: list[tuple[str, str, int]] = []
    page.set_default_timeout(PATIENCE_MS)
    page.on(
        "response",
        lambda answer: seen.append(
            (answer.request.method, answer.url.partition(url)[2].partition("?")[0], answer.status)
        ),
    )
    page.goto(f"{url}/login")
    page.locator("#u").fill("admin")
    page.locator("#p").fill(PASSWORD)
    page.locator("input[name=in]").click()
    expect(page.locator("body")).to_contain_text("admin")
    page.wait_for_load_state()
    page.goto(f"{url}/tktnew")
    page.locator("input[name=title]").fill(title)
    page.locator("input[name=submit]").or_(page.locator("input[name=preview]")).first.click()
    if page.locator("input[name=submit]").count():
        page.locator("input[name=submit]").click()
    expect(page.locator("body")).to_contain_text(title)
    page.wait_for_load_state()
    page.get_by_role("link", name="Attach").click()
    page.locator("input[type=file]").set_input_files(
        {"name": "note.txt", "mimeType": "text/plain", "buffer": b"tea and cake\n" * 20_000}
    )
    page.locator("input[type=submit]").first.click()
    expect(page.locator("body")).to_contain_text("note.txt")
    page.wait_for_load_state()
    return seen


def test_a_server_of_debian_works_as_without_greenroom(
    browser: Browser, fossil: int, greenroom: StartGreenroom, tmp_path: Path
) -> None:
    running = greenroom.config(ROOM.format(origin=f"http://127.0.0.1:{fossil}"))
    journeys = []
    for name, port in (("plain", fossil), ("behind", running.address[1])):
        context = browser.new_context()
        errors: list[str] = []
        page = context.new_page()
        page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))  # type: ignore[misc]
        journeys.append(journey(page, f"http://fossil.localhost:{port}", f"Tea is cold, {name}"))
        assert errors == []
        context.close()
    plain, behind = (
        Counter(
            (method, NAMES.sub("", path), status)
            for method, path, status in one
            if "favicon" not in path
        )
        for one in journeys
    )
    assert behind == plain
    assert running.room()["active_users"] == 1
