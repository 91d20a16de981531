"""Live operations on a room of the configuration file, from the shell, in a running process."""

import json
import re

from typer.testing import CliRunner

from greenroom.cli.commands import app

CONFIG = """
origin = "{origin}"
data = "{data}"

[[rooms]]
name = "shop"
host = "*"
total_active_users = 10
new_users_per_minute = 10
"""


def test_a_room_of_the_file_is_held_and_messaged_and_a_restart_keeps_both(
    greenroom, origin, tmp_path
) -> None:
    text = CONFIG.format(origin=origin.url, data=greenroom.data)
    file = tmp_path / "operated.toml"
    file.write_text(text)

    def operate(*words: str) -> str:
        done = CliRunner().invoke(app, ["room", *words, "--config", str(file)])
        assert done.exit_code == 0, done.output
        return done.output

    running = greenroom.config(text)
    inside = running.visitor()
    assert not inside.get().waiting
    operate("hold", "shop")
    operate("message", "shop", "We will be back at ten.")
    greenroom.eventually(lambda: running.visitor().get().waiting, "new visitors wait")
    assert not inside.get().waiting
    explained = CliRunner().invoke(
        app, ["explain", "http://a.example/", "--config", str(file), "--json"]
    )
    settings = {one["name"]: one for one in json.loads(explained.stdout)["settings"]}
    assert (settings["queue_all"]["value"], settings["queue_all"]["source"]) == (True, "operation")
    running.kill()
    running = greenroom.config(text)
    waiting = running.visitor()
    page = waiting.get()
    assert page.waiting
    assert "We will be back at ten." in page.text
    operate("hold", "shop", "--end")
    greenroom.eventually(lambda: not waiting.get().waiting, "the visitor is let in")
    assert file.read_text() == text
    unknown = CliRunner().invoke(app, ["room", "hold", "blog", "--config", str(file)])
    assert unknown.exit_code == 1
    assert re.search("there is no room blog", unknown.output)
