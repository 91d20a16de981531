"""Photographs the demo for the documents. Run: .venv/bin/python docs/screenshots.py (three to five
minutes; needs Debian's chromium).

Starts `greenroom demo` on free ports, visits it as a person would, and writes waiting.png and
waiting-phone.png to docs/pictures. The pictures are real: nothing is drawn, no state is faked.
"""

import http.client
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

PICTURES = Path(__file__).parent / "pictures"
GREENROOM = Path(sys.executable).with_name("greenroom")
DESKTOP = {"width": 1100, "height": 720}
PHONE = {"width": 390, "height": 760}
CROWD = 20
PATIENCE_S = 300
BYTES_MAX = 150_000


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def ask(url: str, method: str = "GET", body: str = "") -> bytes:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.netloc, timeout=10)
    connection.request(
        method,
        where.path,
        body or None,
        {"Content-Type": "application/x-www-form-urlencoded"} if body else {},
    )
    return connection.getresponse().read()


def until(what: str, happened: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            raise SystemExit(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(0.3)


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """A running demo; the addresses of the shop and of the control listener."""
    shop, control = (f"127.0.0.1:{free_port()}" for _ in range(2))
    process = subprocess.Popen(
        [GREENROOM, "demo", "--listen", shop, "--control", control], stdout=subprocess.DEVNULL
    )

    def ready() -> bool:
        try:
            return bool(ask(f"http://{control}/readyz"))
        except OSError:
            return False

    try:
        until("the demo is ready", ready, 30)
        yield f"http://{shop}/", f"http://{control}/demo"
    finally:
        process.terminate()
        process.wait(30)


def visitor(browser: Browser, **settings: object) -> Page:
    """A window with cookies of its own."""
    return browser.new_context(viewport=settings.pop("viewport", DESKTOP), **settings).new_page()  # type: ignore[arg-type]


def photograph(page: Page, name: str, whole: bool = False) -> None:
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path, animations="disabled", full_page=whole)
    if path.stat().st_size > BYTES_MAX:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes, more than {BYTES_MAX}")
    print(path)


def held(page: Page) -> bool:
    return page.locator("#room").count() > 0


def line_moves(state: dict[str, dict[str, float | None]]) -> bool:
    return (state["crowd"]["waiting"] or 0) >= 8 and state["room"][
        "estimated_wait_seconds"
    ] is not None


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with demo() as (shop, console), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        ask(f"{console}/crowd", "POST", f"size={CROWD}")
        until(
            "a line has formed and moves", lambda: line_moves(json.loads(ask(f"{console}/state")))
        )
        late = visitor(browser)
        phone = visitor(
            browser, viewport=PHONE, device_scale_factor=2, is_mobile=True, has_touch=True
        )
        for page in (late, phone):
            page.goto(shop)
        for page, name in ((late, "waiting"), (phone, "waiting-phone")):
            until(
                "the place in line is real",
                lambda page=page: held(page) and page.locator("#hero").is_visible(),
                60,
            )
            until(
                "the wait is known",
                lambda page=page: not held(page) or any(map(str.isdigit, page.inner_text("#wait"))),
                120,
            )
            photograph(page, name)
        browser.close()


if __name__ == "__main__":
    main()
