"""Messages of the status page: shown before they are published, changed, taken away, and harmless
whatever they say.
"""

import html
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from dashboard_rig import DashboardRig

from greenroom.errors import StorageFailed
from greenroom.model.notification import IncidentNote
from greenroom.model.status_page import StatusPage
from greenroom.status_page.dashboard.preview import STATUS_PREVIEW

STATUS = "/status-page"
HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(2)>"
MESSAGE = {"title": "Maintenance", "text": "From 02:00 to 04:00.\n\nSorry."}


def notes(dashboard: DashboardRig) -> dict[str, IncidentNote]:
    return {one.id: one for one in dashboard.store.read().incident_notes.records()}


def test_a_message_is_previewed_published_changed_and_taken_away(dashboard: DashboardRig) -> None:
    visitor, before = dashboard.person("operator"), notes(dashboard)
    shown = visitor.post(f"{STATUS}/preview", **MESSAGE)
    assert "Maintenance" in shown.text
    assert "From 02:00" in shown.text
    assert notes(dashboard) == before
    assert "Maintenance" not in visitor.get(f"{STATUS}/preview").text
    assert visitor.post(STATUS, **MESSAGE).headers["location"].endswith("notice=published")
    (made,) = [note for note in notes(dashboard).values() if note.id not in before]
    assert (made.title, made.text, made.at_ms) == (
        "Maintenance",
        MESSAGE["text"],
        dashboard.clock.at_ms,
    )
    assert "Maintenance" in visitor.get(f"{STATUS}/preview").text
    where = f"{STATUS}/messages/{made.id}"
    form = visitor.get(where).text
    assert "Sorry." in form
    revision = re.search(r'name="revision" value="(\d+)"', form)
    assert revision
    other = visitor.post(f"{STATUS}/preview", note=made.id, title="Moved", text="To Monday.")
    assert "Moved" in other.text
    assert "Maintenance" not in other.text
    assert (
        visitor.post(where, revision=revision[1], title="Moved", text="To Monday.").status_code
        == 303
    )
    assert notes(dashboard)[made.id] == replace(made, title="Moved", text="To Monday.")
    late = visitor.post(where, revision=revision[1], title="Late", text="x")
    assert "changed by another person" in late.text
    assert (
        visitor.post(
            f"{where}/remove", revision=str(dashboard.store.read().incident_notes[made.id].revision)
        ).status_code
        == 303
    )
    assert notes(dashboard) == before


def test_a_message_that_cannot_be_published_is_refused_beside_its_field_and_has_no_preview(
    dashboard: DashboardRig,
) -> None:
    visitor, before = dashboard.person("operator"), notes(dashboard)
    answer = visitor.post(STATUS, title="x" * 201, text="")
    assert answer.status_code == 400
    assert answer.text.count('aria-invalid="true"') >= 1
    assert "at most 200 characters" in html.unescape(answer.text)
    shown = visitor.post(f"{STATUS}/preview", title="x" * 201, text="")
    assert shown.status_code == 400
    assert shown.headers["content-security-policy"].startswith("sandbox;")
    assert notes(dashboard) == before


def test_a_hostile_message_is_text_and_its_frame_may_do_nothing(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("operator")
    assert visitor.post(STATUS, title=HOSTILE, text=HOSTILE).status_code == 303
    for answer in (
        visitor.get(f"{STATUS}/preview"),
        visitor.post(f"{STATUS}/preview", text=HOSTILE),
        visitor.get(STATUS),
    ):
        assert "<script>alert" not in answer.text
        assert "<img" not in answer.text
    policy = visitor.get(f"{STATUS}/preview").headers["content-security-policy"].split("; ")
    assert "sandbox" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy
    assert not any("unsafe" in part for part in policy)
    assert visitor.get(f"{STATUS}/preview").headers["x-frame-options"] == "SAMEORIGIN"


def test_viewers_read_and_do_not_write(dashboard: DashboardRig) -> None:
    viewer = dashboard.person("viewer")
    assert "Write a message" not in viewer.get(STATUS).text
    assert viewer.get(f"{STATUS}/preview").status_code == 200
    assert viewer.post(STATUS, **MESSAGE).status_code == 403
    assert viewer.post(f"{STATUS}/preview", **MESSAGE).status_code == 403


def test_each_page_of_the_settings_has_its_preview(dashboard: DashboardRig) -> None:
    visitor = dashboard.person("viewer")
    assert "No status page is public yet" in visitor.get(STATUS).text
    pages = (
        StatusPage(title="Shop", rooms=("r1",)),
        StatusPage(title="Blog", host="blog.example"),
    )
    dashboard.settings = SimpleNamespace(status_listen="127.0.0.1:1", status_pages=pages)
    text = visitor.get(STATUS).text
    assert "No status page is public yet" not in text
    assert "Blog (blog.example/)" in text
    assert "<h1>Shop</h1>" in visitor.get(f"{STATUS}/preview").text
    assert "<h1>Blog</h1>" in visitor.get(f"{STATUS}/preview?page=1").text
    for wrong in ("2", "-1", "x", "9" * 30, "\u0663"):
        assert "<h1>Shop</h1>" in visitor.get(f"{STATUS}/preview?page={wrong}").text


def test_a_store_that_fails_is_said(
    dashboard: DashboardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise StorageFailed("gone")

    monkeypatch.setattr(dashboard.app.parts[STATUS_PREVIEW], "_gather", broken)
    answer = dashboard.person("viewer").get(f"{STATUS}/preview")
    assert answer.status_code == 503
    assert "cannot be read at the moment" in answer.text
