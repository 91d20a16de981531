"""What cannot be a zone or a room: every fault at once, each with its code and a pointer to its
field.
"""

import pytest
from config_service_in_memory import DeskInMemory

from greenroom.configuration import events, rooms, zones
from greenroom.errors import Problem
from greenroom.model.room import TEMPLATE_MAX
from greenroom.web.pages.forms import Faults, document_of, field_view
from greenroom.web.refusals import CODES, Code, Refused

ROOM = {
    "name": "shop",
    "host": "shop.example.com",
    "new_users_per_minute": 200,
    "total_active_users": 300,
}
REQUIRED = ("name", "host", "new_users_per_minute", "total_active_users")


def no_origin_is_wrong(_pointer: str, _url: str) -> list[Problem]:
    return []


@pytest.fixture
def config_service() -> DeskInMemory:
    return DeskInMemory()


@pytest.fixture
def zone(config_service) -> str:
    return config_service.do(zones.create({"name": "example.com"}, no_origin_is_wrong))["id"]


def invalid(*pointers: str) -> list[tuple[str, str]]:
    return sorted(("INVALID", pointer) for pointer in pointers)


ALONE = [
    ({"name": ""}, invalid("/name")),
    ({"name": "a b"}, invalid("/name")),
    ({"name": "caf\u00e9"}, invalid("/name")),
    ({"name": 5}, invalid("/name")),
    ({"host": "https://shop.example.com"}, invalid("/host")),
    ({"host": "shop.example.com:443"}, invalid("/host")),
    ({"host": "*.example.org"}, [("OUTSIDE", "/host")]),
    ({"host": "a.*.example.com"}, invalid("/host")),
    ({"host": "*"}, invalid("/host")),
    ({"host": "shop.example.org"}, [("OUTSIDE", "/host")]),
    ({"host": "badexample.com"}, [("OUTSIDE", "/host")]),
    ({"path": "/a*"}, invalid("/path")),
    ({"path": "/a?b=c"}, invalid("/path")),
    ({"path": "a"}, invalid("/path")),
    ({"path": "/a%2fb"}, invalid("/path")),
    ({"path": "/a%zz"}, invalid("/path")),
    ({"new_users_per_minute": 199}, invalid("/new_users_per_minute")),
    (
        {"total_active_users": 199, "new_users_per_minute": 199},
        invalid("/new_users_per_minute", "/total_active_users"),
    ),
    ({"total_active_users": 2**31}, invalid("/total_active_users")),
    ({"total_active_users": "300"}, invalid("/total_active_users")),
    ({"total_active_users": 300.5}, invalid("/total_active_users")),
    ({"total_active_users": True}, invalid("/total_active_users")),
    ({"new_users_per_minute": 301}, invalid("/new_users_per_minute")),
    ({"session_duration": 0}, invalid("/session_duration")),
    ({"session_duration": 31}, invalid("/session_duration")),
    ({"queueing_method": "lifo"}, invalid("/queueing_method")),
    ({"total_active_users": None}, invalid("/total_active_users")),
    ({"queueing_status_code": 503}, invalid("/queueing_status_code")),
    ({"default_template_language": "xx-XX"}, invalid("/default_template_language")),
    (
        {"turnstile_mode": "on", "turnstile_action": "block"},
        invalid("/turnstile_action", "/turnstile_mode"),
    ),
    (
        {"suspended": "yes", "queue_all": 1, "json_response_enabled": 0},
        invalid("/json_response_enabled", "/queue_all", "/suspended"),
    ),
    (
        {"cookie_attributes": {"samesite": "none", "secure": "never"}},
        invalid("/cookie_attributes/secure"),
    ),
    ({"cookie_attributes": {"samesite": "some"}}, invalid("/cookie_attributes/samesite")),
    ({"cookie_attributes": "lax"}, invalid("/cookie_attributes")),
    ({"cookie_suffix": "a;b"}, invalid("/cookie_suffix")),
    ({"additional_routes": [{"host": "www.example.com"}]}, [("REQUIRED", "/cookie_suffix")]),
    (
        {"additional_routes": [{"path": "/"}], "cookie_suffix": "x"},
        [("REQUIRED", "/additional_routes/0/host")],
    ),
    (
        {"additional_routes": [{"host": "x.org"}], "cookie_suffix": "x"},
        [("OUTSIDE", "/additional_routes/0/host")],
    ),
    (
        {"additional_routes": [{"host": "www.example.com", "path": "b"}], "cookie_suffix": "x"},
        invalid("/additional_routes/0/path"),
    ),
    (
        {"additional_routes": [{"host": "shop.example.com"}], "cookie_suffix": "x"},
        [("COVERED", "/additional_routes/0")],
    ),
    ({"additional_routes": {}}, invalid("/additional_routes")),
    ({"enabled_origin_commands": ["revoke", "stop"]}, invalid("/enabled_origin_commands")),
    ({"custom_page_html": "{{#waitTime}}"}, [("TEMPLATE", "/custom_page_html")]),
    ({"custom_page_html": "{{>header}}{{waitTime"}, [("TEMPLATE", "/custom_page_html")] * 2),
    ({"custom_page_html": "x" * (TEMPLATE_MAX + 1)}, invalid("/custom_page_html")),
    ({"custom_page_html": "\u00e9" * (TEMPLATE_MAX // 2 + 1)}, [("TEMPLATE", "/custom_page_html")]),
    ({"greenroom": {"refresh_max_seconds": 1}}, invalid("/greenroom/refresh_max_seconds")),
    ({"greenroom": {"refresh": 1}}, [("UNKNOWN_FIELD", "/greenroom/refresh")]),
    ({"greenroom": 1}, invalid("/greenroom")),
    ({"refresh_max_seconds": 20}, [("UNKNOWN_FIELD", "/refresh_max_seconds")]),
    (
        {"name": "a b", "session_duration": 99, "typo": 1},
        [("INVALID", "/name"), ("INVALID", "/session_duration"), ("UNKNOWN_FIELD", "/typo")],
    ),
]


@pytest.mark.parametrize(("fields", "wanted"), ALONE, ids=lambda value: str(value)[:60])
def test_a_room_is_refused(config_service, zone, fields, wanted) -> None:
    assert config_service.refusal(rooms.create(zone, {**ROOM, **fields})) == wanted


@pytest.mark.parametrize("name", REQUIRED)
def test_a_room_needs_what_is_required_when_it_is_made_or_replaced_but_not_when_it_is_edited(
    config_service, zone, name
) -> None:
    less = {key: value for key, value in ROOM.items() if key != name}
    assert config_service.refusal(rooms.create(zone, less)) == [("REQUIRED", f"/{name}")]
    room = config_service.do(rooms.create(zone, ROOM))
    assert config_service.refusal(rooms.change(zone, room["id"], less, whole=True)) == [
        ("REQUIRED", f"/{name}")
    ]
    assert config_service.do(rooms.change(zone, room["id"], less, whole=False)) | {
        "modified_on": 0
    } == room | {"modified_on": 0}


def test_exactly_200_is_enough_and_a_zone_may_ask_for_less(config_service, zone) -> None:
    small = {**ROOM, "new_users_per_minute": 5, "total_active_users": 5}
    assert (
        config_service.do(rooms.create(zone, {**ROOM, "total_active_users": 200}))[
            "total_active_users"
        ]
        == 200
    )
    other = {**small, "name": "small", "host": "small.example.com"}
    assert config_service.refusal(rooms.create(zone, other)) == invalid(
        "/new_users_per_minute", "/total_active_users"
    )
    config_service.do(zones.edit(zone, {"greenroom": {"limit_floor": 5}}, no_origin_is_wrong))
    assert config_service.do(rooms.create(zone, other))["total_active_users"] == 5


def test_a_zone_may_allow_longer_sessions(config_service, zone) -> None:
    assert config_service.refusal(rooms.create(zone, {**ROOM, "session_duration": 45})) == invalid(
        "/session_duration"
    )
    config_service.do(zones.edit(zone, {"greenroom": {"session_ceiling": 60}}, no_origin_is_wrong))
    assert (
        config_service.do(rooms.create(zone, {**ROOM, "session_duration": 45}))["session_duration"]
        == 45
    )


def test_capitals_of_a_queueing_method_do_not_matter(config_service, zone) -> None:
    assert (
        config_service.do(rooms.create(zone, {**ROOM, "queueing_method": "FIFO"}))[
            "queueing_method"
        ]
        == "fifo"
    )


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("WWW.Example.com", "www.example.com"),
        ("B\u00fccher.example.com", "xn--bcher-kva.example.com"),
        ("*.b\u00fccher.example.com", "*.xn--bcher-kva.example.com"),
    ],
)
def test_capitals_and_other_letters_of_a_host_do_not_matter(
    config_service, zone, sent: str, kept: str
) -> None:
    routes = {"cookie_suffix": "a", "additional_routes": [{"host": "a.example.com"}]}
    made = config_service.do(rooms.create(zone, {**ROOM, **routes, "host": sent}))
    assert made["host"] == kept
    moved = {"host": "shop.example.com", "additional_routes": [{"host": sent}]}
    edited = config_service.do(rooms.change(zone, made["id"], moved, whole=False))
    assert edited["additional_routes"] == [{"host": kept, "path": "/"}]
    again = {**ROOM, "name": "other", "host": sent, "cookie_suffix": "b"}
    assert config_service.refusal(rooms.create(zone, again)) == [("COVERED", "/host")]
    place = config_service.do(
        zones.create({"name": sent.removeprefix("*.").replace("com", "net")}, no_origin_is_wrong)
    )
    assert place["name"] == kept.removeprefix("*.").replace("com", "net")


@pytest.mark.parametrize("host", ["stra\u00dfe.example.com", "a\u200db.example.com", "\u00fc" * 64])
def test_a_host_that_browsers_and_dns_read_in_two_ways_is_refused(
    config_service, zone, host: str
) -> None:
    assert config_service.refusal(rooms.create(zone, {**ROOM, "host": host})) == invalid("/host")


def test_a_host_outside_the_zone_is_named_as_the_field_that_has_it(config_service, zone) -> None:
    wanted = {"host": "x.example.org", "additional_routes": [{"host": "*"}], "cookie_suffix": "a"}
    with pytest.raises(Refused) as refused:
        config_service.do(rooms.create(zone, {**ROOM, **wanted}))
    assert [fault.message.partition(": ")[0] for fault in refused.value.faults] == [
        "host",
        "additional_routes[0].host",
    ]


def test_a_host_and_path_belong_to_one_room_of_the_whole_installation(config_service, zone) -> None:
    below = config_service.do(zones.create({"name": "shop.example.com"}, no_origin_is_wrong))["id"]
    config_service.do(
        rooms.create(
            zone,
            {
                **ROOM,
                "path": "/Sale",
                "additional_routes": [{"host": "www.example.com"}],
                "cookie_suffix": "a",
            },
        )
    )
    other = {**ROOM, "name": "other"}
    assert config_service.refusal(rooms.create(below, {**other, "path": "/Sale/"})) == [
        ("COVERED", "/host")
    ]
    assert config_service.refusal(rooms.create(below, {**other, "path": "/%53ale"})) == [
        ("COVERED", "/host")
    ]
    assert config_service.refusal(rooms.create(zone, {**other, "host": "www.example.com"})) == [
        ("COVERED", "/host")
    ]
    assert config_service.refusal(
        rooms.create(
            below, {**other, "path": "/sale", "greenroom": {"case_insensitive_paths": True}}
        )
    ) == [("COVERED", "/host")]
    assert config_service.do(rooms.create(below, {**other, "path": "/sale"}))["path"] == "/sale"


def test_a_zone_that_ignores_case_is_refused_with_every_other_problem(config_service, zone) -> None:
    for name, routes in (("one", []), ("two", [{"host": ROOM["host"], "path": "/TWO"}])):
        config_service.do(
            rooms.create(
                zone,
                {**ROOM, "name": name, "path": f"/{name}", "additional_routes": routes}
                | {"cookie_suffix": name},
            )
        )
    wanted = {"case_insensitive_paths": True, "limit_floor": 0}
    with pytest.raises(Refused) as refused:
        config_service.do(zones.edit(zone, {"greenroom": wanted}, no_origin_is_wrong))
    assert {fault.pointer: fault.message for fault in refused.value.faults} == {
        "/greenroom/limit_floor": "greenroom.limit_floor: must be at least 1, not 0",
        "/greenroom/case_insensitive_paths": "greenroom.case_insensitive_paths: waiting room two:"
        " additional_routes[0]: shop.example.com/TWO already belongs to another route of this room",
    }


def test_names_and_cookie_suffixes_are_unique_in_a_zone(config_service, zone) -> None:
    config_service.do(rooms.create(zone, {**ROOM, "cookie_suffix": "a"}))
    twin = {**ROOM, "host": "other.example.com", "cookie_suffix": "a"}
    assert config_service.refusal(rooms.create(zone, twin)) == [
        ("TAKEN", "/cookie_suffix"),
        ("TAKEN", "/name"),
    ]
    other = config_service.do(zones.create({"name": "example.org"}, no_origin_is_wrong))["id"]
    assert config_service.do(rooms.create(other, {**twin, "host": "example.org"}))["name"] == "shop"


def test_a_room_is_no_obstacle_to_itself(config_service, zone) -> None:
    room = config_service.do(rooms.create(zone, {**ROOM, "cookie_suffix": "a"}))
    assert config_service.do(rooms.change(zone, room["id"], room, whole=True)) == room


def test_an_edit_merges_objects_and_replaces_everything_else(config_service, zone) -> None:
    routes = [{"host": "www.example.com", "path": "/"}, {"host": "example.com", "path": "/x"}]
    room = config_service.do(
        rooms.create(
            zone,
            {
                **ROOM,
                "cookie_attributes": {"samesite": "lax"},
                "additional_routes": routes,
                "cookie_suffix": "a",
            },
        )
    )
    edit = {
        "cookie_attributes": {"secure": "always"},
        "additional_routes": routes[:1],
        "greenroom": {"confirm_newcomers": True},
    }
    edited = config_service.do(rooms.change(zone, room["id"], edit, whole=False))
    assert edited["cookie_attributes"] == {"samesite": "lax", "secure": "always"}
    assert edited["additional_routes"] == routes[:1]
    assert edited["greenroom"] == room["greenroom"] | {"confirm_newcomers": True}


@pytest.mark.parametrize("value", [True, False, "auto"])
def test_newcomers_are_confirmed_always_never_or_when_it_helps(config_service, zone, value) -> None:
    assert config_service.do(rooms.create(zone, ROOM))["greenroom"]["confirm_newcomers"] == "auto"
    room = config_service.do(
        rooms.create(
            zone, {**ROOM, "name": "b", "path": "/b", "greenroom": {"confirm_newcomers": value}}
        )
    )
    assert room["greenroom"]["confirm_newcomers"] is value
    form = document_of(
        rooms.ROOM,
        ["confirm_newcomers"],
        {"confirm_newcomers": [field_view(rooms.ROOM, "confirm_newcomers", value, Faults()).value]},
    )
    assert form["greenroom"]["confirm_newcomers"] is value


@pytest.mark.parametrize("value", ["true", "maybe", 1, 0])
def test_other_values_are_refused_with_those_that_there_are(config_service, zone, value) -> None:
    with pytest.raises(Refused) as refused:
        config_service.do(rooms.create(zone, {**ROOM, "greenroom": {"confirm_newcomers": value}}))
    assert "must be one of false, true, auto" in str(refused.value.faults)


def test_what_only_the_server_may_say_is_not_looked_at(config_service, zone) -> None:
    room = config_service.do(
        rooms.create(
            zone,
            {
                **ROOM,
                "id": "mine",
                "created_on": 5,
                "next_event_start_time": "x",
                "greenroom": {"read_only": True},
            },
        )
    )
    assert room["id"] != "mine"
    assert room["greenroom"]["read_only"] is False


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, [("REQUIRED", "/name")]),
        ({"name": "Example.com"}, [("TAKEN", "/name")]),
        ({"name": "example.com"}, [("TAKEN", "/name")]),
        ({"name": "a.example.com", "type": "partial"}, invalid("/type")),
        ({"name": "a.example.com", "account": {"id": "other"}}, invalid("/account/id")),
        ({"name": "a.example.com", "paused": 1}, invalid("/paused")),
        (
            {"name": "a.example.com", "greenroom": {"limit_floor": 201}},
            invalid("/greenroom/limit_floor"),
        ),
        (
            {"name": "a.example.com", "greenroom": {"session_ceiling": 29}},
            invalid("/greenroom/session_ceiling"),
        ),
        (
            {"name": "a.example.com", "greenroom": {"trusted_proxies": ["10.0.0.0/8", "x"]}},
            invalid("/greenroom/trusted_proxies/1"),
        ),
        (
            {"name": "a.example.com", "greenroom": {"trusted_proxies": [{}]}},
            invalid("/greenroom/trusted_proxies/0"),
        ),
        ({"name": "a.example.com", "origin": "http://127.0.0.1"}, [("UNKNOWN_FIELD", "/origin")]),
    ],
    ids=str,
)
def test_a_zone_is_refused(config_service, zone, fields, wanted) -> None:
    assert config_service.refusal(zones.create(fields, no_origin_is_wrong)) == wanted


