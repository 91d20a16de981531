"""GraphQL as published clients speak it: their queries run unchanged, in every spelling of types, and errors have their shape."""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from graphql import build_client_schema, get_introspection_query, parse, validate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from analytics_material import ALL_WANTED, oracle
from graphql_rig import FIRST, MINUTES, OTHER_ZONE, ROOM, SECOND, ZONE, GraphqlRig, graphql_in

from greenroom.analytics.metrics import DIMENSIONS, METRICS
from greenroom.analytics.question import AllOf, DimensionFilter, Question, Wanted
from greenroom.api.graphql.endpoint import CALLS_MAX, CALLS_MS
from greenroom.api.graphql.lenient import DEPTH_MAX, FRAGMENTS_MAX, SAME_NAME_MAX
from greenroom.api.graphql.room_datasets import like

ROOMS = frozenset({ROOM, SECOND})

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


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphqlRig]:
    with graphql_in(tmp_path_factory.mktemp("graphql")) as found:
        yield found


@pytest.fixture(autouse=True)
def later(rig: GraphqlRig) -> None:
    """Every test has its own budget of calls."""
    rig.clock.at_ms += CALLS_MS


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def truth(rig: GraphqlRig, start: str, end: str, *dimensions: str, rooms: frozenset[str] = ROOMS, wanted: Any = ()) -> list[Any]:
    question = Question(seconds(start), seconds(end), rooms, dimensions, tuple(Wanted(*found) for found in wanted))
    return oracle(rig.parts, question)


def test_the_query_of_the_article_runs_unchanged(rig: GraphqlRig) -> None:
    body = rig.post(ARTICLE).json()
    wanted = [("avgWeighted", "timeOnOriginP50"), ("avgWeighted", "totalTimeWaitedP90")]
    (row,) = truth(rig, "2023-03-15T04:00:00Z", "2023-03-15T04:46:00Z", "datetimeHour", rooms=frozenset({ROOM}), wanted=wanted)
    expected = {
        "avgWeighted": {name: row["avgWeighted", name] for _, name in wanted},
        "dimensions": {"datetimeHour": "2023-03-15T04:00:00Z"},
    }
    assert body["data"] == {"viewer": {"zones": [{"waitingRoomAnalyticsAdaptiveGroups": [expected]}]}}
    assert body["errors"] is None
    assert row["avgWeighted", "timeOnOriginP50"] > 0


@pytest.mark.parametrize("head", ["", DECLARED])
def test_hours_with_an_alias_for_the_dataset_and_one_for_the_dimension(rig: GraphqlRig, head: str) -> None:
    start, end = "2023-03-15T03:00:00Z", "2023-03-15T05:00:00Z"
    found = rig.data(head + PER_HOUR, {"z": ZONE, "a": start, "b": end, "r": ROOM})["viewer"]["zones"][0]["perHour"]
    wanted = [("max", "totalActiveUsers"), ("max", "totalQueuedUsers"), ("avgWeighted", "totalTimeWaitedP90")]
    rows = sorted(truth(rig, start, end, "datetimeHour", rooms=frozenset({ROOM}), wanted=wanted), key=lambda row: row["", "datetimeHour"])
    assert found == [
        {
            "max": {"totalActiveUsers": row["max", "totalActiveUsers"], "totalQueuedUsers": row["max", "totalQueuedUsers"]},
            "avgWeighted": {"totalTimeWaitedP90": row["avgWeighted", "totalTimeWaitedP90"]},
            "dimensions": {"ts": row["", "datetimeHour"]},
        }
        for row in rows
    ]
    assert len(found) == 2


