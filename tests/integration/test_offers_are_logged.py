"""Offers through the API and the dashboard: the log says what visitors were told and when."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_in_process import ApiInProcess, api_in
from dashboard_rig import DashboardRig

from greenroom.model.zone import ACCOUNT_ID

LIMITS = {"new_users_per_minute": 200, "total_active_users": 200}
OFFERS = "/zones/z2/rooms/r2/offers"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiInProcess]:
    with api_in(tmp_path) as api:
        yield api


def test_the_log_has_every_set_of_offers_newest_first(api: ApiInProcess) -> None:
    zone = api.make("/zones", {"name": "example.com", "account": {"id": ACCOUNT_ID}})["id"]
    rooms = f"/zones/{zone}/waiting_rooms"
    first, second = (
        f"{rooms}/{api.make(rooms, {'name': name, 'host': f'{name}.example.com', **LIMITS})['id']}"
        for name in ("a", "b")
    )
    for left in ("many", 3, "none"):
        offers = [{"name": "Stalls", "price": "=1+1", "available": left}]
        answer = api.ask("PUT", f"{first}/offers", offers)
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"] == api.ask("GET", f"{first}/offers").json()["result"]
    api.ask("PUT", f"{first}/offers", [])
    log = api.ask("GET", f"{first}/offers/log").json()["result"]
    assert [[one["available"] for one in entry["offers"]] for entry in log] == [
        [],
        ["none"],
        [3],
        ["many"],
    ]
    assert len(api.ask("GET", f"{first}/offers/log?limit=2").json()["result"]) == 2
    assert api.ask("GET", f"{second}/offers/log").json()["result"] == []
    assert api.ask("GET", f"{second}/offers").json()["result"] == []


def test_the_dashboard_changes_offers_and_exports_their_log(dashboard: DashboardRig) -> None:
    operator = dashboard.person("operator", "z2")
    rows = {"name-0": "=Stalls", "price-0": "€45", "available-0": "12", "name-2": "Circle"}
    wrong = operator.post(OFFERS, revision="", **rows)
    assert wrong.status_code == 400
    assert "Row 2: available" in wrong.text
    assert 'value="=Stalls"' in wrong.text
    assert operator.post(OFFERS, revision="", **rows, **{"available-2": "Few"}).status_code == 303
    page = operator.get(OFFERS)
    revision = re.search(r'name="revision" value="(\d+)"', page.text)
    assert revision is not None
    told = dashboard.store.read().offers["r2"].record.offers
    assert [(one.name, one.available) for one in told] == [("=Stalls", "12"), ("Circle", "few")]
    late = operator.post(OFFERS, revision="1", **rows, **{"available-2": "none"})
    assert late.status_code == 409
    log = operator.get(f"{OFFERS}/log.csv")
    assert log.headers["content-type"] == "text/csv; charset=utf-8"
    head, first, second = log.text.splitlines()
    assert head == "when,author,offer,price,available,as_of"
    assert ",'=Stalls,€45,12," in first
    assert ",Circle,,few," in second