def test_the_name_of_a_zone_stays(config_service, zone) -> None:
    assert config_service.refusal(
        zones.edit(zone, {"name": "example.org"}, no_origin_is_wrong)
    ) == invalid("/name")


def test_a_wrong_origin_is_said_where_it_stands(config_service, zone) -> None:
    def always_wrong(pointer: str, _url: str) -> list[Problem]:
        return [Problem(pointer, "is wrong")]

    assert config_service.refusal(
        zones.edit(zone, {"greenroom": {"origin": "x"}}, always_wrong)
    ) == invalid("/greenroom/origin")


def test_settings_take_truth_values_only(config_service, zone) -> None:
    for value in (0, 1, "true"):
        plan = zones.change_settings(zone, {"search_engine_crawler_bypass": value}, whole=False)
        assert config_service.refusal(plan) == invalid("/search_engine_crawler_bypass")
    assert config_service.do(
        zones.change_settings(zone, {"search_engine_crawler_bypass": True}, whole=True)
    ) == {"search_engine_crawler_bypass": True}
    assert config_service.do(zones.change_settings(zone, {}, whole=False)) == {
        "search_engine_crawler_bypass": True
    }
    assert config_service.do(zones.change_settings(zone, {}, whole=True)) == {
        "search_engine_crawler_bypass": False
    }


def test_every_code_has_a_meaning_and_a_status_that_clients_do_not_take_for_success() -> None:
    assert set(CODES) == set(Code)
    assert all(
        int(code) >= 1000 and 400 <= meaning.status < 600 and meaning.text
        for code, meaning in CODES.items()
    )


def test_a_draw_beside_a_line_table_is_said_with_everything_else(config_service, zone) -> None:
    first = config_service.do(rooms.create(zone, ROOM))["id"]
    drawn = {
        "name": "sale",
        "event_start_time": "2030-01-01T10:00:00Z",
        "event_end_time": "2030-01-01T12:00:00Z",
        "queueing_method": "random",
    }
    config_service.do(events.create(zone, first, drawn))
    wrong = {"description": 5, "greenroom": {"line_table": True}}
    with pytest.raises(Refused) as caught:
        config_service.do(rooms.change(zone, first, wrong, whole=False))
    found = {fault.pointer for fault in caught.value.faults}
    assert found == {"/description", "/greenroom/line_table"}
