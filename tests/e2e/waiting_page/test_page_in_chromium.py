"""The built-in page in a real Chromium: it updates itself, lets in, is left, and outlives lost
connections and sleeping tabs.
"""

import re

import pytest
from page_rig import (
    LIMITS,
    NOW_MS,
    PAGE,
    STATES,
    Gateway,
    held,
    hide,
    stop_clock,
    tick_until,
    until,
    waited,
)
from playwright.sync_api import Browser, Page, Route, expect

from greenroom.model.record import replace
from greenroom.model.room import Room
from greenroom.model.visit import Estimate
from greenroom.pages import compile_page
from greenroom.pages.language import language


@pytest.mark.parametrize("state", STATES)
def test_a_page_shows_no_error_loads_nothing_and_breaks_no_policy(
    page: Page, gateway: Gateway, state: str
) -> None:
    gateway.held = STATES[state]
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{gateway.address}/shop?item=5")
    until(lambda: gateway.updates > 0 or gateway.held is STATES["closed"], page)
    assert said == []
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {
        f"{gateway.address}/shop?item=5"
    }


@pytest.mark.parametrize("width", [320, 375, 1100])
def test_no_state_is_wider_than_the_window(page: Page, gateway: Gateway, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    for state in STATES.values():
        page.set_content(PAGE.html(state).decode())
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_with_a_script_the_page_updates_itself_and_is_never_reloaded_in_spite_of_the_refresh_header(
    page: Page, gateway: Gateway
) -> None:
    gateway.refresh_least_s = 3
    page.goto(f"{gateway.address}/shop")
    page.evaluate("window.playing = true")
    gateway.held = held(
        position=1100, ahead=1099, estimate=Estimate(240, 240, 240), last_updated_ms=NOW_MS + 5000
    )
    expect(page.locator("#hero")).to_have_text("1,100")
    expect(page.locator("#ahead")).to_have_text("1,099")
    expect(page.locator("#wait")).to_have_text("about 4 minutes")
    expect(page.locator("#updated")).to_have_text(re.compile(r"^\d seconds? ago$"))
    assert page.title() == "1,100 in line"
    until(lambda: gateway.updates >= 5, page)
    assert page.evaluate("window.playing") is True
    assert gateway.page_loads == ["/shop"]


def test_without_a_script_the_refresh_header_loads_the_page_again_and_everything_can_be_read(
    browser: Browser, gateway: Gateway
) -> None:
    gateway.refresh_least_s = 1
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{gateway.address}/shop")
    text = page.inner_text("main")
    for words in (
        "You are in line",
        "1,234",
        "1,233",
        "about 10 minutes",
        "14:13:20 UTC",
        "hold your place for five minutes",
        "Leave the line",
    ):
        assert words in text
    assert not page.locator("progress").is_visible()
    assert not page.locator("#tell").is_visible()
    until(lambda: len(gateway.page_loads) >= 3, page)
    context.close()


def test_an_early_try_is_not_made(page: Page, gateway: Gateway) -> None:
    gateway.held = held(refresh_s=200, next_try_s=90)
    stop_clock(page)
    page.goto(f"{gateway.address}/shop")
    page.clock.run_for(89_000)
    page.wait_for_timeout(300)  # what would be under way arrives
    assert gateway.updates == 0
    page.clock.run_for(2_000)
    until(lambda: gateway.updates == 1, page)


def test_the_bar_never_runs_backwards_and_remembers_over_a_reload(
    page: Page, gateway: Gateway
) -> None:
    shown = []

    def value() -> float:
        return float(page.evaluate("document.getElementById('bar').value"))

    gateway.held = waited(100, next_try_s=60)
    stop_clock(page)
    page.goto(f"{gateway.address}/shop")
    shown.append(value())
    page.clock.run_for(59_500)
    for position, state in enumerate(
        (waited(400), waited(200), held(estimate=None, joined_ms=NOW_MS), waited(500)), 1
    ):
        gateway.held = replace(state, position=position)
        page.clock.run_for(1_100)
        expect(page.locator("#hero")).to_have_text(str(position))
        shown.append(value())
    gateway.held = waited(300, next_try_s=60)
    page.reload()
    shown.append(value())
    assert shown == [10, 40, 40, 40, 50, 50]


def test_a_new_ticket_starts_the_bar_again(page: Page, gateway: Gateway) -> None:
    gateway.held = waited(600)
    page.goto(f"{gateway.address}/shop")
    gateway.held = held(joined_ms=NOW_MS - 10_000, estimate=Estimate(990, 990, 990))
    page.reload()
    assert page.evaluate("document.getElementById('bar').value") == 1


def test_let_in_is_said_in_the_title_and_the_origin_sees_one_page_load(
    page: Page, gateway: Gateway
) -> None:
    titles: list[str] = []
    page.expose_function("titled", lambda title: titles.append(title))
    page.add_init_script("addEventListener('load', () => new MutationObserver(() => titled(document.title)).observe("
                         "document.querySelector('title'), { childList: true }))")  # fmt: skip
    page.goto(f"{gateway.address}/shop?item=5#reviews")
    gateway.held = None
    expect(page.locator("h1")).to_have_text("Welcome to the shop")
    assert "It is your turn" in titles
    assert gateway.origin_loads == ["/shop?item=5"]
    assert page.url.endswith("/shop?item=5#reviews")


def test_a_hidden_tab_says_it_is_your_turn_until_it_is_looked_at(
    page: Page, gateway: Gateway
) -> None:
    page.goto(f"{gateway.address}/shop")
    hide(page, True)
    gateway.held = None
    expect(page).to_have_title("It is your turn")
    page.wait_for_timeout(1_000)  # longer than a tab that is looked at would wait
    assert gateway.origin_loads == []
    hide(page, False)
    expect(page.locator("h1")).to_have_text("Welcome to the shop")
    assert gateway.origin_loads == ["/shop"]


def test_a_hidden_tab_is_let_in_after_half_a_minute_at_the_latest(
    page: Page, gateway: Gateway
) -> None:
    gateway.held = held(next_try_s=60)
    stop_clock(page)
    page.goto(f"{gateway.address}/shop")
    hide(page, True)
    gateway.held = None
    page.clock.run_for(60_500)
    expect(page).to_have_title("It is your turn")
    page.clock.run_for(31_000)
    expect(page.locator("h1")).to_have_text("Welcome to the shop")


def test_the_button_asks_for_permission_to_notify(page: Page, gateway: Gateway) -> None:
    page.add_init_script(
        "Object.defineProperty(Notification, 'permission', { get: () => window.allowed || 'default' });"
        "Notification.requestPermission = async () => window.allowed = 'granted';"
    )
    gateway.held = held(next_try_s=60)
    page.goto(f"{gateway.address}/shop")
    page.get_by_role("button", name="Tell me when it is my turn").click()
    expect(page.locator("#notice")).to_have_text("We will tell you here")
    expect(page.locator("#tell")).to_be_hidden()


def test_leaving_takes_two_steps_and_joining_again_loads_the_same_page(
    page: Page, gateway: Gateway
) -> None:
    page.goto(f"{gateway.address}/shop?item=5")
    page.get_by_text("Leave the line").first.click()
    page.get_by_role("button", name="Yes, leave the line").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You have left the line")
    assert gateway.left == ["/shop?item=5"]
    assert page.title() == "You have left the line"
    seen = gateway.updates
    page.wait_for_timeout(1_500)  # longer than the refresh interval: no one who left keeps asking
    assert gateway.updates == seen
    assert [line for line in page.inner_text("main").split("\n") if line] == [
        "You have left the line",
        "Your place has gone to the next person. You are welcome to join again.",
        "Join again",
    ]
    page.get_by_role("link", name="Join again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You are in line")
    assert gateway.page_loads == ["/shop?item=5", "/shop?item=5"]


def test_leaving_works_without_a_script(browser: Browser, gateway: Gateway) -> None:
    gateway.held = held(next_try_s=60)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{gateway.address}/shop")
    page.get_by_text("Leave the line").first.click()
    page.get_by_role("button", name="Yes, leave the line").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You have left the line")
    assert gateway.left == ["/shop?greenroom=leave"]
    page.get_by_role("link", name="Join again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You are in line")
    context.close()


def test_a_lost_connection_keeps_the_page_says_so_quietly_and_heals(
    page: Page, gateway: Gateway
) -> None:
    page.goto(f"{gateway.address}/shop")
    gateway.broken = True
    expect(page.locator("#notice")).to_contain_text("No connection. Trying again in")
    expect(page.locator("#hero")).to_have_text("1,234")
    gateway.broken = False
    gateway.held = held(position=900, ahead=899)
    expect(page.locator("#hero")).to_have_text("900")
    expect(page.locator("#notice")).to_be_hidden()
    assert gateway.page_loads == ["/shop"]


def test_a_broken_answer_is_a_lost_connection_and_not_an_admission(
    page: Page, gateway: Gateway
) -> None:
    page.route("**/*", lambda route: route.continue_() if route.request.is_navigation_request() else route.fulfill(
        status=200, content_type="application/json", body='{"cfWaitingRoom":{"inWai'))  # fmt: skip
    page.goto(f"{gateway.address}/shop")
    expect(page.locator("#notice")).to_contain_text("No connection")
    assert gateway.page_loads == ["/shop"]


@pytest.mark.parametrize("status", [429, 503])
def test_an_error_on_the_way_is_a_lost_connection_and_not_an_admission(
    page: Page, gateway: Gateway, status: int
) -> None:
    page.route("**/*", lambda route: route.continue_() if route.request.is_navigation_request() else route.fulfill(
        status=status, content_type="text/html", body="<h1>proxy</h1>"))  # fmt: skip
    page.goto(f"{gateway.address}/shop")
    expect(page.locator("#notice")).to_contain_text("No connection")
    assert gateway.page_loads == ["/shop"]


def test_an_address_that_the_application_does_not_know_is_loaded_once_the_room_lets_everybody_by(
    page: Page, gateway: Gateway
) -> None:
    page.route("**/*", lambda route: route.continue_() if route.request.is_navigation_request() else route.fulfill(
        status=404, content_type="text/html", body="<h1>not here</h1>"))  # fmt: skip
    page.goto(f"{gateway.address}/shop")
    until(lambda: len(gateway.page_loads) > 1, page)


def test_a_place_that_has_moved_to_another_device_is_no_admission(
    page: Page, gateway: Gateway
) -> None:
    loads: list[str] = []

    def answer(route: Route) -> None:
        if not route.request.is_navigation_request():
            body = '{"greenroom":{"moved":true}}'
            route.fulfill(status=200, content_type="application/json", body=body)
            return
        loads.append(route.request.url)
        if len(loads) == 1:
            route.continue_()
        else:  # without a script, or it would load itself again and again
            route.fulfill(content_type="text/html", body="<h1>Moved</h1>")

    page.route("**/*", answer)
    page.add_init_script(
        "addEventListener('pagehide', () => { sessionStorage.said = document.title; })"
    )
    page.goto(f"{gateway.address}/shop")
    expect(page.get_by_role("heading", name="Moved")).to_be_visible()
    assert loads == [f"{gateway.address}/shop"] * 2
    assert "turn" not in page.evaluate("sessionStorage.said")


def test_the_browser_of_another_app_offers_the_visitors_own(
    browser: Browser, gateway: Gateway
) -> None:
    words = language("en-US").move
    gateway.shown = compile_page(Room(**LIMITS), moves=True)
    for agent, text in (("Mobile Safari", words["label"]), ("[FBAN/FBIOS]", words["app"])):
        context = browser.new_context(user_agent=agent)
        page = context.new_page()
        page.goto(f"{gateway.address}/shop")
        expect(page.locator("#move")).to_have_text(text)
        context.close()


def test_tries_get_rarer_while_the_connection_is_lost(page: Page, gateway: Gateway) -> None:
    gateway.held = held(next_try_s=60)
    stop_clock(page)
    page.goto(f"{gateway.address}/shop")
    gateway.broken = True
    waits = []
    page.clock.run_for(60_500)
    for _ in range(4):
        expect(page.locator("#notice")).to_contain_text("No connection")
        wait = int(page.inner_text("#notice").split(" in ")[1].split()[0])
        waits.append(wait)
        page.evaluate("document.getElementById('notice').textContent = ''")
        page.clock.run_for(wait * 1000 + 500)
    assert all(
        low <= wait <= high
        for wait, (low, high) in zip(waits, [(2, 3), (3, 5), (6, 10), (12, 20)], strict=True)
    )


def test_a_tab_that_slept_catches_up_when_it_is_looked_at(page: Page, gateway: Gateway) -> None:
    gateway.held = held(next_try_s=60)
    page.goto(f"{gateway.address}/shop")
    hide(page, True)
    hide(page, False)
    page.evaluate("{ const later = Date.now() + 61_000; Date.now = () => later; }")
    hide(page, True)
    assert gateway.updates == 0
    hide(page, False)
    until(lambda: gateway.updates == 1, page)


def test_a_tab_whose_timers_are_held_back_tries_on_time(page: Page, gateway: Gateway) -> None:
    """Browsers run the timers of a hidden tab once a minute, and the next visitor is asked to try
    every two seconds.
    """
    page.add_init_script(
        "const real = setTimeout; window.setTimeout = (call, ms) => real(call, ms >= 500 ? 60000 : ms);"
    )
    page.goto(f"{gateway.address}/shop")
    until(lambda: gateway.updates >= 3, page)
    gateway.held = None
    until(lambda: gateway.origin_loads == ["/shop"], page)


def test_between_two_check_ins_place_and_bar_move_with_the_table_of_the_line(
    page: Page, gateway: Gateway
) -> None:
    def wait_for(seconds: int) -> None:
        tables = len(gateway.tables)
        tick_until(lambda: len(gateway.tables) > tables, page, seconds)

    line = {
        "madeMs": NOW_MS,
        "waiting": 5000,
        "open": True,
        "checkInUpToMs": 0,
        "spreadSeconds": 2,
        "nextSeconds": 10,
    }
    line |= {
        "fromMs": NOW_MS - 800_000,
        "arrivedMs": [0, 200_000, 600_000],
        "ahead": [0, 633, 1833],
        "waitSeconds": [0, 200, 1000],
    }
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    gateway.shown = compile_page(Room(**LIMITS, path="/shop", line_table=True))
    gateway.held, gateway.table = held(next_try_s=60), line
    stop_clock(page)
    page.goto(f"{gateway.address}/shop/shoes?size=5")
    page.clock.run_for(60_100)
    until(lambda: gateway.updates == 1, page)
    expect(page.locator("#hero")).to_have_text("1,234")
    wait_for(13)
    assert gateway.tables[0] == "/shop?greenroom=line"
    expect(page.locator("#hero")).to_have_text("1,234")
    assert page.locator("#bar").evaluate("bar => bar.value") == 40  # 400 of 1,000 seconds
    gateway.table = line | {
        "madeMs": NOW_MS + 100_000,
        "ahead": [0, 0, 1034],
        "waitSeconds": [0, 0, 100],
    }
    wait_for(12)
    expect(page.locator("#hero")).to_have_text("518")
    expect(page.locator("#ahead")).to_have_text("517")
    assert page.title() == "518 in line"
    assert page.locator("#bar").evaluate("bar => bar.value") == 90
    assert gateway.updates == 1
    gateway.table = line | {
        "checkInUpToMs": NOW_MS - 400_000
    }  # it is this visitor's turn, long before the next check-in
    gateway.held = None
    wait_for(12)
    tick_until(lambda: gateway.origin_loads == ["/shop/shoes?size=5"], page, 20)
    assert gateway.updates == 2
    assert errors == []


def test_a_page_whose_table_has_gone_goes_on_without(page: Page, gateway: Gateway) -> None:
    gateway.shown = compile_page(Room(**LIMITS, line_table=True))
    gateway.held = held(next_try_s=60)
    stop_clock(page)
    page.goto(f"{gateway.address}/shop")
    page.clock.run_for(60_100)
    until(lambda: gateway.updates == 1, page)
    tick_until(lambda: len(gateway.tables) == 1, page, 16)
    tick_until(lambda: gateway.updates == 2, page, 21)
    page.clock.run_for(30_000)
    assert len(gateway.tables) == 1
