"""The built-in page in a real Chromium, against a small server that keeps the gateway's side of the bargain."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from greenroom.model.answer import AnswerHeaders
from greenroom.model.room import Room
from greenroom.model.visit import Estimate, Held
from greenroom.pages import BUILT_IN_HEADERS, compile_page, left_page, origin_error_page
from greenroom.pages import Page as WaitingPage

LIMITS: dict[str, Any] = {"name": "shop", "host": "*", "total_active_users": 500, "new_users_per_minute": 600}
PAGE = compile_page(Room(**LIMITS))
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "howto" / "own-page.md"
NOW_MS = 1_790_000_000_000
LET_IN = b'{"cfWaitingRoom":{"inWaitingRoom":false}}'
SHOP = b"<!doctype html><title>Shop</title><link rel=icon href=data:,><h1>Welcome to the shop</h1>"
LEFT = b'{"greenroom":{"left":true}}'
PATIENCE_MS = 10_000


def held(**changes: Any) -> Held:
    said: dict[str, Any] = {
        "now_ms": NOW_MS,
        "method": "fifo",
        "last_updated_ms": NOW_MS,
        "refresh_s": 1,
        "next_try_s": 1,
        "estimate": Estimate(600, 600, 600),
        "position": 1234,
        "ahead": 1233,
        "waiting": 5000,
        "joined_ms": NOW_MS - 400_000,
        "in_line": True,
    }
    return Held(**{**said, **changes})


def waited(seconds: int) -> Held:
    """A tenth of the visitors' 1,000 seconds waited for each 100 seconds, so that the bar shows seconds / 10 per cent."""
    return held(now_ms=NOW_MS + seconds * 1000, joined_ms=NOW_MS, estimate=Estimate(1000 - seconds, 1000 - seconds, 1000 - seconds))


STATES = {
    "fifo": held(),
    "fifo without an estimate": held(estimate=None),
    "random": held(method="random", estimate=Estimate(250, 600, 900)),
    "random without an estimate": held(method="random", estimate=None),
    "placing": held(position=0, ahead=0, in_line=False),
    "queue_all": held(queue_all=True, position=1_234_567, ahead=1_234_566),
    "prequeue": held(event_active=True, event_prequeueing=True, event_start_ms=NOW_MS + 720_000),
    "shuffle": held(event_active=True, event_prequeueing=True, event_start_ms=NOW_MS + 8_000_000, shuffle_at_event_start=True),
    "storage trouble": held(storage_failed=True),
    "full": held(queue_full=True, position=0, ahead=0, in_line=False, waiting=3_000_000),
    "closed": Held(now_ms=NOW_MS, method="reject", last_updated_ms=NOW_MS, refresh_s=0),
}


def sent(headers: AnswerHeaders) -> bytes:
    return b"".join(b"%b: %b\r\n" % pair for pair in headers.pairs)


@dataclass
class Gateway:
    """The gateway's contract: a page or JSON while `held` is set, the origin's page when it is None."""

    held: Held | None = field(default_factory=held)
    shown: WaitingPage = PAGE
    updates: int = 0
    page_loads: list[str] = field(default_factory=list)
    origin_loads: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    table: dict[str, Any] | None = None
    tables: list[str] = field(default_factory=list)
    broken: bool = False
    address: str = ""

    def answer(self, method: str, path: str, update: str | None) -> tuple[bytes, bytes]:
        if method == "POST" and (update == "leave" or path.endswith("?greenroom=leave")):
            self.left.append(path)
            return (sent(self.shown.json_headers), LEFT) if update else (sent(BUILT_IN_HEADERS), left_page())
        if path.endswith("?greenroom=line"):
            self.tables.append(path)
            return b"Content-Type: application/json\r\n", json.dumps({"greenroomLine": self.table}).encode()
        if update:
            self.updates += 1
            return sent(self.shown.json_headers), self.shown.update(self.held, update.encode()) if self.held else LET_IN
        if self.held is None:
            self.origin_loads.append(path)
            return (
                b"Content-Type: text/html\r\n",
                SHOP,
            )
        self.page_loads.append(path)
        refresh = b"Refresh: %d\r\n" % self.held.next_try_s if self.held.next_try_s else b""
        return sent(self.shown.html_headers) + refresh, self.shown.html(self.held)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    here = Gateway()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if here.broken:
                self.close_connection = True
                return
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            head, body = here.answer(self.command, self.path, self.headers["Greenroom-Update"])
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    here.address = f"http://127.0.0.1:{server.server_port}"
    yield here
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(locale="en-US", timezone_id="Europe/Berlin")
    opened.set_default_timeout(PATIENCE_MS)
    yield opened
    for page in opened.pages:
        page.unroute_all(behavior="ignoreErrors")  # closing waits for handlers, and a page that reloads itself starts another one
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def until(happened: Callable[[], bool], page: Page) -> None:
    end = time.monotonic() + PATIENCE_MS / 1000
    while not happened():
        assert time.monotonic() < end, "waited in vain"
        page.wait_for_timeout(20)  # the browser works in real time, and this lets its events in


