"""The waiting page in the dashboard: what is saved, what only a preview shows, and what is refused
beside its field.
"""

import asyncio
import base64
import contextlib
import html
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from dashboard_rig import DashboardRig, Visitor

from greenroom.dashboard.parts import FETCH_LOGO
from greenroom.dashboard.routes import ROUTES
from greenroom.model.branding import LOGO_BYTES_MAX, Branding, LocalMessage
from greenroom.model.configuration import Configuration
from greenroom.model.room import Room
from greenroom.outbound import Guard, OutboundPolicy, fetch_picture

PAGE = "/zones/z1/rooms/r1/page"
LOGO = "data:image/png;base64,iVBORw0KGgo="
FORM = {
    "site_name": "Shop",
    "accent_color": "#ffcc00",
    "message": "Until midnight.",
    "help_url": "",
    "default_template_language": "de-DE",
}


def room_of(dashboard: DashboardRig) -> Room:
    return dashboard.store.read().rooms["r1"].record


def sent(dashboard: DashboardRig, visitor: Visitor, path: str = PAGE, **form: Any) -> Any:
    revision = dashboard.store.read().rooms["r1"].revision
    return visitor.post(path, **{"revision": str(revision), "step": "save", **FORM, **form})


def test_a_theme_is_saved_and_nothing_else_changes(dashboard: DashboardRig) -> None:
    before = room_of(dashboard)
    answer = sent(
        dashboard,
        dashboard.person("operator"),
        message_language=["de-DE", "", "ar-EG"],
        message_text=["Bis Mitternacht.", "", " حتى "],
    )
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{PAGE}?notice=saved&undo=")
    branding = Branding(
        site_name="Shop",
        logo=before.branding.logo,
        accent_color="#ffcc00",
        message="Until midnight.",
    )
    messages = (LocalMessage("de-DE", "Bis Mitternacht."), LocalMessage("ar-EG", "حتى"))
    assert room_of(dashboard) == replace(
        before,
        branding=branding,
        branding_messages=messages,
        default_template_language="de-DE",
        custom_page_html="",
        follow_accept_language=False,
    )


def test_the_logo_stays_until_it_is_removed(dashboard: DashboardRig) -> None:
    dashboard.put(
        (replace(room_of(dashboard), branding=Branding(site_name="Shop", logo=LOGO)), "z1")
    )
    visitor = dashboard.person("operator")
    assert f'src="{LOGO}"' in visitor.get(PAGE).text
    sent(dashboard, visitor, site_name="Other")
    assert room_of(dashboard).branding.logo == LOGO
    sent(dashboard, visitor, drop_logo="true")
    assert room_of(dashboard).branding.logo == ""


def test_a_chosen_file_takes_the_place_of_the_logo(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")
    sent(dashboard, visitor, logo=LOGO)
    assert room_of(dashboard).branding.logo == LOGO
    answer = sent(dashboard, visitor, logo="data:image/png;base64,AAAA")
    assert (answer.status_code, "is not a file of the type image/png" in answer.text) == (400, True)
    assert room_of(dashboard).branding.logo == LOGO


PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        (b"200 OK\r\nContent-Type: image/png", PNG, ""),
        (b"200 OK\r\nContent-Type: Image/PNG; charset=x", PNG, ""),
        (b"404 Not Found\r\nContent-Type: image/png", PNG, "was answered with status 404"),
        (b"200 OK\r\nContent-Type: text/html", b"<b>", "is text/html, not one of"),
        (b"200 OK", PNG, "is of no type"),
        (b"200 OK\r\nContent-Type: image/png", PNG * 200, "has more than 16384 bytes"),
        (b"200 OK\r\nContent-Type: image/png", b"<svg/>", "is not a file of the type image/png"),
    ],
)
def test_a_logo_is_fetched_from_its_address_once_and_kept(
    dashboard: DashboardRig, head: bytes, body: bytes, said: str
) -> None:
    with logo_server(
        b"HTTP/1.1 %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
        % (head, len(body), body)
    ) as address:
        dashboard.app.parts.put(FETCH_LOGO, fetching("127.0.0.0/8"))
        answer = sent(
            dashboard, dashboard.person("operator"), logo_url=address, site_name="New name"
        )
    if not said:
        assert (
            room_of(dashboard).branding.logo
            == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
        )
        return
    assert answer.status_code == 400
    assert said in html.unescape(answer.text)
    assert 'value="New name"' in answer.text, "nothing is lost"
    assert room_of(dashboard).branding.logo == ""


