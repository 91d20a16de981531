"""What cannot be an event, a rule or a list: every fault at once, each with its code and a pointer
to its field.
"""

import pytest
from config_service_in_memory import DeskInMemory

from greenroom.configuration import (
    events,
    list_items,
    lists,
    rooms,
    rules,
    zones,
)
from greenroom.configuration.list_items import Catalogue, Operations
from greenroom.model.rule import RULES_MAX
from greenroom.web.refusals import Refused

ROOM = {
    "name": "shop",
    "host": "shop.example.com",
    "new_users_per_minute": 200,
    "total_active_users": 300,
}
EVENT = {
    "name": "sale",
    "event_start_time": "2030-01-01T11:00:00Z",
    "event_end_time": "2030-01-01T12:00:00Z",
}
RULE = {"action": "bypass_waiting_room", "expression": "ssl"}
TIMES = ("event_start_time", "event_end_time", "prequeue_start_time")


@pytest.fixture
def config_service() -> DeskInMemory:
    return DeskInMemory()


@pytest.fixture
def room(config_service) -> tuple[str, str]:
    zone = config_service.do(zones.create({"name": "example.com"}, lambda _pointer, _url: []))["id"]
    return zone, config_service.do(rooms.create(zone, ROOM))["id"]


def invalid(*names: str) -> list[tuple[str, str]]:
    return sorted(("INVALID", f"/{name}") for name in names)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"name": "a b"}, invalid("name")),
        ({"event_end_time": "2030-01-01T11:00:59Z"}, invalid("event_end_time")),
        ({"prequeue_start_time": "2030-01-01T10:55:01Z"}, invalid("prequeue_start_time")),
        ({"shuffle_at_event_start": True}, invalid("shuffle_at_event_start")),
        ({"new_users_per_minute": 200}, [("INVALID", "/total_active_users")]),
        ({"total_active_users": 200}, [("INVALID", "/new_users_per_minute")]),
        (
            {"total_active_users": 200, "new_users_per_minute": 201},
            invalid("new_users_per_minute"),
        ),
        (
            {"total_active_users": 199, "new_users_per_minute": 199},
            invalid("new_users_per_minute", "total_active_users"),
        ),
        ({"session_duration": 31}, invalid("session_duration")),
        ({"queueing_method": "lifo"}, invalid("queueing_method")),
        ({"custom_page_html": "{{/a}}"}, [("TEMPLATE", "/custom_page_html")]),
        ({"suspended": 1}, invalid("suspended")),
        ({"queue_all": True}, [("UNKNOWN_FIELD", "/queue_all")]),
        (
            {"name": "x y", "event_end_time": "2030-01-01T11:00:00Z", "session_duration": 0},
            invalid("event_end_time", "name", "session_duration"),
        ),
    ],
    ids=str,
)
def test_an_event_is_refused(config_service, room, fields, wanted) -> None:
    assert config_service.refusal(events.create(*room, {**EVENT, **fields})) == wanted


@pytest.mark.parametrize(
    "time",
    [
        "2030-01-01",
        "2030-01-01T11:00:00",
        "2030-01-01 11:00:00Z",
        "tomorrow",
        "",
        5,
        True,
        "2030-02-30T00:00:00Z",
    ],
)
@pytest.mark.parametrize("name", TIMES)
def test_a_time_must_be_a_moment(config_service, room, name, time) -> None:
    assert ("INVALID", f"/{name}") in config_service.refusal(
        events.create(*room, {**EVENT, name: time})
    )


@pytest.mark.parametrize("name", ["name", "event_start_time", "event_end_time"])
def test_an_event_needs_its_name_and_times(config_service, room, name) -> None:
    assert config_service.refusal(
        events.create(*room, {key: value for key, value in EVENT.items() if key != name})
    ) == [("REQUIRED", f"/{name}")]


@pytest.mark.parametrize(
    "times",
    [
        ("2021-09-28T15:30:00.000Z", "2021-09-28T17:00:00.5Z", "2021-09-28T15:00:00.123456Z"),
        ("2021-09-28T15:30:00+02:00", "2021-09-28T17:00:00z", None),
        ("1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", None),
    ],
)
def test_times_come_back_as_they_were_written_also_after_an_edit(
    config_service, room, times
) -> None:
    written = dict(zip(TIMES, times, strict=True))
    made = config_service.do(events.create(*room, {"name": "e", **written}))
    edited = config_service.do(events.change(*room, made["id"], {"description": "x"}, whole=False))
    assert {name: edited[name] for name in TIMES} == {name: made[name] for name in TIMES} == written