def tick_until(happened: Callable[[], bool], page: Page, seconds: int) -> None:
    """Second by second of the page's clock: time limits of requests run on that clock, and answers come in real time."""
    for _ in range(seconds):
        if not happened():
            page.clock.run_for(1_000)
            page.wait_for_timeout(20)  # see until
    assert happened()
    page.wait_for_timeout(300)  # the answer to what happened is on its way


def hide(page: Page, hidden: bool) -> None:
    """Headless tabs are always visible, so the page is told otherwise, as a browser would tell it."""
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange', { bubbles: true })); }",
        hidden,
    )


@pytest.mark.parametrize("state", STATES)
def test_a_page_shows_no_error_loads_nothing_and_breaks_no_policy(page: Page, gateway: Gateway, state: str) -> None:
    gateway.held = STATES[state]
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{gateway.address}/shop?item=5")
    until(lambda: gateway.updates > 0 or gateway.held is STATES["closed"], page)
    assert said == []
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {f"{gateway.address}/shop?item=5"}


@pytest.mark.parametrize("width", [320, 375, 1100])
def test_no_state_is_wider_than_the_window(page: Page, gateway: Gateway, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    for state in STATES.values():
        page.set_content(PAGE.html(state).decode())
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_with_a_script_the_page_updates_itself_and_is_never_reloaded_in_spite_of_the_refresh_header(page: Page, gateway: Gateway) -> None:
    page.goto(f"{gateway.address}/shop")
    page.evaluate("window.playing = true")
    gateway.held = held(position=1100, ahead=1099, estimate=Estimate(240, 240, 240), last_updated_ms=NOW_MS + 5000)
    expect(page.locator("#hero")).to_have_text("1,100")
    expect(page.locator("#ahead")).to_have_text("1,099")
    expect(page.locator("#wait")).to_have_text("about 4 minutes")
    expect(page.locator("#updated")).to_have_text(re.compile(r"^\d seconds? ago$"))
    assert page.title() == "1,100 in line"
    until(lambda: gateway.updates >= 3, page)
    assert page.evaluate("window.playing") is True
    assert gateway.page_loads == ["/shop"]


def test_without_a_script_the_refresh_header_loads_the_page_again_and_everything_can_be_read(browser: Browser, gateway: Gateway) -> None:
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
        "come back within five minutes",
        "Leave the line",
    ):
        assert words in text
    assert not page.locator("progress").is_visible()
    assert not page.locator("#tell").is_visible()
    until(lambda: len(gateway.page_loads) >= 3, page)
    context.close()


def test_an_early_try_is_not_made(page: Page, gateway: Gateway) -> None:
    gateway.held = held(refresh_s=20, next_try_s=9)
    page.clock.install()
    page.goto(f"{gateway.address}/shop")
    page.clock.run_for(8_500)
    assert gateway.updates == 0
    page.clock.run_for(1_000)
    until(lambda: gateway.updates == 1, page)


