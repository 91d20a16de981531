"""The alerting API refuses what cannot work, says everything that is wrong at once, and gives no
secret away.
"""

import pytest
from api_rig import ACCOUNT, Api, create_token
from receivers import WebReceiver, until

BASE = f"/accounts/{ACCOUNT}/alerting/v3"
CONFIG = """
origin = "http://127.0.0.1:9"
[outbound]
ports = []
allow = ["127.0.0.1"]
[[rooms]]
name = "main"
host = "elsewhere.example.org"
total_active_users = 10
new_users_per_minute = 10
"""


@pytest.fixture(scope="module")
def api(shared_greenroom) -> Api:
    running = shared_greenroom.config(CONFIG)
    return Api(running.control, create_token(shared_greenroom.data, "alerting", "--scope", "edit"))


def test_a_webhook_that_does_not_take_its_test_is_not_saved(api, web) -> None:
    web.behave = lambda _n: 500
    refused = api.ask("POST", f"{BASE}/destinations/webhooks", {"name": "Team", "url": web.url})
    assert (refused.status, refused.codes) == (400, [28043])
    assert refused.body["errors"][0]["message"] == "webhook test failed: the receiver answered 500"
    assert api.ask("GET", f"{BASE}/destinations/webhooks").result == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (
            "http://10.0.0.1/hook",
            "the settings do not allow it ([outbound] of the configuration file)",
        ),
        ("http://169.254.169.254/latest/meta-data", "not a public address"),
        ("http://[::ffff:10.0.0.1]/", "not a public address"),
        ("http://localhost.:99999/", "not a URL"),
        ("http://2130706433/", "four decimal numbers"),
        ("https://me:pass@hooks.example.com/", "user name or password"),
        ("ftp://hooks.example.com/", "must begin with"),
    ],
)
def test_a_webhook_that_leads_inside_or_can_be_read_in_two_ways_is_refused(
    api, url: str, reason: str
) -> None:
    refused = api.ask("POST", f"{BASE}/destinations/webhooks", {"name": "Team", "url": url})
    assert (refused.status, refused.pointers) == (400, {"/url"})
    assert reason in refused.body["errors"][0]["message"]
    assert "pass" not in refused.body["errors"][0]["message"].replace("password", "")


def test_a_name_that_leads_inside_fails_the_test_of_the_webhook(api, web) -> None:
    refused = api.ask(
        "POST",
        f"{BASE}/destinations/webhooks",
        {"name": "Team", "url": f"http://ip6-localhost:{web.port}/"},
    )
    assert refused.codes == [28043]
    assert web.requests == []


def test_secrets_appear_nowhere(api, web, shared_greenroom) -> None:
    secret, token = "very-s3cret", "T0P/B0P/token-in-url"
    made = api.ask(
        "POST", f"{BASE}/destinations/webhooks", {"name": "Team", "url": web.url, "secret": secret}
    ).result["id"]
    slack = {
        "name": "Chat",
        "url": f"{web.url}/services/{token}",
        "greenroom": {"channel": "slack"},
    }
    chat = api.ask("POST", f"{BASE}/destinations/webhooks", slack).result["id"]
    service = api.ask(
        "POST", f"{BASE}/destinations/pagerduty", {"name": "on call", "routing_key": "R0UTING"}
    ).result["id"]
    assert web.requests[-1][2] == {
        "text": "Hello World! This is a test message sent by greenroom. If you can read it, the webhook is working."
    }
    answers = [
        api.ask("GET", path).body
        for path in (
            f"{BASE}/destinations/webhooks",
            f"{BASE}/destinations/webhooks/{chat}",
            f"{BASE}/destinations/pagerduty",
            f"{BASE}/history",
            f"/accounts/{ACCOUNT}/audit_logs?per_page=50",
        )
    ]
    logs = "".join(running.output for running in shared_greenroom.processes)
    for hidden in (secret, "token-in-url", "R0UTING"):
        assert hidden not in str(answers)
        assert hidden not in logs
    found = api.ask("GET", f"{BASE}/destinations/webhooks/{chat}").result
    assert (found["url"], found["type"], found["greenroom"]) == (
        f"{web.url}/***",
        "slack",
        {"channel": "slack", "read_only": False},
    )
    for path in (f"webhooks/{made}", f"webhooks/{chat}", f"pagerduty/{service}"):
        assert api.ask("DELETE", f"{BASE}/destinations/{path}").status == 200


