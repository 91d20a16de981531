"""GraphQL as published clients speak it: their queries run unchanged, with aliases, fragments and
introspection.
"""

import pytest
from analytics_material import ALL_WANTED
from graphql import build_client_schema, get_introspection_query, parse, validate
from graphql_rig import FIRST, MINUTES, OTHER_ZONE, ROOM, SECOND, ZONE, GraphqlRig, seconds, truth

from greenroom.analytics.metrics import DIMENSIONS, METRICS

ARTICLE = """
{
 viewer {
   zones(filter: {zoneTag: "example-zone"}) {
     waitingRoomAnalyticsAdaptiveGroups(limit: 10, filter: {datetime_geq: "2023-03-15T04:00:00Z", datetime_leq: "2023-03-15T04:45:00Z", waitingRoomId: "example-waiting-room-id"}, orderBy: [datetimeHour_ASC]) {
       avgWeighted {
         timeOnOriginP50
         totalTimeWaitedP90
       }
       dimensions {
         datetimeHour
       }
     }
   }
 }
}
"""

PER_HOUR = (
    "{ viewer { zones(filter:{zoneTag:$z}) { perHour: waitingRoomAnalyticsAdaptiveGroups(limit:100, filter:{datetime_geq:$a, datetime_lt:$b, "
    "waitingRoomId:$r}, orderBy:[datetimeHour_ASC]) { max{totalActiveUsers totalQueuedUsers} avgWeighted{totalTimeWaitedP90} "
    "dimensions{ts:datetimeHour} } } } }"
)
"""As it is printed, without a declaration of its variables."""

DECLARED = "query ($z: string, $a: Time!, $b: Time!, $r: string) "

SERIES_AND_TOTAL = """query GetWaitingRoom($zoneTag: string!, $filter: ZoneWaitingRoomAnalyticsAdaptiveGroupsFilter_InputObject!) { viewer { zones(filter: {zoneTag: $zoneTag}) {
  timeseries: waitingRoomAnalyticsAdaptiveGroups(limit: 5000, filter: $filter, orderBy: [datetimeMinute_ASC]) {
    __typename avg { totalActiveUsers } max { totalActiveUsers totalQueuedUsers } dimensions { ts: datetimeMinute } }
  total: waitingRoomAnalyticsAdaptiveGroups(limit: 1, filter: $filter) { max { totalActiveUsers } sum { newUsersPerMinute sessionsRevoked } count } } } }"""


def test_the_query_of_the_article_runs_unchanged(rig: GraphqlRig) -> None:
    body = rig.post(ARTICLE).json()
    wanted = [("avgWeighted", "timeOnOriginP50"), ("avgWeighted", "totalTimeWaitedP90")]
    (row,) = truth(
        rig,
        "2023-03-15T04:00:00Z",
        "2023-03-15T04:46:00Z",
        "datetimeHour",
        rooms=frozenset({ROOM}),
        wanted=wanted,
    )
    expected = {
        "avgWeighted": {name: row["avgWeighted", name] for _, name in wanted},
        "dimensions": {"datetimeHour": "2023-03-15T04:00:00Z"},
    }
    assert body["data"] == {
        "viewer": {"zones": [{"waitingRoomAnalyticsAdaptiveGroups": [expected]}]}
    }
    assert body["errors"] is None
    assert row["avgWeighted", "timeOnOriginP50"] > 0


@pytest.mark.parametrize("head", ["", DECLARED])
def test_hours_with_an_alias_for_the_dataset_and_one_for_the_dimension(
    rig: GraphqlRig, head: str
) -> None:
    start, end = "2023-03-15T03:00:00Z", "2023-03-15T05:00:00Z"
    found = rig.data(head + PER_HOUR, {"z": ZONE, "a": start, "b": end, "r": ROOM})["viewer"][
        "zones"
    ][0]["perHour"]
    wanted = [
        ("max", "totalActiveUsers"),
        ("max", "totalQueuedUsers"),
        ("avgWeighted", "totalTimeWaitedP90"),
    ]
    rows = sorted(
        truth(rig, start, end, "datetimeHour", rooms=frozenset({ROOM}), wanted=wanted),
        key=lambda row: row["", "datetimeHour"],
    )
    assert found == [
        {
            "max": {
                "totalActiveUsers": row["max", "totalActiveUsers"],
                "totalQueuedUsers": row["max", "totalQueuedUsers"],
            },
            "avgWeighted": {"totalTimeWaitedP90": row["avgWeighted", "totalTimeWaitedP90"]},
            "dimensions": {"ts": row["", "datetimeHour"]},
        }
        for row in rows
    ]
    assert len(found) == 2


