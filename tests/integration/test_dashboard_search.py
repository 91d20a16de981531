"""The search box finds everything that has a name, in the zones of the person only, and leads to
pages that they may see.
"""

import html
import re
from collections.abc import Iterator

import pytest
from dashboard_rig import DashboardRig, Visitor, dashboard_in


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path_factory.mktemp("search")) as found:
        found.fill()
        yield found


def results(visitor: Visitor, text: str) -> dict[str, str]:
    """Address -> kind. The only result is opened at once."""
    answer = visitor.get(f"/search?q={text}")
    if answer.status_code == 303:
        return {answer.headers["location"]: "opened"}
    rows = re.findall(
        r'<tr><th scope="row"><a href="([^"]+)">.*?</a></th><td>(.*?)</td>', answer.text
    )
    return {html.unescape(path): kind for path, kind in rows}


@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        ("r1", "/zones/z1/rooms/r1", "opened"),
        ("e1", "/zones/z1/rooms/r1/events", "opened"),
        ("$office", "/zones/z1/rooms/r1/rules", "Rule"),
        ("$office", "/lists/l1", "List"),
        ("session", "/rooms", "Setting of a room"),
        ("new_users_per_minute", "/rooms", "opened"),
        ("audit", "/audit", "Page"),
        ("audit", "/help/reference/api#audit-log", "Documentation"),
        ("z1", "/zones/z1/edit", "Zone"),
    ],
)
def test_what_has_a_name_is_found(rig: DashboardRig, text: str, path: str, kind: str) -> None:
    assert results(rig.person("operator"), text).get(path) == kind


def test_other_zones_are_not_searched(rig: DashboardRig) -> None:
    for text in ("r1", "e1", "office", "z1", "http"):
        assert not any(
            "z1" in path or "lists" in path for path in results(rig.person("operator", "z2"), text)
        )


def test_every_result_can_be_opened(rig: DashboardRig) -> None:
    for person in (rig.person("viewer"), rig.person("operator"), rig.person("viewer", "z2")):
        for text in ("e", "r", "o", "z", "%24"):
            for path in results(person, text):
                assert person.get(path).status_code in (200, 303), path


def test_answers_while_typing_are_a_short_list_that_opens_nothing_by_itself(
    rig: DashboardRig,
) -> None:
    visitor = rig.person("operator")
    one = visitor.get("/search?q=r1", **{"HX-Request": "true"})
    assert (one.status_code, "<!doctype" in one.text) == (200, False)
    assert 'href="/zones/z1/rooms/r1"' in one.text
    assert visitor.get("/search?q=e", **{"HX-Request": "true"}).text.count("<li>") <= 12
    assert "Nothing found" in visitor.get("/search?q=qqqq", **{"HX-Request": "true"}).text
    assert visitor.get("/search?q=", **{"HX-Request": "true"}).text.strip() == ""