def test_the_bar_never_runs_backwards_and_remembers_over_a_reload(page: Page, gateway: Gateway) -> None:
    shown = []

    def value() -> float:
        return float(page.evaluate("document.getElementById('bar').value"))

    gateway.held = waited(100)
    page.goto(f"{gateway.address}/shop")
    shown.append(value())
    page.clock.install()
    for state in (waited(400), waited(200), held(estimate=None, joined_ms=NOW_MS), waited(500)):
        for _ in range(2):
            gateway.held, seen = state, gateway.updates
            page.clock.run_for(1_100)
            until(lambda seen=seen: gateway.updates > seen, page)  # type: ignore[misc]
        shown.append(value())
    gateway.held = waited(300)
    page.reload()
    shown.append(value())
    assert shown == [10, 40, 40, 40, 50, 50]


def test_a_new_ticket_starts_the_bar_again(page: Page, gateway: Gateway) -> None:
    gateway.held = waited(600)
    page.goto(f"{gateway.address}/shop")
    gateway.held = held(joined_ms=NOW_MS - 10_000, estimate=Estimate(990, 990, 990))
    page.reload()
    assert page.evaluate("document.getElementById('bar').value") == 1


def test_let_in_is_said_in_the_title_and_the_origin_sees_one_page_load(page: Page, gateway: Gateway) -> None:
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


def test_a_hidden_tab_says_it_is_your_turn_until_it_is_looked_at(page: Page, gateway: Gateway) -> None:
    page.goto(f"{gateway.address}/shop")
    hide(page, True)
    gateway.held = None
    expect(page).to_have_title("It is your turn")
    page.wait_for_timeout(1_000)  # longer than a tab that is looked at would wait
    assert gateway.origin_loads == []
    hide(page, False)
    expect(page.locator("h1")).to_have_text("Welcome to the shop")
    assert gateway.origin_loads == ["/shop"]


def test_a_hidden_tab_is_let_in_after_half_a_minute_at_the_latest(page: Page, gateway: Gateway) -> None:
    page.clock.install()
    page.goto(f"{gateway.address}/shop")
    hide(page, True)
    gateway.held = None
    page.clock.run_for(1_500)
    expect(page).to_have_title("It is your turn")
    page.clock.run_for(31_000)
    expect(page.locator("h1")).to_have_text("Welcome to the shop")


def test_a_visitor_who_asked_for_it_is_notified(context: BrowserContext, gateway: Gateway) -> None:
    context.grant_permissions(["notifications"])
    page = context.new_page()
    notified: list[str] = []
    page.expose_function("notified", lambda title: notified.append(title))
    page.add_init_script(
        "Notification = new Proxy(Notification, { construct(real, [title]) { notified(title); return new real(title); } })"
    )
    page.goto(f"{gateway.address}/shop")
    gateway.held = None
    expect(page.locator("h1")).to_have_text("Welcome to the shop")
    assert notified == ["It is your turn"]


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


def test_leaving_takes_two_steps_and_joining_again_loads_the_same_page(page: Page, gateway: Gateway) -> None:
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


def test_a_lost_connection_keeps_the_page_says_so_quietly_and_heals(page: Page, gateway: Gateway) -> None:
    page.goto(f"{gateway.address}/shop")
    gateway.broken = True
    expect(page.locator("#notice")).to_contain_text("No connection. Trying again in")
    expect(page.locator("#hero")).to_have_text("1,234")
    gateway.broken = False
    gateway.held = held(position=900, ahead=899)
    expect(page.locator("#hero")).to_have_text("900")
    expect(page.locator("#notice")).to_be_hidden()
    assert gateway.page_loads == ["/shop"]


def test_a_broken_answer_is_a_lost_connection_and_not_an_admission(page: Page, gateway: Gateway) -> None:
    page.route("**/*", lambda route: route.continue_() if route.request.is_navigation_request() else route.fulfill(
        status=200, content_type="application/json", body='{"cfWaitingRoom":{"inWai'))  # fmt: skip
    page.goto(f"{gateway.address}/shop")
    expect(page.locator("#notice")).to_contain_text("No connection")
    assert gateway.page_loads == ["/shop"]


