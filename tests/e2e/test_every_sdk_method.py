"""Every method that the official SDK has for health checks and alerting, in each of its forms,
against a real greenroom.

As the SDK's own suite does it: sync and async, plain, raw and streamed, with the
required arguments and with all of them. Health checks answer under both of their published
addresses. A method that a newer SDK adds fails the first test.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, NamedTuple

import cloudflare
import httpx
import pytest
from api_rig import ACCOUNT, Api, create_token, done, each

CONFIG = """
origin = "http://127.0.0.1:9"
[outbound]
ports = []
allow = ["127.0.0.1"]
[notifications]
webhook_test = "off"
[[rooms]]
name = "main"
host = "elsewhere.example.org"
total_active_users = 10
new_users_per_minute = 10
"""
NUMBERS = itertools.count()
HOOK = "https://hooks.slack.com/services/Ds3fdBFbV/456464Gdd"
CHECK = {"address": "www.example.com", "name": "server-1"}
WHOLE_CHECK = {
    **CHECK,
    "check_regions": ["WEU", "ENAM"],
    "consecutive_fails": 0,
    "consecutive_successes": 0,
    "description": "Health check for www.example.com",
    "healthcheck_timeout": 0,
    "http_config": {
        "allow_insecure": True,
        "expected_body": "success",
        "expected_codes": ["2xx", "302"],
        "follow_redirects": True,
        "header": {"Host": ["example.com"], "X-App-ID": ["abc123"]},
        "method": "GET",
        "path": "/health",
        "port": 0,
    },
    "interval": 0,
    "retries": 0,
    "suspended": True,
    "tcp_config": {"method": "connection_established", "port": 0},
    "type": "HTTPS",
}
POLICY = {
    "alert_type": "access_custom_certificate_expiration_type",
    "enabled": True,
    "mechanisms": {},
    "name": "SSL Notification",
}
WHOLE_POLICY = {
    **POLICY,
    "alert_type": "health_check_status_notification",
    "alert_interval": "30m",
    "description": "Something describing the policy.",
    "filters": {
        "health_check_id": ["699d98642c564d2e855e9661899b7252"],
        "status": ["Healthy", "Unhealthy"],
    },
    "mechanisms": {
        "email": [{"id": "test@example.com"}],
        "pagerduty": [{"id": "e8133a15-00a4-4d69-aec1-32f70c51f6e5"}],
        "webhooks": [{"id": "14cc1190-5d2b-4b98-a696-c424cb2ad05f"}],
    },
}


class Call(NamedTuple):
    """A method of the SDK. `needs` says what the id in its address belongs to; the arguments beside
    those of the address.
    """

    method: str
    needs: str = ""
    least: Any = MappingProxyType({})
    most: Any = None


def _hook(**more: str) -> dict[str, str]:
    return {"name": "Slack Webhook", "url": HOOK, **more}


SILENCE = {"start_time": "2040-01-01T00:00:00Z", "end_time": "2040-01-02T00:00:00Z"}
CALLS = [
    Call("healthchecks.create", "", CHECK, WHOLE_CHECK),
    Call("healthchecks.update", "check", CHECK, WHOLE_CHECK),
    Call("healthchecks.list", "", {}, {"page": 1, "per_page": 1000}),
    Call("healthchecks.delete", "check"),
    Call("healthchecks.edit", "check", CHECK, WHOLE_CHECK),
    Call("healthchecks.get", "check"),
    Call("healthchecks.previews.create", "", CHECK, WHOLE_CHECK),
    Call("healthchecks.previews.delete", "preview"),
    Call("healthchecks.previews.get", "preview"),
    Call("alerting.available_alerts.list"),
    Call("alerting.destinations.eligible.get"),
    Call("alerting.destinations.pagerduty.create"),
    Call("alerting.destinations.pagerduty.delete"),
    Call("alerting.destinations.pagerduty.get"),
    Call("alerting.destinations.pagerduty.link", "link"),
    Call("alerting.destinations.webhooks.create", "", _hook(), _hook(secret="shh")),
    Call("alerting.destinations.webhooks.update", "webhook", _hook(), _hook(secret="shh")),
    Call("alerting.destinations.webhooks.list"),
    Call("alerting.destinations.webhooks.delete", "webhook"),
    Call("alerting.destinations.webhooks.get", "webhook"),
    Call(
        "alerting.history.list",
        "",
        {},
        {
            "before": "2040-10-20T05:20:00Z",
            "since": "2022-05-19T20:29:58Z",
            "page": 1,
            "per_page": 5,
        },
    ),
    Call("alerting.policies.create", "", POLICY, WHOLE_POLICY),
    Call("alerting.policies.update", "policy", {}, WHOLE_POLICY),
    Call("alerting.policies.list"),
    Call("alerting.policies.delete", "policy"),
    Call("alerting.policies.get", "policy"),
    Call("alerting.silences.create", "", {"body": [{}]}, {"body": ["new silence"]}),
    Call("alerting.silences.update", "", {"body": []}, {"body": ["known silence"]}),
    Call("alerting.silences.list"),
    Call("alerting.silences.delete", "silence"),
    Call("alerting.silences.get", "silence"),
]


def methods(resource: Any, name: str) -> Iterator[str]:
    """The methods of a resource and of those below it, as the SDK has them."""
    for part, found in inspect.getmembers_static(type(resource)):
        if part.startswith(("_", "with_")):
            continue
        if inspect.isfunction(found):
            yield f"{name}.{part}"
        else:
            yield from methods(getattr(resource, part), f"{name}.{part}")


def test_no_method_of_the_sdk_is_left_out() -> None:
    client = cloudflare.Cloudflare(api_token="t")
    have = [*methods(client.healthchecks, "healthchecks"), *methods(client.alerting, "alerting")]
    assert sorted(call.method for call in CALLS) == sorted(have)


@pytest.fixture(scope="module")
def api(shared_greenroom) -> Api:
    running = shared_greenroom.config(CONFIG)
    return Api(running.control, create_token(shared_greenroom.data, "sdk", "--scope", "edit"))


@pytest.fixture(scope="module")
def zone(api: Api) -> str:
    return str(api.ask("POST", "/zones", {"name": "sdk.example.com"}).result["id"])


def thing(api: Api, zone: str, kind: str) -> str:
    """The id of one that was made for this call."""
    alerting = f"/accounts/{ACCOUNT}/alerting/v3"
    where = {
        "check": (
            f"/zones/{zone}/healthchecks",
            {**CHECK, "name": f"c{next(NUMBERS)}", "suspended": True},
        ),
        "preview": (f"/zones/{zone}/healthchecks/preview", CHECK),
        "link": (f"{alerting}/destinations/pagerduty/connect", None),
        "webhook": (f"{alerting}/destinations/webhooks", _hook()),
        "policy": (f"{alerting}/policies", POLICY),
    }
    if kind == "silence":
        api.ask("POST", f"{alerting}/silences", [SILENCE])
        return str(api.ask("GET", f"{alerting}/silences").result[-1]["id"])
    path, document = where[kind]
    return str(api.ask("POST", path, document).result["id"])


def arguments(api: Api, zone: str, call: Call, given: Any) -> tuple[list[str], dict[str, Any]]:
    """Where the id in the address comes first; what belongs to a zone is addressed by it, the rest
    by the account.
    """
    named = {"zone_id": zone} if call.method.startswith("healthchecks") else {"account_id": ACCOUNT}
    ids = [thing(api, zone, call.needs)] if call.needs else []
    given = dict(given)
    if "name" in given and call.method.startswith("healthchecks"):
        given["name"] = f"server-{next(NUMBERS)}"
    if given.get("body") == ["new silence"]:
        given["body"] = [{**SILENCE, "policy_id": thing(api, zone, "policy")}]
    if given.get("body") == ["known silence"]:
        given["body"] = [{"id": thing(api, zone, "silence"), "end_time": "2040-01-03T00:00:00Z"}]
    return ids, {**named, **given}


def smart_shield(request: httpx.Request) -> None:
    """Sends a request of the SDK to the other address of health checks."""
    request.url = request.url.copy_with(
        path=request.url.path.replace("/healthchecks", "/smart_shield/healthchecks")
    )


async def smart_shield_later(request: httpx.Request) -> None:
    smart_shield(request)


def client(api: Api, asynchronous: bool, strict: bool, alias: bool) -> Any:
    options: dict[str, Any] = {"_strict_response_validation": strict}
    if alias and asynchronous:
        options["http_client"] = cloudflare.DefaultAsyncHttpxClient(
            event_hooks={"request": [smart_shield_later]}
        )
    elif alias:
        options["http_client"] = cloudflare.DefaultHttpxClient(
            event_hooks={"request": [smart_shield]}
        )
    return api.sdk(asynchronous=asynchronous, **options)


def reached(resource: Any, path: str) -> Callable[..., Any]:
    for part in path.split("."):
        resource = getattr(resource, part)
    return resource


async def plain(cf: Any, method: str, ids: list[str], named: dict[str, Any]) -> str:
    made = reached(cf, method)(*ids, **named)
    found = await done(made)
    if hasattr(found, "has_next_page"):
        await each(made if hasattr(made, "__aiter__") else found)
    return "pages" if hasattr(found, "has_next_page") else type(found).__name__


async def raw(cf: Any, method: str, ids: list[str], named: dict[str, Any]) -> str:
    resource, _, name = method.rpartition(".")
    response = await done(
        getattr(reached(cf, f"{resource}.with_raw_response"), name)(*ids, **named)
    )
    assert response.is_closed
    found = await done(response.parse())
    return "pages" if hasattr(found, "has_next_page") else type(found).__name__


async def streamed(cf: Any, method: str, ids: list[str], named: dict[str, Any]) -> str:
    resource, _, name = method.rpartition(".")
    opening = getattr(reached(cf, f"{resource}.with_streaming_response"), name)(*ids, **named)
    if hasattr(opening, "__aenter__"):
        async with opening as response:
            found = await response.parse()
    else:
        with opening as response:
            found = response.parse()
    assert response.is_closed
    return "pages" if hasattr(found, "has_next_page") else type(found).__name__


ADDRESSED = [
    (call, alias)
    for alias in (False, True)
    for call in CALLS
    if not alias or call.method.startswith("healthchecks")
]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("call", "alias"),
    ADDRESSED,
    ids=[f"{'smart_shield.' if alias else ''}{call.method}" for call, alias in ADDRESSED],
)
async def test_a_method(api: Api, zone: str, call: Call, asynchronous: bool, alias: bool) -> None:

    async def calls(cf: Any) -> None:
        for given in (call.least, call.most if call.most is not None else call.least):
            kinds = set()
            for form in (plain, raw, streamed):
                ids, named = arguments(api, zone, call, given)
                kinds.add(await form(cf, call.method, ids, named))
            assert len(kinds) == 1, "every form gives the same type"

    cf = client(api, asynchronous, True, alias)
    try:
        await calls(cf)
    finally:
        await done(cf.close())


def test_an_alert_type_of_greenrooms_own_works_with_the_client_as_it_comes_and_strict_mode_says_so(
    api: Api,
) -> None:
    loose, strict = client(api, False, False, False), client(api, False, True, False)
    made = loose.alerting.policies.create(
        **{**POLICY, "alert_type": "greenroom_queueing"}, account_id=ACCOUNT
    )
    assert (
        loose.alerting.policies.get(made.id, account_id=ACCOUNT).alert_type == "greenroom_queueing"
    )
    with pytest.raises(cloudflare.APIResponseValidationError):
        strict.alerting.policies.get(made.id, account_id=ACCOUNT)
    loose.alerting.policies.delete(made.id, account_id=ACCOUNT)
