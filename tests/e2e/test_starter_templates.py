"""The pages to start from: good templates in every state, and in a real browser what they promise."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_browser import violations_in_both_themes
from page_rig import stop_clock
from playwright.sync_api import Browser, Page, Route, expect

from greenroom.model.room import LANGUAGES, METHODS, Room
from greenroom.model.visit import Held
from greenroom.pages import compile_page, template_problems
from greenroom.pages.preview import EVENTS, PreviewState

TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "examples" / "templates").glob("*.html"))
NOW_MS = 1_700_000_000_000
LIMITS = {"name": "a", "host": "*", "total_active_users": 1, "new_users_per_minute": 1}
PATIENCE_MS = 60_000

STATES = [
    state
    for queue, full, method, event, shuffle in itertools.product(
        (False, True), (False, True), METHODS, EVENTS, (False, True)
    )
    if not (
        state := PreviewState(
            force_queue=queue,
            queue_is_full=full,
            queueing_method=method,
            event=event,
            shuffle_at_event_start=shuffle,
        )
    ).passes
]


def shown(template: Path, held: Held) -> str:
    return compile_page(Room(**LIMITS, custom_page_html=template.read_text())).html(held).decode()


def test_there_are_some() -> None:
    assert {path.name for path in TEMPLATES} == {
        "countdown.html",
        "multi-language.html",
        "plain.html",
        "storefront.html",
    }


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_is_right_and_shows_every_state(template: Path) -> None:
    assert template_problems(template.read_text(), "page") == []
    for state in STATES:
        page = shown(template, state.held(NOW_MS))
        assert "{{" not in page
        assert "unavailable" not in page
    assert not re.search(r"(?:src|href)=", template.read_text()), (
        "whatever it loads would wait in line, too"
    )


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    opened.on("pageerror", lambda error: pytest.fail(str(error)))
    yield opened
    opened.close()


def visit(page: Page, url: str, html: str) -> None:
    def answer(route: Route) -> None:
        route.fulfill(body=html, content_type="text/html; charset=utf-8")

    page.unroute_all()
    page.route("**/*", answer)
    page.goto(url)


@pytest.mark.parametrize(
    ("url", "language", "title", "wait"),
    [
        ("http://shop.example/es/product_123", "es", "Está en la cola", "Faltan unos 25 minutos."),
        ("http://shop.example/en/product_123", "en", "You are in line", "About 25 minutes to go."),
        ("http://shop.example/product_123", "en", "You are in line", "About 25 minutes to go."),
        (
            "http://de.shop.example/product_123",
            "de",
            "Sie sind in der Warteschlange",
            "Noch etwa 25 Minuten.",
        ),
        ("http://shop.example/constructor", "en", "You are in line", "About 25 minutes to go."),
        ("http://ar.shop.example/", "ar", "أنت في الصف", "تبقى نحو 25 دقيقة."),
    ],
)
def test_one_page_speaks_the_language_of_the_path_or_the_host(
    page: Page, url: str, language: str, title: str, wait: str
) -> None:
    template = next(path for path in TEMPLATES if path.name == "multi-language.html")
    visit(page, url, shown(template, PreviewState(wait_minutes=25).held(NOW_MS)))
    assert page.title() == title
    assert page.inner_text("#wait") == wait
    assert page.get_attribute("html", "lang") == language
    assert page.get_attribute("html", "dir") == ("rtl" if language == "ar" else "ltr")


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_everybody_can_use_the_page_in_every_state_and_on_a_phone(
    page: Page, template: Path
) -> None:
    """Many states show the same page, which is looked at once."""
    page.set_viewport_size({"width": 320, "height": 640})
    states = (*STATES, PreviewState(wait_minutes=25))
    for html in dict.fromkeys(shown(template, state.held(NOW_MS)) for state in states):
        visit(page, "http://shop.example/en/x", html)
        assert page.inner_text("h1").strip()
        assert violations_in_both_themes(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_countdown_counts(page: Page) -> None:
    template = next(path for path in TEMPLATES if path.name == "countdown.html")
    stop_clock(page)
    held = PreviewState(event="prequeueing", wait_minutes=3).held(NOW_MS)
    visit(page, "http://shop.example/", shown(template, held))
    page.clock.run_for(5_000)
    expect(page.locator("#clock")).to_have_text(re.compile("^2:5[4-6]"))


def test_every_language_fits_a_narrow_phone_and_is_mirrored_where_it_is_read_from_the_right(
    page: Page,
) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    for tag in LANGUAGES:
        built_in = compile_page(Room(**LIMITS, default_template_language=tag))
        for method in ("fifo", "random"):
            page.set_content(
                built_in.html(
                    PreviewState(queueing_method=method, wait_minutes=1_395).held(NOW_MS)
                ).decode(),
                wait_until="commit",
            )
            measured = page.evaluate(
                "(() => { const h = document.querySelector('h1').getBoundingClientRect(), r = document.createRange();"
                " r.selectNodeContents(document.querySelector('h1')); const t = r.getBoundingClientRect();"
                " return [document.documentElement.scrollWidth, t.left - h.left, h.right - t.right,"
                " getComputedStyle(document.querySelector('h1')).direction] })()"
            )
            wide, left, right, direction = measured
            assert wide <= 320, f"{tag} scrolls sideways"
            assert direction == ("rtl" if tag in ("ar-EG", "fa-IR", "he-IL") else "ltr")
            assert (right if direction == "rtl" else left) < 1, tag