def test_a_series_beside_a_total_of_the_same_dataset(rig: GraphqlRig) -> None:
    span = {
        "datetime_geq": "2023-03-15T03:00:00Z",
        "datetime_leq": "2023-03-15T04:59:00Z",
        "waitingRoomId": None,
        "AND": [],
    }
    zone = rig.data(SERIES_AND_TOTAL, {"zoneTag": ZONE, "filter": span})["viewer"]["zones"][0]
    series, (total,) = zone["timeseries"], zone["total"]
    assert len(series) == 120
    assert series == sorted(series, key=lambda row: row["dimensions"]["ts"])
    assert {row["__typename"] for row in series} == {"ZoneWaitingRoomAnalyticsAdaptiveGroups"}
    assert total["max"]["totalActiveUsers"] == max(row["max"]["totalActiveUsers"] for row in series)
    (row,) = truth(
        rig,
        "2023-03-15T03:00:00Z",
        "2023-03-15T05:00:00Z",
        wanted=[("sum", "newUsersPerMinute"), ("sum", "sessionsRevoked")],
    )
    assert total["sum"] == {
        "newUsersPerMinute": row["sum", "newUsersPerMinute"],
        "sessionsRevoked": row["sum", "sessionsRevoked"],
    }
    assert total["count"] == row["", "count"]


def test_raw_rows_are_one_for_each_room_and_minute_and_explain_the_weighted_average(
    rig: GraphqlRig,
) -> None:
    query = f"""{{ viewer {{ zones(filter: {{zoneTag: "{ZONE}"}}) {{
      rows: waitingRoomAnalyticsAdaptive(limit: 1000, filter: {{datetime_geq: "2023-03-15T04:00:00Z", datetime_lt: "2023-03-15T04:30:00Z"}}, orderBy: [waitingRoomId_DESC, datetime_ASC])
        {{ waitingRoomId datetime sampleInterval totalActiveUsers newUsersPerMinute totalTimeWaitedP90 timeOnOriginP50 usersWaited sessionsEnded }}
      sums: waitingRoomAnalyticsAdaptiveGroups(limit: 1, filter: {{datetime_geq: "2023-03-15T04:00:00Z", datetime_lt: "2023-03-15T04:30:00Z"}})
        {{ count avgWeighted {{ totalTimeWaitedP90 timeOnOriginP50 }} }} }} }} }}"""
    zone = rig.data(query)["viewer"]["zones"][0]
    rows, (sums,) = zone["rows"], zone["sums"]
    assert [(row["waitingRoomId"], row["datetime"]) for row in rows[:2]] == [
        (SECOND, f"2023-03-15T04:0{n}:00Z") for n in (0, 1)
    ]
    assert sums["count"] == len(rows)
    assert {row["sampleInterval"] for row in rows} == {1}
    for metric, weight, events in (
        ("totalTimeWaitedP90", "newUsersPerMinute", "usersWaited"),
        ("timeOnOriginP50", "totalActiveUsers", "sessionsEnded"),
    ):
        taking = [row for row in rows if row[events]]
        expected = sum(row[metric] * row[weight] for row in taking) / sum(
            row[weight] for row in taking
        )
        assert sums["avgWeighted"][metric] == pytest.approx(expected, abs=0.011)


def test_every_metric_and_dimension_is_what_the_parts_add_up_to(rig: GraphqlRig) -> None:
    span = 'filter: {datetime_geq: "2023-03-15T02:20:00Z", datetime_lt: "2023-03-15T05:20:00Z"}'
    for half in (ALL_WANTED[::2], ALL_WANTED[1::2]):
        by_aggregate: dict[str, list[str]] = {}
        for aggregate, name in half:
            by_aggregate.setdefault(aggregate, []).append(name)
        selection = " ".join(
            f"{aggregate} {{ {' '.join(names)} }}" for aggregate, names in by_aggregate.items()
        )
        dimensions = ("waitingRoomId", "datetimeFifteenMinutes")
        found = rig.groups(
            f"limit: 1000, {span}", f"{{ {selection} dimensions {{ {' '.join(dimensions)} }} }}"
        )
        rows = truth(rig, "2023-03-15T02:20:00Z", "2023-03-15T05:20:00Z", *dimensions, wanted=half)
        expected = {
            tuple(row["", name] for name in dimensions): {wanted: row[wanted] for wanted in half}
            for row in rows
        }
        got = {
            tuple(row["dimensions"][name] for name in dimensions): {
                (a, n): row[a][n] for a, n in half
            }
            for row in found
        }
        assert got == expected
    for dimension in DIMENSIONS:
        found = rig.groups(f"limit: 1000, {span}", f"{{ count dimensions {{ {dimension} }} }}")
        rows = truth(rig, "2023-03-15T02:20:00Z", "2023-03-15T05:20:00Z", dimension)
        assert {row["dimensions"][dimension]: row["count"] for row in found} == {
            row["", dimension]: row["", "count"] for row in rows
        }


