"""A rule built and tried in real Chromium: rows write the expression, it is read back, put in order
by keyboard and by drag, and tried.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from api_rig import ACCOUNT
from dashboard_browser import violations
from live_rig import LiveRig, operator, plain_origin
from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def rig(shared_greenroom: Any) -> Iterator[LiveRig]:
    with plain_origin() as origin:
        yield LiveRig.start(shared_greenroom, origin)


def add_rule(
    page: Page, rig: LiveRig, name: str, field: str, comparison: str, value: str, expression: str
) -> None:
    """Builds one rule from one row; what the row writes is what is saved."""
    page.goto(f"{rig.path}/rules/new")
    page.get_by_label("What is it for?").fill(name)
    page.get_by_label("Field of condition 1").select_option(field)
    page.get_by_label("Comparison of condition 1").select_option(comparison)
    page.get_by_label("Value of condition 1").fill(value)
    expect(page.locator("#expression")).to_have_value(expression)
    page.get_by_role("button", name="Save the rule").click()
    expect(page.get_by_role("status")).to_contain_text("Created")


def order(page: Page) -> list[str]:
    return page.locator("tbody th a").all_text_contents()


def test_a_rule_is_built_read_back_put_in_order_and_tried(browser: Browser, rig: LiveRig) -> None:
    with operator(browser, rig) as page:
        add_rule(
            page,
            rig,
            "Office",
            "ip.src",
            "in",
            "192.0.2.0/24\n198.51.100.7",
            "ip.src in {192.0.2.0/24 198.51.100.7}",
        )
        add_rule(
            page,
            rig,
            "Status",
            "http.request.uri.path",
            "eq",
            "/status",
            'http.request.uri.path eq "/status"',
        )
        add_rule(
            page,
            rig,
            "Robots",
            "http.request.uri.path",
            "eq",
            "/robots",
            'http.request.uri.path eq "/robots"',
        )
        assert order(page) == ["Office", "Status", "Robots"]
        assert violations(page) == []

        lists = rig.api.ask(
            "POST", f"/accounts/{ACCOUNT}/rules/lists", {"name": "vip", "kind": "ip"}
        )
        assert lists.status == 200
        page.goto(f"{rig.path}/rules/new")
        page.get_by_label("Field of condition 1").select_option("ip.src")
        page.get_by_label("Comparison of condition 1").select_option("in list")
        expect(page.get_by_label("Value of condition 1")).to_be_hidden()
        page.get_by_label("List of condition 1").select_option("vip")
        expect(page.locator("#expression")).to_have_value("ip.src in $vip")
        page.goto(f"{rig.path}/rules")

        page.get_by_role("link", name="Office").click()  # read back into rows
        expect(page.get_by_label("Field of condition 1")).to_have_value("ip.src")
        expect(page.get_by_label("Value of condition 1")).to_have_value(
            "192.0.2.0/24\n198.51.100.7"
        )
        page.get_by_role("link", name="Cancel").click()

        page.get_by_role("button", name="Move Status up").focus()
        page.keyboard.press("Enter")
        expect(page.locator("tbody th a").first).to_have_text("Status")
        assert order(page) == ["Status", "Office", "Robots"]

        page.locator("tbody tr").nth(2).locator(".drag-handle").drag_to(
            page.locator("tbody tr").nth(0), target_position={"x": 60, "y": 4}
        )
        expect(page.locator("tbody th a").first).to_have_text("Robots")
        expect(page.get_by_role("status")).to_contain_text("Saved")
        assert order(page) == ["Robots", "Status", "Office"]
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("tbody th a").first).to_have_text("Status")

        page.get_by_role("link", name="Try a request").click()
        for client, holds, heading in (
            ("192.0.2.9", 1, "It reaches your application"),
            ("203.0.113.9", 0, "It depends on whether there is room"),
        ):
            page.get_by_label("Visitor's address").fill(client)
            page.get_by_role("button", name="Try it").click()
            expect(page.get_by_label("Visitor's address")).to_have_value(client)
            expect(page.locator("#result h2")).to_have_text(heading)
            expect(page.locator("#result").get_by_text("Holds", exact=True)).to_have_count(holds)
