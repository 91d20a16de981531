"""Takes the pictures of the dashboard, in a real Chromium in front of a real greenroom: `python
docs/dashboard_pictures.py` (15 minutes).

Those of the tutorial by following it; then a crowd comes to its room, and the pages that the
how-tos show are taken into docs/pictures/dashboard. All are WebP, made by the browser, so that the
repository stays small.
"""

import asyncio
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from dashboard_browser import DashboardBrowser, chromium, sign_in_link
from playwright.sync_api import Page, expect
from tutorial import follow, steps_of

from greenroom.demo.console import CROWD_MAX, Browser, DemoCrowd

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
GREENROOM = Path(sys.executable).with_name("greenroom")
SHOP = "127.0.0.1:3000"
"""The application of the tutorial."""

HOST = "shop.example.com"
"""Of its room."""

CROWDED_S = 480
"""After this the room is full, visitors wait, and the charts have minutes to show."""

OPENING = {"viewport": {"width": 1180, "height": 1000}, "color_scheme": "light"}
"""The live page, as README shows it."""

HOUR = "?span=1h"
"""Of the charts: what has happened since the beginning."""

WINDOW = {"viewport": {"width": 1180, "height": 760}, "color_scheme": "light"}
QUALITY = 0.6
SETTLE_MS = 700
"""Charts and previews need a moment."""

SIMULATION_MS = 300_000

TO_WEBP = """async ([png, quality]) => {
  const picture = new Image();
  picture.src = "data:image/png;base64," + png;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.naturalWidth;
  canvas.height = picture.naturalHeight;
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


class Camera:
    """Writes what a page shows as WebP; a second, empty page converts it."""

    def __init__(self, workbench: Page) -> None:
        self._workbench = workbench

    def take(self, page: Page, path: Path) -> None:
        """One picture of what is in the window, when nothing of it is being simulated any more."""
        expect(page.locator(".said [hx-get]")).to_have_count(0, timeout=SIMULATION_MS)
        page.wait_for_timeout(SETTLE_MS)
        png = b64encode(page.screenshot()).decode()
        path.write_bytes(b64decode(self._workbench.evaluate(TO_WEBP, [png, QUALITY])))


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """What a greenroom without rooms of its own prints at its start."""
    (folder / "greenroom.toml").write_text('origin = "http://127.0.0.1:9"\n')
    command = [GREENROOM, "serve", "--config", folder / "greenroom.toml", "--data", folder / "data"]
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"],
            stdout=output,
            stderr=output,
        )
    try:
        while "\nready" not in (folder / "output").read_text():
            time.sleep(0.2)  # another process needs a moment
        yield (folder / "output").read_text()
    finally:
        process.terminate()
        process.wait()


@contextmanager
def crowded(said: str) -> Iterator[None]:
    """The application of the tutorial, and a crowd that has been in front of it for a while."""
    address, port = re.findall(r"^visitors\s+http://([\d.]+):(\d+)", said, re.M)[0]
    shop = subprocess.Popen(
        [GREENROOM, "demo", "--shop-only", "--listen", SHOP], stdout=subprocess.DEVNULL
    )
    crowd = DemoCrowd(lambda: Browser(address, int(port), HOST), random.Random(1))
    crowd.resize(CROWD_MAX)
    loop = asyncio.new_event_loop()
    running = loop.create_task(crowd.run())

    def play() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(running)

    thread = threading.Thread(target=play)
    thread.start()
    try:
        time.sleep(CROWDED_S)  # real visitors need real minutes
        yield
    finally:
        loop.call_soon_threadsafe(running.cancel)
        thread.join()
        loop.close()
        shop.terminate()
        shop.wait()


def tutorial(at: DashboardBrowser, link: str, camera: Camera) -> str:
    """Follows the tutorial with its pictures; the path of its room."""
    at.go(link)
    text = (DOCS / "tutorial" / "first-sale.md").read_text()
    follow(at.page, steps_of(text), lambda name: camera.take(at.page, PICTURES / name))
    return re.sub(r".*(/zones/\w+/rooms/\w+).*", r"\1", at.page.url)


def main() -> None:
    """Takes them."""
    (PICTURES / "dashboard").mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as temporary,
        running(Path(temporary)) as said,
        chromium() as browser,
    ):
        link = sign_in_link(said)
        base = link.partition("/sign-in")[0]
        camera = Camera(browser.new_page())
        first = DashboardBrowser(browser.new_context(**WINDOW), base)
        room = tutorial(first, link, camera)
        state = first.context.storage_state()
        paths = {
            "rooms": "/rooms",
            "room-analytics": f"{room}/analytics{HOUR}",
            "rule-new": f"{room}/rules/new",
            "status-page": "/status-page",
        }
        with crowded(said):
            at = DashboardBrowser(browser.new_context(storage_state=state, **OPENING), base)
            at.go(f"{room}/live")
            camera.take(at.page, PICTURES / "live.webp")
            at.go("/rooms")
            expect(at.page.locator(".peaks")).to_be_visible()  # read in the background
            at = DashboardBrowser(browser.new_context(storage_state=state, **WINDOW), base)
            for name, path in paths.items():
                at.go(path)
                camera.take(at.page, PICTURES / "dashboard" / f"{name}-light.webp")


if __name__ == "__main__":
    main()