@pytest.mark.parametrize("status", [429, 503])
def test_an_error_on_the_way_is_a_lost_connection_and_not_an_admission(page: Page, gateway: Gateway, status: int) -> None:
    page.route("**/*", lambda route: route.continue_() if route.request.is_navigation_request() else route.fulfill(
        status=status, content_type="text/html", body="<h1>proxy</h1>"))  # fmt: skip
    page.goto(f"{gateway.address}/shop")
    expect(page.locator("#notice")).to_contain_text("No connection")
    assert gateway.page_loads == ["/shop"]


def test_an_address_that_the_application_does_not_know_is_loaded_once_the_room_lets_everybody_by(page: Page, gateway: Gateway) -> None:
    page.route("**/*", lambda route: route.continue_() if route.request.is_navigation_request() else route.fulfill(
        status=404, content_type="text/html", body="<h1>not here</h1>"))  # fmt: skip
    page.goto(f"{gateway.address}/shop")
    until(lambda: len(gateway.page_loads) > 1, page)


def test_tries_get_rarer_while_the_connection_is_lost(page: Page, gateway: Gateway) -> None:
    page.clock.install()
    page.goto(f"{gateway.address}/shop")
    gateway.broken = True
    waits = []
    page.clock.run_for(1_500)
    for _ in range(4):
        expect(page.locator("#notice")).to_contain_text("No connection")
        wait = int(page.inner_text("#notice").split(" in ")[1].split()[0])
        waits.append(wait)
        page.evaluate("document.getElementById('notice').textContent = ''")
        page.clock.run_for(wait * 1000 + 500)
    assert all(low <= wait <= high for wait, (low, high) in zip(waits, [(2, 3), (3, 5), (6, 10), (12, 20)], strict=True))


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
    """Browsers run the timers of a hidden tab once a minute, and the next visitor is asked to try every two seconds."""
    page.add_init_script("const real = setTimeout; window.setTimeout = (call, ms) => real(call, ms >= 500 ? 60000 : ms);")
    page.goto(f"{gateway.address}/shop")
    until(lambda: gateway.updates >= 3, page)
    gateway.held = None
    until(lambda: gateway.origin_loads == ["/shop"], page)


def test_between_two_check_ins_place_and_bar_move_with_the_table_of_the_line(page: Page, gateway: Gateway) -> None:
    def wait_for(seconds: int) -> None:
        tables = len(gateway.tables)
        tick_until(lambda: len(gateway.tables) > tables, page, seconds)

    line = {"madeMs": NOW_MS, "waiting": 5000, "open": True, "checkInUpToMs": 0, "spreadSeconds": 2, "nextSeconds": 10}
    line |= {"fromMs": NOW_MS - 800_000, "arrivedMs": [0, 200_000, 600_000], "ahead": [0, 633, 1833], "waitSeconds": [0, 200, 1000]}
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    gateway.shown = compile_page(Room(**LIMITS, path="/shop", line_table=True))
    gateway.held, gateway.table = held(next_try_s=2), line
    page.clock.install()
    page.goto(f"{gateway.address}/shop/shoes?size=5")
    gateway.held = held(next_try_s=60)
    page.clock.run_for(2_100)
    until(lambda: gateway.updates == 1, page)
    expect(page.locator("#hero")).to_have_text("1,234")
    wait_for(13)
    assert gateway.tables[0] == "/shop?greenroom=line"
    expect(page.locator("#hero")).to_have_text("1,234")
    assert page.locator("#bar").evaluate("bar => bar.value") == 40  # 400 of 1,000 seconds
    gateway.table = line | {"madeMs": NOW_MS + 100_000, "ahead": [0, 0, 1034], "waitSeconds": [0, 0, 100]}
    wait_for(12)
    expect(page.locator("#hero")).to_have_text("518")
    expect(page.locator("#ahead")).to_have_text("517")
    assert page.title() == "518 in line"
    assert page.locator("#bar").evaluate("bar => bar.value") == 90
    assert gateway.updates == 1
    gateway.table = line | {"checkInUpToMs": NOW_MS - 400_000}  # it is this visitor's turn, long before the next check-in
    gateway.held = None
    wait_for(12)
    tick_until(lambda: gateway.origin_loads == ["/shop/shoes?size=5"], page, 20)
    assert gateway.updates == 2
    assert errors == []