def test_events_of_a_room_do_not_overlap_share_a_name_or_become_six(config_service, room) -> None:
    config_service.do(events.create(*room, EVENT))
    assert config_service.refusal(events.create(*room, EVENT)) == [
        ("EVENTS_OVERLAP", "/event_start_time"),
        ("TAKEN", "/name"),
    ]
    early = {
        "name": "x",
        "prequeue_start_time": "2030-01-01T11:59:59Z",
        "event_start_time": "2030-01-01T13:00:00Z",
    }
    assert config_service.refusal(
        events.create(*room, {**EVENT, **early, "event_end_time": "2030-01-01T14:00:00Z"})
    ) == [("EVENTS_OVERLAP", "/event_start_time")]
    for day in range(2, 6):
        at = {
            "event_start_time": f"2030-01-0{day}T11:00:00Z",
            "event_end_time": f"2030-01-0{day}T12:00:00Z",
        }
        config_service.do(events.create(*room, {"name": f"e{day}", **at}))
    sixth = {
        "name": "e6",
        "event_start_time": "2031-01-01T11:00:00Z",
        "event_end_time": "2031-01-01T12:00:00Z",
    }
    assert config_service.refusal(events.create(*room, sixth)) == [("TOO_MANY", "")]


def test_what_an_event_shares_with_others_is_told_beside_its_own_faults(
    config_service, room
) -> None:
    config_service.do(events.create(*room, EVENT))
    assert config_service.refusal(
        events.create(*room, {**EVENT, "session_duration": 31, "shuffle_at_event_start": True})
    ) == sorted(
        [
            ("EVENTS_OVERLAP", "/event_start_time"),
            ("TAKEN", "/name"),
            *invalid("session_duration", "shuffle_at_event_start"),
        ]
    )


def test_an_event_is_no_obstacle_to_itself(config_service, room) -> None:
    made = config_service.do(events.create(*room, EVENT))
    assert config_service.do(events.change(*room, made["id"], made, whole=True)) == made


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"action": None}, invalid("action")),
        ({"action": "block"}, invalid("action")),
        ({"expression": ""}, invalid("expression")),
        ({"expression": "x" * 4097}, invalid("expression")),
        ({"expression": "http.host eq"}, [("EXPRESSION", "/expression")]),
        ({"expression": "no.such.field"}, [("EXPRESSION", "/expression")]),
        ({"expression": "ip.src in $nobody"}, [("EXPRESSION", "/expression")]),
        ({"expression": "ip.src eq 5"}, [("EXPRESSION", "/expression")]),
        ({"descripton": ""}, [("UNKNOWN_FIELD", "/descripton")]),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_rule_is_refused_alone_and_among_others(config_service, room, fields, wanted) -> None:
    assert config_service.refusal(rules.append(*room, {**RULE, **fields})) == wanted
    among = [(code, f"/1{pointer}") for code, pointer in wanted]
    assert config_service.refusal(rules.replace_all(*room, [RULE, {**RULE, **fields}])) == among


def test_a_rule_needs_action_and_expression_when_it_is_made_but_not_when_it_is_edited(
    config_service, room
) -> None:
    assert config_service.refusal(rules.append(*room, {})) == [
        ("REQUIRED", "/action"),
        ("REQUIRED", "/expression"),
    ]
    (made,) = config_service.do(rules.append(*room, RULE))
    (edited,) = config_service.do(rules.edit(*room, made["id"], {"description": "x"}))
    assert (edited["version"], edited["expression"]) == ("2", "ssl")
    (same,) = config_service.do(rules.edit(*room, made["id"], {"description": "x"}))
    assert same == edited


@pytest.mark.parametrize(
    "position",
    [
        {},
        {"index": 1, "before": ""},
        {"index": -1},
        {"index": "1"},
        {"index": True},
        {"before": "x"},
        {"after": 1},
        [],
        "first",
        {"index": None},
    ],
)
def test_a_place_that_is_not_one_is_refused_together_with_what_else_is_wrong(
    config_service, room, position
) -> None:
    (made,) = config_service.do(rules.append(*room, RULE))
    found = config_service.refusal(
        rules.edit(*room, made["id"], {"expression": "?", "position": position})
    )
    assert [code for code, _ in found] == ["EXPRESSION", "INVALID"]
    assert found[1][1].startswith("/position")


def test_a_rule_far_behind_the_last_place_becomes_the_last(config_service, room) -> None:
    config_service.do(rules.append(*room, RULE))
    first, _ = config_service.do(rules.append(*room, {**RULE, "expression": "not ssl"}))
    assert [
        rule["id"]
        for rule in config_service.do(rules.edit(*room, first["id"], {"position": {"index": 99}}))
    ][-1] == first["id"]


def test_a_room_has_a_limited_number_of_rules(config_service, room) -> None:
    config_service.do(rules.replace_all(*room, [RULE] * RULES_MAX))
    assert config_service.refusal(rules.append(*room, RULE)) == [("TOO_MANY", "")]
    assert config_service.refusal(rules.replace_all(*room, [RULE] * (RULES_MAX + 1))) == [
        ("TOO_MANY", "")
    ]


@pytest.mark.parametrize("body", [{}, None, "x", [1], [None]])
def test_rules_are_written_again_as_a_list_of_objects(config_service, room, body) -> None:
    with pytest.raises(Refused):
        config_service.do(rules.replace_all(*room, body))


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"kind": "ip"}, [("REQUIRED", "/name")]),
        ({"name": "a"}, [("REQUIRED", "/kind")]),
        ({"name": "a", "kind": "redirect"}, invalid("kind")),
        ({"name": "a-b", "kind": "ip"}, invalid("name")),
        ({"name": "x" * 51, "kind": "ip"}, invalid("name")),
        ({"name": "taken", "kind": "ip"}, [("TAKEN", "/name")]),
        ({"name": "a", "kind": "ip", "description": "x" * 501}, invalid("description")),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_list_is_refused(config_service, fields, wanted) -> None:
    config_service.do(lists.create({"name": "taken", "kind": "asn"}))
    assert config_service.refusal(lists.create(fields)) == wanted


