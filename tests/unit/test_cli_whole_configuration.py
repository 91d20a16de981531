"""`greenroom export`, `import`, `apply` and `audit`, as someone types them."""

import json
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from greenroom.cli import app
from greenroom.configuration.store import SqlStore, default_url
from greenroom.runtime.stored_secrets import seals_of

DOCUMENT = """
[[lists]]
name = "office"
kind = "ip"
items = [{ ip = "203.0.113.0/24" }]

[[zones]]
name = "example.com"

[[zones.waiting_rooms]]
name = "shop"
host = "shop.example.com"
total_active_users = 2000
new_users_per_minute = 600
"""


def run(*arguments: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=text)


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(tmp_path / "data")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "configuration.toml"
    path.write_text(DOCUMENT)
    return path


def store_of(data: str) -> SqlStore:
    """The store of a data directory, with its secrets."""
    return SqlStore(default_url(Path(data)), seals_of(Path(data)))


def test_apply_says_what_it_did_and_has_nothing_to_do_the_second_time(
    data: str, file: Path
) -> None:
    checked = run("apply", str(file), "--check", "--data", data)
    assert checked.output.splitlines()[-1] == "4 changes would be made"
    assert not Path(data).exists()
    done = run("apply", str(file), "--data", data)
    assert done.output.splitlines() == [
        "make zone example.com",
        "make room shop of example.com",
        "make list office",
        "make list item 203.0.113.0/24 of office",
        "4 changes made",
    ]
    assert checked.output.splitlines()[:-1] == done.output.splitlines()[:-1]
    assert run("apply", str(file), "--data", data).output == "nothing to do\n"
    file.write_text(DOCUMENT.replace("600", "500").replace('{ ip = "203.0.113.0/24" }', ""))
    assert run("apply", str(file), "--data", data).output.splitlines() == [
        "remove list item 203.0.113.0/24 of office",
        "change room shop of example.com: new_users_per_minute 600 -> 500",
        "2 changes made",
    ]
    assert SqlStore(default_url(Path(data))).revision() == 2


def test_an_export_is_read_back_from_toml_json_and_standard_input(
    data: str, file: Path, tmp_path: Path
) -> None:
    run("apply", str(file), "--data", data)
    written, as_json = (
        run("export", "--data", data).output,
        run("export", "--json", "--data", data).output,
    )
    assert tomllib.loads(written) == json.loads(as_json)
    for number, text in enumerate((written, as_json)):
        other = str(tmp_path / str(number))
        assert run("import", "-", "--data", other, text=text).exit_code == 0
        assert run("export", "--data", other).output == written
        assert run("import", "-", "--data", other, text=text).output == "nothing to do\n"
    refused = run("import", str(file), "--data", data)
    assert refused.exit_code == 0, "the same again is no change"
    file.write_text(DOCUMENT.replace("600", "500"))
    refused = run("import", str(file), "--data", data)
    assert refused.exit_code == 1
    assert (
        "the store already has a configuration; use `greenroom apply` to change it"
        in refused.output
    )


def test_everything_wrong_is_said_with_its_place_and_nothing_is_changed(
    data: str, file: Path
) -> None:
    rule = '[[zones.waiting_rooms.rules]]\nexpression = "ip.src in $ofice"\n'
    wrong = DOCUMENT.replace("shop.example.com", "elsewhere.org").replace("2000", "0")
    file.write_text(wrong + rule)
    result = run("apply", str(file), "--data", data)
    assert result.exit_code == 1
    assert (
        f"{file}:12: zones/0/waiting_rooms/0: host: must be example.com or a host below it, not elsewhere.org"
        in result.output
    )
    assert (
        f"{file}:13: zones/0/waiting_rooms/0: total_active_users: must be at least 1"
        in result.output
    )
    assert "(1:11):\nip.src in $ofice\n          ^^^^^^ there is no list" in result.output
    assert SqlStore(default_url(Path(data))).revision() == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [("zones = 3", "zones: must be a list"), ("x = [", "x.toml: "), ("{", "x.toml: ")],
)
def test_a_file_that_cannot_be_read_is_said(
    text: str, said: str, data: str, tmp_path: Path
) -> None:
    (tmp_path / "x.toml").write_text(text)
    result = run("apply", str(tmp_path / "x.toml"), "--data", data)
    assert result.exit_code == 1
    assert said in result.output
    assert run("apply", str(tmp_path / "none.toml"), "--data", data).exit_code == 1


