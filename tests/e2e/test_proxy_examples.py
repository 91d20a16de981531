"""`run` of each proxy's example, as a reader starts it: the demo shop behind the proxy, with one place; and three of them in Chromium."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright
from real_proxies import BIN, EXAMPLES, FILES, START_S, ports

IN_CHROMIUM = ("nginx", "haproxy-spoe", "haproxy", "caddy")
SHOP = "Six Good Things"


@dataclass
class Started:
    """What `run` of an example has started."""

    folder: Path
    port: int
    log: Path
    inside: Any

    def give_place(self) -> None:
        """The operator opens a second place: greenroom reads its changed file by itself."""
        file = self.folder / "greenroom.toml"
        file.write_text(file.read_text().replace("total_active_users = 1", "total_active_users = 5"))


@pytest.fixture
def started(request, tmp_path: Path, free_port: Callable[[], int], greenroom: Any, visitor_class: Any) -> Iterator[Started]:
    """The example of this name, ready, with its only place taken."""
    folder, log = tmp_path / request.param, tmp_path / "log"
    shutil.copytree(EXAMPLES / request.param, folder)
    at = {"proxy": free_port(), "greenroom": free_port(), "origin": free_port()}
    for path in folder.iterdir():
        path.write_text(ports(path.read_text(), **at).replace("total_active_users = 5", "total_active_users = 1"))
    run = (folder / "run").read_text()
    data = '--data "$state/greenroom"'
    assert data in run
    assert "greenroom demo --shop-only" in run
    run = run.replace(data, f"{data} --control 127.0.0.1:{free_port()}").replace("envoy -c", "envoy --use-dynamic-base-id -c")
    (folder / "run").write_text(run)
    env = {"PATH": f"{BIN}:/usr/sbin:{os.environ['PATH']}", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    with log.open("w") as out:
        process = subprocess.Popen([folder / "run"], stdout=out, stderr=out, env=env, start_new_session=True)
    try:
        inside = visitor_class(("127.0.0.1", at["proxy"]))

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(OSError):
                return SHOP in inside.get("/").text
            return False

        greenroom.eventually(answers, log.read_text, START_S)
        yield Started(folder, at["proxy"], log, inside)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        yield browser.new_page()
        browser.close()


@pytest.mark.parametrize("started", [name for name in FILES if name not in IN_CHROMIUM], indirect=True)
def test_run_starts_the_demo_shop_behind_the_proxy(started: Started, visitor_class: Any) -> None:
    second = visitor_class(("127.0.0.1", started.port))
    assert second.get("/").waiting
    assert SHOP not in second.get("/basket").text
    assert SHOP in started.inside.get("/basket").text


@pytest.mark.parametrize("started", IN_CHROMIUM, indirect=True)
def test_a_browser_waits_is_let_in_and_buys(started: Started, page: Page) -> None:
    page.goto(f"http://127.0.0.1:{started.port}/")
    expect(page).not_to_have_title("Opening day - Six Good Things")
    assert SHOP not in page.content()
    expect(page.locator("body")).to_contain_text("line")
    started.give_place()
    expect(page).to_have_title("Opening day - Six Good Things", timeout=60_000)
    page.click(".card >> nth=0")
    page.click("text=Put in basket")
    expect(page.locator("header")).to_contain_text("Basket (1)")
    page.click("button:has-text('Buy')")
    expect(page.locator("h1")).to_have_text("Thank you!")