def test_fragments_directives_and_two_levels_of_aliases(rig: GraphqlRig) -> None:
    query = """query ($no: Boolean!) { who: viewer { z: zones(filter: {zoneTag: "example-zone"}) { tag: zoneTag ...data } } }
      fragment data on zone { g: waitingRoomAnalyticsAdaptiveGroups(limit: 1, filter: {datetime_geq: "2023-03-15T03:00:00Z"}) {
        ... on ZoneWaitingRoomAnalyticsAdaptiveGroups { m: max { a: totalActiveUsers, again: totalActiveUsers } }
        sum @include(if: $no) { newUsersPerMinute } count @skip(if: false) } }"""
    zone = rig.data(query, {"no": False})["who"]["z"][0]
    assert zone["tag"] == ZONE
    assert zone["g"][0]["m"]["a"] == zone["g"][0]["m"]["again"] > 0
    assert zone["g"][0].keys() == {"m", "count"}


def test_settings_say_what_can_be_asked(rig: GraphqlRig) -> None:
    query = """{ viewer { zones(filter: {zoneTag: "example-zone"}) { settings { waitingRoomAnalyticsAdaptiveGroups {
      enabled maxDuration maxNumberOfFields maxPageSize notOlderThan availableFields } } } accounts { accountTag } } }"""
    found = rig.data(query)["viewer"]
    settings = found["zones"][0]["settings"]["waitingRoomAnalyticsAdaptiveGroups"]
    assert settings["enabled"] is True
    assert (settings["maxPageSize"], settings["notOlderThan"]) == (10_000, 2_678_400)
    assert {
        "count",
        "dimensions_datetimeHour",
        "sum_newUsersPerMinute",
        "avgWeighted_totalTimeWaitedP90",
    } <= set(settings["availableFields"])
    assert len(found["accounts"]) == 1


def test_zones_come_in_the_order_of_their_tags_and_only_those_of_the_token(rig: GraphqlRig) -> None:
    assert [
        zone["zoneTag"] for zone in rig.data("{ viewer { zones { zoneTag } } }")["viewer"]["zones"]
    ] == [ZONE, OTHER_ZONE]
    assert [
        z["zoneTag"]
        for z in rig.data('{ viewer { zones(filter: {zoneTag_gt: "f"}) { zoneTag } } }')["viewer"][
            "zones"
        ]
    ] == [OTHER_ZONE]
    narrow = rig.make_token("narrow", "analytics", zones=(OTHER_ZONE,))
    body = rig.post("{ viewer { zones { zoneTag } } }", token=narrow).json()
    assert [zone["zoneTag"] for zone in body["data"]["viewer"]["zones"]] == [OTHER_ZONE]
    assert (
        rig.error(
            '{ viewer { zones(filter: {zoneTag: "example-zone"}) { zoneTag } } }', token=narrow
        )["extensions"]["code"]
        == "authz"
    )


def test_introspection_gives_a_schema_that_the_published_queries_are_valid_in(
    rig: GraphqlRig,
) -> None:
    schema = build_client_schema(rig.data(get_introspection_query()))
    assert validate(schema, parse(ARTICLE)) == []
    assert validate(schema, parse(DECLARED + PER_HOUR)) == []
    assert {"string", "uint64", "Time", "Date"} <= schema.type_map.keys()
    for name in ("max", "avg", "min", "sum", "avgWeighted"):
        fields = schema.type_map[
            f"ZoneWaitingRoomAnalyticsAdaptiveGroups{name[0].upper()}{name[1:]}"
        ].fields  # type: ignore[attr-defined]
        assert fields.keys() == {
            metric.name for metric in METRICS.values() if name in metric.aggregates
        }


def test_the_rig_has_minutes_on_both_sides_of_what_is_rolled_up(rig: GraphqlRig) -> None:
    assert rig.keeper.tables_state().hours_to_s == seconds("2023-03-15T05:00:00Z")
    assert FIRST * 60 < seconds("2023-03-15T03:00:00Z") < (FIRST + MINUTES) * 60