POLICY = rb'{"name": "p", "alert_type": "greenroom_event", "mechanisms": {"email": [{"id": "a@b.example"}]}, "filters": {"zones": ["\ud800"]}}'


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", b"null", "the document must be a table"),
        ("x.json", b"[" * 200_000, "x.json: is nested too deeply"),
        ("x.toml", b"a=" + b"{b=" * 5_000, "x.toml: is nested too deeply"),
        ("x.json", b"zones = 3", "x.json: is not JSON: "),
        ("x.toml", b"x = [", "x.toml: is not TOML: "),
        ("x.toml", b'{"zones": ' + b"9" * 10_000 + b"}", "x.toml: is not JSON: "),
        ("x.toml", b"a = \xff", "x.toml: is not UTF-8 at byte 4"),
        ("x.json", b'{"zones": 3}', "x.json:1: zones: must be a list"),
        (
            "x.json",
            b'{"alert_policies": [' + POLICY + b"]}",
            "the document contains an unpaired surrogate",
        ),
    ],
)
def test_a_file_is_called_what_its_name_and_its_beginning_say(
    name: str, text: bytes, said: str, data: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    result = run("import", str(path), "--data", data)
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert "set_int_max_str_digits" not in result.stderr


def test_the_audit_log_is_shown_newest_first(data: str, file: Path) -> None:
    run("apply", str(file), "--data", data)
    file.write_text(DOCUMENT.replace("600", "500"))
    run("apply", str(file), "--data", data)
    lines = run("audit", "--data", data).output.splitlines()
    assert len(lines) == 5
    assert lines[0].endswith(": lowered New visitors per minute from 600 to 500 in room shop")
    assert "command line (" in lines[0]
    newest = json.loads(run("audit", "--json", "--limit", "1", "--data", data).output)
    assert (newest["before"], newest["after"]) == (
        {"new_users_per_minute": 600},
        {"new_users_per_minute": 500},
    )


def test_the_audit_log_names_the_room_of_rules(data: str, file: Path) -> None:
    rule = '[[zones.waiting_rooms.rules]]\naction = "bypass_waiting_room"\nexpression = "ssl"\n'
    file.write_text(f"{DOCUMENT}\n{rule}")
    run("apply", str(file), "--data", data)
    assert ": created bypass rules shop\n" in run("audit", "--data", data).output


def test_a_store_by_url_is_used_instead_of_the_data_directory(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    assert run("apply", str(file), "--store", url).exit_code == 0
    assert "shop" in run("export", "--store", url).output
    refused = run("export", "--store", "mysql://a/b")
    assert refused.exit_code == 2
    assert "must be sqlite:///FILE or postgresql://" in refused.output


ALERTS = """
[[webhooks]]
id = "chat"
name = "team chat"
url = "https://hooks.slack.com/services/T/B/X"

[[webhooks]]
id = "ours"
name = "ours"
url = "https://alerts.example.com/in"
secret = "s3cret"

[[pagerduty_services]]
id = "pd"
name = "on call"
routing_key = "R0KEY"

[[alert_policies]]
id = "down"
name = "down"
enabled = true
alert_type = "health_check_status_notification"
alert_interval = "30m"
filters = { status = ["Unhealthy"] }

[alert_policies.mechanisms]
webhooks = [{ id = "chat" }, { id = "ours" }]
pagerduty = [{ id = "pd" }]
email = [{ id = "ops@example.com" }]
"""


def test_policies_and_destinations_are_exported_without_secrets_and_keep_them_where_they_are_known(
    data: str, tmp_path: Path
) -> None:
    assert (
        run("apply", "-", "--data", data, text=ALERTS).output.splitlines()[-1] == "4 changes made"
    )
    store = store_of(data)
    before = store.read()
    assert before.webhooks["ours"].record.secret == "s3cret"
    assert before.alert_policies["down"].record.webhook_ids == ("chat", "ours")
    exported = run("export", "--data", data).output
    assert not any(secret in exported for secret in ("s3cret", "R0KEY", "/services/T/B/X"))
    assert run("apply", "-", "--data", data, text=exported).output == "nothing to do\n"
    renamed = (
        exported.replace('"on call"', '"all day"')
        .replace('"team chat"', '"chat"')
        .replace('"30m"', '"1h"')
    )
    assert (
        run("apply", "-", "--data", data, text=renamed).output.splitlines()[-1] == "3 changes made"
    )
    after = store.read()
    assert after.webhooks["chat"].record.url == "https://hooks.slack.com/services/T/B/X"
    assert after.pagerduty_services["pd"].record.routing_key == "R0KEY"
    assert (after.alert_policies["down"].record.alert_interval, after.webhooks["ours"]) == (
        "1h",
        before.webhooks["ours"],
    )

    elsewhere = str(tmp_path / "elsewhere")
    refused = run("import", "-", "--data", elsewhere, text=exported)
    assert refused.exit_code == 1
    for what in ("url", "secret", "routing_key"):
        assert f"{what}: is not part of an export; write it in place of ***" in refused.output
    whole = exported.replace(
        '"https://hooks.slack.com/***"', '"https://hooks.slack.com/services/T/B/X"'
    )
    whole = whole.replace('routing_key = "***"', 'routing_key = "R0KEY"').replace(
        'secret = "***"', 'secret = "s3cret"'
    )
    assert run("import", "-", "--data", elsewhere, text=whole).exit_code == 0
    again = store_of(elsewhere).read()
    assert [entry.record for entry in again.webhooks.values()] == [
        entry.record for entry in before.webhooks.values()
    ]
    assert again.alert_policies["down"].record == before.alert_policies["down"].record


def test_a_secret_does_not_follow_a_webhook_to_another_server(data: str) -> None:
    assert run("apply", "-", "--data", data, text=ALERTS).exit_code == 0
    moved = run("export", "--data", data).output.replace(
        "alerts.example.com", "elsewhere.example.com"
    )
    refused = run("apply", "-", "--data", data, text=moved)
    assert "secret: is not part of an export" in refused.output
    moved = moved.replace('secret = "***"', "")
    assert run("apply", "-", "--data", data, text=moved).exit_code == 0
    assert store_of(data).read().webhooks["ours"].record.secret == ""


def test_a_document_without_sections_about_alerts_leaves_them_alone_and_an_empty_one_removes_them(
    data: str,
) -> None:
    run("apply", "-", "--data", data, text=ALERTS)
    assert run("apply", "-", "--data", data, text=DOCUMENT).exit_code == 0
    assert set(store_of(data).read().alert_policies) == {"down"}
    assert run("apply", "-", "--data", data, text="alert_policies = []").output.splitlines() == [
        "remove alert policy down",
        "1 change made",
    ]
    assert len(store_of(data).read().webhooks) == 2


READERS = {
    "audit": ["audit"],
    "export": ["export"],
    "tokens": ["token", "list"],
    "token": ["token", "revoke", "deploy"],
    "accounts": ["account", "list"],
    "account": ["account", "remove", "ada"],
}


@pytest.mark.parametrize("command", READERS.values(), ids=READERS)
def test_a_command_that_reads_makes_no_store_and_says_what_is_missing(
    command: list[str], tmp_path: Path
) -> None:
    data, url = tmp_path / "data", f"sqlite:///{tmp_path / 'other' / 'config.db'}"
    hint = "set the data directory of greenroom with --data, or its store with --store"
    result = run(*command, "--data", str(data))
    assert (result.exit_code, result.stderr) == (
        2,
        f"greenroom: the data directory {data} does not exist: {hint}\n",
    )
    result = run(*command, "--store", url)
    assert (result.exit_code, result.stderr) == (
        2,
        f"greenroom: there is no configuration of greenroom in {url}: set its store with --store\n",
    )
    assert list(tmp_path.iterdir()) == []
    data.mkdir()
    result = run(*command, "--data", str(data))
    assert (result.exit_code, result.stderr) == (
        2,
        f"greenroom: no configuration store found in {data}: {hint}\n",
    )
    assert list(data.iterdir()) == []


def test_a_database_without_a_configuration_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    sqlite3.connect(path).close()
    path.touch()
    assert (
        "there is no configuration of greenroom in"
        in run("audit", "--store", f"sqlite:///{path}").stderr
    )
    with sqlite3.connect(path) as found:
        assert found.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
