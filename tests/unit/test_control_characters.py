"""Names and notes that others wrote cannot move an operator's cursor, fake a line of output, or
hide what they say.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from greenroom.cli import app
from greenroom.errors import InvalidConfig
from greenroom.model.account import Token
from greenroom.model.fields import is_printable, printable
from greenroom.model.notification import Webhook
from greenroom.runtime.logs import without_controls

EVIL = "fine\nroom other: suspended\r\x1b[2J\x9b2J\u202edereffus\u2028end"
CONFIG = r"""
origin = "http://127.0.0.1:3000"
data = "{data}"
[[rooms]]
name = "shop"
host = "shop.example.com"
total_active_users = 1
new_users_per_minute = 1
description = "fine\nroom other: suspended\r\u001B[2J\u009B2J\u202Edereffus\u2028end"
[[rooms.rules]]
expression = "ssl"
description = "fine\nroom other: suspended\r\u001B[2J\u009B2J\u202Edereffus\u2028end"
"""


@given(st.text())
def test_what_is_printed_has_no_control_characters_and_says_which_there_were(text: str) -> None:
    shown = printable(text)
    assert is_printable(shown)
    assert not any(char < " " or "\x7f" <= char <= "\x9f" for char in shown)
    assert is_printable(text) == (shown == text)


@pytest.mark.parametrize(
    "command",
    [
        ["check", "{file}"],
        ["explain", "https://shop.example.com/", "--config", "{file}"],
        ["explain", "--json", "https://shop.example.com/", "--config", "{file}"],
    ],
)
def test_commands_print_one_line_for_each_line_of_their_own(
    command: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(CONFIG.replace("{data}", str(tmp_path)))
    done = CliRunner().invoke(app, [part.replace("{file}", str(file)) for part in command])
    assert done.exit_code == 0, done.output
    assert "fine\\nroom other: suspended" in done.output or '"fine\\nroom other' in done.output
    assert all(is_printable(line) for line in done.output.split("\n"))


@pytest.mark.parametrize("mark", ["\n", "\x1b", "\x00", "\x9b", "\u202e", "\u2028", "\x7f"])
@pytest.mark.parametrize(
    "make",
    [
        lambda name: Token(id="a", name=name, scopes=("read",), secret_sha256="0" * 64),
        lambda name: Webhook(id="a", name=name, url="https://hooks.example.com/a"),
    ],
)
def test_a_name_with_a_control_character_is_refused(make: Callable[[str], Any], mark: str) -> None:
    assert make("Bücher & Co. 日本")
    with pytest.raises(InvalidConfig, match="one line without control characters"):
        make(f"a{mark}b")


def test_values_in_the_console_log_cannot_begin_a_line_of_their_own() -> None:
    event = without_controls(
        None,
        "info",
        {"event": "config_refused", "reason": EVIL, "count": 3, "exception": "Traceback\n  line"},
    )
    assert is_printable(event["reason"])
    assert (event["count"], event["exception"]) == (3, "Traceback\n  line")