def test_a_series_beside_a_total_of_the_same_dataset(rig: GraphqlRig) -> None:
    span = {"datetime_geq": "2023-03-15T03:00:00Z", "datetime_leq": "2023-03-15T04:59:00Z", "waitingRoomId": None, "AND": []}
    zone = rig.data(SERIES_AND_TOTAL, {"zoneTag": ZONE, "filter": span})["viewer"]["zones"][0]
    series, (total,) = zone["timeseries"], zone["total"]
    assert len(series) == 120
    assert series == sorted(series, key=lambda row: row["dimensions"]["ts"])
    assert {row["__typename"] for row in series} == {"ZoneWaitingRoomAnalyticsAdaptiveGroups"}
    assert total["max"]["totalActiveUsers"] == max(row["max"]["totalActiveUsers"] for row in series)
    (row,) = truth(rig, "2023-03-15T03:00:00Z", "2023-03-15T05:00:00Z", wanted=[("sum", "newUsersPerMinute"), ("sum", "sessionsRevoked")])
    assert total["sum"] == {"newUsersPerMinute": row["sum", "newUsersPerMinute"], "sessionsRevoked": row["sum", "sessionsRevoked"]}
    assert total["count"] == row["", "count"]


def test_raw_rows_are_one_for_each_room_and_minute_and_explain_the_weighted_average(rig: GraphqlRig) -> None:
    query = f"""{{ viewer {{ zones(filter: {{zoneTag: "{ZONE}"}}) {{
      rows: waitingRoomAnalyticsAdaptive(limit: 1000, filter: {{datetime_geq: "2023-03-15T04:00:00Z", datetime_lt: "2023-03-15T04:30:00Z"}}, orderBy: [waitingRoomId_DESC, datetime_ASC])
        {{ waitingRoomId datetime sampleInterval totalActiveUsers newUsersPerMinute totalTimeWaitedP90 timeOnOriginP50 usersWaited sessionsEnded }}
      sums: waitingRoomAnalyticsAdaptiveGroups(limit: 1, filter: {{datetime_geq: "2023-03-15T04:00:00Z", datetime_lt: "2023-03-15T04:30:00Z"}})
        {{ count avgWeighted {{ totalTimeWaitedP90 timeOnOriginP50 }} }} }} }} }}"""
    zone = rig.data(query)["viewer"]["zones"][0]
    rows, (sums,) = zone["rows"], zone["sums"]
    assert [(row["waitingRoomId"], row["datetime"]) for row in rows[:2]] == [(SECOND, f"2023-03-15T04:0{n}:00Z") for n in (0, 1)]
    assert sums["count"] == len(rows)
    assert {row["sampleInterval"] for row in rows} == {1}
    for metric, weight, events in (
        ("totalTimeWaitedP90", "newUsersPerMinute", "usersWaited"),
        ("timeOnOriginP50", "totalActiveUsers", "sessionsEnded"),
    ):
        taking = [row for row in rows if row[events]]
        expected = sum(row[metric] * row[weight] for row in taking) / sum(row[weight] for row in taking)
        assert sums["avgWeighted"][metric] == pytest.approx(expected, abs=0.011)


def test_every_metric_and_dimension_is_what_the_parts_add_up_to(rig: GraphqlRig) -> None:
    span = 'filter: {datetime_geq: "2023-03-15T02:20:00Z", datetime_lt: "2023-03-15T05:20:00Z"}'
    for half in (ALL_WANTED[::2], ALL_WANTED[1::2]):
        by_aggregate: dict[str, list[str]] = {}
        for aggregate, name in half:
            by_aggregate.setdefault(aggregate, []).append(name)
        selection = " ".join(f"{aggregate} {{ {' '.join(names)} }}" for aggregate, names in by_aggregate.items())
        dimensions = ("waitingRoomId", "datetimeFifteenMinutes")
        found = rig.groups(f"limit: 1000, {span}", f"{{ {selection} dimensions {{ {' '.join(dimensions)} }} }}")
        rows = truth(rig, "2023-03-15T02:20:00Z", "2023-03-15T05:20:00Z", *dimensions, wanted=half)
        expected = {tuple(row["", name] for name in dimensions): {wanted: row[wanted] for wanted in half} for row in rows}
        got = {tuple(row["dimensions"][name] for name in dimensions): {(a, n): row[a][n] for a, n in half} for row in found}
        assert got == expected
    for dimension in DIMENSIONS:
        found = rig.groups(f"limit: 1000, {span}", f"{{ count dimensions {{ {dimension} }} }}")
        rows = truth(rig, "2023-03-15T02:20:00Z", "2023-03-15T05:20:00Z", dimension)
        assert {row["dimensions"][dimension]: row["count"] for row in found} == {row["", dimension]: row["", "count"] for row in rows}


