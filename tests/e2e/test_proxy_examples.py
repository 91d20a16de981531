"""`run` of each proxy's example, as a reader starts it: the demo shop behind the proxy, with one
place; and some of them in Chromium.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from real_proxies import BIN, EXAMPLES, FILES, START_S, ports

IN_CHROMIUM = ("nginx", "haproxy")
"""One that asks, and one that forwards."""
SHOP = "Six Good Things"


@dataclass
class Started:
    """What `run` of an example has started."""

    folder: Path
    port: int
    log: Path
    inside: Any
    group: int

    def shared_memory(self) -> set[str]:
        """The files of shared memory that its processes have mapped: directly in /dev/shm, where a
        test's own folder may be too.
        """
        found = subprocess.run(
            ["pgrep", "-g", str(self.group)], capture_output=True, text=True, check=True
        ).stdout.split()
        files = set()
        for pid in found:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
                files |= {line.split(maxsplit=5)[-1] for line in lines}
        return {file for file in files if Path(file).parent == Path("/dev/shm")}

    def give_place(self) -> None:
        """The operator opens a second place: greenroom reads its changed file by itself."""
        file = self.folder / "greenroom.toml"
        file.write_text(
            file.read_text().replace("total_active_users = 1", "total_active_users = 5")
        )


def copied(name: str, to: Path, at: dict[str, int], control: int) -> Path:
    """The example on these ports, with one place."""
    folder = to / name
    shutil.copytree(EXAMPLES / name, folder)
    for path in folder.iterdir():
        path.write_text(
            ports(path.read_text(), **at).replace(
                "total_active_users = 5", "total_active_users = 1"
            )
        )
    text = (folder / "run").read_text()
    data = '--data "$state/greenroom"'
    assert data in text
    assert "greenroom demo --shop-only" in text
    text = text.replace(data, f"{data} --control 127.0.0.1:{control}")
    (folder / "run").write_text(text)
    return folder


def run(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """In a process group of its own."""
    (temporary := folder.parent / "tmp").mkdir()
    env = {
        "PATH": f"{BIN}:/usr/sbin:{os.environ['PATH']}",
        "HOME": str(folder.parent),
        "TMPDIR": str(temporary),
    }
    with log.open("a") as out:
        return subprocess.Popen(
            [folder / "run"], stdout=out, stderr=out, env=env, start_new_session=True
        )


def end_all(process: subprocess.Popen[bytes]) -> bool:
    """Ends what is left of the group; whether anything was."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
        return True
    return False


@pytest.fixture
def started(
    request, tmp_path: Path, free_port: Callable[[], int], greenroom: Any, visitor_class: Any
) -> Iterator[Started]:
    """The example of this name, ready, with its only place taken."""
    log, at = (
        tmp_path / "log",
        {"proxy": free_port(), "greenroom": free_port(), "origin": free_port()},
    )
    folder = copied(request.param, tmp_path, at, free_port())
    process = run(folder, log)
    try:
        inside = visitor_class(("127.0.0.1", at["proxy"]))

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(OSError):
                return SHOP in inside.get("/").text
            return False

        greenroom.eventually(answers, log.read_text, START_S)
        yield Started(folder, at["proxy"], log, inside, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        finally:
            left = end_all(process)
    assert not left, log.read_text()
    assert not any((tmp_path / "tmp").iterdir()), "the state of the try is removed"


@pytest.mark.parametrize(
    "started", [name for name in FILES if name not in IN_CHROMIUM], indirect=True
)
def test_run_starts_the_demo_shop_behind_the_proxy(started: Started, visitor_class: Any) -> None:
    second = visitor_class(("127.0.0.1", started.port))
    assert second.get("/").waiting
    assert SHOP not in second.get("/basket").text
    assert SHOP in started.inside.get("/basket").text
    assert not started.shared_memory(), "it would be left there"


@pytest.mark.parametrize("started", IN_CHROMIUM, indirect=True)
def test_a_browser_waits_is_let_in_and_buys(started: Started, browser: Browser) -> None:
    page = browser.new_context().new_page()
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
    page.context.close()


def common(name: str) -> list[str]:
    """The lines of `run` that are not about this proxy: its command, and before the first start
    what it prepares for native passes.
    """
    lines = (EXAMPLES / name / "run").read_text().splitlines()[2:]
    prepared = lines.index("greenroom demo --shop-only --listen 127.0.0.1:3000 &")
    (proxy,) = [
        at
        for at, line in enumerate(lines)
        if re.search(r" &( +# .*)?$", line) and not line.startswith("greenroom ")
    ]
    begun = next(at for at, line in enumerate(lines) if line.startswith("trap 'exit 0'")) + 1
    shared = lines[:begun] + lines[prepared:proxy] + lines[proxy + 1 :]
    return [
        line.replace('"$state/greenroom.toml"', "greenroom.toml").replace(" serve ", " decide ")
        for line in shared
    ]


@pytest.mark.parametrize("name", FILES)
def test_run_is_the_same_but_for_the_proxy(name: str) -> None:
    """So that one of them shows how all end when greenroom cannot start."""
    assert common(name) == common("nginx")


def test_run_ends_and_says_why_when_greenroom_cannot_start(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    log = tmp_path / "log"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = {"proxy": free_port(), "greenroom": taken.getsockname()[1], "origin": free_port()}
        process = run(copied("nginx", tmp_path, at, free_port()), log)
        try:
            status = process.wait(START_S)
        finally:
            left = end_all(process)
    assert (status, left) == (1, False), log.read_text()
    assert "another program is already listening there" in log.read_text()
    assert "one of the programs has ended" in log.read_text()
    assert not any((tmp_path / "tmp").iterdir()), "the state of the try is removed"