def test_a_page_whose_table_has_gone_goes_on_without(page: Page, gateway: Gateway) -> None:
    gateway.shown = compile_page(Room(**LIMITS, line_table=True))
    gateway.held = held(next_try_s=2)
    page.clock.install()
    page.goto(f"{gateway.address}/shop")
    gateway.held = held(next_try_s=60)
    page.clock.run_for(2_100)
    until(lambda: gateway.updates == 1, page)
    tick_until(lambda: len(gateway.tables) == 1, page, 16)
    tick_until(lambda: gateway.updates == 2, page, 21)
    page.clock.run_for(30_000)
    assert len(gateway.tables) == 1


def test_screen_readers_hear_changes_of_state_at_once_and_progress_at_most_once_a_minute(page: Page, gateway: Gateway) -> None:
    page.clock.install()
    page.goto(f"{gateway.address}/shop")
    heard: list[str] = []
    page.expose_function("heard", lambda text: heard.append(text))
    page.evaluate("new MutationObserver(() => heard(document.getElementById('say').textContent)).observe("
                  "document.getElementById('say'), { childList: true })")  # fmt: skip
    for position in range(100, 95, -1):
        gateway.held = held(position=position, ahead=position - 1)
        seen = gateway.updates
        page.clock.run_for(1_100)
        until(lambda seen=seen: gateway.updates > seen, page)  # type: ignore[misc]
        expect(page.locator("#hero")).to_have_text(str(position))
    gateway.held = held(queue_all=True)
    page.clock.run_for(1_100)
    expect(page.locator("h1")).to_have_text("We are not open yet")
    until(lambda: len(heard) == 2, page)
    assert heard == ["You are in line. Your place. 100. Estimated wait: about 10 minutes", "We are not open yet. Your place. 1,234"]
    assert page.get_attribute("#say", "aria-live") == "polite"


def test_a_closed_room_does_not_ask_again_but_offers_to(page: Page, gateway: Gateway) -> None:
    gateway.held = STATES["closed"]
    page.clock.install()
    page.goto(f"{gateway.address}/shop")
    page.clock.run_for(600_000)
    assert gateway.updates == 0
    assert len(gateway.page_loads) == 1
    expect(page.locator("#leave")).to_be_hidden()
    page.get_by_role("link", name="Try again").click()
    until(lambda: len(gateway.page_loads) == 2, page)


def test_who_has_no_place_is_not_told_to_keep_it(page: Page) -> None:
    places = {}
    for name, state in STATES.items():
        page.set_content(PAGE.html(state).decode())
        assert page.locator("#keep").is_visible() is page.locator("#leave").is_visible()
        places[name] = page.locator("#keep").is_visible()
    assert {name for name, place in places.items() if not place} == {"full", "closed"}


