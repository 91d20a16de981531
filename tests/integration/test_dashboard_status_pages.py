"""The editor of status pages: made, previewed, changed and removed from the screen; pages of the
configuration file only shown.
"""

import html
import re

from dashboard_rig import DashboardRig

from greenroom.model.status_page import StatusPage

STATUS = "/status-page"
AT = f"{STATUS}/pages"
FORM = {
    "title": "Shop <b>status</b>",
    "host": "Status.Example.com",
    "path": "/",
    "zone": "z1.example",
    "rooms": ["*", "r1"],
}


def pages(dashboard: DashboardRig) -> dict[str, StatusPage]:
    return {one.title: one for one in dashboard.store.read().status_pages.records()}


def revision_of(text: str) -> str:
    found = re.search(r'name="revision" value="(\d+)"', text)
    assert found
    return found[1]


def test_a_page_is_previewed_made_changed_and_removed(dashboard: DashboardRig) -> None:
    visitor, before = dashboard.person("operator"), pages(dashboard)
    assert "All rooms, new ones too" in visitor.get(f"{AT}/new").text
    shown = visitor.post(f"{AT}/preview", **FORM | {"host": "new.example.com"})
    assert "<h1>Shop &lt;b&gt;status&lt;/b&gt;</h1>" in shown.text
    assert "sandbox" in shown.headers["content-security-policy"]
    assert pages(dashboard) == before
    assert (
        visitor.post(AT, **FORM | {"host": "New.example.com"})
        .headers["location"]
        .endswith("notice=page-saved")
    )
    made = pages(dashboard)[FORM["title"]]
    assert (made.host, made.zone, made.rooms, made.health_checks) == (
        "new.example.com",
        "z1.example",
        ("*",),
        (),
    )
    assert dashboard.store.audit(1)[0].author == "operator-all (dashboard)"
    where = f"{AT}/{made.id}"
    revision = revision_of(visitor.get(where).text)
    changed = FORM | {
        "host": "new.example.com",
        "title": "Rooms",
        "rooms": ["r1"],
        "health_checks": ["*"],
    }
    assert visitor.post(where, revision=revision, **changed).status_code == 303
    assert (pages(dashboard)["Rooms"].id, pages(dashboard)["Rooms"].rooms) == (made.id, ("r1",))
    late = visitor.post(where, revision=revision, **changed | {"title": "Late"})
    assert "changed by another person" in late.text
    assert "Late" not in pages(dashboard)
    assert visitor.post(f"{where}/remove", revision=revision).status_code == 409
    assert (
        visitor.post(f"{where}/remove", revision=revision_of(visitor.get(where).text)).status_code
        == 303
    )
    assert pages(dashboard) == before


def test_what_is_wrong_is_beside_its_field_and_has_no_preview(dashboard: DashboardRig) -> None:
    visitor, before = dashboard.person("operator"), pages(dashboard)
    for path in (AT, f"{AT}/preview"):
        answer = visitor.post(path, title="", host="a b", path="x", rooms=["r1"])
        said = html.unescape(answer.text)
        assert answer.status_code == 400
        assert all(
            part in said
            for part in (
                "must not be empty",
                "must be / or a path such as /shop",
                "must be a host name in lower case",
            )
        )
    taken = visitor.post(AT, **FORM)
    assert taken.status_code == 400
    assert "there is a status page status.example.com/ already" in html.unescape(taken.text)
    assert (
        visitor.post(
            AT, **FORM | {"host": "", "rooms": [str(number) for number in range(201)]}
        ).status_code
        == 400
    )
    assert pages(dashboard) == before


def test_what_is_no_longer_there_is_shown_and_stays_until_it_is_taken_off(
    dashboard: DashboardRig,
) -> None:
    dashboard.put((StatusPage(id="old", path="/old", title="Old", rooms=("gone", "r1")), ""))
    text = dashboard.person("operator").get(f"{AT}/old").text
    assert "no longer there" in text
    assert re.findall(r'value="([^"]+)" checked', text) == ["gone", "r1"]


def test_pages_of_the_file_are_shown_and_changed_in_the_file(
    dashboard: DashboardRig, monkeypatch
) -> None:
    read = dashboard.store.read

    def with_file():
        known = read()
        return known.changed(
            known.revision,
            [
                type(entry)(entry.record, "", 0, 0, 0, read_only=True)
                for entry in known.status_pages.values()
            ],
        )

    monkeypatch.setattr(dashboard.store, "read", with_file)
    visitor = dashboard.person("operator")
    assert "from the configuration file" in visitor.get(STATUS).text
    assert f"{AT}/sp1" not in visitor.get(STATUS).text
    for answer in (
        visitor.get(f"{AT}/sp1"),
        visitor.post(f"{AT}/sp1", **FORM),
        visitor.post(f"{AT}/sp1/remove", revision="0"),
    ):
        assert answer.status_code == 403
        assert "change it there" in answer.text


def test_viewers_see_pages_and_do_not_change_them(dashboard: DashboardRig) -> None:
    viewer = dashboard.person("viewer")
    assert "Shop status" in viewer.get(STATUS).text
    for path in (f"{AT}/new", f"{AT}/sp1"):
        assert viewer.get(path).status_code == 403
    for path in (AT, f"{AT}/sp1", f"{AT}/preview", f"{AT}/sp1/remove"):
        assert viewer.post(path, **FORM).status_code == 403
