"""Previews of the waiting page: every state, both themes, policies that fit, and what the dashboard
says about colours and examples.
"""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.dashboard.page_forms import LANGUAGE_NAMES, STARTERS, shades, starter
from greenroom.model.branding import Branding
from greenroom.model.room import LANGUAGES, Room
from greenroom.pages import compile_page, template_problems
from greenroom.pages.brand import GROUNDS, contrast
from greenroom.pages.builtin import LAYOUTS, view_of
from greenroom.pages.preview import SHOWN_STATES, THEMES, in_theme, preview_policy, still

NOW_MS = 1_700_000_000_000
LIMITS = {"name": "a", "host": "*", "total_active_users": 1, "new_users_per_minute": 1}
BRANDED = compile_page(
    Room(
        **LIMITS,
        branding=Branding(site_name="Shop", accent_color="#ffcc00", message="Until midnight."),
    )
)


def test_every_view_of_the_page_can_be_looked_at() -> None:
    shown = {view_of(state.held(NOW_MS)) for state in SHOWN_STATES.values()}
    assert set(LAYOUTS) - shown == {
        "drawn"
    }  # a line whose words are those of the pre-queue with a draw


@pytest.mark.parametrize("name", SHOWN_STATES)
def test_a_preview_never_asks_for_news(name: str) -> None:
    held = still(SHOWN_STATES[name].held(NOW_MS))
    assert held.next_try_s == 0
    assert b"data-next=0 " in BRANDED.html(held)


@pytest.mark.parametrize("theme", THEMES)
def test_a_theme_is_decided_for_the_page_and_its_style_fits_the_policy(theme: str) -> None:
    page = BRANDED.html(SHOWN_STATES["fifo"].held(NOW_MS))
    shown = in_theme(page, theme)
    assert b"prefers-color-scheme" in page
    assert b"prefers-color-scheme" not in shown
    assert (b"(min-width:0)" in shown) is (theme == "dark")
    assert f"color-scheme: {theme}".encode() in shown.replace(
        b"color-scheme:", b"color-scheme: "
    ).replace(b":  ", b": ")
    style = re.findall(rb"<style>(.*?)</style>", shown, re.S)[0]
    policy = preview_policy(BRANDED, shown)
    assert f"'sha256-{b64encode(sha256(style).digest()).decode()}'" in policy
    assert policy.startswith(
        "sandbox allow-scripts; frame-ancestors 'self'; default-src 'none'; script-src 'sha256-"
    )
    assert "unsafe" not in policy
    assert "allow-same-origin" not in policy


@pytest.mark.parametrize("theme", THEMES)
def test_templates_are_shown_in_a_theme_too(theme: str) -> None:
    page = compile_page(
        Room(
            **LIMITS, custom_page_html="<style>@media ( Prefers-Color-Scheme : dark ){a{}}</style>"
        )
    )
    shown = in_theme(page.html(SHOWN_STATES["fifo"].held(NOW_MS)), theme)
    assert shown == b"<style>@media %b{a{}}</style>" % (
        b"(min-width:0)" if theme == "dark" else b"(max-width:0)"
    )
    assert preview_policy(page, shown) == "sandbox allow-scripts; frame-ancestors 'self'"


@given(st.text("0123456789abcdefABCDEF", min_size=6, max_size=6))
def test_what_is_said_about_a_colour_is_true(digits: str) -> None:
    found = shades(f"#{digits}")
    assert [shade.theme for shade in found] == list(GROUNDS)
    for shade in found:
        assert contrast(shade.color, shade.ground) >= 4.5
        assert shade.changed is (shade.color.lower() != f"#{digits}".lower())


@given(st.text(max_size=8).filter(lambda text: not re.fullmatch("#[0-9A-Fa-f]{6}", text)))
def test_nothing_is_said_about_what_is_no_colour(text: str) -> None:
    assert shades(text) == []


def test_every_language_has_a_name_and_every_example_is_right() -> None:
    assert set(LANGUAGE_NAMES) == set(LANGUAGES)
    assert set(STARTERS) == {
        path.stem
        for path in (Path(__file__).resolve().parents[2] / "examples" / "templates").glob("*.html")
    }
    for name in STARTERS:
        text = starter(name)
        assert text
        assert template_problems(text, name) == []
    assert starter("../../../etc/passwd") is None
