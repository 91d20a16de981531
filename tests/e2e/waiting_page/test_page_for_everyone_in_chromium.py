"""The built-in page for everyone, in a real Chromium: read aloud, in every contrast, without
motion; and pages of one's own.
"""

import json
import re
from typing import Any

import pytest
from dashboard_browser import WHOLE_CHROMIUM
from page_rig import HOW_TO, LIMITS, PAGE, STATES, Gateway, held, stop_clock, tick_until, until
from playwright.sync_api import Browser, BrowserContext, Page, expect

from greenroom.model.room import Room
from greenroom.pages import BUILT_IN_HEADERS, compile_page, origin_error_page

BROWSER = WHOLE_CHROMIUM  # notifications


def test_screen_readers_hear_changes_of_state_at_once_and_progress_at_most_once_a_minute(
    page: Page, gateway: Gateway
) -> None:
    gateway.held = held(next_try_s=60)
    stop_clock(page)
    page.goto(f"{gateway.address}/shop")
    heard: list[str] = []
    page.expose_function("heard", lambda text: heard.append(text))
    page.evaluate("new MutationObserver(() => heard(document.getElementById('say').textContent)).observe("
                  "document.getElementById('say'), { childList: true })")  # fmt: skip
    page.clock.run_for(59_500)
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
    assert heard == [
        "You are in line. Your place. 100. Estimated wait: about 10 minutes",
        "We are not open yet. Your place. 1,234",
    ]
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
    assert [" ".join(term.split()) for term in terms.all_inner_texts()][:2] == [
        "People ahead 1,233",
        "Estimated wait about 10 minutes",
    ]


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


def brightness(colour: str) -> float:
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_against_its_ground(
    browser: Browser, gateway: Gateway, scheme: Any
) -> None:
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
def test_the_page_about_a_silent_origin_is_in_the_same_look_and_breaks_no_policy(
    page: Page, status: int
) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    headers = {name.decode(): value.decode() for name, value in BUILT_IN_HEADERS.pairs}
    page.route(
        "**/*",
        lambda route: route.fulfill(
            status=status, headers=headers, body=origin_error_page(status).decode()
        ),
    )
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
    page.route(
        "**/*", lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=body)
    )
    page.goto("http://shop.invalid/es/product_123")
    expect(page.locator("#waitTime")).to_have_text("El tiempo de espera estimado es 10 minuto.")
    assert json.loads(page.title()) == [True, False, 1]


def test_a_custom_page_with_the_script_of_the_how_to_updates_itself_and_is_let_in(
    page: Page, gateway: Gateway
) -> None:
    script = re.search(r"^```js\n(.*?)^```", HOW_TO.read_text(), re.M | re.S)
    assert script
    source = (
        f"<!doctype html><title>wait</title><link rel=icon href=data:,><script>{script[1]}</script>"
    )
    gateway.shown = compile_page(Room(**LIMITS, custom_page_html=source))
    page.goto(f"{gateway.address}/shop")
    until(lambda: gateway.updates >= 3, page)
    assert page.title() == "1,234 in line"
    assert gateway.page_loads == ["/shop"]
    gateway.held = None
    expect(page.locator("h1")).to_have_text("Welcome to the shop")
    assert gateway.origin_loads == ["/shop"]


def test_the_script_of_the_how_to_waits_while_the_server_is_away_and_when_the_room_closes(
    page: Page, gateway: Gateway
) -> None:
    script = re.search(r"^```js\n(.*?)^```", HOW_TO.read_text(), re.M | re.S)
    assert script
    gateway.shown = compile_page(
        Room(
            **LIMITS,
            custom_page_html=f"<!doctype html><title>wait</title><script>{script[1]}</script>",
        )
    )
    gateway.held = held(next_try_s=60)
    stop_clock(page)
    page.goto(f"{gateway.address}/shop")
    gateway.broken, gateway.held = True, held()
    page.clock.run_for(60_500)
    page.wait_for_timeout(300)  # the browser notices that no one answers
    assert gateway.updates == 0
    gateway.broken = False
    page.clock.run_for(21_000)
    until(lambda: gateway.updates > 0, page)
    gateway.held, before = STATES["closed"], gateway.updates
    tick_until(lambda: gateway.updates > before, page, 30)
    before = gateway.updates
    page.clock.run_for(60_000)
    page.wait_for_timeout(300)  # what would be under way arrives
    assert gateway.updates == before
