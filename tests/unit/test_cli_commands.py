"""The command line: help that reads well, mistakes named by option, `check` that says everything
and exits as scripts expect.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from greenroom.cli import app
from greenroom.keys.ticket_keys import KEY_FILE, KeyRing
from greenroom.runtime.compiled import is_compiled

GOOD = """
origin = "http://127.0.0.1:3000"
data = "data"
always_use_https = true
trusted_proxies = ["10.0.0.0/8"]
status_listen = "127.0.0.1:8082"
[limits]
connections = 100

[origins]
"a.example.com" = "https://10.0.0.1:3001"

[[rooms]]
name = "shop"
host = "a.example.com"
total_active_users = 10
new_users_per_minute = 20
queue_all = true
custom_page_html = "<p>{{waitTime}}</p>"
additional_routes = [{ host = "a.example.net", path = "/x" }]
cookie_suffix = "x"

[[rooms]]
name = "status"
host = "*"
path = "/status"
total_active_users = 10
new_users_per_minute = 20
suspended = true

[[rooms.events]]
name = "sale"
event_start_time = 2030-04-01T10:00:00Z
event_end_time = 2030-04-01T18:00:00Z
total_active_users = 20
new_users_per_minute = 30

[[health_checks]]
name = "origin"
address = "10.0.0.7"

[[alert_policies]]
name = "It is full"
alert_type = "greenroom_queueing"
emails = ["ops@example.com"]

[[status_pages]]
rooms = ["*"]

[health]
region = "WEU"

