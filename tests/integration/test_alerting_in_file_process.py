"""A policy and its webhook stand in the configuration file: alerts arrive, the API shows them and
changes nothing, a reload is followed.
"""

from api_rig import ACCOUNT, Api, create_token
from receivers import WebReceiver, until

ALERTING = f"/accounts/{ACCOUNT}/alerting/v3"
CONFIG = """
origin = "http://127.0.0.1:{port}"
[outbound]
ports = []
allow = ["127.0.0.1"]
[[rooms]]
name = "main"
host = "*"
total_active_users = 10
new_users_per_minute = 10
[[health_checks]]
name = "shop"
address = "127.0.0.1"
interval = 1
http_config = {{ port = {port} }}
[[webhooks]]
name = "ours"
url_file = "url"
secret_file = "secret"
[[alert_policies]]
name = "down"
alert_type = "health_check_status_notification"
webhooks = ["ours"]
"""


def test_a_policy_of_the_file(greenroom, web: WebReceiver, refusing_port, origin) -> None:
    second = WebReceiver()
    (greenroom.folder / "url").write_text(f"{web.url}/first\n")
    (greenroom.folder / "secret").write_text("s3cret\n")
    running = greenroom.config(CONFIG.format(port=refusing_port()))
    until(lambda: web.taken, 30)
    path, headers, body = web.requests[0]
    assert (path, headers["cf-webhook-auth"], body["policy_name"], body["webhook_name"]) == (
        "/first",
        "s3cret",
        "down",
        "ours",
    )
    assert body["data"]["new_status"] == "Unhealthy"

    api = Api(running.control, create_token(greenroom.data, "operator", "--scope", "edit"))
    until(lambda: api.ask("GET", f"{ALERTING}/history").result)  # is written behind the answer
    (hook,) = api.ask("GET", f"{ALERTING}/destinations/webhooks").result
    (policy,) = api.ask("GET", f"{ALERTING}/policies").result
    assert (hook["name"], hook["greenroom"]["read_only"], policy["greenroom"]["read_only"]) == (
        "ours",
        True,
        True,
    )
    assert "s3cret" not in str(hook)
    assert hook["last_success"]
    for method, where in (
        ("PUT", f"{ALERTING}/destinations/webhooks/{hook['id']}"),
        ("DELETE", f"{ALERTING}/destinations/webhooks/{hook['id']}"),
        ("PUT", f"{ALERTING}/policies/{policy['id']}"),
        ("DELETE", f"{ALERTING}/policies/{policy['id']}"),
    ):
        refused = api.ask(
            method, where, {"name": "x", "url": hook["url"]} if "webhooks" in where else {}
        )
        assert "can only be changed there" in refused.body["errors"][0]["message"], where
    (entry,) = api.ask("GET", f"{ALERTING}/history").result
    assert entry["policy_id"] == policy["id"]
    made = api.ask(
        "POST",
        f"{ALERTING}/policies",
        {
            "name": "mine",
            "enabled": True,
            "alert_type": "greenroom_queueing",
            "mechanisms": {"webhooks": [{"id": hook["id"]}]},
        },
    )
    assert api.ask("POST", f"{ALERTING}/policies/{made.result['id']}/test").status == 200
    until(lambda: len(web.taken) == 2)

    (greenroom.folder / "url").write_text(f"{second.url}/second\n")
    running.wait_until_printed("config_loaded", 1)
    (greenroom.folder / "greenroom.toml").write_text(
        CONFIG.format(port=origin.url.rpartition(":")[2]).replace("interval = 1", "interval = 2")
    )
    until(lambda: second.taken, 30)
    assert second.requests[0][0] == "/second"
    web.close()
    second.close()