@pytest.mark.parametrize("declared", ["string", "String", "String!", "string!", "ID", "Nonsense!", "[String!]"])
@pytest.mark.parametrize("time", ["Time", "Time!", "String", "DateTime"])
def test_a_variable_may_be_declared_by_any_type_if_its_value_fits(rig: GraphqlRig, declared: str, time: str) -> None:
    query = f"""query ($z: {declared}, $a: {time}, $n: Int!, $o: [Foo!], $rooms: [{declared.strip("[]!")}!], $unused: uint64!) {{ viewer {{ zones(filter: {{zoneTag: $z}}) {{
      found: waitingRoomAnalyticsAdaptiveGroups(limit: $n, filter: {{datetime_geq: $a, waitingRoomId_in: $rooms, datetime_lt: $missing}}, orderBy: $o) {{ count }} }} }} }}"""
    query = query.replace("$unused: uint64!", "$unused: uint64!, $missing: Time")
    variables = {"z": ZONE, "a": "2023-03-15T03:00:00Z", "n": 3, "o": ["count_DESC"], "rooms": [ROOM]}
    (row,) = rig.data(query, variables)["viewer"]["zones"][0]["found"]
    expected = truth(rig, "2023-03-15T03:00:00Z", "2023-03-16T00:00:00Z", rooms=frozenset({ROOM}))
    assert row["count"] == expected[0]["", "count"]


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        (f'waitingRoomId: "{ROOM}"', {ROOM}),
        (f'waitingRoomId_neq: "{ROOM}"', {SECOND}),
        ('waitingRoomId_gt: "f"', {SECOND}),
        ('waitingRoomId_lt: "f"', {ROOM}),
        (f'waitingRoomId_geq: "{SECOND}"', {SECOND}),
        (f'waitingRoomId_leq: "{ROOM}"', {ROOM}),
        (f'waitingRoomId_in: ["{SECOND}", "nowhere"]', {SECOND}),
        ("waitingRoomId_in: []", set()),
        (f'waitingRoomId_notin: ["{SECOND}"]', {ROOM}),
        ('waitingRoomId_like: "%waiting%id"', {ROOM}),
        ('waitingRoomId_notlike: "%waiting%"', {SECOND}),
        (f'OR: [{{waitingRoomId: "{ROOM}"}}, {{waitingRoomId: "{SECOND}"}}]', {ROOM, SECOND}),
        (f'AND: [{{waitingRoomId: "{ROOM}"}}, {{OR: [{{waitingRoomId: "{SECOND}"}}, {{}}]}}]', {ROOM}),
        ("waitingRoomId: null, OR: [], AND: [{}]", {ROOM, SECOND}),
        ('waitingRoomId: "room-elsewhere"', set()),
    ],
)
def test_rooms_are_filtered_by_every_operator(rig: GraphqlRig, text: str, matching: set[str]) -> None:
    found = rig.groups(f'limit: 10, filter: {{datetime_geq: "2023-03-15T03:00:00Z", {text}}}', "{ dimensions { waitingRoomId } }")
    assert {row["dimensions"]["waitingRoomId"] for row in found} == matching


@pytest.mark.parametrize("name", [name for name, found in DIMENSIONS.items() if found.bucket_s])
@pytest.mark.parametrize("op", ["", "_neq", "_gt", "_lt", "_geq", "_leq", "_in", "_notin"])
def test_times_are_filtered_by_every_operator(rig: GraphqlRig, name: str, op: str) -> None:
    value = "2023-03-15" if name == "date" else "2023-03-15T04:00:00Z"
    text = f'["{value}"]' if op in ("_in", "_notin") else f'"{value}"'
    begin = 'datetime_gt: "2023-03-15T02:29:00Z"' if op == "_geq" else 'datetime_geq: "2023-03-15T02:30:00Z"'
    arguments = f"limit: 10, filter: {{{begin}, {name}{op}: {text}}}"
    if op == "_lt" and name == "date":
        arguments = arguments.replace("2023-03-15T02:30:00Z", "2023-03-14T02:30:00Z")
    ops = {"": "eq", "_neq": "neq", "_gt": "gt", "_lt": "lt", "_geq": "geq", "_leq": "leq", "_in": "in", "_notin": "notin"}
    start = seconds("2023-03-14T02:30:00Z" if "03-14" in arguments else "2023-03-15T02:30:00Z")
    condition = AllOf((DimensionFilter(name, ops[op], (seconds(value + "T00:00:00Z" if name == "date" else value),)),))
    expected = oracle(rig.parts, Question(start, 1 << 32, ROOMS, filter=condition))
    found = rig.groups(arguments, "{ count }")
    assert [row["count"] for row in found] == [row["", "count"] for row in expected]