[notifications]
smtp_host = "mail.example.com"
smtp_from = "shop@example.com"
"""

LIMITS = ("--total-active-users", "1", "--new-users-per-minute", "1")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("command", ["serve", "check", "demo", "keys"])
def test_help_names_every_command(command: str) -> None:
    assert command in run("--help").output
    assert run(command, "--help").exit_code == 0


def test_help_begins_with_what_a_newcomer_needs_and_groups_the_rest() -> None:
    shown = run("--help").output
    headings = [
        "Start",
        "Beside a proxy",
        "Plan a sale",
        "Configuration in the store",
        "Accounts, tokens and keys",
    ]
    places = [shown.index(f"─ {heading}") for heading in headings]
    assert places == sorted(places)
    assert shown.index(" serve ") < shown.index(" demo ") < places[1]


def test_help_of_serve_names_every_option_with_its_default() -> None:
    shown = " ".join(run("serve", "--help").output.replace("│", " ").split())
    for option in (
        "--origin",
        "--host",
        "--path",
        "--total-active-users",
        "--new-users-per-minute",
        "--session-duration",
    ):
        assert option in shown
    for default in (
        "every host",
        "127.0.0.1:8080",
        "127.0.0.1:8081",
        "~/.local/state/greenroom",
        "5",
        "fifo",
    ):
        assert f"(default: {default}" in shown or f" or {default})" in shown


def test_the_version_is_the_one_of_the_package() -> None:
    assert run("--version").output == (
        "greenroom 1.0.0 (compiled)\n" if is_compiled() else "greenroom 1.0.0\n"
    )


def test_one_of_a_thing_is_not_several(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(
        'origin = "http://127.0.0.1:3000"\n[[rooms]]\nname = "shop"\nhost = "*"\n'
        "total_active_users = 1\nnew_users_per_minute = 1\n"
        '[[lists]]\nname = "office"\nkind = "ip"\nitems = ["198.51.100.0/24"]\n'
    )
    shown = run("check", str(file)).output
    assert "room shop: 1 active user, 1 new per minute, fifo\n" in shown
    assert "list       $office: 1 address or network\n" in shown


def test_check_says_what_a_good_file_does(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(GOOD)
    result = run("check", str(file))
    assert result.exit_code == 0
    for line in (
        "visitors   http://127.0.0.1:8080",
        "control    http://127.0.0.1:8081",
        f"data       {tmp_path}/data",
        "origin     http://127.0.0.1:3000",
        "origin     https://10.0.0.1:3001 for a.example.com",
        "always_use_https = true",
        "trusted_proxies = 10.0.0.0/8",
        "status_listen = 127.0.0.1:8082",
        "limits.connections = 100",
        "room shop: 10 active users, 20 new per minute, fifo",
        "  covers a.example.com/",
        "  covers a.example.net/x",
        "  queue_all = true",
        "  custom_page_html = 19 characters",
        "room status: suspended: all visitors go to the origin",
        "  covers /status on every host",
        "check      origin: HTTP 10.0.0.7, port 80, every 60 seconds",
        "alert      It is full: greenroom_queueing to ops@example.com",
        "status     /: Status; rooms all; health checks none",
        "mail       mail.example.com:587 as shop@example.com",
        "health.region = WEU",
        "note: room status: event sale: new_users_per_minute: must be at most total_active_users,"
        " 20; the API refuses such an event",
    ):
        assert f"{line}\n" in result.output
    assert (
        "note: room shop: no cookie can be shared by a.example.com, a.example.net" in result.output
    )
    assert (
        "note: room shop: new_users_per_minute: must be at most total_active_users, 10; the API"
        " refuses such a room\n" in result.output
    )
    assert "session_duration" not in result.output
    assert "None" not in result.output, "what was not written is not shown"


def test_check_makes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(GOOD)
    run("check", str(file))
    assert [path.name for path in tmp_path.iterdir()] == ["greenroom.toml"]


def test_check_says_everything_that_is_wrong_as_editors_like_it(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(
        GOOD.replace("connections = 100", "connections = 0").replace(
            "queue_all = true", "queueall = true"
        )
    )
    result = run("check", str(file))
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"{file}:8: limits.connections: must be at least 1, not 0",
        f"{file}:18: rooms[0].queueall: unknown field; did you mean queue_all?",
        f"{file}: 2 problems",
    ]


ASKED = """
[[rooms]]
name = "shop"
host = "*"
total_active_users = 10
new_users_per_minute = 20
"""


def test_check_takes_a_file_without_an_origin_for_one_of_decide(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text('decide = "unix:/run/greenroom/decide.sock"\n' + ASKED)
    result = run("check", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert (
        "origin     none: for greenroom decide or a Python application; greenroom serve and edge require one"
        in lines
    )
    assert "  covers / on every host" in lines
    assert not any(line.startswith("visitors") for line in lines)


def test_check_names_rooms_that_cover_nothing_below_the_root_path(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    paths = {"cart": "/cart", "all": "/", "own": "/app/cart", "itself": "/app", "near": "/apple"}
    file.write_text(
        "".join(
            f'[[rooms]]\nname = "{name}"\nhost = "{name}.example"\npath = "{path}"\n'
            "total_active_users = 1\nnew_users_per_minute = 1\n"
            for name, path in paths.items()
        )
    )
    said = run("check", "--no-origin", "--root-path", "/app/", str(file)).output
    assert re.findall(r"note: room (\w+): covers nothing below", said) == ["cart", "near"]
    assert "covers nothing below" not in run("check", "--no-origin", str(file)).output


def test_check_wants_an_origin_unless_the_file_or_an_option_says_what_it_is_for(
    tmp_path: Path,
) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(ASKED)
    refused = run("check", str(file))
    assert (refused.exit_code, "origin: is required" in refused.stderr) == (1, True)
    assert run("check", "--no-origin", str(file)).exit_code == 0


def test_decide_names_its_own_option(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(ASKED)
    refused = run("decide", "--config", str(file), "--listen", "nowhere")
    assert refused.stderr.startswith(f"{file}: --listen: must be address:port")
    assert (
        run("serve", "--config", str(file), "--decide", "nowhere").stderr.count(
            f"{file}: --decide: must be address:port"
        )
        == 1
    )


def test_check_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = run("check", str(tmp_path / "none.toml"))
    assert result.exit_code == 1
    assert "No such file or directory" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--origin", "x", *LIMITS], "--origin: must be http://host[:port]"),
        (["--origin", "http://a"], "--new-users-per-minute: is required"),
        (
            ["--origin", "http://a", "--total-active-users", "0", "--new-users-per-minute", "1"],
            "--total-active-users: must be at least 1",
        ),
        (
            ["--origin", "http://a", *LIMITS, "--host", "Shop:80"],
            "--host: must be a host name in lower case",
        ),
        (["--origin", "http://a", *LIMITS, "--path", "shop"], "--path: must begin with /"),
        (
            ["--origin", "http://a", *LIMITS, "--session-duration", "1441"],
            "--session-duration: must be at most 1440 minutes",
        ),
        (
            ["--origin", "http://a", *LIMITS, "--queueing-method", "lifo"],
            "--queueing-method: must be one of fifo",
        ),
        (["--origin", "http://a", *LIMITS, "--listen", "80"], "--listen: must be address:port"),
        (["--store", "mysql://a/b"], "--store: must be sqlite:///FILE or postgresql://"),
        (
            ["--origin", "http://127.0.0.1:8080", *LIMITS],
            "--origin: must not be greenroom's own address",
        ),
    ],
)
def test_a_wrong_option_is_named_as_it_was_typed(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    result = run("serve", "--data", str(tmp_path), *arguments)
    assert result.exit_code == 1
    assert said in result.output
    assert "rooms[0]" not in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "a.example.com"], "--origin is required with --host"),
        (
            ["--config", "x", "--origin", "http://a"],
            "--origin cannot be used together with --config",
        ),
        (
            ["--config", "x", "--host", "a", "--path", "/"],
            "--host, --path cannot be used together with --config",
        ),
        (["--total-active-users", "many"], "--total-active-users"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(arguments: list[str], said: str) -> None:
    result = run("serve", *arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_keys_are_rotated_and_old_tickets_stay_good(tmp_path: Path) -> None:
    before = KeyRing(tmp_path, 1_000)
    result = run("keys", "rotate", "--data", str(tmp_path))
    assert result.exit_code == 0
    assert f"new key written to {tmp_path}" in result.output
    assert (tmp_path / KEY_FILE).read_text().count('"secret"') == 2
    before.reload(2_000)
    assert len(before.opening) == 2


def test_keys_are_not_made_where_greenroom_never_ran(tmp_path: Path) -> None:
    result = run("keys", "rotate", "--data", str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "no keys found in" in result.output
    assert not (tmp_path / "none").exists()


def test_printing_goes_on_when_no_one_reads() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = "from greenroom.cli.show import complain, say; say('one'); say('two'); complain('alive')"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "alive\n")
