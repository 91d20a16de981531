"""A room that follows Accept-Language: which language that is, what caches are told, and that
nothing changes without it.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.model.room import LANGUAGES, Room
from greenroom.model.visit import Held
from greenroom.pages import compile_page
from greenroom.pages.accept_headers import HEADER_MAX, asked_for

HELD = Held(
    now_ms=1_000_000,
    method="fifo",
    last_updated_ms=1_000_000,
    refresh_s=20,
    next_try_s=20,
    position=3,
    ahead=2,
    waiting=5,
    in_line=True,
)


def room(**more) -> Room:
    return Room(name="a", host="*", total_active_users=1, new_users_per_minute=1, **more)


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("de", "de-DE"),
        ("de-CH, fr;q=0.9", "de-DE"),
        ("fr-CH;q=0.8, de;q=0.9, en;q=0.5", "de-DE"),
        ("xx, it;q=0.3", "it-IT"),
        ("EN-gb", "en-US"),
        ("zh", "zh-CN"),
        ("zh-TW", "zh-TW"),
        ("zh-Hant-HK", "zh-TW"),
        ("zh-Hans-SG", "zh-CN"),
        ("no, en;q=0.1", "nb-NO"),
        ("nn-NO", "nb-NO"),
        ("fil-PH", "tl-PH"),
        ("pt-PT", "pt-BR"),
        ("iw", "he-IL"),
        ("de;q=0, fr", "fr-FR"),
        ("*", ""),
        ("", ""),
        ("xx-YY, yy", ""),
        ("de;q=2, fr;q=0.1", "fr-FR"),
        ("<script>, ru", "ru-RU"),
        ("a" * HEADER_MAX + ", de", ""),
    ],
)
def test_the_language_is_the_best_one_that_we_speak(header: str, language: str) -> None:
    assert asked_for(header.encode()) == language


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_language_can_be_asked_for_by_its_own_name(tag: str) -> None:
    assert asked_for(tag.encode()) == tag
    assert asked_for(tag.lower().encode()) == tag


@given(st.binary(max_size=400))
def test_no_header_breaks_anything(header: bytes) -> None:
    assert asked_for(header) in (*LANGUAGES, "")


def test_a_room_speaks_to_each_in_his_language_and_says_so_to_caches() -> None:
    page = compile_page(room(follow_accept_language=True, default_template_language="fr-FR"))
    german = page.speaking(b"de-AT")
    assert b"<html lang=de-DE dir=ltr>" in german.html(HELD)
    assert b"Sie sind in der Warteschlange" in german.json(HELD)
    assert b"<html lang=ar-EG dir=rtl>" in page.speaking(b"ar").html(HELD)
    for header in (None, b"", b"xx", b"*"):
        assert page.speaking(header) is page
        assert b"<html lang=fr-FR" in page.html(HELD)
    for head in (page.html_headers, page.json_headers, german.html_headers):
        assert re.fullmatch(
            rb"Accept-Language, (Accept-Encoding, )?Accept, Cookie, Greenroom-Update",
            head.get(b"Vary"),
        )
    assert german.speaking(b"fr").language == "fr-FR"
    assert page.speaking(b"de-AT") is german, "made once"


def test_where_it_is_switched_off_nothing_is_looked_at() -> None:
    page = compile_page(room(follow_accept_language=False))
    assert page.speaking(b"de") is page
    assert all(
        b"Accept-Language" not in head.get(b"Vary")
        for head in (page.html_headers, page.json_headers)
    )


def test_a_custom_page_stays_as_it_is() -> None:
    page = compile_page(
        room(follow_accept_language=True, custom_page_html="<p>{{waitTimeFormatted}}")
    )
    assert page.speaking(b"de").html(HELD) == page.html(HELD) == b"<p>unavailable"
