"""The unmodified official SDK, sync and async, drives the alerting API of a real greenroom; its
strict validation accepts every answer.
"""

import asyncio
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import cloudflare
import pytest
from api_rig import ACCOUNT, Api, create_token, done, each
from receivers import WebReceiver, until

NUMBERS = itertools.count()
HERE = {"account_id": ACCOUNT}
CONFIG = """
origin = "http://127.0.0.1:9"
[outbound]
ports = []
allow = ["127.0.0.1"]
[notifications]
webhook_test = "{mode}"
[[rooms]]
name = "main"
host = "elsewhere.example.org"
total_active_users = 10
new_users_per_minute = 10
"""


@pytest.fixture(scope="module")
def web() -> Iterator[WebReceiver]:
    found = WebReceiver()
    yield found
    found.close()


@pytest.fixture(scope="module")
def api(shared_greenroom) -> Api:
    running = shared_greenroom.config(CONFIG.format(mode="reported"))
    return Api(running.control, create_token(shared_greenroom.data, "sdk", "--scope", "edit"))


async def test_available_alerts_and_eligible_destinations(cf: Any) -> None:
    available = await done(cf.alerting.available_alerts.list(**HERE))
    types = {alert.type for alerts in available.values() for alert in alerts}
    assert "health_check_status_notification" in types
    assert "greenroom_queueing" in types
    health = available["Health Checks"][0]
    assert {option["Key"] for option in health.filter_options} == {
        "health_check_id",
        "status",
        "zones",
    }
    eligible = await done(cf.alerting.destinations.eligible.get(**HERE))
    assert {
        found.type: found.ready for destinations in eligible.values() for found in destinations
    } == {
        "email": False,
        "pagerduty": True,
        "webhook": True,
    }


async def test_webhooks(cf: Any, web) -> None:
    hooks = cf.alerting.destinations.webhooks
    before = len(web.requests)
    made = await done(hooks.create(**HERE, name="Team", url=f"{web.url}/a", secret="s3cret"))
    _, headers, body = web.requests[before]
    assert (headers["cf-webhook-auth"], body["text"][:12]) == ("s3cret", "Hello World!")
    assert "data" not in body
    hook = await done(hooks.get(made.id, **HERE))
    assert (hook.name, hook.url, hook.type) == ("Team", f"{web.url}/a", "generic")
    assert hook.last_success is not None
    assert "s3cret" not in hook.to_json()
    assert (
        await done(hooks.update(made.id, **HERE, name="Team 2", url=f"{web.url}/a"))
    ).id == made.id
    assert len(web.requests) == before + 1
    again = next(found for found in await each(hooks.list(**HERE)) if found.id == made.id)
    assert again.name == "Team 2"
    gone = await done(hooks.delete(made.id, **HERE))
    assert gone.success is True
    with pytest.raises(cloudflare.NotFoundError):
        await done(hooks.get(made.id, **HERE))


async def test_a_slack_webhook_that_cannot_be_reached_is_saved_where_the_test_is_only_reported(
    cf: Any,
) -> None:
    hooks = cf.alerting.destinations.webhooks
    made = await done(
        hooks.create(
            **HERE,
            name="Slack",
            url="https://hooks.slack.com/services/Ds3fdBFbV/456464Gdd",
            secret="x",
        )
    )
    hook = await done(hooks.get(made.id, **HERE))
    assert (hook.type, hook.url, hook.last_success) == (
        "slack",
        "https://hooks.slack.com/***",
        None,
    )
    assert hook.last_failure is not None
    await done(hooks.update(made.id, **HERE, name="Renamed", url=hook.url))
    assert (await done(hooks.get(made.id, **HERE))).name == "Renamed"
    await done(hooks.delete(made.id, **HERE))


async def test_pagerduty(cf: Any) -> None:
    pagerduty = cf.alerting.destinations.pagerduty
    token = await done(pagerduty.create(**HERE))
    assert (await done(pagerduty.link(token.id, **HERE))).id == token.id
    made = await done(
        cf.post(
            f"/accounts/{ACCOUNT}/alerting/v3/destinations/pagerduty",
            cast_to=object,
            body={"name": "on call", "routing_key": "R0"},
        )
    )
    services = await each(pagerduty.get(**HERE))
    assert [(service.id, service.name) for service in services] == [
        (made["result"]["id"], "on call")
    ]
    assert (await done(pagerduty.delete(**HERE))).success is True
    assert await each(pagerduty.get(**HERE)) == []


