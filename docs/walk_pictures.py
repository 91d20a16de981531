"""Walks a whole sale in the dashboard in every form of window, and with the keyboard alone: `python
docs/walk_pictures.py` (10 minutes).

Every screen must be free of faults of axe-core, of text that is cut off, and of text over other
text. Those in SHOWN are taken into docs/pictures/walk, as WebP. `tests/e2e/test_dashboard_sale_walk.py`
is the shortened walk.
"""

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from dashboard_browser import DashboardBrowser, chromium, violations
from dashboard_pictures import PICTURES, Camera, running
from layout import layout_faults
from playwright.sync_api import Browser, Page
from sale_walk import FORMS, SaleWalk, WindowForm, fill_line, settle, show_as

WALK = PICTURES / "walk"
SHOWN = (
    "review-event-desktop",
    "overview-desktop",
    "dry-run-result-desktop",
    "live-desktop",
    "live-hold-phone",
)


def walk(browser: Browser, form: WindowForm, *, keyboard: bool) -> list[str]:
    """The faults found on the way."""
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as said:
        control = re.findall(r"^sign in\s+(http://[^/]+)", said, re.M)[0]
        host, port = re.findall(r"^visitors\s+http://([\d.]+):(\d+)", said, re.M)[0]
        context = browser.new_context(bypass_csp=True, reduced_motion="reduce", locale="en-GB")
        at = DashboardBrowser(context, control)
        show_as(at.page, form)
        camera = Camera(browser.new_page())

        def look(page: Page, name: str) -> None:
            settle(page)
            found = [*layout_faults(page), *violations(page)]
            faults.extend(f"{form.name}, {name}: {one}" for one in found)
            if f"{name}-{form.name}" in SHOWN and not keyboard:
                camera.take(page, WALK / f"{name}-{form.name}.webp")

        SaleWalk(at, look, lambda: fill_line(host, int(port)), keyboard=keyboard).walk(said)
        context.close()
    return faults


def main() -> None:
    WALK.mkdir(exist_ok=True)
    with chromium() as browser:
        faults = [fault for form in FORMS for fault in walk(browser, form, keyboard=False)]
        faults += walk(browser, FORMS[0], keyboard=True)
    if faults:
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    main()
