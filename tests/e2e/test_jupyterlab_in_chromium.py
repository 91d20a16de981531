"""JupyterLab behind a room for one: its session ends while it is open, another visitor has the
place for a while, and nothing is lost.

What it saves meanwhile must fail visibly, never behind a success, and afterwards it goes on without
a reload: its ticket comes back.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page, Response, expect, sync_playwright
from playwright.sync_api import TimeoutError as NotInTime
from tests.conftest import eventually

PATIENCE_MS = 60_000
"""JupyterLab loads some hundred files, and this machine may be busy."""

ROOM = """
origin = "{origin}"
[[rooms]]
name = "main"
host = "lab.localhost"
total_active_users = 1
new_users_per_minute = 100
pace_admissions = false
"""
CELL = "with open('ran.txt', 'a') as file: file.write('x')"
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "id": "a",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": CELL,
        }
    ],
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}


class Lab(NamedTuple):
    url: str
    folder: Path

    @property
    def ran(self) -> str:
        """One letter for each time that the cell has run."""
        file = self.folder / "ran.txt"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def lab(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Lab]:
    folder, port = tmp_path / "work", free_port()
    folder.mkdir()
    (folder / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    own = {
        name: str(tmp_path / name)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    options = (
        "--no-browser --allow-root --ServerApp.ip=127.0.0.1 --IdentityProvider.token= --ServerApp.allow_remote_access=True "
        "--ServerApp.terminals_enabled=False --LabApp.news_url= --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"
    ).split()
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        *options,
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={folder}",
    ]
    process = subprocess.Popen(
        command, env={**os.environ, **own}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    lab = Lab(f"http://127.0.0.1:{port}", folder)

    def answers() -> bool:
        try:
            return bool(urllib.request.urlopen(f"{lab.url}/api").status == 200)
        except OSError:
            return False

    eventually(answers, "JupyterLab answers", 60)
    yield lab
    process.terminate()
    process.wait()


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        arguments = [
            "--no-sandbox",
            "--disable-gpu",
            "--host-resolver-rules=MAP *.localhost 127.0.0.1",
        ]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        page = browser.new_page()
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def close_dialogs(page: Page) -> None:
    """By the last button. Each failed attempt says so, also one that JupyterLab made by itself; and
    it may ask for the kernel (Select).
    """

    def none_left() -> bool:
        button = page.locator(".jp-Dialog button").last
        if button.is_visible():
            button.click()
            page.wait_for_timeout(200)  # another one may be behind it
        return not button.is_visible()

    eventually(none_left, "no dialog is open")


def run_cell(page: Page, lab: Lab) -> None:
    """Runs the cell, and waits until the kernel has. JupyterLab asks which kernel when it did not
    hear of them in time.
    """
    before, cell = len(lab.ran), page.locator(".jp-Notebook .cm-content").first

    def ran() -> bool:
        close_dialogs(page)
        # it is unknown after a reconnection, until something runs
        status = ":is([data-status=idle], [data-status=unknown])"
        expect(page.locator(f".jp-Notebook-ExecutionIndicator{status}").first).to_be_attached(
            timeout=PATIENCE_MS
        )
        if len(lab.ran) == before:
            with contextlib.suppress(NotInTime):  # a dialog that has come over it meanwhile
                cell.click(timeout=2_000)
                page.keyboard.press("Control+Enter")
                page.wait_for_timeout(500)  # a kernel on a busy machine
        return len(lab.ran) > before

    eventually(ran, "the kernel has run the cell", 90)


def save(page: Page) -> int:
    """Changes the notebook and saves it; the status of the answer, or of the question before it
    whether the file has changed.
    """

    def decides(response: Response) -> bool:
        return "/api/contents/a.ipynb" in response.url and (
            response.request.method != "GET" or response.status >= 400
        )

    def into_the_cell() -> bool:
        close_dialogs(page)
        with contextlib.suppress(NotInTime):  # a dialog that has come over it meanwhile
            page.locator(".jp-Notebook .cm-content").first.click(timeout=2_000)
            return True
        return False

    eventually(into_the_cell, "the cell has the focus", 60)
    page.keyboard.press("End")
    page.keyboard.type(" ")
    with page.expect_response(decides) as saved:
        page.keyboard.press("Control+s")
    if saved.value.status >= 400:
        expect(page.locator(".jp-Dialog")).to_contain_text("503 Service Unavailable")
        close_dialogs(page)
    return saved.value.status


def test_a_session_that_ends_while_jupyterlab_is_open_loses_nothing(
    greenroom: Any, lab: Lab, page: Page
) -> None:
    running = greenroom.config(ROOM.format(origin=lab.url))
    page.goto(f"http://lab.localhost:{running.address[1]}/lab/tree/a.ipynb")
    expect(page.locator(".jp-Notebook .cm-content").first).to_be_visible(timeout=PATIENCE_MS)
    page.evaluate("window.loadedOnce = true")
    run_cell(page, lab)
    assert save(page) == 200
    assert running.room()["active_users"] == 1

    ticket = {
        cookie["name"]: cookie["value"]
        for cookie in page.context.cookies()
        if cookie["name"].startswith("__cfwaitingroom")
    }
    mine, other = running.visitor("lab.localhost"), running.visitor("lab.localhost")
    mine.cookies |= ticket
    other.take_place("/api")
    mine.get("/?greenroom=leave", method="POST")

    def admitted() -> bool:
        answer = other.get("/api")
        time.sleep(answer.refresh_s)  # as the page says
        return '"version"' in answer.text

    eventually(admitted, "the one who waited is let in")
    eventually(
        lambda: running.metric("greenroom_gateway_streams_closed_total") >= 1,
        "the kernel's WebSocket is closed",
    )
    assert save(page) == 503, "never behind a success"
    assert running.room()["active_users"] == 1, "one visitor"

    other.get("/?greenroom=leave", method="POST")
    eventually(lambda: save(page) == 200, "the notebook is saved again", 60)
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role(
        "menuitem", name="Reconnect to Kernel"
    ).click()  # or JupyterLab waits up to a minute between its attempts
    run_cell(page, lab)
    assert page.evaluate("window.loadedOnce"), "without a reload"
    assert running.room()["active_users"] == 1
