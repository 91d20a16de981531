"""The management API as plain HTTP: envelope, limits, pages, what is refused and how, and what the
log may know.
"""

import itertools
import json

import pytest
from api_rig import ACCOUNT, Api, create_token

NUMBERS = itertools.count()
LIMITS = {"new_users_per_minute": 200, "total_active_users": 300}


@pytest.fixture(scope="module")
def running(shared_greenroom):
    return shared_greenroom.room(
        "http://127.0.0.1:9", 1000, 1000, "--host", "elsewhere.example.org"
    )


@pytest.fixture(scope="module")
def api(shared_greenroom, running) -> Api:
    return Api(running.control, create_token(shared_greenroom.data, "http", "--scope", "edit"))


@pytest.fixture
def zone(api) -> dict:
    return api.ask("POST", "/zones", {"name": f"http{next(NUMBERS)}.example.com"}).result


def test_a_success_has_the_published_envelope(api, zone) -> None:
    reply = api.ask("GET", f"/zones/{zone['id']}")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")
    assert list(reply.body) == ["success", "errors", "messages", "result"]
    assert (reply.body["success"], reply.body["errors"], reply.body["messages"]) == (True, [], [])


def test_a_list_says_which_page_it_is(api, zone) -> None:
    for name in "abcdefg":
        api.ask(
            "POST",
            f"/zones/{zone['id']}/waiting_rooms",
            {"name": name, "host": zone["name"], "path": f"/{name}", **LIMITS},
        )
    first = api.ask("GET", f"/zones/{zone['id']}/waiting_rooms?per_page=5")
    assert first.body["result_info"] == {
        "page": 1,
        "per_page": 5,
        "count": 5,
        "total_count": 7,
        "total_pages": 2,
    }
    second = api.ask("GET", f"/zones/{zone['id']}/waiting_rooms?per_page=5&page=2")
    assert [room["name"] for room in first.result + second.result] == list("abcdefg")
    third = api.ask("GET", f"/zones/{zone['id']}/waiting_rooms?per_page=5&page=3")
    assert (third.status, third.result, third.body["result_info"]["count"]) == (200, [], 0)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("account.name=contains:ROOM", True),
        ("account.name=contains_case_sensitive:ROOM", False),
        ("account.name=not_equal:greenroom", False),
        ("account.name=Greenroom", True),
        ("account.name=", False),
        ("type=full,partial", True),
        ("type=partial&type=full", True),
        ("type=partial,internal", False),
    ],
)
def test_every_published_spelling_of_a_zone_filter_is_read(api, zone, query, found) -> None:
    reply = api.ask("GET", f"/zones?per_page=1000&{query}")
    assert (zone["id"] in [each["id"] for each in reply.result]) is found


@pytest.mark.parametrize("query", ["type=full,none", "type=none&type=full", "status=none"])
def test_a_choice_that_cannot_be_is_refused_with_all_that_can(api, query) -> None:
    (error,) = api.ask("GET", f"/zones?{query}").body["errors"]
    choices = "full, partial, secondary, internal"
    if query.startswith("status"):
        choices = "initializing, pending, active, moved"
    assert error["message"].startswith(f"{query.partition('=')[0]}: must be one of {choices}, not ")


@pytest.mark.parametrize(
    "query",
    ["page=0", "page=-1", "page=x", "per_page=0", "per_page=7", "per_page=1005", "per_page=1e3"],
)
def test_a_page_that_cannot_be_is_refused(api, query) -> None:
    reply = api.ask("GET", f"/zones?{query}")
    assert (reply.status, reply.codes, reply.body["success"], reply.body["result"]) == (
        400,
        [28013],
        False,
        None,
    )


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, 28001),
        (b"{", 400, 28001),
        (b"[]", 400, 28001),
        (b"null", 400, 28001),
        (b'"\xff"', 400, 28001),
        (b'{"name": "\\ud800"}', 400, 28001),
        *(
            (b"[" * deep + rb'"\u0000"' + b"]" * deep, 400, 28001)
            for deep in (100, 500, 600, 700, 800, 900, 5_000)
        ),
        *(
            (b'{"name": ' * deep + rb'"\\u0000"' + b"}" * deep, 400, 28001)
            for deep in (600, 700, 800, 900, 5_000)
        ),
        (b'{"name": "a\\u0000b"}', 400, 28001),
        (b"[" * 100_000, 400, 28001),
        (b'{"name": NaN}', 400, 28001),
        (b'"' + b"x" * (8 << 20) + b'"', 413, 28002),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else str(value),
)
def test_a_body_that_cannot_be_read_is_refused(api, body, status, code) -> None:
    reply = api.ask("POST", "/zones", body=body)
    assert (reply.status, reply.codes) == (status, [code])


