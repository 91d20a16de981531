"""The published datasets of health checks: rows, groups, filters and order, as the dashboard asks
for them.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from api_in_process import ApiInProcess, api_in

from greenroom.api import health_datasets
from greenroom.health.rules.memory import HealthBatch
from greenroom.model.change import Put
from greenroom.model.probe import CheckEvent, ProbeResult, Reason
from greenroom.model.zone import Zone

MINUTE = 60_000
SEED = ProbeResult(Reason.CODE, 503, "192.0.2.1", 41.0, 80.0, 222.0, 302.0)
"""The waterfall of the published example."""


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator[ApiInProcess]:
    with api_in(tmp_path_factory.mktemp("graphql")) as api:
        zones = [Put(Zone(id=zone, name=f"{zone}.example")) for zone in ("z1", "z2")]
        api.store.write(zones, expected=api.store.read().revision, author="test", now_ms=1)
        known = {"name": "shop", "fqdn": "shop.example.com", "expected": "200", "agent": "a"}
        events = [
            CheckEvent(
                at_ms=api.clock.at_ms - number * MINUTE,
                check_id="c1" if number % 2 else "c2",
                zone_id="z1",
                healthy=number % 4 > 0,
                region=("WEU", "Global")[number % 2],
                scope=("agent", "overall")[number % 2],
                changed=number == 4,
                result=SEED
                if number % 4 == 0
                else ProbeResult(code=200, address="192.0.2.1", rtt_ms=float(number)),
                **known,
            )
            for number in range(20)
        ]
        events.append(
            CheckEvent(
                api.clock.at_ms, "c9", "z2", "other", "x", True, "Global", "overall", ProbeResult()
            )
        )
        api.health._store.save(HealthBatch(events=events), api.clock.at_ms)
        yield api


def data(api: ApiInProcess, dataset: str, selected: str, **arguments: str) -> list[dict[str, Any]]:
    given = {
        "filter": '{datetime_geq: "2023-11-14T00:00:00Z", datetime_lt: "2023-11-15T00:00:00Z"}',
        "limit": "1000",
        **arguments,
    }
    written = ", ".join(f"{name}: {value}" for name, value in given.items())
    query = f'{{ viewer {{ zones(filter: {{zoneTag: "z1"}}) {{ found: {dataset}({written}) {{ {selected} }} }} }} }}'
    body = api.ask("POST", "/graphql", {"query": query}).json()
    assert body.get("errors") is None, body
    return body["data"]["viewer"]["zones"][0]["found"]


RAW, GROUPS = "healthCheckEventsAdaptive", "healthCheckEventsAdaptiveGroups"


def test_rows_as_the_dashboard_asks_for_them(api: ApiInProcess) -> None:
    names = (
        "datetime healthCheckId healthCheckName fqdn originIP originResponseStatus expectedResponseCodes healthStatus healthChanged "
        "failureReason region scope sampleInterval tcpConnMs tlsHandshakeMs timeToFirstByteMs rttMs"
    )
    rows = data(api, RAW, names, orderBy="[datetime_DESC, healthCheckId_DESC, scope_DESC]")
    assert len(rows) == 20
    assert rows[0] == {
        "datetime": "2023-11-14T22:13:20Z",
        "healthCheckId": "c2",
        "healthCheckName": "shop",
        "fqdn": "shop.example.com",
        "originIP": "192.0.2.1",
        "originResponseStatus": 503,
        "expectedResponseCodes": "200",
        "healthStatus": "Unhealthy",
        "healthChanged": 0,
        "failureReason": "Response code mismatch error",
        "region": "WEU",
        "scope": "agent",
        "sampleInterval": 1,
        "tcpConnMs": 41.0,
        "tlsHandshakeMs": 80.0,
        "timeToFirstByteMs": 222.0,
        "rttMs": 302.0,
    }
    assert [row["datetime"] for row in rows] == sorted(
        (row["datetime"] for row in rows), reverse=True
    )


def test_uptime_of_each_check_from_groups(api: ApiInProcess) -> None:
    rows = data(
        api,
        GROUPS,
        "count dimensions { healthCheckId healthStatus }",
        orderBy="[healthCheckId_ASC, healthStatus_ASC]",
    )
    found = {
        (row["dimensions"]["healthCheckId"], row["dimensions"]["healthStatus"]): row["count"]
        for row in rows
    }
    assert found == {("c1", "Healthy"): 10, ("c2", "Healthy"): 5, ("c2", "Unhealthy"): 5}


def test_averages_buckets_and_order_by_count(api: ApiInProcess) -> None:
    selected = "count avg { rttMs tcpConnMs } dimensions { datetimeHour date region }"
    rows = data(
        api, GROUPS, selected, orderBy="[count_DESC, region_ASC, datetimeHour_DESC]", limit="3"
    )
    assert len(rows) <= 3
    assert rows[0]["count"] >= rows[-1]["count"]
    assert rows[0]["dimensions"]["date"] == "2023-11-14"
    failing = data(
        api,
        GROUPS,
        "avg { rttMs tcpConnMs }",
        filter='{datetime_geq: "2023-11-14T00:00:00Z", healthStatus: "Unhealthy"}',
    )
    assert failing == [{"avg": {"rttMs": 302.0, "tcpConnMs": 41.0}}]


LONG = (
    "count avg { rttMs } min { rttMs } max { rttMs } quantiles { rttMsP50 rttMsP95 }"
    " dimensions { datetimeHour healthCheckId region healthStatus }"
)


def test_hourly_sums_answer_like_single_events(
    api: ApiInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = "[healthCheckId_ASC, datetimeHour_ASC, healthStatus_ASC]"
    exact = data(api, GROUPS, LONG, orderBy=order)
    assert exact[0]["min"]["rttMs"] <= exact[0]["quantiles"]["rttMsP50"] <= exact[0]["max"]["rttMs"]
    monkeypatch.setattr(health_datasets, "EVENTS_MAX", 5)
    summed = data(api, GROUPS, LONG, orderBy=order)
    assert len(summed) == len(exact)
    for one, other in zip(summed, exact, strict=True):
        for name in ("count", "dimensions"):
            assert one[name] == other[name]
        for name in ("avg", "min", "max"):
            assert one[name] == pytest.approx(other[name])
        for name, value in other["quantiles"].items():
            assert one["quantiles"][name] == pytest.approx(value, rel=0.041, abs=0.01)
    by = data(api, GROUPS, "count", filter=f'{{{SINCE}, healthStatus: "Unhealthy"}}')
    assert by == [{"count": 5}]
    query = f'{{ viewer {{ zones(filter: {{zoneTag: "z1"}}) {{ {GROUPS}(limit: 5, filter: {{{SINCE}}}) {{ dimensions {{ datetimeMinute }} }} }} }} }}'
    errors = api.ask("POST", "/graphql", {"query": query}).json()["errors"]
    assert "leave out datetimeMinute" in errors[0]["message"]
    newest = data(api, RAW, "datetime", limit="3", orderBy="[datetime_DESC, scope_ASC]")
    assert [row["datetime"] for row in newest] == [
        f"2023-11-14T22:{13 - at}:20Z" for at in range(3)
    ]


SINCE = 'datetime_geq: "2023-11-14T00:00:00Z"'


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ('healthCheckId: "c1"', 10),
        ('region_in: ["WEU", "OC"]', 10),
        ("healthChanged: 1", 1),
        ('failureReason_like: "Response%"', 5),
        ("rttMs_gt: 300", 5),
        ("originResponseStatus_neq: 200", 5),
        ('datetime_gt: "2023-11-14T22:03:20Z"', 10),
        ('OR: [{healthCheckId: "c1"}, {healthStatus: "Unhealthy"}]', 15),
        ('scope: "overall", healthCheckId: null, OR: [], AND: [{}]', 10),
    ],
)
def test_filters(api: ApiInProcess, wanted: str, count: int) -> None:
    begin = "" if wanted.startswith("datetime") else 'datetime_geq: "2023-11-14T00:00:00Z", '
    assert len(data(api, RAW, "datetime", filter=f"{{{begin}{wanted}}}")) == count


def test_another_zone_and_too_long_a_time_are_not_answered(api: ApiInProcess) -> None:
    query = '{ viewer { zones(filter: {zoneTag: "z1"}) { healthCheckEventsAdaptive(limit: 5, filter: {datetime_geq: "2020-01-01T00:00:00Z"}) { fqdn } } } }'
    body = api.ask("POST", "/graphql", {"query": query}).json()
    assert "older than" in body["errors"][0]["message"]
    assert {row["fqdn"] for row in data(api, RAW, "fqdn")} == {"shop.example.com"}
