"""What every channel sends: its own format, one incident under one key, no markup from outside, and
its secret only where it belongs.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import replace

import pytest

from greenroom.alerts.mail import written
from greenroom.alerts.rules.channels import CHANNELS, channel_of, shown_url
from greenroom.alerts.rules.message import Message, payload
from greenroom.model.alert_types import ALERTS, example, make
from greenroom.outbound.mail import MailServer

SECRET = "s3cret-value"
ROW = ALERTS["greenroom_queueing"]
START = Message(example(ROW, 1_700_000_000_000), "p1", "Shop alerts", "Team")
END = Message(
    make(
        ROW.type,
        "end",
        1_700_000_060_000,
        START.alert.correlation_id,
        ROW.example,
        subject_name="shop",
    ),
    "p1",
    "Shop alerts",
    "Team",
)
TEST = Message(None, webhook_name="Team")
ADDRESS = {
    "slack": "https://hooks.slack.com/services/T000/B000/token",
    "discord": "https://discord.com/api/webhooks/1/token",
    "gchat": "https://chat.googleapis.com/v1/spaces/x/messages?key=k&token=token",
    "msteams": "https://prod-1.westeurope.logic.azure.com:443/workflows/token/triggers/manual/paths/invoke?sig=token",
    "feishu": "https://open.feishu.cn/open-apis/bot/v2/hook/token",
    "opsgenie": "https://api.eu.opsgenie.com/v2/alerts",
    "datadog": "https://api.datadoghq.com/api/v1/events?api_key=token",
    "splunk": "https://inputs.splunkcloud.com:8088/services/collector/event",
    "pagerduty": "https://events.pagerduty.com/v2/enqueue",
    "generic": "https://receiver.example.com/hook",
}
every_channel = pytest.mark.parametrize("name", CHANNELS)


def sent(
    name: str, message: Message, url: str = "", secret: str = SECRET
) -> tuple[str, dict, dict]:
    post = CHANNELS[name].write(message, url or ADDRESS[name], secret, 1_700_000_099_000)
    return post.url, dict(post.headers), json.loads(post.body)


@every_channel
def test_an_address_is_recognised_and_shown_without_its_secret(name: str) -> None:
    channel = CHANNELS[name]
    assert channel_of(ADDRESS[name]) is channel
    assert "token" not in shown_url(channel, ADDRESS[name])
    assert shown_url(channel, ADDRESS[name]).split("/")[:3] == ADDRESS[name].split("/")[:3]


@every_channel
@pytest.mark.parametrize("message", [START, END, TEST], ids=["start", "end", "test"])
def test_the_sentence_for_people_is_in_it_and_secrets_do_not_show_in_logs(
    name: str, message: Message
) -> None:
    post = CHANNELS[name].write(message, ADDRESS[name], SECRET, 0)
    words = message.text.split()[0]
    assert words in post.body.decode()
    assert dict(post.headers)["Content-Type"] == "application/json"
    assert SECRET not in repr(post)
    assert ADDRESS[name] not in repr(post)


@every_channel
def test_the_test_begins_with_the_words_that_receivers_know(name: str) -> None:
    assert b"Hello World!" in CHANNELS[name].write(TEST, ADDRESS[name], "", 0).body


def test_the_generic_payload_has_the_published_fields() -> None:
    _, headers, body = sent("generic", START)
    assert headers["cf-webhook-auth"] == SECRET
    assert body == {
        "name": "Shop alerts",
        "text": START.text,
        "data": dict(ROW.example),
        "ts": 1_700_000_000,
        "account_id": START.alert.account_id,
        "policy_id": "p1",
        "policy_name": "Shop alerts",
        "alert_type": "greenroom_queueing",
        "alert_correlation_id": "example-greenroom_queueing",
        "alert_event": "ALERT_STATE_EVENT_START",
        "webhook_name": "Team",
    }
    assert sent("generic", END)[2]["alert_event"] == "ALERT_STATE_EVENT_END"
    assert "data" not in sent("generic", TEST)[2]
    assert "cf-webhook-auth" not in sent("generic", TEST, secret="")[1]


def test_only_services_with_a_place_for_it_get_the_secret() -> None:
    where = {}
    for name in CHANNELS:
        _, headers, body = sent(name, START)
        where[name] = [key for key, value in headers.items() if SECRET in value] + [
            key for key, value in body.items() if SECRET in str(value)
        ]
    assert where == {
        "slack": [],
        "discord": [],
        "gchat": [],
        "msteams": [],
        "feishu": [],
        "opsgenie": ["Authorization"],
        "datadog": ["DD-API-KEY"],
        "splunk": ["Authorization"],
        "pagerduty": ["routing_key"],
        "generic": ["cf-webhook-auth"],
    }


def test_start_and_end_of_an_incident_are_one_thing_at_the_receiver() -> None:
    key = START.alert.correlation_id
    trigger, resolve = sent("pagerduty", START)[2], sent("pagerduty", END)[2]
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert trigger["dedup_key"] == resolve["dedup_key"] == key
    assert trigger["payload"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert sent("opsgenie", START)[2]["alias"] == key
    assert (
        sent("opsgenie", END)[0]
        == f"https://api.eu.opsgenie.com/v2/alerts/{key}/close?identifierType=alias"
    )
    assert (
        sent("datadog", START)[2]["aggregation_key"]
        == sent("datadog", END)[2]["aggregation_key"]
        == key
    )
    assert (sent("datadog", START)[2]["alert_type"], sent("datadog", END)[2]["alert_type"]) == (
        "warning",
        "success",
    )


def test_feishu_is_signed_and_its_refusals_are_seen() -> None:
    body = sent("feishu", START)[2]
    expected = hmac.new(f"1700000099\n{SECRET}".encode(), b"", hashlib.sha256).digest()
    assert base64.b64decode(body["sign"]) == expected
    assert body["timestamp"] == "1700000099"
    assert "sign" not in sent("feishu", START, secret="")[2]
    problem = CHANNELS["feishu"].problem
    assert problem(200, b'{"code":0}') == problem(200, b"ok") == ""
    assert "19021" in problem(200, b'{"code":19021,"msg":"sign match fail"}')
    assert "500" in problem(500, b"")


def test_splunk_gets_an_event_or_at_a_raw_address_the_payload_alone() -> None:
    event = sent("splunk", START)[2]
    assert (event["time"], event["event"]["alert_type"]) == (1_700_000_000, "greenroom_queueing")
    assert (
        sent("splunk", START, "https://splunk.example.com/services/collector/raw?channel=1")[2][
            "ts"
        ]
        == 1_700_000_000
    )


def test_what_others_wrote_is_no_markup() -> None:
    nasty = "<!channel> <@U1> @everyone *x* [a](http://b) <b>"
    alert = make(
        "greenroom_config_refused",
        "start",
        1,
        "x",
        {"source": "file", "problems": nasty},
        subject_name=nasty[:60],
    )
    message = Message(alert, "p", "policy <!here>", "w")
    slack = json.dumps(sent("slack", message)[2]["attachments"][0] | {"fallback": ""})
    assert "<" not in slack
    assert "&lt;!channel&gt;" in slack
    discord = sent("discord", message)[2]
    assert discord["allowed_mentions"] == {"parse": []}
    assert "[a](" not in discord["embeds"][0]["description"].replace("\\", "?")
    gchat = sent("gchat", message)[2]
    assert "<" not in json.dumps(
        [gchat["text"], gchat["cardsV2"][0]["card"]["sections"]]
    )  # its header is plain text


def test_long_texts_are_cut_to_what_services_accept() -> None:
    row = ALERTS["greenroom_config_refused"]
    alert = make(row.type, "start", 1, "x", {"source": "file", "problems": "y" * 5_000})
    message = Message(alert, "p", "z" * 200)
    assert len(sent("pagerduty", message)[2]["payload"]["summary"]) <= 1_024
    assert len(sent("opsgenie", message)[2]["message"]) <= 130
    assert len(sent("discord", message)[2]["embeds"][0]["fields"][1]["value"]) <= 1_024


def test_a_mail_about_a_check_says_each_thing_once_and_links_to_it() -> None:
    row = ALERTS["health_check_status_notification"]
    about = {"subject_id": "c1", "subject_name": "shop", "zone_id": "z1"}
    begun = make(row.type, "start", 1_700_000_000_000, "i1", row.example, **about)
    message = Message(begun, "p1", "Team", dashboard_url="https://rooms.example.com")
    server = MailServer("mail.example.com")
    mail = written(message, server, "a@example.com")
    assert mail["Subject"] == "[greenroom] shop is unhealthy"
    text = mail.get_body(("plain",)).get_content()
    assert text.count("2023-11-14") == 1
    assert text.count("Status: ") == 1
    assert "Reason: TCP connection failed\nExpected codes" in text
    assert "What it means: The server refused the connection" in text
    assert text.endswith("https://rooms.example.com/zones/z1/health/c1\n")
    assert 'href="https://rooms.example.com/zones/z1/health/c1"' in mail.as_string().replace(
        "=3D", "="
    ).replace("=\n", "")
    bare = written(Message(begun, "p1", "Team"), server, "a@example.com")
    assert "http" not in bare.get_body(("plain",)).get_content()
    ended = make(row.type, "end", 1_700_000_000_000, "i1", row.example, **about)
    assert Message(ended).title == "shop is healthy again"
    tried = replace(ended, correlation_id="test-1", state="start")
    assert Message(tried).title == "Test: shop is unhealthy", "not taken for the real thing"
    assert payload(message)["data"] == row.example, "webhooks keep both generations of fields"