UPLOAD = b'{"query": "' + b"x" * (16 << 20) + b'"}'


@pytest.mark.parametrize(
    ("path", "headers", "status", "reason"),
    [
        ("/graphql", {}, 413, "the body is larger than 1048576 bytes"),
        ("/zones", {}, 413, "the body is larger than 8388608 bytes"),
        ("/zones", {"Authorization": "Bearer of-nothing"}, 401, "Authentication"),
        ("/nothing", {}, 404, "Could not route"),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_a_client_that_sends_far_too_much_is_told_so(
    api, path, headers, status, reason, chunked, connection
) -> None:
    body = itertools.repeat(UPLOAD[: 1 << 20], 16) if chunked else UPLOAD
    sent = {"Authorization": f"Bearer {api.token}", "Connection": connection, **headers}
    reply = api.ask("POST", path, body=body, headers=sent)
    assert reply.headers["Connection"] == "close"
    assert reply.status == status
    assert reply.body["errors"][0]["message"].startswith(reason)


def test_an_unknown_field_is_refused_with_the_one_that_was_meant(api, zone) -> None:
    document = {"name": "a", "host": zone["name"], "sesion_duration": 5, **LIMITS}
    reply = api.ask("POST", f"/zones/{zone['id']}/waiting_rooms", document)
    assert (reply.codes, reply.pointers) == ([28012], {"/sesion_duration"})
    assert "did you mean session_duration?" in reply.body["errors"][0]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status", "codes"),
    [
        ("GET", "/nothing", 404, [7003, 7000]),
        ("GET", "/zones/nothing", 404, [7003]),
        ("GET", "/zones/", 404, [7003, 7000]),
        ("POST", "/accounts/other/rules/lists", 404, [7003]),
        ("PUT", "/zones", 405, [7001]),
        ("DELETE", f"/accounts/{ACCOUNT}/waiting_rooms", 405, [7001]),
    ],
)
def test_what_is_not_there_is_said_in_the_envelope(api, method, path, status, codes) -> None:
    reply = api.ask(method, path)
    assert (reply.status, reply.codes) == (status, codes)
    assert (status == 405) is ("Allow" in reply.headers)


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_a_room_event_or_rule_that_is_not_there_has_the_code_of_the_original(
    api, zone, method
) -> None:
    rooms = f"/zones/{zone['id']}/waiting_rooms"
    room = api.ask("POST", rooms, {"name": "a", "host": zone["name"], **LIMITS}).result["id"]
    paths = [f"{rooms}/{ACCOUNT}", f"{rooms}/{room}/events/{ACCOUNT}"]
    if method != "GET":
        paths.append(f"{rooms}/{room}/rules/{ACCOUNT}")
    body = {} if method == "PATCH" else None
    found = [api.ask(method, path, body) for path in paths]
    assert [(reply.status, reply.codes) for reply in found] == [(404, [1001])] * len(paths)


def test_an_invalid_value_has_the_code_of_the_original(api, zone) -> None:
    limits = {"new_users_per_minute": 301, "total_active_users": 300}
    room = {"name": "a", "host": zone["name"], **limits}
    reply = api.ask("POST", f"/zones/{zone['id']}/waiting_rooms", room)
    assert (reply.status, reply.codes) == (400, [1002])


def test_a_method_that_is_not_there_names_all_that_are(api, zone) -> None:
    rooms = f"/zones/{zone['id']}/waiting_rooms"
    there = {
        "/zones": "GET, POST",
        f"/zones/{zone['id']}": "DELETE, GET, PATCH",
        f"{rooms}/settings": "GET, PATCH, PUT",
        f"{rooms}/preview": "POST",
        f"{rooms}/some": "DELETE, GET, PATCH, PUT",
        "/openapi.json": "GET, HEAD",
    }
    assert {path: api.ask("OPTIONS", path).headers["Allow"] for path in there} == there


def test_literal_segments_are_no_ids(api, zone) -> None:
    assert api.ask("GET", f"/zones/{zone['id']}/waiting_rooms/settings").result == {
        "search_engine_crawler_bypass": False
    }
    assert api.ask("GET", f"/zones/{zone['id']}/waiting_rooms/preview").status == 404


def test_every_answer_has_an_id_and_keeps_the_one_it_was_given(api) -> None:
    given = api.ask(
        "GET",
        "/zones",
        headers={"Authorization": f"Bearer {api.token}", "X-Request-ID": "deploy-17"},
    )
    assert given.headers["X-Request-ID"] == "deploy-17"
    other = api.ask("GET", "/nothing", headers={"X-Request-ID": "no\tgood"})
    assert len(other.headers["CF-Ray"]) == 16
    assert other.headers["X-Request-ID"] == other.headers["CF-Ray"]
    assert given.headers["Cache-Control"] == "no-store"


def test_the_openapi_document_needs_no_token(api) -> None:
    reply = api.ask("GET", "/openapi.json", headers={})
    assert reply.status == 200
    assert reply.body["openapi"].startswith("3.1")
    assert reply.body["servers"] == [{"url": "/client/v4"}]


WIDE = {
    "everybody": ["0.0.0.0/0"],
    "everybody in version 6": ["::/0"],
    "a /7": ["2001:db8::/32", "10.0.0.0/7"],
    "two of /8": ["10.0.0.0/8", "11.0.0.0/8"],
    "a /8 and an address": ["10.0.0.0/8", "192.0.2.1"],
    "everybody in parts": [f"{first}.0.0.0/8" for first in range(256)],
}


@pytest.mark.parametrize("networks", WIDE.values(), ids=WIDE)
def test_a_zone_cannot_trust_more_than_a_network_of_8(api, zone, networks: list[str]) -> None:
    trusts = {"greenroom": {"trusted_proxies": networks}}
    refused = api.ask("PATCH", f"/zones/{zone['id']}", trusts)
    assert (refused.status, refused.pointers) == (400, {"/greenroom/trusted_proxies"})
    text = str(refused.body["errors"])
    assert f"must be at most a network of /8, as one or in parts, not {networks[0]}" in text


def test_a_zone_may_trust_a_network_of_8_in_parts(api, zone) -> None:
    halves = {"greenroom": {"trusted_proxies": ["10.0.0.0/9", "10.128.0.0/9", "10.1.0.0/16"]}}
    assert api.ask("PATCH", f"/zones/{zone['id']}", halves).result


def test_a_client_who_keeps_guessing_has_to_wait_and_nothing_secret_is_logged(greenroom) -> None:
    running = greenroom.room("http://127.0.0.1:9", 1000, 1000)
    token = create_token(greenroom.data, "one", "--scope", "edit")
    api = Api(running.control, token)
    zone = api.ask("POST", "/zones", {"name": "secret-page.example.com"}).result
    api.ask("POST", f"/zones/{zone['id']}/waiting_rooms/preview", {"custom_html": "very private"})
    guesses = [
        api.ask("GET", "/zones", headers={"Authorization": f"Bearer grt_guess{number}"})
        for number in range(25)
    ]
    assert [guess.status for guess in guesses] == [401] * 20 + [429] * 5
    assert 0 < int(guesses[-1].headers["Retry-After"]) <= 60
    assert guesses[-1].headers["X-Should-Retry"] == "false"
    assert api.ask("GET", "/zones").status == 429
    running.stop()
    assert "POST" in running.output
    assert token not in running.output
    assert "grt_guess" not in running.output
    assert "very private" not in running.output
    assert json.dumps(zone) not in running.output


def test_a_token_made_or_revoked_beside_a_running_server_counts_at_once(
    greenroom, shared_greenroom, running
) -> None:
    token = create_token(shared_greenroom.data, "short-lived")
    api = Api(running.control, token)
    assert api.ask("GET", "/zones").status == 200
    revoked = shared_greenroom.run(
        "token", "revoke", "short-lived", "--data", str(shared_greenroom.data)
    )
    assert revoked.end() == 0
    assert api.ask("GET", "/zones").status == 401
