"""The message to waiting visitors from the live page: asked once, audited, undone, and never more
than the message.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dashboard_rig import DashboardRig, Visitor, dashboard_in

from greenroom.model.branding import LOGO_BYTES_MAX, Branding, LocalMessage
from greenroom.model.room import Room
from greenroom.pages import compile_page
from greenroom.pages.preview import SHOWN_STATES, still

LIVE = "/zones/z1/rooms/r1/live"
ACTION = f"{LIVE}/do/message"
BRANDING = Branding("Shop", "", "#ffcc00", "", "https://help.example/")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        found.fill()
        found.put(
            (replace(room_of(found), branding=BRANDING, custom_page_html="", suspended=False), "z1")
        )
        yield found


def room_of(rig: DashboardRig) -> Room:
    return rig.store.read().rooms["r1"].record


def tell(rig: DashboardRig, visitor: Visitor, text: str) -> int:
    return visitor.post(
        ACTION, revision=str(rig.store.read().rooms["r1"].revision), message=text
    ).status_code


def test_the_message_is_shown_and_taken_back(rig: DashboardRig) -> None:
    before, visitor = room_of(rig), rig.person("operator")
    assert "Post a message" in visitor.get(LIVE).text
    assert tell(rig, visitor, " <b>Until midnight</b> ") == 303
    assert room_of(rig) == replace(
        before,
        branding=replace(BRANDING, message="<b>Until midnight</b>"),
        branding_messages=(),  # the room has a German one: it would hide the message
    )
    text = visitor.get(LIVE).text
    assert "You posted a message: “&lt;b&gt;Until midnight&lt;/b&gt;”" in text
    number = re.search(r'name="number" value="(\d+)"', text)
    assert number
    assert visitor.post(f"{LIVE}/undo", number=number[1]).status_code == 303
    assert room_of(rig) == before


def test_a_message_that_cannot_be_shown_is_refused_beside_its_field(rig: DashboardRig) -> None:
    before, visitor = room_of(rig), rig.person("operator")
    answer = visitor.post(
        ACTION, revision=str(rig.store.read().rooms["r1"].revision), message="x" * 501
    )
    assert answer.status_code == 400
    assert "at most 500 characters" in html.unescape(answer.text)
    assert 'aria-invalid="true"' in answer.text
    assert room_of(rig) == before


def test_a_logo_too_long_for_the_audit_log_does_not_break_the_page(rig: DashboardRig) -> None:
    logo = "data:image/gif;base64," + "R0lGODlh" + "A" * (LOGO_BYTES_MAX // 4 * 4 // 8 * 8)
    rig.put((replace(room_of(rig), branding=replace(BRANDING, logo=logo)), "z1"))
    visitor = rig.person("operator")
    assert tell(rig, visitor, "Hello") == 303
    assert visitor.get(LIVE).status_code == 200
    assert room_of(rig).branding.logo == logo


def test_an_own_page_shows_no_message_and_none_is_offered(rig: DashboardRig) -> None:
    rig.put((replace(room_of(rig), custom_page_html="<p>own</p>"), "z1"))
    visitor = rig.person("operator")
    assert "Post a message" not in visitor.get(LIVE).text
    assert "cannot be done at the moment" in visitor.get(ACTION).text


def test_a_message_reaches_visitors_in_every_language_and_undo_brings_theirs_back(
    rig: DashboardRig,
) -> None:
    own = (LocalMessage("de-DE", "Bis Mitternacht."), LocalMessage("fr-FR", "Avant minuit."))
    rig.put((replace(room_of(rig), branding_messages=own), "z1"))
    before, visitor = room_of(rig), rig.person("operator")
    asked = html.unescape(visitor.get(ACTION).text)
    assert "Message in German" in asked
    assert "Shown now: “Avant minuit.”" in asked
    revision = str(rig.store.read().rooms["r1"].revision)
    answer = visitor.post(
        ACTION, revision=revision, message="Payment is down", **{"message_de-DE": "Störung"}
    )
    assert answer.status_code == 303
    room = room_of(rig)
    assert room.branding_messages == (LocalMessage("de-DE", "Störung"),)
    texts = {
        language: in_language(room, language) for language in ("de-DE", "fr-FR", "en-US", "it-IT")
    }
    assert "Störung" in texts.pop("de-DE")
    assert all("Payment is down" in text for text in texts.values())
    shown = html.unescape(visitor.get(LIVE).text)
    assert "It replaced “Bis Mitternacht.” (de-DE), “Avant minuit.” (fr-FR)." in shown
    number = re.search(r'name="number" value="(\d+)"', shown)
    assert number
    assert visitor.post(f"{LIVE}/undo", number=number[1]).status_code == 303
    assert room_of(rig) == before


def test_a_wrong_text_of_a_language_is_refused_beside_its_field(rig: DashboardRig) -> None:
    own = (LocalMessage("de-DE", "Bis Mitternacht."),)
    rig.put((replace(room_of(rig), branding_messages=own), "z1"))
    before, visitor = room_of(rig), rig.person("operator")
    revision = str(rig.store.read().rooms["r1"].revision)
    answer = visitor.post(ACTION, revision=revision, message="Hello", **{"message_de-DE": "{name}"})
    assert answer.status_code == 400
    assert 'id="f-message_de-DE-problem"' in answer.text
    assert 'value="{name}"' in html.unescape(answer.text)
    assert room_of(rig) == before


def in_language(room: Room, language: str) -> str:
    page = compile_page(replace(room, default_template_language=language))
    return html.unescape(page.html(still(SHOWN_STATES["fifo"].held(0))).decode())
