"""null for a field that may be left out means that it is left out: Terraform's provider sends it
for what a plan does not set.
"""

from typing import Any

import pytest
from api_in_process import ApiInProcess, api_in
from hypothesis import given
from hypothesis import strategies as st

from greenroom.alerts.destinations import PAGERDUTY, WEBHOOK
from greenroom.alerts.policies import POLICY
from greenroom.alerts.silences import SILENCE
from greenroom.configuration.events import EVENT
from greenroom.configuration.list_items import ITEM
from greenroom.configuration.lists import LIST
from greenroom.configuration.rooms import ROOM
from greenroom.configuration.rules import RULE
from greenroom.configuration.zones import SETTINGS, ZONE
from greenroom.health.checks import HEALTH_CHECK
from greenroom.model.zone import ACCOUNT_ID
from greenroom.status_page.incident_notes import NOTE
from greenroom.status_page.pages import PAGE
from greenroom.web.api_schema import (
    EXTENSION,
    NEEDED,
    ApiSchema,
    read_as,
)

TIMES = {"event_start_time": "2040-01-01T00:00:00Z", "event_end_time": "2040-01-02T00:00:00Z"}
LEAST: dict[str, tuple[ApiSchema, dict[str, Any]]] = {
    "zone": (ZONE, {"name": "example.com"}),
    "settings": (SETTINGS, {}),
    "room": (
        ROOM,
        {
            "name": "shop",
            "host": "shop.example.com",
            "total_active_users": 300,
            "new_users_per_minute": 200,
        },
    ),
    "event": (EVENT, {"name": "sale", **TIMES}),
    "rule": (RULE, {"action": "bypass_waiting_room", "expression": "ssl"}),
    "list": (LIST, {"name": "office", "kind": "ip"}),
    "item": (ITEM, {"ip": "10.0.0.1"}),
    "check": (HEALTH_CHECK, {"name": "shop", "address": "origin.example.com"}),
    "policy": (
        POLICY,
        {
            "name": "ops",
            "alert_type": "greenroom_event",
            "mechanisms": {"email": [{"id": "a@example.com"}]},
        },
    ),
    "webhook": (WEBHOOK, {"name": "chat", "url": "https://hooks.example.com/a"}),
    "pagerduty": (PAGERDUTY, {"name": "pager", "routing_key": "R0"}),
    "silence": (SILENCE, {}),
    "note": (NOTE, {"text": "all is well"}),
    "page": (PAGE, {"title": "Status"}),
}


def optional(form: ApiSchema, least: dict[str, Any]) -> dict[str, None]:
    """Every field that may be left out, as its pointer."""
    return {
        f"{EXTENSION}." * found.rule.extension + found.name: None
        for found in form.fields
        if found.default is not NEEDED and not found.rule.read_only and found.name not in least
    }


def with_nulls(document: dict[str, Any], names: Any) -> dict[str, Any]:
    """The document with null in these places."""
    whole = dict(document)
    for name in names:
        if name.startswith(f"{EXTENSION}."):
            inner = whole.setdefault(EXTENSION, {})
            inner[name.removeprefix(f"{EXTENSION}.")] = None
        else:
            whole[name] = None
    return whole


def fits(schema: Any, body: dict[str, Any]) -> bool:
    from jsonschema import Draft202012Validator  # a second, which every worker would wait for

    return Draft202012Validator(schema).is_valid(body)


@pytest.mark.parametrize("kind", LEAST)
@given(data=st.data())
def test_null_reads_as_if_the_field_were_left_out(kind: str, data: st.DataObject) -> None:
    form, least = LEAST[kind]
    there = sorted(optional(form, least))
    names = data.draw(st.sets(st.sampled_from(there)) if there else st.just(set()), label="null")
    asked = with_nulls(least, names)
    assert read_as(form, asked) == read_as(form, least)
    schema = form.schema("whole")
    assert fits(schema, asked)
    if form.has_ours:
        assert read_as(form, {**least, EXTENSION: None}) == read_as(form, least)
        assert fits(schema, {**least, EXTENSION: None})


@pytest.mark.parametrize(
    ("kind", "part", "left_out"),
    [
        (
            "room",
            {"cookie_attributes": {"samesite": None, "secure": "always"}},
            {"secure": "always"},
        ),
        ("room", {"additional_routes": [{"host": "a.example.com", "path": None}]}, None),
        ("check", {"http_config": {"path": "/up", "port": None, "header": None}}, {"path": "/up"}),
        ("check", {"tcp_config": {"method": None, "port": None}}, {}),
        (
            "item",
            {"ip": None, "hostname": {"url_hostname": "a.b", "exclude_exact_hostname": None}},
            None,
        ),
        ("zone", {"account": {"id": None, "name": None}}, {}),
        ("policy", {"filters": {"waiting_rooms": None}}, {}),
    ],
)
def test_null_inside_an_object_reads_as_if_it_were_left_out(
    kind: str, part: dict[str, Any], left_out: dict[str, Any] | None
) -> None:
    form, least = LEAST[kind]
    values, faults = read_as(form, {**least, **part})
    assert faults == []
    assert fits(form.schema("whole"), {**least, **part})
    if left_out is not None:
        (name,) = part
        assert kind == "zone" or values == read_as(form, {**least, name: left_out})[0]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory):
    with api_in(tmp_path_factory.mktemp("nulls")) as made:
        yield made


