"""Live operations that last: a message and a hold, on a room of the store and of a configuration
file. They never change its settings, and ending one restores them.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from dashboard_rig import DashboardRig, Visitor, dashboard_in

from greenroom.admission.schedule import effective
from greenroom.config_file.load import read_config
from greenroom.config_file.served import new_faults, served
from greenroom.configuration.layers import LayeredStore
from greenroom.configuration.operations import begin, end
from greenroom.decision.room_view import RoomView
from greenroom.model.branding import LOGO_BYTES_MAX, Branding, LocalMessage
from greenroom.model.room import Room
from greenroom.pages import compile_page
from greenroom.pages.preview import SHOWN_STATES, still
from greenroom.web.config_service import ConfigService

LIVE = "/zones/z1/rooms/r1/live"
ACTION = f"{LIVE}/do/message"
BRANDING = Branding(site_name="Shop", accent_color="#ffcc00", help_url="https://help.example/")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        found.fill()
        kept = found.store.read().rooms["r1"].record
        room = replace(
            kept, branding=BRANDING, custom_page_html="", suspended=False, queue_all=False
        )
        found.config.change("test", end("z1", "r1", "hold"))
        found.config.change("test", end("z1", "r1", "message"))
        found.put((room, "z1"))
        yield found


def room_of(rig: DashboardRig) -> Room:
    """As every process runs it."""
    return rig.store.read().room_in_operation("r1")


def settings_of(rig: DashboardRig) -> Room:
    return rig.store.read().rooms["r1"].record


def revision(rig: DashboardRig) -> str:
    found = rig.store.read().operations.get("r1")
    return str(found.revision) if found else ""


def tell(rig: DashboardRig, visitor: Visitor, text: str, **more: str) -> int:
    return visitor.post(ACTION, revision=revision(rig), message=text, **more).status_code


def test_the_message_is_shown_and_taken_back(rig: DashboardRig) -> None:
    before, visitor = settings_of(rig), rig.person("operator")
    assert "Post a message" in visitor.get(LIVE).text
    assert tell(rig, visitor, " <b>Until midnight</b> ") == 303
    assert settings_of(rig) == before
    assert room_of(rig).branding == replace(BRANDING, message="<b>Until midnight</b>")
    assert room_of(rig).branding_messages == ()  # a German one would hide the message
    text = visitor.get(LIVE).text
    assert "You posted a message in r1: “&lt;b&gt;Until midnight&lt;/b&gt;”" in text
    assert "by operator-all (dashboard)" in text
    assert "posted a message in r1" in visitor.get("/audit").text
    number = re.search(r'name="number" value="(\d+)"', text)
    assert number
    assert visitor.post(f"{LIVE}/undo", number=number[1]).status_code == 303
    assert room_of(rig) == before


def test_the_texts_of_the_settings_return_when_the_message_is_removed(rig: DashboardRig) -> None:
    before, visitor = settings_of(rig), rig.person("operator")
    assert before.branding_messages
    assert tell(rig, visitor, "Payment is down") == 303
    assert tell(rig, visitor, "Payment works") == 303
    assert room_of(rig).branding.message == "Payment works"
    assert tell(rig, visitor, "") == 303
    assert room_of(rig) == before


def test_a_message_that_cannot_be_shown_is_refused_beside_its_field(rig: DashboardRig) -> None:
    before, visitor = room_of(rig), rig.person("operator")
    answer = visitor.post(ACTION, revision=revision(rig), message="x" * 501)
    assert answer.status_code == 400
    assert "at most 500 characters" in html.unescape(answer.text)
    assert 'aria-invalid="true"' in answer.text
    assert room_of(rig) == before


def test_a_logo_too_long_for_the_audit_log_does_not_break_the_page(rig: DashboardRig) -> None:
    logo = "data:image/gif;base64," + "R0lGODlh" + "A" * (LOGO_BYTES_MAX // 4 * 4 // 8 * 8)
    rig.put((replace(settings_of(rig), branding=replace(BRANDING, logo=logo)), "z1"))
    visitor = rig.person("operator")
    assert tell(rig, visitor, "Hello") == 303
    assert visitor.get(LIVE).status_code == 200
    assert room_of(rig).branding.logo == logo


def test_a_hold_ends_by_itself_or_by_hand_and_never_changes_the_settings(
    rig: DashboardRig,
) -> None:
    before, visitor, now_ms = settings_of(rig), rig.person("operator"), rig.clock.at_ms
    rig.config.change("ada", begin("z1", "r1", "hold", "ada", minutes=5))
    for after_s, held in ((0, True), (299, True), (300, False)):
        now = effective(room_of(rig), [], now_ms + after_s * 1_000)
        assert (now.room.queue_all, RoomView(now).word == "holding") == (held, held)
    assert "New visitors are on hold" in visitor.get(LIVE).text
    form = {"revision": revision(rig)}
    assert visitor.post(f"{LIVE}/do/hold", **form, minutes="0").status_code == 400
    assert visitor.post(f"{LIVE}/do/hold", **form).status_code == 303
    assert effective(room_of(rig), [], now_ms + 10**9).room.queue_all
    assert "put r1 on hold" in visitor.get("/audit").text
    answer = visitor.post(f"{LIVE}/do/release", revision=revision(rig))
    assert answer.status_code == 303
    assert room_of(rig) == settings_of(rig) == before


def test_a_room_of_the_file_has_every_operation_and_keeps_its_settings(
    rig: DashboardRig,
) -> None:
    text = """
