"""Every route of the management API, asked with no token, a wrong one, one that may too little, and
one for another zone.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from api_in_process import ApiInProcess, api_in

from greenroom.api.management import ROUTES, api_document
from greenroom.configuration.store import SqlStore
from greenroom.model.account import FAILED, SCOPES
from greenroom.model.zone import ACCOUNT_ID
from greenroom.request.forwarded import network_of
from greenroom.web.authenticator import (
    FAILURES_MAX,
    FAILURES_MS,
    GRANTS,
    Authenticator,
    Credentials,
)
from greenroom.web.dependencies import permission_of
from greenroom.web.refusals import Refused
from greenroom.web.routing import ApiRoute

CLIENT = "127.0.0.1"
"""Where the client of `ApiInProcess` asks from."""

OPEN = ["/openapi.json", "/preview/{preview_id}"]
"""What needs no token: the one says nothing about an installation, the other cannot be guessed."""

ANSWERS_DIFFERENTLY = ["/graphql", "/graphql"]
"""POST asks for a token with the scope `analytics`, and says so in the shape of GraphQL
(test_graphql_queries.py); GET leads a browser to the explorer, which asks for a sign-in."""

every_route = pytest.mark.parametrize(
    "route", ROUTES, ids=lambda route: f"{min(route.methods)} {route.path}"
)


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator[ApiInProcess]:
    with api_in(tmp_path_factory.mktemp("authorisation")) as api:
        yield api


@pytest.fixture(scope="module")
def ids(api) -> dict[str, str]:
    """One of everything, with the names that paths give them."""
    zone = api.make("/zones", {"name": "example.com"})["id"]
    other = api.make("/zones", {"name": "example.org"})["id"]
    limits = {"new_users_per_minute": 200, "total_active_users": 200}
    room = api.make(f"/zones/{zone}/waiting_rooms", {"name": "a", "host": "example.com", **limits})[
        "id"
    ]
    times = {"event_start_time": "2030-01-01T00:00:00Z", "event_end_time": "2030-01-02T00:00:00Z"}
    event = api.make(f"/zones/{zone}/waiting_rooms/{room}/events", {"name": "a", **times})["id"]
    rules = api.make(
        f"/zones/{zone}/waiting_rooms/{room}/rules",
        {"action": "bypass_waiting_room", "expression": "ssl"},
    )
    named = api.make(f"/accounts/{ACCOUNT_ID}/rules/lists", {"name": "a", "kind": "ip"})["id"]
    operation = api.make(f"/accounts/{ACCOUNT_ID}/rules/lists/{named}/items", [{"ip": "10.0.0.1"}])[
        "operation_id"
    ]
    alerting = f"/accounts/{ACCOUNT_ID}/alerting/v3"
    mechanisms = {"email": [{"id": "ops@example.com"}]}
    policy = api.make(
        f"{alerting}/policies",
        {"name": "a", "alert_type": "greenroom_event", "mechanisms": mechanisms},
    )["id"]
    webhook = api.make(
        f"{alerting}/destinations/webhooks", {"name": "a", "url": "https://hooks.example.com/a"}
    )["id"]
    service = api.make(f"{alerting}/destinations/pagerduty", {"name": "a", "routing_key": "R0"})[
        "id"
    ]
    api.ask("POST", f"{alerting}/silences", [{"policy_id": policy}])
    item = api.ask("GET", f"/accounts/{ACCOUNT_ID}/rules/lists/{named}/items").json()["result"][0][
        "id"
    ]
    return {
        "zone_id": zone,
        "other_zone": other,
        "account_id": ACCOUNT_ID,
        "waiting_room_id": room,
        "event_id": event,
        "kind": "rule",
        "record_id": "none",
        "rule_id": rules[0]["id"],
        "healthcheck_id": api.make(
            f"/zones/{zone}/healthchecks", {"name": "a", "address": "a.example.com"}
        )["id"],
        "preview_id": api.make(
            f"/zones/{zone}/healthchecks/preview", {"name": "a", "address": "a.example.com"}
        )["id"],
        "agent_name": "an-agent",
        "data_center": "nyc",
        "list_id": named,
        "item_id": item,
        "operation_id": operation,
        "operation": "hold",
        "policy_id": policy,
        "webhook_id": webhook,
        "service_id": service,
        "silence_id": api.ask("GET", f"{alerting}/silences").json()["result"][0]["id"],
        "token_id": "0" * 32,
        "page_id": api.make(f"/accounts/{ACCOUNT_ID}/status_pages", {"path": "/a"})["id"],
        "note_id": api.make(f"/accounts/{ACCOUNT_ID}/incident_notes", {"text": "a"})["id"],
    }


@pytest.fixture(scope="module")
def tokens(api, ids) -> dict[str, str]:
    made = {scope: api.make_token(f"only {scope}", scope) for scope in SCOPES}
    made["zone"] = api.make_token("this zone", "edit", "analytics", zones=(ids["zone_id"],))
    made["other"] = api.make_token("other zone", "edit", "analytics", zones=(ids["other_zone"],))
    made["late"] = api.make_token("late", "edit", expires_ms=api.clock.at_ms)
    return made


@pytest.fixture
def ask(api, ids) -> Any:
    """Asks a route with a token and an empty object; failures of a minute ago are forgotten first."""

    def ask(route: ApiRoute, token: str) -> tuple[int, list[int]]:
        api.clock.at_ms += FAILURES_MS
        response = api.ask(min(route.methods), route.path.format(**ids), {}, token=token)
        return response.status_code, [error["code"] for error in response.json()["errors"]]

    return ask


@every_route
def test_no_client_gets_in_without_a_token(route, ask) -> None:
    assert ask(route, "") == (401, [9106])


@every_route
def test_no_client_gets_in_with_a_wrong_token_or_one_that_is_over(route, ask, tokens) -> None:
    assert ask(route, "grt_" + "x" * 43) == (401, [10000])
    assert ask(route, tokens["read"] + "x") == (401, [10000])
    assert ask(route, tokens["late"]) == (401, [10000])


@every_route
def test_a_token_may_only_do_what_its_scopes_say(route, ask, tokens) -> None:
    allowed = GRANTS[permission_of(route).scope]
    for scope in sorted(set(SCOPES) - set(allowed)):
        assert ask(route, tokens[scope]) == (403, [10000])


OTHER_SCOPES = {
    "GET /zones/{zone_id}/healthchecks/{healthcheck_id}/events": "analytics",
    "GET /zones/{zone_id}/healthchecks/{healthcheck_id}/figures": "analytics",
    "PUT /accounts/{account_id}/probe_agents/{agent_name}": "probe",
    "DELETE /accounts/{account_id}/probe_agents/{agent_name}": "probe",
    "GET /user/tokens/verify": "any",
}


@every_route
def test_what_changes_something_asks_for_more_than_reading(route) -> None:
    usual = "read" if min(route.methods) == "GET" else "edit"
    assert permission_of(route).scope == OTHER_SCOPES.get(
        f"{min(route.methods)} {route.path}", usual
    )


ABOUT_THE_CALLER = ("/user/tokens/verify", "/accounts", "/accounts/{account_id}")
"""What clients ask before anything else: whether their token is good, and the one account there is.
They tell nothing of a zone.
"""


@every_route
def test_a_token_for_another_zone_reaches_neither_this_one_nor_the_account(
    route, api, ask, ids, tokens
) -> None:
    if route.path in ABOUT_THE_CALLER:
        assert ask(route, tokens["other"])[0] == 200
    elif permission_of(route).filtered:
        result = api.ask("GET", route.path.format(**ids), token=tokens["other"]).json()["result"]
        assert [entry["id"] for entry in result] == (
            [ids["other_zone"]] if route.path == "/zones" else []
        )
    else:
        assert ask(route, tokens["other"]) == (403, [10000])


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if min(route.methods) != "DELETE"],
    ids=lambda route: route.path,
)
def test_a_token_for_a_zone_reaches_that_zone_and_not_the_account(route, ask, tokens) -> None:
    status, codes = ask(route, tokens["zone"])
    inside = "{zone_id}" in route.path or permission_of(route).filtered
    assert (status, codes) == (403, [10000]) if not inside else status in (200, 400)


def test_a_token_for_a_zone_can_take_a_room_of_it_away(api, ids, tokens) -> None:
    room = {
        "name": "gone",
        "host": "gone.example.com",
        "new_users_per_minute": 200,
        "total_active_users": 200,
    }
    made = api.make(f"/zones/{ids['zone_id']}/waiting_rooms", room)["id"]
    assert (
        api.ask(
            "DELETE", f"/zones/{ids['zone_id']}/waiting_rooms/{made}", token=tokens["other"]
        ).status_code
        == 403
    )
    assert (
        api.ask(
            "DELETE", f"/zones/{ids['zone_id']}/waiting_rooms/{made}", token=tokens["zone"]
        ).status_code
        == 200
    )


def test_a_room_cannot_be_reached_through_another_zone(api, ids, tokens) -> None:
    """The token is good for the zone of the path, and the room is not in it."""
    path = f"/zones/{ids['other_zone']}/waiting_rooms/{ids['waiting_room_id']}"
    for method, document in (("GET", None), ("PATCH", {"suspended": True}), ("DELETE", None)):
        assert api.ask(method, path, document, token=tokens["other"]).status_code == 404


def test_every_route_of_the_application_is_walked(api) -> None:
    described = {
        (method.upper(), path)
        for path, methods in api_document()["paths"].items()
        for method in methods
    }
    assert described == {(method, route.path) for route in ROUTES for method in route.methods}
    assert sorted(route.path for route in api.routes if not isinstance(route, ApiRoute)) == sorted(
        [*OPEN, *ANSWERS_DIFFERENTLY]
    )


def test_requests_without_a_token_are_no_guesses(api) -> None:
    api.clock.at_ms += FAILURES_MS
    assert {api.ask("GET", "/zones", token="").status_code for _ in range(FAILURES_MAX + 5)} == {
        401
    }
    assert api.ask("GET", "/zones").status_code == 200
    assert [api.ask("GET", "/zones", token="grt_no").status_code for _ in range(FAILURES_MAX + 1)][
        -1
    ] == 429
    assert api.ask("GET", "/zones", token="").status_code == 401, "which says nothing about tokens"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::1", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_a_network_of_ipv6_addresses_is_one_guesser_and_its_neighbours_are_others(
    one: str, other: str, same: bool
) -> None:
    assert (network_of(one) == network_of(other)) is same


def test_all_processes_of_a_store_count_wrong_tokens_together_and_known_good_ones_write_nothing(
    api,
) -> None:
    api.clock.at_ms += FAILURES_MS
    store = SqlStore(api.store.name)
    beside = Authenticator(store, api.clock, store.sessions)
    for number in range(FAILURES_MAX):
        if number % 2:
            assert api.ask("GET", "/zones", token="grt_no").status_code == 401
        else:
            with pytest.raises(Refused, match="unknown or has expired"):
                beside.open(Credentials("grt_no"), CLIENT)
    refused = api.ask("GET", "/zones")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, str(FAILURES_MS // 1000))
    with pytest.raises(Refused, match="too many wrong credentials"):
        beside.open(Credentials(api.token), CLIENT)
    api.clock.at_ms += FAILURES_MS
    assert api.ask("GET", "/zones").status_code == 200
    assert beside.open(Credentials(api.token), CLIENT)  # the first time here: reserved, taken back
    assert api.ask("GET", "/zones", token="grt_no").status_code == 401
    failed = api.store.sessions.rows(FAILED)
    assert api.ask("GET", "/zones").status_code == 200
    assert beside.open(Credentials(api.token), CLIENT).token.name == "everything"
    assert api.store.sessions.rows(FAILED) == failed != []
    store.close()


def test_a_client_who_guesses_often_has_to_wait_a_minute_and_then_is_served_again(
    api, tokens
) -> None:
    api.clock.at_ms += FAILURES_MS
    statuses = [
        api.ask("GET", "/zones", token="grt_no").status_code for _ in range(FAILURES_MAX + 2)
    ]
    assert statuses == [401] * FAILURES_MAX + [429] * 2
    assert api.ask("GET", "/zones").status_code == 429
    api.clock.at_ms += FAILURES_MS
    assert api.ask("GET", "/zones").status_code == 200


@pytest.fixture(scope="module")
def nested(api) -> dict[str, str]:
    """Two zones, one within the other, so that their rooms can be in each other's way: `secret` is
    in the outer one.
    """
    outer, inner = (
        api.make("/zones", {"name": name})["id"]
        for name in ("nested.example", "inner.nested.example")
    )
    api.make(f"/zones/{outer}/waiting_rooms", overlapping("secret", "/a", "/b"))
    return {"nested.example": outer, "inner.nested.example": inner}


def overlapping(name: str, path: str, other_path: str) -> dict[str, Any]:
    """A room whose cookie is valid for the whole host."""
    host = "inner.nested.example"
    limits = {"new_users_per_minute": 200, "total_active_users": 200}
    more = [{"host": host, "path": other_path}]
    return {
        "name": name,
        "host": host,
        "path": path,
        "additional_routes": more,
        "cookie_suffix": "s",
        **limits,
    }


@pytest.mark.parametrize(
    ("sees", "named"),
    [
        ((), "waiting room secret of the zone nested.example"),
        (
            ("nested.example", "inner.nested.example"),
            "waiting room secret of the zone nested.example",
        ),
        (("inner.nested.example",), "a waiting room of another zone"),
    ],
)
@pytest.mark.parametrize("paths", [("/a", "/c"), ("/c", "/d")], ids=["route", "cookie"])
def test_a_refusal_names_the_room_of_another_zone_only_to_those_who_may_see_it(
    api, nested, sees, named, paths
) -> None:
    token = api.make_token(
        f"{len(sees)} {paths}"[:10] + paths[0][1:],
        "edit",
        zones=tuple(nested[name] for name in sees),
    )
    rooms = f"/zones/{nested['inner.nested.example']}/waiting_rooms"
    made = api.make(rooms, overlapping("free", "/e", "/f") | {"cookie_suffix": "f"})["id"]
    document = overlapping("wanted", *paths)
    try:
        for method, path in (
            ("POST", rooms),
            ("PUT", f"{rooms}/{made}"),
            ("PATCH", f"{rooms}/{made}"),
        ):
            (error,) = api.ask(method, path, document, token=token).json()["errors"]
            assert f" {named}" in error["message"]
            assert ("secret" in error["message"]) is (named != "a waiting room of another zone")
    finally:
        api.ask("DELETE", f"{rooms}/{made}")


def test_a_refusal_names_the_room_of_the_same_zone(api, nested) -> None:
    rooms = f"/zones/{nested['nested.example']}/waiting_rooms"
    (error,) = api.ask(
        "POST", rooms, overlapping("wanted", "/a", "/c") | {"cookie_suffix": "t"}
    ).json()["errors"]
    assert error["message"].endswith("already belongs to waiting room secret")
