"""A whole sale is walked with the keyboard alone; on every screen, in every window, no text is cut off
or lies over other text, and axe-core finds nothing.
"""

import pytest
from dashboard_browser import DashboardBrowser, violations_in_both_themes
from layout import layout_faults
from playwright.sync_api import Browser, Page
from sale_walk import FORMS, SaleWalk, fill_line, settle, show_as

NOT_CHECKED_ELSEWHERE = (
    "new-event",
    "review-event",
    "dry-run-result",
    "live-hold",
    "live-held",
)
"""By axe-core: screens of which no other test asks it."""


def test_a_sale_is_walked_with_the_keyboard_alone(
    browser: Browser, shared_greenroom, origin
) -> None:
    running = shared_greenroom.config(f'origin = "{origin.url}"\n[log]\nlevel = "warning"\n')
    host, port = running.control
    context = browser.new_context(
        bypass_csp=True, reduced_motion="reduce", locale="en-GB", timezone_id="Europe/Berlin"
    )
    at = DashboardBrowser(context, f"http://{host}:{port}")
    show_as(at.page, FORMS[0])
    faults: dict[str, list[str]] = {}
    seen = []

    def look(page: Page, name: str) -> None:
        seen.append(name)
        settle(page)
        for form in FORMS:
            page.set_viewport_size({"width": form.width, "height": form.height})
            found = layout_faults(page)
            if found:
                faults[f"{name}, {form.name}"] = found
        page.set_viewport_size({"width": FORMS[0].width, "height": FORMS[0].height})
        if name in NOT_CHECKED_ELSEWHERE and (found := violations_in_both_themes(page)):
            faults[f"{name}, axe-core"] = found

    SaleWalk(at, look, lambda: fill_line(*running.address), keyboard=True).walk(running.output)
    assert faults == {}
    assert set(seen) >= set(NOT_CHECKED_ELSEWHERE)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<p style='width:40px;overflow:hidden;white-space:nowrap'>Visitors wait</p>", "cut off"),
        ("<p>One</p><p style='margin-top:-2.4em'>Two</p>", "lies over"),
        ("<p style='width:3em'>a few words in a very narrow column of text</p>", "lines in"),
        ("<p style='width:200vw'>wide</p>", "wider than the window"),
        (
            "<p>One</p><p>Two</p><div style='overflow:auto;width:3em;white-space:nowrap'>Three four</div>",
            "",
        ),
    ],
)
def test_the_check_of_the_layout_catches(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, body: str, fault: str
) -> None:
    monkeypatch.setattr("layout.PATIENCE", 0)
    page = browser.new_page()
    page.set_content(f"<!doctype html><body>{body}")
    found = layout_faults(page)
    page.close()
    assert any(fault in one for one in found) if fault else found == []
