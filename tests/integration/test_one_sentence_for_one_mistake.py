"""`greenroom check`, the API and the forms of the dashboard say the same of a bad value, in people's words
where forms have some (`for_people`).
"""

import html
import re
from collections.abc import Mapping
from typing import Any

import pytest
from dashboard_rig import DashboardRig

from greenroom.alerts import destinations, policies
from greenroom.alerts.view import NotificationView
from greenroom.config_file.addresses import origin_problems
from greenroom.config_file.load import read_config
from greenroom.configuration import events, list_items, lists, rooms, rules, zones
from greenroom.errors import InvalidConfig
from greenroom.health import checks
from greenroom.status_page import pages
from greenroom.web.config_service import ConfigChange, ConfigService
from greenroom.web.pages.forms import for_people
from greenroom.web.refusals import Refused

Fields = Mapping[str, Any]

ROOM = {
    "name": "shop",
    "host": "shop.z1.example",
    "total_active_users": 200,
    "new_users_per_minute": 200,
}
EVENT = {
    "name": "sale",
    "event_start_time": "2030-05-01T10:00:00Z",
    "event_end_time": "2030-05-01T12:00:00Z",
}
CHECK = {"name": "origin", "address": "origin.example"}
POLICY = {
    "name": "down",
    "alert_type": "health_check_status_notification",
    "emails": ["ops@example.com"],
}
TAKEN = {"name": "r1", "host": "r1.z1.example", "path": "/shop"}


def table(name: str, values: Fields) -> str:
    lines = (
        f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for key, value in values.items()
    )
    return "\n".join((f"[[{name}]]", *lines, ""))


def room_with(part: str, values: Fields) -> str:
    return table("rooms", ROOM) + table(f"rooms.{part}", values)


def policy(values: Fields) -> ConfigChange:
    emails = [{"id": email} for email in values["emails"]]
    own = {name: value for name, value in values.items() if name != "emails"}
    return policies.create({**own, "mechanisms": {"email": emails}})


def items(values: Fields) -> ConfigChange:
    return list_items.add(
        "l1", [{"ip": each} for each in values["items"]], list_items.Operations(), whole=False
    )


MISTAKES = [
    # the table of a file, the change of the API, the form, its good values, the bad one, what is said
    (
        lambda values: table("rooms", values),
        lambda values: rooms.create("z1", values),
        "/zones/z1/rooms/new",
        ROOM,
        {"session_duration": 0},
        "must be at least 1 minute, not 0",
    ),
    (
        lambda values: table("rooms", {**ROOM, **TAKEN}) + table("rooms", values),
        lambda values: rooms.create("z1", values),
        "/zones/z1/rooms/new",
        ROOM,
        {"name": "r1"},
        "there is a waiting room r1 already",
    ),
    (
        lambda values: table("rooms", {**ROOM, **TAKEN}) + table("rooms", values),
        lambda values: rooms.create("z1", values),
        "/zones/z1/rooms/new",
        {**ROOM, "path": "/shop"},
        {"host": "r1.z1.example"},
        "r1.z1.example/shop already belongs to waiting room r1",
    ),
    (
        lambda values: room_with("events", values),
        lambda values: events.create("z1", "r1", values),
        "/zones/z1/rooms/r1/events/new",
        EVENT,
        {"event_end_time": "2030-05-01T10:00:01Z"},
        "must be at least one minute after the start",
    ),
    (
        lambda values: room_with("rules", values),
        lambda values: rules.append("z1", "r1", {**values, "action": "bypass_waiting_room"}),
        "/zones/z1/rooms/r1/rules/new",
        {"expression": "ssl"},
        {"expression": "nonsense"},
        "Filter parsing error (1:1):",
    ),
    (
        lambda values: table("lists", values),
        lists.create,
        "/lists/new",
        {"name": "staff", "kind": "ip"},
        {"name": "Staff"},
        "must have only lower-case letters (a to z), digits and _, not 'Staff'",
    ),
    (
        lambda values: table("health_checks", values),
        lambda values: checks.create("z1", values),
        "/zones/z1/health/new",
        CHECK,
        {"interval": 3_601},
        "must be at most 3600 seconds, not 3601",
    ),
    (
        lambda values: 'status_listen = "127.0.0.1:8082"\n' + table("status_pages", values),
        pages.create,
        "/status-page/pages",
        {"title": "Shop", "path": "/new"},
        {"path": "new"},
        "must be / or a path such as /shop without / at the end, of letters (a to z, A to Z),"
        " digits and _ . ~ -, not 'new'",
    ),
    (
        lambda values: table("alert_policies", values),
        policy,
        "/notifications/policies/new",
        POLICY,
        {"alert_interval": "soon"},
        "must be numbers with the unit h, m, s or ms, such as 30m or 1h30m, not 'soon'",
    ),
    (
        lambda values: table("pagerduty_services", {**values, "routing_key_file": "/dev/null"}),
        lambda values: destinations.create_service({**values, "routing_key": "R1"}),
        "/notifications/pagerduty",
        {"name": "on call"},
        {"name": ""},
        "must not be empty",
    ),
    (
        None,
        lambda values: zones.create(
            {"name": values["name"], "greenroom": {"origin": values["origin"]}}, origin_problems
        ),
        "/zones/new",
        {"name": "example.net", "origin": "http://127.0.0.1:3000"},
        {"origin": "ftp://127.0.0.1"},
        "must be http://host[:port] or https://host[:port], not 'ftp://127.0.0.1'",
    ),
]


