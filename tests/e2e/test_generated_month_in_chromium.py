"""`greenroom demo --history` in a real Chromium: a month in every chart, each labelled as
generated, and the GraphQL explorer over it.

The content security policy is in force: a script that it stops, or one that throws, fails the test.
"""

import csv
import re
from collections.abc import Iterator

import pytest
from api_rig import Api, create_token
from dashboard_browser import DashboardBrowser, chromium
from playwright.sync_api import expect

from greenroom.analytics.dashboard.panels import CAPACITY, PANELS

PATIENCE_MS = 60_000
LABEL = "sample data"
FREE = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
TOTAL = """{ viewer { zones { waitingRoomAnalyticsAdaptiveGroups(limit: 1) {
  count sum { newUsersPerMinute usersWaited minutesGenerated } max { totalQueuedUsers } } } } }"""


@pytest.fixture(scope="module")
def at(shared_greenroom) -> Iterator[DashboardBrowser]:
    """A demo with its history, and an operator in the dashboard."""
    running = shared_greenroom.run(
        "demo", "--history", *FREE, env={"TMPDIR": str(shared_greenroom.folder)}
    )
    shared_greenroom.eventually(
        lambda: "Ctrl-C stops the demo." in running.output, "a month of history", 180
    )
    running.wait_until_ready()
    host, port = running.control
    with chromium() as browser:
        window = DashboardBrowser(
            browser.new_context(accept_downloads=True), f"http://{host}:{port}"
        )
        page = window.first_sign_in(running.output)
        page.set_default_timeout(PATIENCE_MS)
        found = re.search(r"/zones/[^/]+/rooms/(?!new)[^/\"?]+", page.content())
        assert found, page.content()
        window.room = found[0]  # type: ignore[attr-defined]
        (data,) = shared_greenroom.folder.glob("greenroom-demo-*")
        window.api = Api(running.control, create_token(data, "reader", "--scope", "analytics"))  # type: ignore[attr-defined]
        yield window


def test_every_answer_says_that_no_visitor_made_it(at: DashboardBrowser) -> None:
    body = at.api.ask("POST", "/graphql", {"query": TOTAL}).body  # type: ignore[attr-defined]
    assert body["errors"] is None
    (row,) = body["data"]["viewer"]["zones"][0]["waitingRoomAnalyticsAdaptiveGroups"]
    assert row["count"] >= 30 * 1_440
    assert row["sum"]["minutesGenerated"] >= 30 * 1_440 - 60
    assert body["extensions"]["greenroom"]["generatedMinutes"] == row["sum"]["minutesGenerated"]
    assert row["sum"]["usersWaited"] > 100, "there were sales"


@pytest.mark.parametrize("query", ["span=30d", "span=7d&compare=week"])
def test_every_chart_has_something_to_show_and_a_label(at: DashboardBrowser, query: str) -> None:
    page = at.go(f"{at.room}/analytics?{query}")  # type: ignore[attr-defined]
    for panel in PANELS:
        if panel.name == CAPACITY:
            continue
        chart = page.locator(f".panel:has(#panel-{panel.name})")
        if panel.name != "sessions":
            expect(chart.locator("svg").first).to_be_visible()
        expect(chart.locator("h2")).to_contain_text(LABEL)
    if "compare" in query:
        expect(page.locator(".chart-legend", has_text="Previous week").first).to_contain_text(LABEL)
    assert at.complaints == []


def test_the_last_hour_of_the_live_page_is_labelled(at: DashboardBrowser) -> None:
    page = at.go(f"{at.room}/live")  # type: ignore[attr-defined]
    for name in ("main", "minute"):
        expect(page.locator(f"#chart-{name}-title")).to_contain_text(LABEL)


def test_what_is_downloaded_says_it_too(at: DashboardBrowser) -> None:
    page = at.go(f"{at.room}/analytics?span=30d")  # type: ignore[attr-defined]
    with page.expect_download() as found:
        page.get_by_role("link", name="Download CSV").click()
    rows = list(csv.DictReader(found.value.path().read_text().splitlines()))
    generated = [float(row["generated minutes (sample data)"] or 0) for row in rows]
    assert sum(generated) >= 29 * 1_440
    assert generated[len(generated) // 2] == 60


def test_the_explorer_completes_shows_the_schema_and_answers(at: DashboardBrowser) -> None:
    page = at.go("/explorer")
    expect(page.locator(".graphiql-container")).to_be_visible()
    editor = page.locator(".graphiql-query-editor .CodeMirror")
    expect(editor).to_contain_text("viewer")
    page.get_by_role("button", name=re.compile("Execute query")).click()
    result = page.locator(".result-window")
    expect(result).to_contain_text("totalQueuedUsers")  # it shows the first lines only
    expect(result).to_contain_text("datetimeHour")
    page.get_by_role("button", name=re.compile("Show Documentation Explorer")).click()
    expect(page.locator(".graphiql-doc-explorer")).to_contain_text("Query")
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.type("{ viewer { zo")
    page.keyboard.press("Control+Space")
    expect(editor).to_contain_text("zones")  # the only field that begins so is put in
    assert at.complaints == []


def test_a_browser_at_the_address_of_graphql_comes_to_the_explorer(at: DashboardBrowser) -> None:
    page = at.go("/client/v4/graphql")
    assert page.url == f"{at.base}/explorer"
