"""The GraphQL explorer: a person asks with their session what a token of their zones could ask, and
nothing more.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_in_process import ApiInProcess, api_in, health_of
from dashboard_rig import DashboardRig, Visitor, dashboard_in

from greenroom.analytics.dashboard.parts import QUERIES, ExplorerQueries
from greenroom.api.management import ALL_DATASETS, all_answers

ZONES = "{ viewer { zones { zoneTag } } }"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        found.fill()
        answers = all_answers({}, health_of(found.store, found.clock), found.clock)
        queries = ExplorerQueries(found.store, found.clock, ALL_DATASETS, answers)
        found.app.parts.put(QUERIES, queries)
        yield found


def ask(visitor: Visitor, **form: Any) -> Any:
    return visitor.post("/explorer", **form).json()


def zones(found: Any) -> list[str]:
    assert found["errors"] is None
    return [zone["zoneTag"] for zone in found["data"]["viewer"]["zones"]]


def test_people_see_their_own_zones_only(rig: DashboardRig) -> None:
    assert zones(ask(rig.person("viewer"), query=ZONES)) == ["z1", "z2"]
    assert zones(ask(rig.person("operator", "z2"), query=ZONES)) == ["z2"]
    chosen = "query Q($zone: string!) { viewer { zones(filter: {zoneTag: $zone}) { zoneTag } } }"
    refused = ask(
        rig.person("viewer", "z2"), query=chosen, variables='{"zone": "z1"}', operationName="Q"
    )
    assert refused["data"] is None
    assert refused["errors"][0]["extensions"]["code"] == "authz"


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"query": ""},
        {"query": "{"},
        {"query": ZONES, "variables": "["},
        {"query": ZONES, "variables": "[1]"},
        {"query": "\ud800x"},
    ],
)
def test_what_is_no_query_is_answered_with_the_reason(
    rig: DashboardRig, form: dict[str, str]
) -> None:
    form = {name: value.encode("utf-8", "replace").decode() for name, value in form.items()}
    found = ask(rig.person("viewer"), **form)
    assert found["data"] is None
    assert found["errors"][0]["message"]


def test_the_schema_is_there_for_the_editor(rig: DashboardRig) -> None:
    found = ask(rig.person("viewer"), query="{ __schema { queryType { name } } }")
    assert found["data"]["__schema"]["queryType"]["name"]


def test_the_page_has_the_editor_or_a_form(rig: DashboardRig) -> None:
    text = rig.person("viewer").get("/explorer").text
    assert "waitingRoomAnalyticsAdaptiveGroups" in text
    assert ('id="explorer"' in text) != ("<textarea" in text)


def test_without_analytics_it_says_so(tmp_path: Path) -> None:
    with dashboard_in(tmp_path / "none") as plain:
        visitor = plain.person("viewer")
        assert "keeps no analytics" in visitor.get("/explorer").text
        assert (
            ask(visitor, query=ZONES)["errors"][0]["message"] == "this process keeps no analytics"
        )


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiInProcess]:
    with api_in(tmp_path_factory.mktemp("api")) as found:
        yield found


def test_a_browser_at_the_address_of_graphql_is_sent_to_the_explorer_and_a_program_is_not(
    api: ApiInProcess,
) -> None:
    sent = api._runner.run(
        api._client.request(
            "GET", "/graphql", headers={"Accept": "text/html,application/xhtml+xml"}
        )
    )
    assert (sent.status_code, sent.headers["location"]) == (303, "../../explorer")
    assert api.ask("GET", "/graphql").status_code == 405
