"""The page with which anyone checks a draw, opened from a file in a real browser, without any
server.
"""

import json
import re
from importlib import resources
from pathlib import Path
from random import Random

import msgspec
import pytest
from playwright.sync_api import Browser, Page

from greenroom.admission.draw import (
    ScheduledDraw,
    entries,
    hold,
    receipt,
)

START_MS = 1_790_000_000_000
RECEIPTS = 10_000
SALE = ScheduledDraw("room", "sale", START_MS - 3_600_000, START_MS)
DRAW = hold(
    SALE,
    bytes(range(32)),
    entries(SALE.draw_id, [Random(number).randbytes(12) for number in range(RECEIPTS)]),
    "shop",
    "spring_sale",
)
MINE = receipt(DRAW.draw, Random(7).randbytes(12))


def checked(
    browser: Browser, folder: Path, draw: dict, saved: dict | None = None, **typed: str
) -> tuple[str, list[str]]:
    """The verdict of the page, and what it found wrong."""
    page: Page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((resources.files("greenroom.pages") / "verify_draw.html").as_uri())  # type: ignore[attr-defined]
    for name, content in (("draw", draw), ("saved", saved)):
        if content is not None:
            file = folder / f"{name}.json"
            file.write_text(json.dumps(content))
            page.set_input_files(f"#{name}", file)
    for name, text in typed.items():
        page.fill(f"#{name}", text)
    page.click("button")
    page.locator("#verdict", has_text=re.compile("valid|cannot")).wait_for(timeout=60_000)
    verdict, wrong = page.inner_text("#verdict"), page.locator("li.bad").all_inner_texts()
    shown = page.locator("li").all_inner_texts()
    page.close()
    assert [url for url in asked if not url.startswith("file:")] == []
    return verdict, wrong or shown


def published() -> dict:
    return json.loads(msgspec.json.encode(DRAW))


def test_a_true_draw_fits_and_the_saved_receipt_finds_its_place(
    browser: Browser, tmp_path: Path
) -> None:
    saved = {
        "format": "greenroom-receipt-1",
        "draw": DRAW.draw,
        "receipt": MINE,
        "commitment": DRAW.commitment,
    }
    verdict, shown = checked(browser, tmp_path, published(), saved)
    assert verdict == "The draw is valid"
    place = next(
        place for place in range(1, RECEIPTS + 1) if f"place {place} of {RECEIPTS}." in shown[-1]
    )
    assert checked(browser, tmp_path, published(), receipt=MINE)[1][-2].endswith(
        f"place {place} of {RECEIPTS}."
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda draw: draw["receipts"].reverse(), "order"),
        (lambda draw: draw["receipts"].pop(), "closed"),
        (lambda draw: draw.update(seed="00" * 32), "seed does not match"),
        (lambda draw: draw.update(commitment="00" * 32), "differs from the one shown"),
        (lambda draw: draw.update(event_start_ms=START_MS + 1), "draw id"),
    ],
)
def test_a_changed_draw_is_found_out(browser: Browser, tmp_path: Path, change, said: str) -> None:
    draw = published()
    change(draw)
    verdict, wrong = checked(browser, tmp_path, draw, commitment=DRAW.commitment)
    assert verdict == "The draw is not valid"
    assert any(said in line for line in wrong)


def test_a_foreign_receipt_is_not_in_the_list_and_a_file_that_is_no_draw_is_said_to_be_none(
    browser: Browser, tmp_path: Path
) -> None:
    assert (
        "Your receipt is not in the list."
        in checked(browser, tmp_path, published(), receipt="0" * 32)[1]
    )
    assert checked(browser, tmp_path, {"some": "thing"})[0] in (
        "The draw cannot be verified",
        "The draw is not valid",
    )
