"""axe-core on every page that can be looked at, light and dark; on a phone nothing is wider than
the screen; the Tab key reaches all.
"""

import re
from collections.abc import Iterator

import pytest
from dashboard_browser import AXE, OF_COLOURS, DashboardBrowser, chromium, show_in

from greenroom.dashboard.routes import ROUTES

# The explorer is GraphiQL as npm has it: its editor has three faults of its own that only its
# makers can fix. The page of visitors and the status page are not the dashboard's, and may run no
# script in its frames: tests of their own check them.
OTHERS = (
    ".json",
    "csv",
    "/stream",
    "/live.events",
    "/explorer",
    "/page/visitor",
    "/status-page/preview",
)
LOOKS = [row.path for row in ROUTES if row.method == "GET" and not row.path.endswith(OTHERS)]
IDS = {"name": "limits", "section": "howto", "document": "dashboard", "run_id": "none"}
"""What stands in paths, beside the ids of the zone and the room."""
ABSENT = [
    path for path in LOOKS if not {*re.findall(r"\{(\w+)\}", path)} <= {*IDS, "zone_id", "room_id"}
]
"""Of things that are not there: all answer with one page."""
THEME = "document.documentElement.dataset.bsTheme"
FILE = '[log]\nlevel = "error"\n[[rooms]]\nname = "shop"\nhost = "shop.example.com"\ntotal_active_users = 5\nnew_users_per_minute = 5\n'


@pytest.fixture(scope="module")
def at(shared_greenroom) -> Iterator[DashboardBrowser]:
    assert AXE.is_file(), "run python scripts/build_dashboard.py"
    running = shared_greenroom.config(f'origin = "http://127.0.0.1:9"\n{FILE}')
    host, port = running.control
    with chromium() as browser:
        window = DashboardBrowser(
            browser.new_context(bypass_csp=True, reduced_motion="reduce"), f"http://{host}:{port}"
        )
        page = window.first_sign_in(running.output)
        window.go("/zones/new")
        page.get_by_label("Domain").fill("example.com")
        page.get_by_role("button", name="Create the zone").click()
        page.get_by_label("Name", exact=True).fill("tickets")
        page.get_by_role("button", name="Review").click()
        page.get_by_role("button", name="Create the room").click()
        page.wait_for_url("**/rooms/*notice=created*")
        window.ids = IDS | dict(  # type: ignore[attr-defined]
            zip(("zone_id", "room_id"), re.findall(r"[0-9a-f]{32}", page.url), strict=True)
        )
        yield window


def path_of(at: DashboardBrowser, path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: at.ids.get(found[1], "none"), path)  # type: ignore[attr-defined]


ON_A_PHONE = ("/rooms", "/events", "/status-page", "/zones/{zone_id}/rooms/{room_id}/live")
"""Pages of which axe-core is asked in a narrow window too, where the top bar and the tables are
others.
"""

ACTIONS_ASIDE = """[...document.querySelectorAll(".table-scroll")]
  .filter((frame) => frame.scrollWidth > frame.clientWidth && frame.querySelector("td button, td a"))
  .map((frame) => frame.textContent.trim().slice(0, 60))"""


@pytest.mark.parametrize("path", ABSENT)
def test_what_is_not_there_is_the_same_page(at: DashboardBrowser, path: str) -> None:
    first, other = (
        at.page.request.get(at.base + path_of(at, one), headers={"Accept": "text/html"})
        for one in (ABSENT[0], path)
    )
    assert (first.status, other.status) == (404, 404)
    texts = [re.sub("no [a-z ]+ &#39;none&#39;", "", one.text()) for one in (first, other)]
    mains = [text[text.index("<main") : text.index("</main>")] for text in texts]
    assert mains[0] == mains[1]


@pytest.mark.parametrize("path", [one for one in LOOKS if one not in ABSENT[1:]])
def test_pages_fit_a_phone_and_have_no_violations(at: DashboardBrowser, path: str) -> None:
    """Every rule in the dark; in the light those again that a colour can break."""
    at.page.emulate_media(color_scheme="dark")
    at.page.set_viewport_size({"width": 360, "height": 740})
    at.go(path_of(at, path))
    assert at.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert at.page.evaluate(ACTIONS_ASIDE) == [], "what a row offers is not beyond the edge"
    if path in ON_A_PHONE:
        assert at.violations() == []
    at.page.set_viewport_size({"width": 1280, "height": 900})
    show_in(at.page, "dark")
    assert at.page.evaluate(THEME) == "dark"
    assert at.violations() == []
    show_in(at.page, "light")
    assert at.page.evaluate(THEME) == "light"
    assert at.violations(OF_COLOURS) == []


FULL_ROW = """() => {
  document.querySelector(".rooms-table tbody a").textContent = "a_room_of_a_sale_".repeat(8);
  const told = [...document.querySelectorAll(".rooms-table tbody tr:first-child td")];
  told[4].textContent = "about 17 minutes";
  told[5].innerHTML = '<span class="peaks"><svg class="spark" viewBox="0 0 60 18"></svg><span>12,345 active, 23,456 waiting</span></span>';
  const frame = document.querySelector(".table-scroll");
  return frame.scrollWidth - frame.clientWidth;
}"""


