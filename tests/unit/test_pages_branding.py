"""Branding: what a site adds to the built-in page can be read, is escaped, and costs other rooms
nothing.
"""

import base64
import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.config_file.load import read_config
from greenroom.decision.render import left_answer, origin_error
from greenroom.errors import InvalidConfig
from greenroom.model.answer import AnswerHeaders
from greenroom.model.branding import LOGO_BYTES_MAX, Branding, LocalMessage
from greenroom.model.room import Room
from greenroom.model.visit import Arrival, Held
from greenroom.pages import Page, compile_page
from greenroom.pages.brand import CONTRAST, GROUNDS, contrast, readable

LIMITS: dict[str, Any] = {
    "name": "a",
    "host": "*",
    "total_active_users": 1,
    "new_users_per_minute": 1,
}
COLORS = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


def picture(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


PNG = b"\x89PNG\r\n\x1a\n"
SHOP = Branding(
    site_name="H&M <Shop>",
    logo=picture(PNG),
    accent_color="#0b5fff",
    message="We open at 10 & stay",
    help_url="https://help.example.com/?a=1&b=2",
)


def branded(
    branding: Branding = SHOP, messages: tuple[LocalMessage, ...] = (), **fields: Any
) -> Page:
    return compile_page(Room(**LIMITS, branding=branding, branding_messages=messages, **fields))


def waiting(position: int = 3) -> Held:
    return Held(
        1_790_000_000_000,
        "fifo",
        1_790_000_000_000,
        20,
        20,
        None,
        position=position,
        ahead=position - 1,
        waiting=9,
        in_line=True,
    )


def test_the_page_shows_name_logo_message_and_help() -> None:
    page = branded().html(waiting()).decode()
    assert "<title>3 in line · H&amp;M &lt;Shop&gt;</title>" in page
    assert f'<p id=site><img src="{SHOP.logo}" alt="">H&amp;M &lt;Shop&gt;<h1 id=heading>' in page
    assert "<p id=message dir=auto>We open at 10 &amp; stay" in page
    assert '<a id=help href="https://help.example.com/?a=1&amp;b=2">Help</a>' in page
    assert 'data-site=" · H&amp;M &lt;Shop&gt;"' in page


@pytest.mark.parametrize("name", ['"', "\\", "</script>", "'", "a’s", "商店", "&amp;"])
def test_updates_carry_the_title_as_json(name: str) -> None:
    page = branded(Branding(site_name=name))
    assert (
        json.loads(page.update(waiting(), b"fifo"))["greenroom"]["words"]["title"]
        == f"3 in line · {name}"
    )
    assert json.loads(page.json(waiting()))["greenroom"]["words"]["title"] == f"3 in line · {name}"


def test_a_room_without_branding_shows_what_it_always_did() -> None:
    plain = compile_page(Room(**LIMITS))
    page = plain.html(waiting()).decode()
    assert not any(
        part in page for part in ("id=site", "id=message", "id=help", "data-site", "{", " · ")[:4]
    )
    assert "<title>3 in line</title>" in page
    assert branded(Branding()).html(waiting()) == plain.html(waiting())


def test_the_message_of_the_language_counts() -> None:
    page = branded(
        messages=(LocalMessage("de-DE", "Wir öffnen um 10"),), follow_accept_language=True
    )
    assert (
        "<p id=message dir=auto>Wir öffnen um 10" in page.speaking(b"de").html(waiting()).decode()
    )
    assert "<p id=message dir=auto>We open" in page.speaking(b"fr").html(waiting()).decode()
    assert "Hilfe</a>" in page.speaking(b"de").html(waiting()).decode()


def test_a_message_keeps_its_own_direction_on_a_page_that_runs_the_other_way() -> None:
    page = branded(default_template_language="ar-EG").html(waiting()).decode()
    assert "dir=rtl" in page
    assert "<p id=message dir=auto>We open at 10" in page


def test_who_is_next_is_told_so() -> None:
    page = compile_page(Room(**LIMITS))
    assert "<p id=first>You are next" in page.html(waiting(1)).decode()
    assert "<p id=first hidden>" in page.html(waiting(2)).decode()
    assert [
        json.loads(page.update(waiting(place), b"fifo"))["greenroom"]["words"]["first"]
        for place in (1, 2)
    ] == ["You are next", ""]


def test_the_policy_names_the_style_with_the_accent() -> None:
    page = branded()
    style = page.html(waiting()).decode().partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    policy = dict(page.html_headers.pairs)[b"Content-Security-Policy"].decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert "--accent:#0b5fff" in style


def policy_fits(page: bytes, headers: AnswerHeaders) -> bool:
    """Whether the policy names the style of the page."""
    style = page.partition(b"<style>")[2].partition(b"</style>")[0]
    return base64.b64encode(sha256(style).digest()) in (
        headers.get(b"Content-Security-Policy") or b""
    )


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("language", [b"de", b"en", b"", b"xx"])
def test_farewell_and_pages_about_the_origin_belong_to_the_site_too(
    method: str, language: bytes
) -> None:
    page = branded(messages=(LocalMessage("de-DE", "Wir öffnen um 10"),))
    arrival = Arrival(
        method, "http", "shop.example", "/", "", ((b"accept-language", language),), "192.0.2.1"
    )
    answers = [
        left_answer(page, arrival, b""),
        *(origin_error(status, arrival, b"", page) for status in (502, 503, 504)),
    ]
    for answer in answers:
        assert b" \xc2\xb7 H&amp;M &lt;Shop&gt;</title>" in answer.body
        assert b'<p id=site><img src="data:image/png' in answer.body
        assert (b"Hilfe</a>" if language == b"de" else b"Help</a>") in answer.body
        assert b"We open" not in answer.body, "that is for visitors who wait"
        assert policy_fits(answer.body, answer.headers)
    plain = origin_error(502, arrival, b"")
    assert b"id=site" not in plain.body
    assert policy_fits(plain.body, plain.headers)


@given(COLORS, st.sampled_from(sorted(GROUNDS.values())))
def test_every_accent_can_be_read_in_both_themes(color: str, ground: str) -> None:
    shade = readable(color, ground)
    assert contrast(shade, ground) >= CONTRAST
    if contrast(color, ground) >= CONTRAST:
        assert shade == color


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [("#000000", "#ffffff", 21.0), ("#777777", "#ffffff", 4.48), ("#ff0000", "#ffffff", 4.0)],
)
def test_contrast_is_as_published(one: str, other: str, ratio: float) -> None:
    assert contrast(one, other) == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(
    ("branding", "wrong"),
    [
        (Branding(site_name="{title}"), "branding.site_name"), (Branding(site_name="a\nb"), "branding.site_name"),
        (Branding(accent_color="red"), "branding.accent_color"), (Branding(accent_color="#12345"), "branding.accent_color"),
        (Branding(message="x" * 501), "branding.message"), (Branding(help_url="javascript:alert(1)"), "branding.help_url"),
        (Branding(help_url='https://a.example/"x'), "branding.help_url"), (Branding(help_url="https://"), "branding.help_url"),
        (Branding(logo="https://a.example/logo.png"), "branding.logo"), (Branding(logo=picture(b"<html>")), "branding.logo"),
        (Branding(logo=picture(PNG, "text/html")), "branding.logo"), (Branding(logo=picture(PNG + bytes(LOGO_BYTES_MAX))), "branding.logo"),
        (Branding(logo='data:image/png;base64,x" onerror="'), "branding.logo"), (Branding(site_name=5), "branding.site_name"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused(branding: Branding, wrong: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        branded(branding)
    assert [problem.pointer for problem in caught.value.problems] == [wrong]


@pytest.mark.parametrize(
    "messages",
    [
        (LocalMessage("xx", "a"),),
        (LocalMessage("de-DE", ""),),
        (LocalMessage("de-DE", "a"), LocalMessage("de-DE", "b")),
        ("de-DE",),
        (LocalMessage("de-DE", "{a}"),),
    ],
)
def test_messages_are_texts_in_languages_of_the_page(messages: Any) -> None:
    with pytest.raises(InvalidConfig, match=r"branding_messages\[[01]\]"):
        branded(messages=messages)


def test_branding_is_written_in_the_file() -> None:
    text = """
        origin = "http://127.0.0.1:1"
        [[rooms]]
        name = "a"
        host = "*"
        total_active_users = 1
        new_users_per_minute = 1
        branding = { site_name = "Shop", accent_color = "#0b5fff" }
        branding_messages = [{ language = "de-DE", text = "Hallo" }]
    """
    (room,) = read_config(text).rooms
    assert room.branding == Branding(site_name="Shop", accent_color="#0b5fff")
    assert room.branding_messages == (LocalMessage("de-DE", "Hallo"),)
    with pytest.raises(InvalidConfig, match="did you mean site_name"):
        read_config(text.replace("site_name", "sitename"))