origin = "http://127.0.0.1:3000"
[[rooms]]
name = "from-file"
host = "file.example"
total_active_users = 5
new_users_per_minute = 5
"""
    file = read_config(text, rig.folder / "greenroom.toml")
    (room,) = file.rooms
    layered = LayeredStore(
        rig.store,
        lambda: file.documents,
        lambda: rig.clock.at_ms,
        partial(new_faults, file),
    )
    service = ConfigService(layered, rig.clock)
    place = service.look(lambda known: known.rooms[room.id].parent), room.id
    service.change("ada", begin(*place, "hold", "ada"))
    service.change("ada", begin(*place, "admit", "ada", count=7))
    service.change("ada", begin(*place, "message", "ada", text="Soon"))
    service.change("ada", begin(*place, "end_sessions", "ada"))
    known = service.look(lambda known: known)
    assert known.rooms[room.id].record == room
    assert known.rooms[room.id].read_only
    for found in (
        known.room_in_operation(room.id),
        next(one for one in served(file, rig.store.read()).rooms if one.id == room.id),
    ):
        assert (found.queue_all, found.operated) == (True, ("queue_all",))
        assert (found.let_in, found.branding.message) == (7, "Soon")
        assert found.sessions_ended_ms == rig.clock.at_ms
    service.change("ada", end(*place, "hold"))
    assert not service.look(lambda known: known.room_in_operation(room.id)).queue_all


def test_an_own_page_shows_no_message_and_none_is_offered(rig: DashboardRig) -> None:
    rig.put((replace(settings_of(rig), custom_page_html="<p>own</p>"), "z1"))
    visitor = rig.person("operator")
    assert "Post a message" not in visitor.get(LIVE).text
    assert "cannot be done at the moment" in visitor.get(ACTION).text


def test_a_message_reaches_visitors_in_every_language_and_undo_brings_theirs_back(
    rig: DashboardRig,
) -> None:
    own = (LocalMessage("de-DE", "Bis Mitternacht."), LocalMessage("fr-FR", "Avant minuit."))
    rig.put((replace(settings_of(rig), branding_messages=own), "z1"))
    before, visitor = room_of(rig), rig.person("operator")
    asked = html.unescape(visitor.get(ACTION).text)
    assert "Message in German" in asked
    assert "Shown now: “Avant minuit.”" in asked
    assert tell(rig, visitor, "Payment is down", **{"message_de-DE": "Störung"}) == 303
    room = room_of(rig)
    assert room.branding_messages == (LocalMessage("de-DE", "Störung"),)
    texts = {
        language: in_language(room, language) for language in ("de-DE", "fr-FR", "en-US", "it-IT")
    }
    assert "Störung" in texts.pop("de-DE")
    assert all("Payment is down" in text for text in texts.values())
    shown = html.unescape(visitor.get(LIVE).text)
    number = re.search(r'name="number" value="(\d+)"', shown)
    assert number
    assert visitor.post(f"{LIVE}/undo", number=number[1]).status_code == 303
    assert room_of(rig) == before


def test_a_wrong_text_of_a_language_is_refused_beside_its_field(rig: DashboardRig) -> None:
    own = (LocalMessage("de-DE", "Bis Mitternacht."),)
    rig.put((replace(settings_of(rig), branding_messages=own), "z1"))
    before, visitor = room_of(rig), rig.person("operator")
    answer = visitor.post(
        ACTION, revision=revision(rig), message="Hello", **{"message_de-DE": "{name}"}
    )
    assert answer.status_code == 400
    assert 'id="f-message_de-DE-problem"' in answer.text
    assert 'value="{name}"' in html.unescape(answer.text)
    assert room_of(rig) == before


def in_language(room: Room, language: str) -> str:
    page = compile_page(replace(room, default_template_language=language))
    return html.unescape(page.html(still(SHOWN_STATES["fifo"].held(0))).decode())