@pytest.mark.parametrize(
    "token",
    [
        "max_totalActiveUsers_DESC",
        "avg_totalQueuedUsers_ASC",
        "sum_newUsersPerMinute_DESC",
        "avgWeighted_timeOnOriginP50_ASC",
        "count_DESC",
    ],
)
def test_rows_are_ordered_by_any_metric_and_ties_by_the_next_token(rig: GraphqlRig, token: str) -> None:
    aggregate, _, rest = token.partition("_")
    name = rest.rpartition("_")[0]
    selection = "count" if aggregate == "count" else f"{aggregate} {{ {name} }} count"
    arguments = f'limit: 1000, filter: {{datetime_geq: "2023-03-15T02:30:00Z"}}, orderBy: [{token}, datetimeFiveMinutes_DESC]'
    found = rig.groups(arguments, f"{{ {selection} dimensions {{ datetimeFiveMinutes }} }}")
    values = [row["count"] if aggregate == "count" else row[aggregate][name] for row in found]
    assert values == sorted(values, reverse=token.endswith("DESC"))
    times = [row["dimensions"]["datetimeFiveMinutes"] for row in found]
    for place in range(1, len(found)):
        if values[place] == values[place - 1] and aggregate == "count":
            assert times[place] < times[place - 1]
    assert len(set(values)) > 1


def test_the_limit_cuts_what_the_order_puts_last(rig: GraphqlRig) -> None:
    arguments = 'limit: {}, filter: {{datetime_geq: "2023-03-15T02:30:00Z"}}, orderBy: [max_totalActiveUsers_DESC, datetimeMinute_ASC]'
    many = rig.groups(arguments.format(50), "{ max { totalActiveUsers } dimensions { datetimeMinute } }")
    assert rig.groups(arguments.format(7), "{ max { totalActiveUsers } dimensions { datetimeMinute } }") == many[:7]


def test_order_by_a_dimension_that_is_not_selected(rig: GraphqlRig) -> None:
    found = rig.groups(
        'limit: 5, filter: {datetime_geq: "2023-03-15T02:30:00Z"}, orderBy: [datetimeHour_DESC]', "{ dimensions { waitingRoomId } count }"
    )
    assert {row["dimensions"]["waitingRoomId"] for row in found} == ROOMS


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
    assert {"count", "dimensions_datetimeHour", "sum_newUsersPerMinute", "avgWeighted_totalTimeWaitedP90"} <= set(
        settings["availableFields"]
    )
    assert len(found["accounts"]) == 1


def test_zones_come_in_the_order_of_their_tags_and_only_those_of_the_token(rig: GraphqlRig) -> None:
    assert [zone["zoneTag"] for zone in rig.data("{ viewer { zones { zoneTag } } }")["viewer"]["zones"]] == [ZONE, OTHER_ZONE]
    assert [z["zoneTag"] for z in rig.data('{ viewer { zones(filter: {zoneTag_gt: "f"}) { zoneTag } } }')["viewer"]["zones"]] == [
        OTHER_ZONE
    ]
    narrow = rig.make_token("narrow", "analytics", zones=(OTHER_ZONE,))
    body = rig.post("{ viewer { zones { zoneTag } } }", token=narrow).json()
    assert [zone["zoneTag"] for zone in body["data"]["viewer"]["zones"]] == [OTHER_ZONE]
    assert rig.error('{ viewer { zones(filter: {zoneTag: "example-zone"}) { zoneTag } } }', token=narrow)["extensions"]["code"] == "authz"