def test_an_address_inside_is_refused(dashboard: DashboardRig) -> None:
    with logo_server(
        b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 8\r\n\r\n" + PNG[:8]
    ) as address:
        dashboard.app.parts.put(FETCH_LOGO, fetching())
        answer = sent(dashboard, dashboard.person("operator"), logo_url=address)
    assert answer.status_code == 400
    assert room_of(dashboard).branding.logo == ""


def fetching(*allowed: str) -> Callable[[str], str]:
    policy = OutboundPolicy(ports=(), allowed=allowed)
    return lambda url: asyncio.run(fetch_picture(Guard(policy), url, LOGO_BYTES_MAX))


@contextlib.contextmanager
def logo_server(answer: bytes) -> Iterator[str]:
    """Gives this answer to one request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/logo.png"


def test_faults_are_told_beside_their_fields_and_nothing_is_lost(dashboard: DashboardRig) -> None:
    before = room_of(dashboard)
    visitor = dashboard.person("operator")
    for field, value in (("accent_color", "red"), ("help_url", "javascript:1")):
        own = {
            "own": "true",
            "custom_page_html": "<b>{{#inWaitingRoom}}",
            "message_language": "xx",
            "message_text": "Kept",
            field: value,
        }
        answer = sent(dashboard, visitor, **own)
        text = html.unescape(answer.text)
        assert answer.status_code == 400
        assert room_of(dashboard) == before
        assert (
            f'id="f-{field}" value="{value}" aria-describedby="f-{field}-help f-{field}-problem"'
            in text
        )
    assert "{{#inWaitingRoom}} is never closed" in text
    assert 'value="Kept"' in text
    assert 'value="Shop"' in text


def test_the_slower_of_two_people_is_told(dashboard: DashboardRig) -> None:
    answer = sent(dashboard, dashboard.person("operator"), revision="0")
    assert answer.status_code == 409
    assert "changed by another person" in answer.text


def test_a_preview_shows_what_is_not_saved(dashboard: DashboardRig) -> None:
    visitor, before = dashboard.person("operator"), room_of(dashboard)
    choices = {"state": "reject", "language": "ar-EG", "theme": "dark"}
    answer = sent(dashboard, visitor, f"{PAGE}/preview", **choices)
    assert answer.status_code == 200
    assert "<html lang=ar-EG dir=rtl>" in answer.text
    assert "Until midnight." in answer.text
    assert "data-view=closed" in answer.text
    own = sent(
        dashboard, visitor, f"{PAGE}/preview", own="true", custom_page_html="<p>{{waitTime}}</p>"
    )
    assert own.text == "<p>10</p>"
    assert room_of(dashboard) == before
    refused = sent(
        dashboard,
        visitor,
        f"{PAGE}/preview",
        own="true",
        custom_page_html="{{#a}}<script>alert(1)</script>",
    )
    assert refused.status_code == 400
    assert "is never closed" in refused.text
    assert "sandbox;" in refused.headers["content-security-policy"]


def test_the_saved_page_is_shown_in_every_state_and_theme(dashboard: DashboardRig) -> None:
    dashboard.put((replace(room_of(dashboard), custom_page_html=""), "z1"))
    visitor = dashboard.person("viewer")
    text = visitor.get(f"{PAGE}/visitor?state=random&language=he-IL&theme=light").text
    assert "<html lang=he-IL dir=rtl>" in text
    assert "data-view=random" in text
    assert "prefers-color-scheme" not in text
    assert "data-view=fifo" in visitor.get(f"{PAGE}/visitor?state=none&language=zz&theme=zz").text


def test_viewers_look_and_do_not_change(dashboard: DashboardRig) -> None:
    text = dashboard.person("viewer").get(PAGE).text
    assert 'name="custom_page_html"' not in text
    assert 'value="save"' not in text
    assert "<iframe" in text


def test_a_room_of_the_file_is_shown_on_every_tab_and_changed_on_none(
    dashboard: DashboardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = dashboard.store.read

    def with_file() -> Configuration:
        known = read()
        return known.changed(
            known.revision, [replace(entry, read_only=True) for entry in known.rooms.values()]
        )

    monkeypatch.setattr(dashboard.store, "read", with_file)
    for tab in ("", "/edit", "/page", "/rules"):
        text = dashboard.person("operator").get(f"/zones/z1/rooms/r1{tab}").text
        assert "configuration file" in text, tab
        assert not re.search(r'class="btn btn-primary"[^>]*>(Review|Save)', text), tab


def test_nothing_new_is_offered_in_a_zone_or_room_of_the_file(
    dashboard: DashboardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = dashboard.store.read
    visitor = dashboard.person("operator")
    forms = [
        row.path.replace("{zone_id}", "z1").replace("{room_id}", "r1")
        for row in ROUTES
        if row.method == "GET" and row.path.endswith("/new") and "{zone_id}" in row.path
    ]
    lists = ("/rooms", "/zones", "/health", "/events", *(path[: -len("/new")] for path in forms))

    def offered() -> set[str]:
        text = "".join(visitor.get(path).text for path in lists)
        return set(re.findall(r'"(/zones/\w+/[^"]*/?new)"', text))

    before = offered()
    assert set(forms) <= before
    assert all(visitor.get(path).status_code == 200 for path in forms)

    def with_file() -> Configuration:
        known = read()
        zone = replace(known.zones["z1"], read_only=True)
        return known.changed(known.revision, [zone, replace(known.rooms["r1"], read_only=True)])

    monkeypatch.setattr(dashboard.store, "read", with_file)
    assert offered() == {path for path in before if not path.startswith("/zones/z1/")}
    for path in forms:
        answer = visitor.get(path)
        assert answer.status_code == 403, path
        assert "configuration file" in answer.text


def test_an_example_is_put_into_the_template_and_not_saved(dashboard: DashboardRig) -> None:
    before = room_of(dashboard)
    answer = sent(dashboard, dashboard.person("operator"), step="starter", starter="countdown")
    assert answer.status_code == 200
    assert "{{timeUntilEventStart}}" in html.unescape(answer.text)
    assert 'id="own" value="true" checked' in answer.text
    assert room_of(dashboard) == before


def test_the_script_is_told_lines_and_shades(dashboard: DashboardRig) -> None:
    answer = sent(
        dashboard,
        dashboard.person("operator"),
        f"{PAGE}/check.json",
        custom_page_html="<p>\n{{/x}}\n{{>y}}",
    )
    found = json.loads(answer.text)
    assert [fault["line"] for fault in found["faults"]] == [2, 3]
    assert [(shade["theme"], shade["changed"]) for shade in found["shades"]] == [
        ("light", True),
        ("dark", False),
    ]


def test_an_upload_survives_a_save_that_another_field_refuses(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")
    refused = sent(dashboard, visitor, logo=LOGO, accent_color="red")
    assert refused.status_code == 400
    assert "New logo, not saved yet" in refused.text
    carried = re.search(r'name="logo" value="([^"]*)"', refused.text)
    assert carried
    assert sent(dashboard, visitor, logo=html.unescape(carried[1])).status_code == 303
    assert room_of(dashboard).branding.logo == LOGO
    assert 'name="logo" value=""' in visitor.get(PAGE).text


def test_a_logo_to_be_removed_stays_so_when_another_field_is_refused(
    dashboard: DashboardRig,
) -> None:
    visitor = dashboard.person("operator")
    assert sent(dashboard, visitor, logo=LOGO).status_code == 303
    refused = sent(dashboard, visitor, drop_logo="true", accent_color="red").text
    assert re.search(r'name="drop_logo" value="true" checked', refused)
    assert 'name="logo" value=""' in refused


def test_a_half_typed_colour_keeps_the_preview(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")
    assert sent(dashboard, visitor).status_code == 303
    shown = sent(dashboard, visitor, f"{PAGE}/preview", accent_color="#12", message="Soon.")
    assert shown.status_code == 200
    assert "Soon." in shown.text