def test_a_secret_stays_with_its_server_and_goes_to_no_other(api, web) -> None:
    other = WebReceiver()
    try:
        made = api.ask(
            "POST",
            f"{BASE}/destinations/webhooks",
            {"name": "Team", "url": f"{web.url}/a", "secret": "s3cret"},
        ).result["id"]
        at = f"{BASE}/destinations/webhooks/{made}"
        assert api.ask("PUT", at, {"name": "Team", "url": f"{web.url}/b"}).status == 200
        assert web.requests[-1][1]["cf-webhook-auth"] == "s3cret"
        assert api.ask("PUT", at, {"name": "Team", "url": f"{other.url}/b"}).status == 200
        assert "cf-webhook-auth" not in other.requests[-1][1]
        assert api.ask("DELETE", at).body == {"success": True, "errors": [], "messages": []}
    finally:
        other.close()


def test_everything_wrong_with_a_policy_is_said_at_once(api) -> None:
    refused = api.ask(
        "POST",
        f"{BASE}/policies",
        {
            "alert_type": "greenroom_wait_time",
            "enabled": "yes",
            "mechanisms": {"email": [{"id": "not an address"}], "pigeon": []},
            "alert_interval": "soon",
            "filters": {"limit": ["many"]},
            "colour": 1,
        },
    )
    assert refused.status == 400
    assert refused.pointers == {
        "/name",
        "/enabled",
        "/mechanisms/email/0/id",
        "/mechanisms/pigeon",
        "/alert_interval",
        "/colour",
    }
    fixed = {
        "name": "p",
        "alert_type": "greenroom_wait_time",
        "enabled": True,
        "mechanisms": {},
        "filters": {"limit": ["many"], "slo": ["1"]},
    }
    assert api.ask("POST", f"{BASE}/policies", fixed).pointers == {"/filters/limit", "/filters/slo"}
    unknown = {
        **fixed,
        "alert_type": "no_such_alert",
        "filters": {},
        "mechanisms": {"email": [{"id": "Ann <a@b>"}]},
    }
    assert api.ask("POST", f"{BASE}/policies", unknown).pointers == {
        "/alert_type",
        "/mechanisms/email/0/id",
    }


def test_a_policy_for_a_webhook_that_is_not_there_is_kept_and_says_so(api) -> None:
    document = {
        "name": "p",
        "alert_type": "greenroom_event",
        "enabled": True,
        "mechanisms": {"webhooks": [{"id": "nowhere"}]},
    }
    made = api.ask("POST", f"{BASE}/policies", document)
    assert [message["message"] for message in made.body["messages"]] == [
        "there is no webhook nowhere"
    ]
    assert api.ask("DELETE", f"{BASE}/policies/{made.result['id']}").status == 200


def test_silences_are_checked_each_with_its_place(api) -> None:
    refused = api.ask(
        "POST",
        f"{BASE}/silences",
        [
            {},
            {"policy_id": "nowhere"},
            {"start_time": "2040-01-02T00:00:00Z", "end_time": "2040-01-01T00:00:00Z"},
        ],
    )
    assert refused.pointers == {"/1/policy_id", "/2/end_time"}
    assert api.ask("GET", f"{BASE}/silences").result == []
    assert api.ask("POST", f"{BASE}/silences", {}).codes == [28001]


def test_times_of_the_history_must_be_times(api) -> None:
    assert api.ask("GET", f"{BASE}/history?since=yesterday").codes == [28013]
    answer = api.ask("GET", f"{BASE}/history?since=2020-01-01T00:00:00Z&per_page=5")
    assert answer.body["result_info"]["per_page"] == 5


def test_the_history_says_what_is_still_to_be_delivered(api, web) -> None:
    made = api.ask(
        "POST", f"{BASE}/destinations/webhooks", {"name": "Team", "url": web.url}
    ).result["id"]
    document = {
        "name": "p",
        "alert_type": "greenroom_event",
        "enabled": True,
        "mechanisms": {"webhooks": [{"id": made}]},
    }
    policy = api.ask("POST", f"{BASE}/policies", document).result["id"]
    web.behave = lambda _n: 503
    before = len(web.requests)
    assert api.ask("POST", f"{BASE}/policies/{policy}/test").status == 200
    until(lambda: len(web.requests) > before)
    assert api.ask("GET", f"{BASE}/history").body["messages"] == [
        {"code": 1000, "message": "messages waiting to be delivered: 1"}
    ]
    web.behave = lambda _n: 200
    until(lambda: api.ask("GET", f"{BASE}/history").body["messages"] == [], 60)
    assert api.ask("GET", f"{BASE}/history").result[0]["greenroom"]["attempts"] > 1
