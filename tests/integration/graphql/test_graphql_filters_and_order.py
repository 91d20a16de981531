"""Filters, order, limits and types of variables in GraphQL: every operator gives the rows that it
should.
"""

import pytest
from analytics_material import oracle
from graphql_rig import ROOM, ROOMS, SECOND, ZONE, GraphqlRig, seconds, truth

from greenroom.analytics.graphql.datasets import like
from greenroom.analytics.metrics import DIMENSIONS
from greenroom.analytics.question import AllOf, DimensionFilter, Question


@pytest.mark.parametrize(
    "declared", ["string", "String", "String!", "string!", "ID", "Nonsense!", "[String!]"]
)
@pytest.mark.parametrize("time", ["Time", "Time!", "String", "DateTime"])
def test_a_variable_may_be_declared_by_any_type_if_its_value_fits(
    rig: GraphqlRig, declared: str, time: str
) -> None:
    query = f"""query ($z: {declared}, $a: {time}, $n: Int!, $o: [Foo!], $rooms: [{declared.strip("[]!")}!], $unused: uint64!) {{ viewer {{ zones(filter: {{zoneTag: $z}}) {{
      found: waitingRoomAnalyticsAdaptiveGroups(limit: $n, filter: {{datetime_geq: $a, waitingRoomId_in: $rooms, datetime_lt: $missing}}, orderBy: $o) {{ count }} }} }} }}"""
    query = query.replace("$unused: uint64!", "$unused: uint64!, $missing: Time")
    variables = {
        "z": ZONE,
        "a": "2023-03-15T03:00:00Z",
        "n": 3,
        "o": ["count_DESC"],
        "rooms": [ROOM],
    }
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
        (
            f'AND: [{{waitingRoomId: "{ROOM}"}}, {{OR: [{{waitingRoomId: "{SECOND}"}}, {{}}]}}]',
            {ROOM},
        ),
        ("waitingRoomId: null, OR: [], AND: [{}]", {ROOM, SECOND}),
        ('waitingRoomId: "room-elsewhere"', set()),
    ],
)
def test_rooms_are_filtered_by_every_operator(
    rig: GraphqlRig, text: str, matching: set[str]
) -> None:
    found = rig.groups(
        f'limit: 10, filter: {{datetime_geq: "2023-03-15T03:00:00Z", {text}}}',
        "{ dimensions { waitingRoomId } }",
    )
    assert {row["dimensions"]["waitingRoomId"] for row in found} == matching


@pytest.mark.parametrize("name", [name for name, found in DIMENSIONS.items() if found.bucket_s])
@pytest.mark.parametrize("op", ["", "_neq", "_gt", "_lt", "_geq", "_leq", "_in", "_notin"])
def test_times_are_filtered_by_every_operator(rig: GraphqlRig, name: str, op: str) -> None:
    value = "2023-03-15" if name == "date" else "2023-03-15T04:00:00Z"
    text = f'["{value}"]' if op in ("_in", "_notin") else f'"{value}"'
    begin = (
        'datetime_gt: "2023-03-15T02:29:00Z"'
        if op == "_geq"
        else 'datetime_geq: "2023-03-15T02:30:00Z"'
    )
    arguments = f"limit: 10, filter: {{{begin}, {name}{op}: {text}}}"
    if op == "_lt" and name == "date":
        arguments = arguments.replace("2023-03-15T02:30:00Z", "2023-03-14T02:30:00Z")
    ops = {
        "": "eq",
        "_neq": "neq",
        "_gt": "gt",
        "_lt": "lt",
        "_geq": "geq",
        "_leq": "leq",
        "_in": "in",
        "_notin": "notin",
    }
    start = seconds("2023-03-14T02:30:00Z" if "03-14" in arguments else "2023-03-15T02:30:00Z")
    condition = AllOf(
        (
            DimensionFilter(
                name, ops[op], (seconds(value + "T00:00:00Z" if name == "date" else value),)
            ),
        )
    )
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
def test_rows_are_ordered_by_any_metric_and_ties_by_the_next_token(
    rig: GraphqlRig, token: str
) -> None:
    aggregate, _, rest = token.partition("_")
    name = rest.rpartition("_")[0]
    selection = "count" if aggregate == "count" else f"{aggregate} {{ {name} }} count"
    # The first five minutes are not whole, so that counts differ.
    arguments = f'limit: 1000, filter: {{datetime_geq: "2023-03-15T02:32:00Z"}}, orderBy: [{token}, datetimeFiveMinutes_DESC]'
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
    many = rig.groups(
        arguments.format(50), "{ max { totalActiveUsers } dimensions { datetimeMinute } }"
    )
    assert (
        rig.groups(
            arguments.format(7), "{ max { totalActiveUsers } dimensions { datetimeMinute } }"
        )
        == many[:7]
    )


def test_order_by_a_dimension_that_is_not_selected(rig: GraphqlRig) -> None:
    found = rig.groups(
        'limit: 5, filter: {datetime_geq: "2023-03-15T02:30:00Z"}, orderBy: [datetimeHour_DESC]',
        "{ dimensions { waitingRoomId } count }",
    )
    assert {row["dimensions"]["waitingRoomId"] for row in found} == ROOMS


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [("abc", "abc", True), ("abc", "a%", True), ("abc", "%c", True), ("abc", "%b%", True), ("abc", "%", True), ("", "%", True), ("abc", "ab", False),
     ("aa", "aa%aa", False), ("aaa", "a%a%a%a", False), ("abcabc", "a%c%c", True), ("a.c", "a%b", False), ("x" * 50_000, "%x" * 500 + "y", False)],
)  # fmt: skip
def test_a_pattern_with_percent_signs(text: str, pattern: str, matches: bool) -> None:
    assert like(text, pattern) is matches


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        (
            'datetime_geq: "2023-03-15T03:00:00.001Z", datetime_leq: "2023-03-15T03:09:59.999Z"',
            "03:01",
            "03:09",
        ),
        (
            'datetime_gt: "2023-03-15T02:59:59.999Z", datetime_lt: "2023-03-15T03:09:59.999Z"',
            "03:00",
            "03:09",
        ),
        (
            'datetimeFiveMinutes_gt: "2023-03-15T02:59:59.5Z", datetimeFiveMinutes_leq: "2023-03-15T03:04:59.5Z"',
            "03:00",
            "03:04",
        ),
    ],
)
def test_a_range_that_ends_in_a_fraction_of_a_second_has_the_minutes_that_begin_in_it(
    rig: GraphqlRig, text: str, first: str, last: str
) -> None:
    found = rig.groups(
        f"limit: 100, filter: {{{text}}}, orderBy: [datetimeMinute_ASC]",
        "{ dimensions { datetimeMinute } }",
    )
    minutes = [row["dimensions"]["datetimeMinute"][11:16] for row in found]
    assert (minutes[0], minutes[-1]) == (first, last)