async def test_policies(cf: Any) -> None:
    policies = cf.alerting.policies
    wanted = {
        "alert_type": "health_check_status_notification",
        "name": f"policy {next(NUMBERS)}",
        "enabled": True,
        "description": "Something describing the policy.",
        "alert_interval": "30m",
        "mechanisms": {
            "email": [{"id": "test@example.com"}],
            "pagerduty": [{"id": "e8133a15-00a4-4d69-aec1-32f70c51f6e5"}],
            "webhooks": [{"id": "14cc1190-5d2b-4b98-a696-c424cb2ad05f"}],
        },
        "filters": {
            "health_check_id": ["699d98642c564d2e855e9661899b7252"],
            "status": ["Unhealthy"],
        },
    }
    made = await done(policies.create(**HERE, **wanted))
    policy = await done(policies.get(made.id, **HERE))
    shown = policy.to_dict(mode="json")
    assert {name: shown[name] for name in wanted} == wanted
    assert policy.created == policy.modified
    assert (await done(policies.update(made.id, **HERE))).id == made.id
    assert (await done(policies.get(made.id, **HERE))).mechanisms == policy.mechanisms
    await done(
        policies.update(
            made.id, **HERE, enabled=False, mechanisms={"email": [{"id": "b@example.com"}]}
        )
    )
    changed = await done(policies.get(made.id, **HERE))
    assert (changed.enabled, changed.name, changed.mechanisms.webhooks) == (
        False,
        policy.name,
        None,
    )
    plain = await done(
        policies.create(
            **HERE,
            alert_type="bgp_hijack_notification",
            name="plain",
            enabled=True,
            mechanisms={},
        )
    )
    assert {made.id, plain.id} <= {found.id for found in await each(policies.list(**HERE))}
    for policy_id in (made.id, plain.id):
        assert (await done(policies.delete(policy_id, **HERE))).success is True
    with pytest.raises(cloudflare.NotFoundError):
        await done(policies.get(made.id, **HERE))


async def test_silences(cf: Any) -> None:
    policy = await done(
        cf.alerting.policies.create(
            **HERE, alert_type="incident_alert", name="p", enabled=True, mechanisms={}
        )
    )
    silences = cf.alerting.silences
    at = {"start_time": "2040-01-01T00:00:00Z", "end_time": "2040-01-02T00:00:00Z"}
    assert (
        await done(silences.create(**HERE, body=[{"policy_id": policy.id, **at}, {}]))
    ).success is True
    found = {silence.policy_id: silence for silence in await each(silences.list(**HERE))}
    mine, every = found[policy.id], found[""]
    assert (mine.start_time, mine.end_time) == tuple(at.values())
    assert every.end_time > every.start_time
    assert (await done(silences.get(mine.id, **HERE))).to_dict() == mine.to_dict()
    later = "2040-01-03T00:00:00Z"
    changed = await each(silences.update(**HERE, body=[{"id": mine.id, "end_time": later}]))
    assert {silence.id: silence.end_time for silence in changed}[mine.id] == later
    assert (await done(silences.delete(every.id, **HERE))).success is True
    await done(cf.alerting.policies.delete(policy.id, **HERE))
    assert await each(silences.list(**HERE)) == []


async def test_a_test_of_a_policy_arrives_and_is_in_the_history(cf: Any, web, api) -> None:
    hook = await done(cf.alerting.destinations.webhooks.create(**HERE, name="Team", url=web.url))
    name = f"policy {next(NUMBERS)}"
    mechanisms = {"webhooks": [{"id": hook.id}]}
    policy = await done(
        cf.alerting.policies.create(
            **HERE,
            alert_type="greenroom_queueing",
            name=name,
            enabled=True,
            mechanisms=mechanisms,
        )
    )
    assert (
        api.ask("POST", f"/accounts/{ACCOUNT}/alerting/v3/policies/{policy.id}/test").status == 200
    )
    until(lambda: web.taken and web.taken[-1].get("policy_name") == name)
    assert web.taken[-1]["text"].startswith("This is a test. Waiting room shop")
    history = cf.alerting.history

    async def mine(**query: Any) -> list[Any]:
        return [
            entry
            for entry in await each(history.list(**HERE, **query))
            if entry.policy_id == policy.id
        ]

    async with asyncio.timeout(60):
        while not await mine():
            await asyncio.sleep(0.02)  # the sender writes it down behind the answer
    (entry,) = await mine(per_page=5)
    assert (entry.name, entry.mechanism, entry.mechanism_type) == (name, hook.id, "webhook")
    assert entry.alert_type == "greenroom_queueing"
    now = datetime.now(UTC)
    assert await mine(since=now - timedelta(minutes=5), before=now + timedelta(minutes=5)) == [
        entry
    ]
    assert await mine(before=now - timedelta(hours=1)) == []
    await done(cf.alerting.policies.delete(policy.id, **HERE))
    await done(cf.alerting.destinations.webhooks.delete(hook.id, **HERE))