def test_introspection_gives_a_schema_that_the_published_queries_are_valid_in(rig: GraphqlRig) -> None:
    schema = build_client_schema(rig.data(get_introspection_query()))
    assert validate(schema, parse(ARTICLE)) == []
    assert validate(schema, parse(DECLARED + PER_HOUR)) == []
    assert {"string", "uint64", "Time", "Date"} <= schema.type_map.keys()
    for name in ("max", "avg", "min", "sum", "avgWeighted"):
        fields = schema.type_map[f"ZoneWaitingRoomAnalyticsAdaptiveGroups{name[0].upper()}{name[1:]}"].fields  # type: ignore[attr-defined]
        assert fields.keys() == {metric.name for metric in METRICS.values() if name in metric.aggregates}


# -- errors -----------------------------------------------------------------------------------------------------------------------


def dataset(arguments: str, selection: str = "{ count }") -> str:
    return f'{{ viewer {{ zones(filter: {{zoneTag: "{ZONE}"}}) {{ waitingRoomAnalyticsAdaptiveGroups({arguments}) {selection} }} }} }}'


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (dataset('limit: 1, filter: {datetime_geq: "2022-01-01T00:00:00Z"}'), "cannot request data older than 2678400s"),
        (
            dataset('limit: 1, filter: {datetime_geq: "2023-03-14T00:00:00Z", datetime_lt: "2023-05-14T00:00:00Z"}'),
            "time range is too large",
        ),
        (dataset("limit: 10001"), "limit must be from 1 to the page size of 10000, not 10001"),
        (dataset("limit: 0"), "limit must be from 1"),
        (dataset('limit: 1, filter: {datetime_geq: "yesterday"}'), "must be a time such as"),
        (dataset("limit: 1, filter: {nonsense: 1}"), "unknown field 'nonsense'"),
        (dataset("limit: 1", "{ max }"), "must have a selection of subfields"),
        (dataset("limit: 1", "{ count { x } }"), "must not have a selection"),
        (dataset("filter: {}"), "of type 'uint64!' is required"),
        (dataset("limit: 1, orderBy: [percentile_totalTimeWaitedP50_ASC]"), "cannot be ordered by a percentile"),
        (dataset(f"limit: 1, filter: {{waitingRoomId_in: [{','.join(['1'] * 5)}]}}"), "must be a string"),
        ('{ viewer { zones(filter: {zoneTag: "nowhere"}) { zoneTag } } }', "is not authorized"),
        ('{ viewer { zones(filter: {zoneTag: "a", zoneTag_gt: "b"}) { zoneTag } } }', "takes one condition"),
        ("{ nonsense }", "Cannot query field 'nonsense'"),
        ("{ viewer { zones { zoneTag }", "Syntax Error"),
        ("mutation { viewer { __typename } }", "only queries are answered"),
        ("query a { viewer { __typename } } query b { viewer { __typename } }", "operationName must say"),
        ("", "Syntax Error"),
        ("{ viewer { ...x } } fragment x on viewer { ...x }", "contains itself"),
        ("{ viewer " + "{ zones " * (DEPTH_MAX + 2) + "{ zoneTag" + " }" * (DEPTH_MAX + 4), "deeper than"),
        ("{ " + "viewer { __typename } " * (SAME_NAME_MAX + 1) + "}", "of the same name"),
        ("{ " + "__typename " * 6_000 + "}", "more than 5000 tokens"),
        (
            "{ viewer { __typename } }" + "".join(f" fragment f{n} on viewer {{ __typename }}" for n in range(FRAGMENTS_MAX + 1)),
            "fragments",
        ),
        ("{ " + " ".join(f"a{n}: viewer {{ zones {{ zoneTag }} }}" for n in range(400)) + " }", "more than 1000 fields"),
        ("query ($a: Int) { viewer { zones(filter: {zoneTag: $b}) { zoneTag } } }", "$b is not declared"),
    ],
)
def test_what_cannot_be_answered_is_said_in_the_published_shape(rig: GraphqlRig, query: str, message: str) -> None:
    error = rig.error(query, {})
    assert message in error["message"]
    assert error["extensions"]["timestamp"].endswith("Z")