def test_every_part_has_a_role_and_a_name(page: Page, gateway: Gateway) -> None:
    page.goto(f"{gateway.address}/shop")
    expect(page.get_by_role("main")).to_be_visible()
    expect(page.get_by_role("heading", level=1, name="You are in line")).to_be_visible()
    expect(page.get_by_role("progressbar", name="Progress")).to_have_attribute("value", "40")
    expect(page.get_by_role("button", name="Tell me when it is my turn")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "en-US"
    terms = page.locator("dl > div:visible")
    assert [" ".join(term.split()) for term in terms.all_inner_texts()][:2] == ["People ahead 1,233", "Estimated wait about 10 minutes"]


def brightness(colour: str) -> float:
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_against_its_ground(browser: Browser, gateway: Gateway, scheme: Any) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{gateway.address}/shop")
    colours = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => e.offsetParent && e.textContent.trim()).map(e => getComputedStyle(e).color)"
    )
    ground = brightness(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    ratios = {}
    for colour in set(colours):
        light, dark = sorted((brightness(colour), ground), reverse=True)
        ratios[colour] = (light + 0.05) / (dark + 0.05)
    assert len(ratios) >= 3
    assert min(ratios.values()) >= 4.5, ratios
    context.close()


def test_nothing_moves_for_who_asked_for_less_motion(browser: Browser, gateway: Gateway) -> None:
    gateway.held = held(estimate=None)
    moving = {}
    for motion in ("no-preference", "reduce"):
        context = browser.new_context(reduced_motion=motion)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{gateway.address}/shop")
        moving[motion] = page.evaluate("document.getAnimations().length")
        context.close()
    assert moving == {"no-preference": 1, "reduce": 0}


@pytest.mark.parametrize("status", [502, 503, 504])
def test_the_page_about_a_silent_origin_is_in_the_same_look_and_breaks_no_policy(page: Page, status: int) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    headers = {name.decode(): value.decode() for name, value in BUILT_IN_HEADERS.pairs}
    page.route("**/*", lambda route: route.fulfill(status=status, headers=headers, body=origin_error_page(status).decode()))
    page.goto("http://origin.invalid/shop")
    assert "nothing is lost" in page.inner_text("main")
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "41.6px"
    assert [line for line in said if "Content" in line] == []


SEED_TEMPLATE = """<!DOCTYPE html>
<html><body><h1 id="inline-msg">You are now in line.</h1><h2 id="waitTime"></h2>
<script>
  var locale = location.pathname.split("/")[1] || "en";
  var translations = {
    "en": {"less": "Your estimated wait time is {{waitTime}} minute.", "inline-msg": "You are now in line."},
    "es": {"less": "El tiempo de espera estimado es {{waitTime}} minuto.", "inline-msg": "Ahora se encuentra en la fila."}
  };
  {{#waitTimeKnown}}
  if (parseInt( {{waitTime}} , 10) < 61) document.getElementById('waitTime').innerText = translations[locale]["less"];
  {{/waitTimeKnown}}
  document.getElementById("inline-msg").innerText = translations[locale]["inline-msg"];
  document.title = JSON.stringify([{{isFIFOQueue}}, {{queueAll}}, {{refreshIntervalSeconds}}]);
</script></body></html>"""


def test_a_template_with_variables_inside_its_script_works_in_two_languages(page: Page) -> None:
    body = compile_page(Room(**LIMITS, custom_page_html=SEED_TEMPLATE)).html(held()).decode()
    page.route("**/*", lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=body))
    page.goto("http://shop.invalid/es/product_123")
    expect(page.locator("#waitTime")).to_have_text("El tiempo de espera estimado es 10 minuto.")
    assert json.loads(page.title()) == [True, False, 1]


def test_a_custom_page_with_the_script_of_the_how_to_updates_itself_and_is_let_in(page: Page, gateway: Gateway) -> None:
    script = re.search(r"^```js\n(.*?)^```", HOW_TO.read_text(), re.M | re.S)
    assert script
    source = f"<!doctype html><title>wait</title><link rel=icon href=data:,><script>{script[1]}</script>"
    gateway.shown = compile_page(Room(**LIMITS, custom_page_html=source))
    page.goto(f"{gateway.address}/shop")
    until(lambda: gateway.updates >= 3, page)
    assert page.title() == "1,234 in line"
    assert gateway.page_loads == ["/shop"]
    gateway.held = None
    expect(page.locator("h1")).to_have_text("Welcome to the shop")
    assert gateway.origin_loads == ["/shop"]


def test_the_script_of_the_how_to_waits_while_the_server_is_away_and_when_the_room_closes(page: Page, gateway: Gateway) -> None:
    script = re.search(r"^```js\n(.*?)^```", HOW_TO.read_text(), re.M | re.S)
    assert script
    gateway.shown = compile_page(Room(**LIMITS, custom_page_html=f"<!doctype html><title>wait</title><script>{script[1]}</script>"))
    page.clock.install()
    page.goto(f"{gateway.address}/shop")
    gateway.broken = True
    page.clock.run_for(1_500)
    page.wait_for_timeout(300)  # the browser notices that no one answers
    assert gateway.updates == 0
    gateway.broken = False
    page.clock.run_for(21_000)
    until(lambda: gateway.updates > 0, page)
    gateway.held = STATES["closed"]
    page.clock.run_for(1_500)
    page.wait_for_timeout(300)  # what is under way arrives
    before = gateway.updates
    page.clock.run_for(60_000)
    page.wait_for_timeout(300)  # what would be under way arrives
    assert gateway.updates == before
