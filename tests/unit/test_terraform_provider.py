"""What Cloudflare's Terraform provider (5.x) sends for each resource that greenroom has, and what it
makes of the answers: after `apply` a `plan` is empty.

The provider cannot be run in tests: this is written after its models and encoder. On create it
leaves out what is null or unknown; on update it sends null for what was set and no longer is; after
a read every attribute of the configuration must be as written, one without default that was left
out must be null, one with a default must have it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from api_in_process import ApiInProcess, api_in

from greenroom.model.zone import ACCOUNT_ID

Attributes = dict[str, Any]
ACCOUNT = f"/accounts/{ACCOUNT_ID}"
ALERTING = f"{ACCOUNT}/alerting/v3"


@dataclass(frozen=True)
class Resource:
    """`optional` attributes, and those `inner` ones of an object, have no default; what stands in
    neither is computed when left out. `secret` ones are never answered.
    """

    path: str
    least: Attributes
    whole: Attributes
    changed: Attributes
    optional: tuple[str, ...] = ()
    inner: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Attributes = field(default_factory=dict)
    update: str = "PUT"
    secret: tuple[str, ...] = ()


LIMITS = {"total_active_users": 300, "new_users_per_minute": 250}
TIMES = {"event_start_time": "2040-01-01T00:00:00Z", "event_end_time": "2040-01-02T00:00:00Z"}
ROOM = {"name": "shop", "host": "shop.example.com", **LIMITS}
CHECK = {"name": "shop", "address": "origin.example.com"}
POLICY = {
    "name": "ops",
    "alert_type": "health_check_status_notification",
    "enabled": True,
    "mechanisms": {"email": [{"id": "b@example.com"}, {"id": "a@example.com"}]},
}

RESOURCES = {
    "cloudflare_zone": Resource(
        "/zones",
        {"name": "other.example", "account": {"id": ACCOUNT_ID}},
        {"name": "other.example", "account": {"id": ACCOUNT_ID}, "type": "full", "paused": False},
        {"name": "other.example", "account": {"id": ACCOUNT_ID}, "paused": True},
        defaults={"type": "full"},
        update="PATCH",
    ),
    "cloudflare_waiting_room": Resource(
        "/zones/{zone}/waiting_rooms",
        ROOM,
        {
            **ROOM,
            "additional_routes": [
                {"host": "b.example.com", "path": "/z"},
                {"host": "a.example.com", "path": "/"},
            ],
            "cookie_attributes": {"samesite": "none", "secure": "always"},
            "cookie_suffix": "shop",
            "custom_page_html": "<p>{{waitTime}}</p>",
            "default_template_language": "de-DE",
            "description": "the shop",
            "disable_session_renewal": True,
            "enabled_origin_commands": ["revoke"],
            "json_response_enabled": True,
            "path": "/checkout",
            "queue_all": True,
            "queueing_method": "random",
            "queueing_status_code": 429,
            "session_duration": 10,
            "suspended": True,
        },
        {**ROOM, "total_active_users": 400, "queueing_method": "passthrough", "path": "/a"},
        optional=("cookie_suffix", "additional_routes"),
        defaults={
            "custom_page_html": "",
            "default_template_language": "en-US",
            "description": "",
            "disable_session_renewal": False,
            "json_response_enabled": False,
            "path": "/",
            "queue_all": False,
            "queueing_method": "fifo",
            "queueing_status_code": 200,
            "session_duration": 5,
            "suspended": False,
        },
    ),
    "cloudflare_waiting_room_event": Resource(
        "/zones/{zone}/waiting_rooms/{room}/events",
        {"name": "sale", **TIMES},
        {
            "name": "sale",
            **TIMES,
            "prequeue_start_time": "2039-12-31T23:00:00Z",
            "custom_page_html": "<p>{{waitTime}}</p>",
            "disable_session_renewal": True,
            "new_users_per_minute": 300,
            "total_active_users": 400,
            "queueing_method": "random",
            "session_duration": 7,
            "description": "x",
            "shuffle_at_event_start": True,
            "suspended": True,
        },
        {"name": "sale", **TIMES, "session_duration": 20},
        optional=(
            "custom_page_html",
            "disable_session_renewal",
            "new_users_per_minute",
            "prequeue_start_time",
            "queueing_method",
            "session_duration",
            "total_active_users",
        ),
        defaults={"description": "", "shuffle_at_event_start": False, "suspended": False},
    ),
    "cloudflare_healthcheck": Resource(
        "/zones/{zone}/healthchecks",
        {**CHECK, "http_config": {"path": "/ping", "port": 8080}},
        {
            **CHECK,
            "check_regions": ["WEU", "ENAM"],
            "consecutive_fails": 2,
            "consecutive_successes": 3,
            "description": "x",
            "type": "HTTPS",
            "interval": 90,
            "retries": 1,
            "suspended": True,
            "timeout": 4,
            "http_config": {
                "method": "GET",
                "path": "/up",
                "port": 8443,
                "expected_codes": ["3xx", "200"],
                "expected_body": "ok",
                "follow_redirects": True,
                "allow_insecure": True,
                "header": {"Host": ["b.example.com"], "Accept": ["x", "a"]},
            },
        },
        {**CHECK, "type": "TCP", "tcp_config": {"method": "connection_established", "port": 25}},
        optional=("description", "check_regions"),
        inner={"http_config": ("expected_body", "expected_codes", "header")},
        defaults={
            "consecutive_fails": 1,
            "consecutive_successes": 1,
            "interval": 60,
            "retries": 2,
            "suspended": False,
            "timeout": 5,
            "type": "HTTP",
        },
    ),
    "cloudflare_list": Resource(
        f"{ACCOUNT}/rules/lists",
        {"name": "office", "kind": "ip"},
        {"name": "office", "kind": "ip", "description": "x"},
        {"name": "office", "kind": "ip", "description": "y"},
        optional=("description",),
    ),
    "cloudflare_notification_policy": Resource(
        f"{ALERTING}/policies",
        POLICY,
        {
            **POLICY,
            "description": "x",
            "alert_interval": "30m",
            "filters": {"status": ["Unhealthy", "Healthy"]},
        },
        {**POLICY, "enabled": False, "name": "others"},
        optional=("description", "filters", "alert_interval"),
        inner={"filters": ("health_check_id", "zones"), "mechanisms": ("pagerduty", "webhooks")},
    ),
    "cloudflare_notification_policy_webhooks": Resource(
        f"{ALERTING}/destinations/webhooks",
        {"name": "chat", "url": "https://hooks.example.com/a"},
        {"name": "chat", "url": "https://hooks.example.com/a", "secret": "s"},
        {"name": "talk", "url": "https://hooks.example.com/b"},
        secret=("secret",),
    ),
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiInProcess]:
    with api_in(tmp_path_factory.mktemp("terraform")) as made:
        yield made


@pytest.fixture(scope="module")
def places(api: ApiInProcess) -> dict[str, str]:
    zone = api.make("/zones", {"name": "example.com", "account": {"id": ACCOUNT_ID}})["id"]
    room = {**ROOM, "name": "other", "host": "other.example.com"}
    return {"zone": zone, "room": api.make(f"/zones/{zone}/waiting_rooms", room)["id"]}


def result(api: ApiInProcess, method: str, path: str, body: Any = None) -> Any:
    answer = api.ask(method, path, body)
    assert answer.status_code == 200, answer.text
    return answer.json().get("result")


def planned(resource: Resource, wanted: Attributes) -> Attributes:
    return {**resource.defaults, **wanted}


def with_nulls(resource: Resource, wanted: Attributes) -> Attributes:
    """The plan, with null for what an object leaves out."""
    inner = {
        name: {**dict.fromkeys(left_out), **wanted[name]}
        for name, left_out in resource.inner.items()
        if name in wanted
    }
    return planned(resource, {**wanted, **inner})


def to_update(resource: Resource, wanted: Attributes, state: Attributes) -> Attributes:
    """Null for what was set and has no default."""
    gone = {name: None for name in resource.optional if state.get(name) is not None}
    return {**gone, **with_nulls(resource, wanted)}


def differences(resource: Resource, wanted: Attributes, state: Attributes) -> Attributes:
    """What the next plan would change: attribute -> (state, plan)."""
    plan = {**dict.fromkeys(resource.optional), **with_nulls(resource, wanted)}
    return {
        name: (state.get(name), value)
        for name, value in plan.items()
        if name not in resource.secret and not as_planned(state.get(name), value)
    }


def as_planned(state: Any, plan: Any) -> bool:
    """Attributes of an object that the configuration leaves out are computed."""
    if isinstance(plan, dict) and isinstance(state, dict):
        return all(as_planned(state.get(name), value) for name, value in plan.items())
    if isinstance(plan, list) and isinstance(state, list):
        return len(plan) == len(state) and all(map(as_planned, state, plan))
    return bool(state == plan)


@pytest.mark.parametrize("first", ["least", "whole"])
@pytest.mark.parametrize("name", RESOURCES)
def test_a_plan_after_each_apply_is_empty(
    name: str, first: str, api: ApiInProcess, places: dict[str, str]
) -> None:
    resource = RESOURCES[name]
    path = resource.path.format(**places)
    steps = [getattr(resource, step) for step in (first, "whole", "changed", "least", "whole")]
    made = result(api, "POST", path, planned(resource, steps[0]))["id"]
    one = f"{path}/{made}"
    state = result(api, "GET", one)
    assert differences(resource, steps[0], state) == {}
    for wanted in steps[1:]:
        fixed = ("name", "kind", "account", "type") if resource.path.endswith("lists") else ()
        body = to_update(resource, wanted, state)
        result(api, resource.update, one, {k: v for k, v in body.items() if k not in fixed})
        state = result(api, "GET", one)
        assert differences(resource, wanted, state) == {}
        assert state["id"] == made
    result(api, "DELETE", one)
    assert api.ask("GET", one).status_code == 404, "the provider takes it out of its state"


def test_rules_keep_their_order(api: ApiInProcess, places: dict[str, str]) -> None:
    path = "/zones/{zone}/waiting_rooms/{room}/rules".format(**places)
    bypass = {"action": "bypass_waiting_room"}
    first = {**bypass, "expression": "ssl", "description": "x", "enabled": False}
    second = {**bypass, "expression": 'http.host eq "a.example.com"'}
    for rules in ([first, second], [second, first], [second]):
        result(api, "PUT", path, rules)
        assert as_planned(result(api, "GET", path), rules)
    result(api, "PUT", path, [])
    assert result(api, "GET", path) == []


def test_settings_of_a_zone(api: ApiInProcess, places: dict[str, str]) -> None:
    path = "/zones/{zone}/waiting_rooms/settings".format(**places)
    for wanted in (True, False):
        result(api, "PUT", path, {"search_engine_crawler_bypass": wanted})
        assert result(api, "GET", path)["search_engine_crawler_bypass"] is wanted


def test_items_are_found_by_what_they_are(api: ApiInProcess) -> None:
    items: list[tuple[Attributes, str]] = [
        ({"ip": "10.0.0.1", "comment": "x"}, "10.0.0.1"),
        ({"ip": "10.1.0.0/16"}, "10.1.0.0/16"),
        ({"asn": 64_500}, "64500"),
        ({"hostname": {"url_hostname": "a.example.com"}}, "a.example.com"),
    ]
    for item, words in items:
        (kind,) = item.keys() - {"comment"}
        body = {"name": f"of_{kind}", "kind": kind, "description": ""}
        made = result(api, "POST", f"{ACCOUNT}/rules/lists", body)["id"]
        path = f"{ACCOUNT}/rules/lists/{made}/items"
        operation = result(api, "POST", path, [item])["operation_id"]
        done = result(api, "GET", f"{ACCOUNT}/rules/lists/bulk_operations/{operation}")
        assert done["status"] == "completed"
        (found,) = result(api, "GET", f"{path}?search={words}")
        state = result(api, "GET", f"{path}/{found['id']}")
        assert as_planned(state, {"comment": None, **item})
        result(api, "DELETE", path, {"items": [{"id": found["id"]}]})
        assert api.ask("GET", f"{path}/{found['id']}").status_code == 404
        result(api, "DELETE", f"{ACCOUNT}/rules/lists/{made}")