def nulls(kind: str) -> dict[str, Any]:
    form, least = LEAST[kind]
    return with_nulls(least, optional(form, least))


def test_everything_can_be_made_replaced_and_unset_with_null_for_what_is_left_out(
    api: ApiInProcess,
) -> None:
    account = f"/accounts/{ACCOUNT_ID}"
    zone = api.make("/zones", nulls("zone"))["id"]
    rooms = f"/zones/{zone}/waiting_rooms"
    room = api.make(rooms, nulls("room"))
    one = f"{rooms}/{room['id']}"

    def asked(method: str, path: str, body: Any) -> Any:
        reply = api.ask(method, path, body)
        assert reply.status_code == 200, reply.text
        return reply.json().get("result")

    set_once = {
        "description": "x",
        "queueing_method": "random",
        "greenroom": {"refresh_max_seconds": 30},
    }
    assert asked("PATCH", one, set_once)["description"] == "x"
    unset = {
        "description": None,
        "queueing_method": None,
        "greenroom": {"refresh_max_seconds": None},
    }
    left = asked("PATCH", one, unset)
    assert {**left, "modified_on": ""} == {**room, "modified_on": ""}
    asked("PATCH", one, set_once)
    assert {**asked("PUT", one, nulls("room")), "modified_on": ""} == {**room, "modified_on": ""}
    assert asked("PATCH", f"/zones/{zone}", {"paused": True})["paused"] is True
    assert asked("PATCH", f"/zones/{zone}", {"paused": None, "greenroom": None})["paused"] is False
    assert asked("PUT", f"{rooms}/settings", nulls("settings"))
    assert asked("PATCH", f"{rooms}/settings", nulls("settings"))

    event = api.make(f"{one}/events", nulls("event"))["id"]
    asked("PUT", f"{one}/events/{event}", nulls("event"))
    assert asked("PATCH", f"{one}/events/{event}", {"description": None, "suspended": None})
    rule = asked("POST", f"{one}/rules", nulls("rule"))[0]["id"]
    asked("PUT", f"{one}/rules", [nulls("rule")])
    rule = asked("GET", f"{one}/rules", None)[0]["id"]
    asked("PATCH", f"{one}/rules/{rule}", {"description": None, "enabled": None, "position": None})
    first = {"index": 1, "before": None, "after": None}
    asked("PATCH", f"{one}/rules/{rule}", {"position": first})

    checks = f"/zones/{zone}/healthchecks"
    check = api.make(checks, nulls("check"))
    changed = {"description": "x", "interval": 30, "http_config": {"path": "/up"}}
    asked("PATCH", f"{checks}/{check['id']}", changed)
    left = asked("PATCH", f"{checks}/{check['id']}", dict.fromkeys(changed))
    assert {**left, "modified_on": ""} == {**check, "modified_on": ""}
    asked("PUT", f"{checks}/{check['id']}", nulls("check"))

    found = api.make(f"{account}/rules/lists", nulls("list"))["id"]
    asked("PUT", f"{account}/rules/lists/{found}", {"description": None})
    asked("POST", f"{account}/rules/lists/{found}/items", [nulls("item")])
    alerting = f"{account}/alerting/v3"
    policy = api.make(f"{alerting}/policies", nulls("policy"))["id"]
    asked("PUT", f"{alerting}/policies/{policy}", {"description": None, "enabled": None})
    hook = api.make(f"{alerting}/destinations/webhooks", nulls("webhook"))["id"]
    asked("PUT", f"{alerting}/destinations/webhooks/{hook}", nulls("webhook"))
    asked("POST", f"{alerting}/silences", [nulls("silence")])
    page = api.make(f"{account}/status_pages", nulls("page"))["id"]
    asked("PATCH", f"{account}/status_pages/{page}", {"path": None, "rooms": None})
    note = api.make(f"{account}/incident_notes", nulls("note"))["id"]
    asked("PATCH", f"{account}/incident_notes/{note}", {"title": None, "time": None})


def test_null_for_a_field_that_is_needed_is_refused(api: ApiInProcess) -> None:
    reply = api.ask("POST", "/zones", {**LEAST["zone"][1], "name": None})
    assert reply.status_code == 400
    assert reply.json()["errors"][0]["source"]["pointer"] == "/name"