@pytest.mark.parametrize(("file", "api", "path", "good", "bad", "said"), MISTAKES)
def test_one_sentence_for_one_mistake(
    file: Any, api: Any, path: str, good: Fields, bad: Fields, said: str, dashboard: DashboardRig
) -> None:
    values, (name,) = {**good, **bad}, bad
    if file is not None:
        with pytest.raises(InvalidConfig) as caught:
            read_config('origin = "http://127.0.0.1:3000"\n' + file(values))
        assert [
            found.reason.partition("\n")[0]
            for found in caught.value.problems
            if found.line and found.pointer.endswith(f".{name}")
        ] == [said]
    with pytest.raises(Refused) as refused:
        ConfigService(dashboard.store, dashboard.clock).trial(api(values))
    assert [
        re.sub(rf"^(greenroom\.)?{name}( \(line 1\))?: ", "", fault.message).partition("\n")[0]
        for fault in refused.value.faults
    ] == [said]
    answer = dashboard.person("admin").post(path, **form(values))
    assert answer.status_code == 400
    assert for_people(said) in html.unescape(answer.text)


def test_a_webhook_is_refused_with_the_same_words(dashboard: DashboardRig) -> None:
    hook = {"name": "chat", "url": "ftp://hooks.example.com/"}
    with pytest.raises(InvalidConfig) as caught:
        read_config(table("webhooks", hook))
    with pytest.raises(Refused) as refused:
        destinations.read_webhook(
            dashboard.store.read(), None, hook, NotificationView(), lambda: "id"
        )
    ((problem,), (fault,)) = caught.value.problems, refused.value.faults
    assert fault.message == f"url: {problem.reason}"
    answer = dashboard.person("admin").post("/notifications/webhooks", **hook)
    assert problem.reason in html.unescape(answer.text)


def test_an_item_of_a_list_is_refused_with_the_same_words(dashboard: DashboardRig) -> None:
    listed = {"name": "staff", "kind": "ip", "items": ["10.0.0.0/33"]}
    with pytest.raises(InvalidConfig) as caught:
        read_config(table("lists", listed))
    with pytest.raises(Refused) as refused:
        ConfigService(dashboard.store, dashboard.clock).trial(items(listed))
    ((problem,), (fault,)) = caught.value.problems, refused.value.faults
    assert fault.message.endswith(problem.reason)
    answer = dashboard.person("admin").post("/lists/l1", items="10.0.0.0/33", step="add")
    assert problem.reason in html.unescape(answer.text)


def form(values: Fields) -> dict[str, str]:
    """As a browser sends it."""
    sent = {
        name: "\n".join(value) if isinstance(value, list) else str(value)
        for name, value in values.items()
    }
    return {
        name: value.removesuffix("Z") if "_time" in name else value for name, value in sent.items()
    }
