"""The tour: at most four steps, each on a page that the person may see, and nowhere else."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_rig import DashboardRig, Visitor, dashboard_in

NEXT = re.compile(
    r'<aside class="alert alert-info tour".*?<a class="btn btn-primary btn-sm" href="([^"]+)">Next',
    re.S,
)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path_factory.mktemp("tour")) as found:
        found.fill()
        yield found


def walked(visitor: Visitor) -> list[str]:
    """The pages of the tour, from the first to the last."""
    found, following = [], "/rooms?tour=1"
    while following:
        answer = visitor.get(following)
        assert answer.status_code == 200, following
        assert "End the tour" in answer.text
        found.append(following)
        link = NEXT.search(answer.text)
        following = html.unescape(link[1]) if link else ""
    return found


@pytest.mark.parametrize(
    ("role", "zones", "steps"), [("operator", (), 4), ("viewer", (), 3), ("viewer", ("z2",), 3)]
)
def test_the_tour_leads_over_pages_that_the_person_may_see(
    rig: DashboardRig, role: str, zones: tuple[str, ...], steps: int
) -> None:
    assert len(walked(rig.person(role, *zones))) == steps


@pytest.mark.parametrize(
    "path",
    [
        "/rooms",
        "/rooms?tour=0",
        "/rooms?tour=5",
        "/rooms?tour=2",
        "/about?tour=1",
        "/rooms?tour=\u0661",
        "/rooms?tour=<b>",
    ],
)
def test_nothing_is_shown_elsewhere(rig: DashboardRig, path: str) -> None:
    assert "End the tour" not in rig.person("operator").get(path).text


def test_without_a_room_there_is_nothing_to_show(tmp_path: Path) -> None:
    with dashboard_in(tmp_path) as empty:
        assert "End the tour" not in empty.person("operator").get("/rooms?tour=1").text