def test_name_and_kind_of_a_list_stay(config_service) -> None:
    made = config_service.do(lists.create({"name": "a", "kind": "ip"}))
    assert config_service.refusal(lists.edit(made["id"], {"name": "b", "kind": "asn"})) == invalid(
        "kind", "name"
    )
    assert config_service.do(lists.edit(made["id"], {"description": "x"}))["description"] == "x"


@pytest.mark.parametrize(
    ("kind", "item", "pointer"),
    [
        ("ip", {}, "/0"),
        ("ip", {"asn": 1}, "/0"),
        ("ip", {"ip": "10.0.0.1", "asn": 1}, "/0"),
        ("ip", {"ip": "10.0.0.0/1"}, "/0/ip"),
        ("ip", {"ip": "10.0.0.1..10.0.0.9"}, "/0/ip"),
        ("ip", {"ip": "::/3"}, "/0/ip"),
        ("ip", {"ip": 5}, "/0/ip"),
        ("ip", {"ip": "10.0.0.1", "comment": "x" * 501}, "/0/comment"),
        ("asn", {"asn": "5"}, "/0/asn"),
        ("asn", {"asn": -1}, "/0/asn"),
        ("asn", {"asn": 2**32}, "/0/asn"),
        ("asn", {"asn": True}, "/0/asn"),
        ("hostname", {"hostname": "example.com"}, "/0/hostname"),
        ("hostname", {"hostname": {}}, "/0/hostname/url_hostname"),
        ("hostname", {"hostname": {"url_hostname": "https://x"}}, "/0/hostname/url_hostname"),
        (
            "hostname",
            {"hostname": {"url_hostname": "*.x.org", "exclude_exact_hostname": False}},
            "/0/hostname/url_hostname",
        ),
        ("ip", "10.0.0.1", "/0"),
    ],
    ids=str,
)
def test_an_item_is_refused(config_service, kind, item, pointer) -> None:
    made = config_service.do(lists.create({"name": "a", "kind": kind}))
    found = config_service.refusal(list_items.add(made["id"], [item], Operations(), whole=False))
    assert [where for _, where in found] == [pointer]


def test_items_can_only_be_taken_out_of_the_list_they_are_in(config_service) -> None:
    made, done = config_service.do(lists.create({"name": "a", "kind": "ip"})), Operations()
    assert config_service.refusal(
        list_items.remove(made["id"], {"items": [{"id": "x"}]}, done)
    ) == [("NO_OBJECT", "/items")]
    for body in ([], {"items": [{}]}, {"items": "x"}, None):
        assert config_service.refusal(list_items.remove(made["id"], body, done)) == invalid("items")
    for body in ({}, {"items": []}):  # official clients send them, and no item is named
        assert "operation_id" in config_service.do(list_items.remove(made["id"], body, done))


def test_a_list_that_a_rule_needs_stays_and_one_with_a_longer_name_does_not_hold_it(
    config_service, room
) -> None:
    short = config_service.do(lists.create({"name": "staff", "kind": "ip"}))
    longer = config_service.do(lists.create({"name": "staff_old", "kind": "ip"}))
    (rule,) = config_service.do(
        rules.append(*room, {**RULE, "expression": "ip.src in $staff_old", "enabled": False})
    )
    assert config_service.refusal(lists.delete(longer["id"])) == [("IN_USE", "")]
    assert config_service.do(lists.delete(short["id"])) == {"id": short["id"]}
    config_service.do(rules.delete(*room, rule["id"]))
    assert config_service.do(lists.delete(longer["id"])) == {"id": longer["id"]}


def test_pages_of_a_list_hold_every_item_once_in_order_regardless_of_the_page(
    config_service,
) -> None:
    made = config_service.do(lists.create({"name": "a", "kind": "asn"}))
    numbers = [7, 100, 20, 3, 1_000, 64_512]
    config_service.do(
        list_items.add(
            made["id"], [{"asn": number} for number in numbers], Operations(), whole=False
        )
    )
    catalogue = Catalogue()
    for per_page in range(1, 8):
        seen, cursor = [], ""
        while True:
            page = catalogue.slice(config_service.known, made["id"], cursor, per_page, "")
            seen += [int(entry.record.value) for entry in page.items]
            if not page.after:
                break
            cursor = page.after
        assert seen == sorted(numbers)
    second = catalogue.slice(
        config_service.known,
        made["id"],
        catalogue.slice(config_service.known, made["id"], "", 2, "").after,
        2,
        "",
    )
    back = catalogue.slice(config_service.known, made["id"], second.before, 2, "")
    assert [entry.record.value for entry in back.items] == ["3", "7"]
