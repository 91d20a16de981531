"""GraphQL that cannot be answered: every refusal has the published shape and says why, and no query
costs more than its limits.
"""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest
from graphql_rig import ZONE, GraphqlRig

from greenroom.analytics.graphql import endpoint
from greenroom.analytics.graphql.endpoint import CALLS_MAX, CALLS_MS, WAITING_MAX
from greenroom.analytics.graphql.lenient import (
    DEPTH_MAX,
    FRAGMENTS_MAX,
    SAME_NAME_MAX,
    VALUES_MAX,
)


def dataset(arguments: str, selection: str = "{ count }") -> str:
    return f'{{ viewer {{ zones(filter: {{zoneTag: "{ZONE}"}}) {{ waitingRoomAnalyticsAdaptiveGroups({arguments}) {selection} }} }} }}'


@pytest.mark.parametrize(
    ("query", "message"),
    [
        *[
            (
                dataset(f'limit: 1, filter: {{datetime_geq: "{begin}"}}'),
                "cannot request data older than 2678400s",
            )
            for begin in ("2022-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z")
        ],
        (
            dataset('limit: 1, filter: {datetime_geq: "1970-01-01T00:00:00Z"}').replace(
                "waitingRoomAnalytics", "healthCheckEvents"
            ),
            "cannot request data older than 2678400s",
        ),
        (
            dataset(
                'limit: 1, filter: {datetime_geq: "2023-03-14T00:00:00Z", datetime_lt: "2023-05-14T00:00:00Z"}'
            ),
            "time range is too large",
        ),
        (dataset("limit: 10001"), "limit must be from 1 to the page size of 10000, not 10001"),
        (dataset("limit: 0"), "limit must be from 1"),
        (dataset('limit: 1, filter: {datetime_geq: "yesterday"}'), "must be a time such as"),
        (dataset("limit: 1, filter: {nonsense: 1}"), "unknown field 'nonsense'"),
        (dataset("limit: 1", "{ max }"), "must have a selection of subfields"),
        (dataset("limit: 1", "{ count { x } }"), "must not have a selection"),
        (dataset("filter: {}"), "of type 'uint64!' is required"),
        (
            dataset("limit: 1, orderBy: [percentile_totalTimeWaitedP50_ASC]"),
            "cannot be ordered by a percentile",
        ),
        (
            dataset(f"limit: 1, filter: {{waitingRoomId_in: [{','.join(['1'] * 5)}]}}"),
            "must be a string",
        ),
        ('{ viewer { zones(filter: {zoneTag: "nowhere"}) { zoneTag } } }', "is not authorized"),
        (
            '{ viewer { accounts(filter: {accountTag_in: ["nowhere"]}) { accountTag } } }',
            "account 'nowhere' is not authorized",
        ),
        (
            '{ viewer { zones(filter: {zoneTag: "a", zoneTag_gt: "b"}) { zoneTag } } }',
            "takes one condition",
        ),
        ("{ nonsense }", "Cannot query field 'nonsense'"),
        ("{ viewer { zones { zoneTag }", "Syntax Error"),
        ("mutation { viewer { __typename } }", "only queries are answered"),
        (
            "query a { viewer { __typename } } query b { viewer { __typename } }",
            "operationName must say",
        ),
        ("", "Syntax Error"),
        ("{ viewer { ...x } } fragment x on viewer { ...x }", "contains itself"),
        (
            "{ viewer " + "{ zones " * (DEPTH_MAX + 2) + "{ zoneTag" + " }" * (DEPTH_MAX + 4),
            "deeper than",
        ),
        ("{ " + "viewer { __typename } " * (SAME_NAME_MAX + 1) + "}", "of the same name"),
        ("{ " + "... { viewer { __typename } } " * (SAME_NAME_MAX + 1) + "}", "of the same name"),
        (
            "{ "
            + "...x " * (SAME_NAME_MAX + 1)
            + "} fragment x on Query { viewer { __typename } }",
            "of the same name",
        ),
        ("{ " + "__typename " * 6_000 + "}", "more than 5000 tokens"),
        (
            "{ viewer { __typename } }"
            + "".join(
                f" fragment f{n} on viewer {{ __typename }}" for n in range(FRAGMENTS_MAX + 1)
            ),
            "fragments",
        ),
        (
            "{ " + " ".join(f"a{n}: viewer {{ zones {{ zoneTag }} }}" for n in range(400)) + " }",
            "more than 1000 fields",
        ),
        (
            "query ($a: Int) { viewer { zones(filter: {zoneTag: $b}) { zoneTag } } }",
            "$b is not declared",
        ),
    ],
)
def test_what_cannot_be_answered_is_said_in_the_published_shape(
    rig: GraphqlRig, query: str, message: str
) -> None:
    error = rig.error(query, {})
    assert message in error["message"]
    assert error["extensions"]["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    ("value", "times"),
    [({"zoneTag_in": ["x"] * VALUES_MAX}, 1), ({"AND": [{"zoneTag": "x"}] * (VALUES_MAX // 4)}, 3)],
    ids=["long", "used often"],
)
def test_values_of_variables_are_limited_where_they_are_used(
    rig: GraphqlRig, value: dict[str, Any], times: int
) -> None:
    zones = " ".join(f"a{number}: zones(filter: $f) {{ zoneTag }}" for number in range(times))
    assert (
        f"more than {VALUES_MAX} values"
        in rig.error(f"query ($f: X) {{ viewer {{ {zones} }} }}", {"f": value})["message"]
    )


def test_an_error_names_the_path_with_the_index_as_text(rig: GraphqlRig) -> None:
    error = rig.error(dataset('limit: 1, filter: {datetime_geq: "2022-01-01T00:00:00Z"}'))
    assert error["path"] == ["viewer", "zones", "0", "waitingRoomAnalyticsAdaptiveGroups"]


def test_one_dataset_that_fails_makes_the_whole_answer_fail(rig: GraphqlRig) -> None:
    good = 'a: waitingRoomAnalyticsAdaptiveGroups(limit: 1, filter: {datetime_geq: "2023-03-15T03:00:00Z"}) { count }'
    bad = good.replace("a:", "b:").replace("limit: 1", "limit: 99999")
    assert (
        "page size"
        in rig.error(f'{{ viewer {{ zones(filter: {{zoneTag: "{ZONE}"}}) {{ {good} {bad} }} }} }}')[
            "message"
        ]
    )


def test_more_zones_than_a_query_may_have(rig: GraphqlRig) -> None:
    from greenroom.model.change import Put
    from greenroom.model.zone import Zone

    extra = [Put(Zone(id=f"extra-{n}", name=f"n{n}.example")) for n in range(9)]
    rig.store.write(extra, expected=rig.store.read().revision, author="test", now_ms=1)
    assert "at most 10 zones" in rig.error("{ viewer { zones { zoneTag } } }")["message"]
    assert (
        len(
            rig.data('{ viewer { zones(filter: {zoneTag_gt: "extra"}) { zoneTag } } }')["viewer"][
                "zones"
            ]
        )
        == 10
    )


def test_a_token_without_the_scope_and_a_request_without_a_token(rig: GraphqlRig) -> None:
    reader = rig.make_token("reader", "read")
    assert (
        rig.error("{ viewer { zones { zoneTag } } }", token=reader)["extensions"]["code"] == "authz"
    )
    answer = rig.post("{ viewer { zones { zoneTag } } }", token="")
    assert (answer.status_code, answer.json()["data"]) == (401, None)
    assert answer.json()["errors"][0]["message"]


def test_more_queries_at_once_than_may_wait_are_told_to_come_again_and_the_others_are_answered(
    rig: GraphqlRig,
) -> None:
    headers, body = (
        {"Authorization": f"Bearer {rig.token}"},
        b'{"query": "{ viewer { zones { zoneTag } } }"}',
    )

    async def everyone() -> list[httpx.Response]:
        asked = (
            rig._client.request("POST", "/graphql", content=body, headers=headers)
            for _ in range(WAITING_MAX * 2)
        )
        return await asyncio.gather(*asked)

    answers = rig._runner.run(everyone())
    found = Counter(answer.status_code for answer in answers)
    assert set(found) == {200, 429}
    assert found[200] >= WAITING_MAX
    assert {answer.headers["retry-after"] for answer in answers if answer.status_code == 429} == {
        "1"
    }
    assert rig.post("{ __typename }").status_code == 200, "afterwards as before"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"query": 1}',
        b'{"query": "{a}", "variables": []}',
        b'{"query": "{a}", "operationName": 1}',
        b"\xff",
    ],
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
    assert (
        rig.post("{ __typename }", token=rig.make_token("another", "analytics")).status_code == 200
    )
    rig.clock.at_ms += CALLS_MS
    assert rig.post("{ __typename }").status_code == 200


def test_a_query_that_takes_too_long_is_refused(
    rig: GraphqlRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "ANSWER_S", 0.0)
    assert "the query takes too long" in rig.error(dataset("limit: 1"))["message"]