@pytest.mark.parametrize("width", [961, 1100, 1200, 1280])
def test_the_table_of_rooms_shows_its_last_column_beside_the_menu(
    at: DashboardBrowser, width: int
) -> None:
    at.page.set_viewport_size({"width": width, "height": 900})
    at.go("/rooms")
    assert at.page.evaluate(FULL_ROW) <= 0


LONG_EVENT = """() => {
  document.querySelector("[data-live=event]").textContent = "an_event_of_a_sale_".repeat(8);
  return document.documentElement.scrollWidth;
}"""


def test_a_long_name_of_an_event_does_not_widen_the_live_page(at: DashboardBrowser) -> None:
    at.page.set_viewport_size({"width": 360, "height": 740})
    at.go(path_of(at, "/zones/{zone_id}/rooms/{room_id}/live"))
    assert at.page.evaluate(LONG_EVENT) <= 360


PEAKS = """() => {
  document.querySelector(".rooms-table tbody a").textContent = "a-long-name-of-a-room-for-the-sale-of-tickets".repeat(2);
  document.querySelector(".rooms-table tbody td:last-child").innerHTML = '<span class="peaks"><span>0 active, 0 waiting</span></span>';
  return document.querySelector(".peaks span").getBoundingClientRect().height;
}"""
BESIDE_ARROW = """() => [...document.querySelectorAll(".form-select")].map((one) => parseFloat(getComputedStyle(one).paddingRight))"""


@pytest.mark.parametrize("font", ["DejaVu Sans", "Liberation Sans Narrow", "Liberation Mono"])
@pytest.mark.parametrize("width", [1280, 1440])
def test_the_peaks_of_a_quiet_room_with_a_long_name_are_one_line(
    at: DashboardBrowser, width: int, font: str
) -> None:
    at.page.set_viewport_size({"width": width, "height": 900})
    at.go("/rooms")
    at.page.add_style_tag(content=f"* {{ font-family: '{font}' !important }}")
    assert at.page.evaluate(PEAKS) < 30


def test_the_chosen_option_does_not_run_under_the_arrow_of_its_list(at: DashboardBrowser) -> None:
    at.go(path_of(at, "/zones/{zone_id}/rooms/{room_id}/page"))
    room_for_arrow = at.page.evaluate(BESIDE_ARROW)
    assert len(room_for_arrow) >= 3
    assert min(room_for_arrow) >= 32


def test_a_folded_heading_stands_beside_its_arrow(at: DashboardBrowser) -> None:
    at.go("/processes")
    summary = at.page.locator("summary", has_text="Counters of the gateway")
    assert summary.evaluate("(one) => getComputedStyle(one).display") == "flex"


MARK_CONTROLS = """() => {
  const all = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const seen = [...document.querySelectorAll(all)].filter((one) => one.checkVisibility() && !one.disabled);
  window.left = new Set(seen);
  return seen.length;
}"""
AT_FOCUS = """() => {
  const at = document.activeElement;
  const reached = (one) => one === at || (!one.isConnected && one.outerHTML === at.outerHTML);
  window.left = new Set([...window.left].filter((one) => !reached(one)));
  return [...window.left].map((one) => one.outerHTML.slice(0, 120));
}"""
"""The table of rooms is replaced by a newer one now and then: its new controls count for those that
are gone.
"""


@pytest.mark.parametrize(
    "path",
    [
        "/rooms?tour=1",
        "/status-page",
        "/zones/{zone_id}/rooms/new",
        "/zones/{zone_id}/rooms/{room_id}/dry-run",
        "/lists/new",
    ],
)
def test_the_tab_key_reaches_every_control(at: DashboardBrowser, path: str) -> None:
    at.page.set_viewport_size({"width": 1280, "height": 900})
    at.go(path_of(at, path))
    at.page.wait_for_load_state("networkidle")
    at.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    count = at.page.evaluate(MARK_CONTROLS)
    assert count > 20
    left: list[str] = []
    for _ in range(count + 10):
        at.page.keyboard.press("Tab")
        left = at.page.evaluate(AT_FOCUS)
        if not left:
            break
    assert left == []


def test_the_check_catches(at: DashboardBrowser) -> None:
    at.go("/about")
    at.page.evaluate("document.querySelector('h1').replaceWith(document.createElement('img'))")
    assert any(found.startswith("image-alt") for found in at.violations())
    at.go("/about")
    at.page.add_style_tag(content="html[data-bs-theme=light] main * { color: #eee !important }")
    for theme, wrong in (("dark", False), ("light", True)):
        show_in(at.page, theme)  # type: ignore[arg-type]
        assert any(one.startswith("color-contrast") for one in at.violations(OF_COLOURS)) is wrong