def test_an_error_names_the_path_with_the_index_as_text(rig: GraphqlRig) -> None:
    error = rig.error(dataset('limit: 1, filter: {datetime_geq: "2022-01-01T00:00:00Z"}'))
    assert error["path"] == ["viewer", "zones", "0", "waitingRoomAnalyticsAdaptiveGroups"]


def test_one_dataset_that_fails_makes_the_whole_answer_fail(rig: GraphqlRig) -> None:
    good = 'a: waitingRoomAnalyticsAdaptiveGroups(limit: 1, filter: {datetime_geq: "2023-03-15T03:00:00Z"}) { count }'
    bad = good.replace("a:", "b:").replace("limit: 1", "limit: 99999")
    assert "page size" in rig.error(f'{{ viewer {{ zones(filter: {{zoneTag: "{ZONE}"}}) {{ {good} {bad} }} }} }}')["message"]


def test_more_zones_than_a_query_may_have(rig: GraphqlRig) -> None:
    from greenroom.model.change import Put
    from greenroom.model.zone import Zone

    extra = [Put(Zone(id=f"extra-{n}", name=f"n{n}.example")) for n in range(9)]
    rig.store.write(extra, expected=rig.store.read().revision, author="test", now_ms=1)
    assert "at most 10 zones" in rig.error("{ viewer { zones { zoneTag } } }")["message"]
    assert len(rig.data('{ viewer { zones(filter: {zoneTag_gt: "extra"}) { zoneTag } } }')["viewer"]["zones"]) == 10


def test_a_token_without_the_scope_and_a_request_without_a_token(rig: GraphqlRig) -> None:
    reader = rig.make_token("reader", "read")
    assert rig.error("{ viewer { zones { zoneTag } } }", token=reader)["extensions"]["code"] == "authz"
    answer = rig.post("{ viewer { zones { zoneTag } } }", token="")
    assert (answer.status_code, answer.json()["data"]) == (401, None)
    assert answer.json()["errors"][0]["message"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"query": 1}', b'{"query": "{a}", "variables": []}', b'{"query": "{a}", "operationName": 1}', b"\xff"]
)
def test_a_body_that_is_no_query_is_a_bad_request(rig: GraphqlRig, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {rig.token}"}
    answer = rig._runner.run(rig._client.request("POST", "/graphql", content=body, headers=headers))
    assert answer.status_code == 400
    assert answer.json()["data"] is None
    assert answer.json()["errors"][0]["message"]


def test_a_token_that_asks_too_often_is_told_when_to_come_again(rig: GraphqlRig) -> None:
    for _ in range(CALLS_MAX):
        last = rig.post("{ __typename }")
    assert last.status_code == 200
    refused = rig.post("{ __typename }")
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= CALLS_MS // 1_000
    assert "5 minutes" in refused.json()["errors"][0]["message"]
    assert rig.post("{ __typename }", token=rig.make_token("another", "analytics")).status_code == 200
    rig.clock.at_ms += CALLS_MS
    assert rig.post("{ __typename }").status_code == 200


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [("abc", "abc", True), ("abc", "a%", True), ("abc", "%c", True), ("abc", "%b%", True), ("abc", "%", True), ("", "%", True), ("abc", "ab", False),
     ("aa", "aa%aa", False), ("aaa", "a%a%a%a", False), ("abcabc", "a%c%c", True), ("a.c", "a%b", False), ("x" * 50_000, "%x" * 500 + "y", False)],
)  # fmt: skip
def test_a_pattern_with_percent_signs(text: str, pattern: str, matches: bool) -> None:
    assert like(text, pattern) is matches


def test_the_rig_has_minutes_on_both_sides_of_what_is_rolled_up(rig: GraphqlRig) -> None:
    assert rig.keeper.tables_state().hours_to_s == seconds("2023-03-15T05:00:00Z")
    assert FIRST * 60 < seconds("2023-03-15T03:00:00Z") < (FIRST + MINUTES) * 60
