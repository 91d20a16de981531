"""`[[webhooks]]`, `[[pagerduty_services]]` and `[[alert_policies]]` in a configuration file."""

from pathlib import Path

import pytest

from greenroom.config_file.load import read_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.configuration.layers import layered
from greenroom.errors import InvalidConfig
from greenroom.model.configuration import Configuration, Record
from greenroom.model.notification import AlertPolicy, PagerdutyService, Webhook

WHOLE = """
[[webhooks]]
name = "team chat"
url_file = "chat"
[[webhooks]]
name = "ours"
url = "https://alerts.example.com/in?key=k"
secret_file = "secret"
[[pagerduty_services]]
name = "on call"
routing_key_file = "key"
[[alert_policies]]
name = "down"
alert_type = "health_check_status_notification"
alert_interval = "30m"
emails = ["ops@example.com"]
webhooks = ["team chat", "ours"]
pagerduty_services = ["on call"]
filters = { status = ["Unhealthy"] }
"""


def read(text: str, folder: Path) -> ProcessConfig:
    for name, content in (
        ("chat", "https://hooks.slack.com/services/T/B/X\n"),
        ("secret", "s3cret\r\nsecond"),
        ("key", "R0KEY"),
    ):
        (folder / name).write_text(content)
    return read_config(text, folder / "greenroom.toml")


def records(config: ProcessConfig) -> list[Record]:
    return [entry.record for _, entry in config.documents.entries()]


def problems(text: str, folder: Path) -> set[str]:
    with pytest.raises(InvalidConfig) as caught:
        read(text, folder)
    return {problem.pointer for problem in caught.value.problems}


def test_they_become_records_with_ids_of_their_names_and_secrets_of_files_that_are_watched(
    tmp_path: Path,
) -> None:
    found = read(WHOLE, tmp_path)
    chat, ours, service, policy = records(found)
    assert isinstance(chat, Webhook)
    assert isinstance(ours, Webhook)
    assert isinstance(service, PagerdutyService)
    assert isinstance(policy, AlertPolicy)
    assert (chat.url, chat.channel, chat.shown_url) == (
        "https://hooks.slack.com/services/T/B/X",
        "slack",
        "https://hooks.slack.com/***",
    )
    assert (ours.secret, ours.channel, ours.shown_url) == (
        "s3cret",
        "generic",
        "https://alerts.example.com/in?***",
    )
    assert service.routing_key == "R0KEY"
    assert (policy.webhook_ids, policy.pagerduty_ids) == ((chat.id, ours.id), (service.id,))
    assert (policy.emails, policy.interval_ms, policy.filters) == (
        ("ops@example.com",),
        1_800_000,
        {"status": ("Unhealthy",)},
    )
    assert {path.name for path in found.files} >= {"chat", "secret", "key"}
    assert not any(
        secret in repr(found) for secret in ("s3cret", "R0KEY", "/services/T/B/X", "key=k")
    )
    assert [record.id for record in records(read(WHOLE, tmp_path))] == [
        chat.id,
        ours.id,
        service.id,
        policy.id,
    ]


def test_the_layers_show_them_read_only_beside_what_the_store_has(tmp_path: Path) -> None:
    found = read(WHOLE, tmp_path)
    both = layered(found.documents, Configuration(revision=7))
    assert both.revision == 7
    assert [
        entry.read_only
        for entry in (
            *both.webhooks.values(),
            *both.pagerduty_services.values(),
            *both.alert_policies.values(),
        )
    ] == [True] * 4
    nothing = read_config("", tmp_path / "greenroom.toml")
    stored = Configuration(revision=3)
    assert layered(nothing.documents, stored) is stored


def test_everything_wrong_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    assert problems(
        """
[[webhooks]]
name = "a"
[[webhooks]]
name = "a"
url = "ftp://example.com"
[[webhooks]]
name = "b"
url = "https://example.com"
url_file = "chat"
secret_file = "gone"
channel = "carrier pigeon"
[[webhooks]]
url = "https://example.com"
[[pagerduty_services]]
name = "p"
routing_key_file = "chat"
[[alert_policies]]
name = "x"
alert_type = "greenroom_queueing"
alert_interval = "soon"
emails = ["nobody"]
webhooks = ["b", "c"]
filters = { status = ["Unhealthy"] }
[[alert_policies]]
name = "y"
alert_type = "greenroom_queueing"
filters = { colour = ["red"] }
[[alert_policies]]
name = "z"
alert_type = "bgp_hijack_notification"
""",
        tmp_path,
    ) == {
        "webhooks[0].url",
        "webhooks[1].name",
        "webhooks[1].url",
        "webhooks[2].url",
        "webhooks[2].secret_file",
        "webhooks[2].channel",
        "webhooks[3].name",
        "pagerduty_services[0].routing_key_file",
        "alert_policies[0].alert_interval",
        "alert_policies[0].emails[0]",
        "alert_policies[0].webhooks[1]",
        "alert_policies[1].filters.colour",
        "alert_policies[2].alert_type",
    }


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('webhooks = "x"', "webhooks"),
        ("alert_policies = [1]", "alert_policies"),
        ('[[webhooks]]\nname = "a"\nurl_file = "empty"', "webhooks[0].url_file"),
        ('[[webhooks]]\nname = "a"\nurl_file = "huge"', "webhooks[0].url_file"),
        (
            '[[alert_policies]]\nname = "a"\nalert_type = "greenroom_queueing"\nfilters = {waiting_room_id = "x"}',
            "alert_policies[0].filters.waiting_room_id",
        ),
        (
            '[[alert_policies]]\nname = "a"\nalert_type = "greenroom_queueing"\nwebhooks = [7]',
            "alert_policies[0].webhooks[0]",
        ),
    ],
)
def test_odd_values_are_problems_and_no_accidents(tmp_path: Path, text: str, pointer: str) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "huge").write_text("x" * 20_000)
    assert problems(text, tmp_path) == {pointer}
