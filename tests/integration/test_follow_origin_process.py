"""A room that follows its origin, in a running process: the origin fails, admissions stop within ten
seconds, and an operator takes the limit over.
"""

import time

from typer.testing import CliRunner

from greenroom.cli.commands import app

CONFIG = """
origin = "{origin}"
data = "{data}"

[[rooms]]
name = "shop"
host = "*"
total_active_users = 40
new_users_per_minute = 40
confirm_newcomers = false
capacity = "follow"
floor = 5
"""


def test_admissions_stop_when_the_origin_fails_and_go_on_when_somebody_takes_over(
    greenroom, refusing_port, tmp_path
) -> None:
    text = CONFIG.format(origin=f"http://127.0.0.1:{refusing_port()}", data=greenroom.data)
    file = tmp_path / "follows.toml"
    file.write_text(text)
    running = greenroom.config(text)
    assert running.room("shop")["total_active_users"] == 40
    inside = running.visitor()
    began_s = time.monotonic()
    assert [inside.get().status for _ in range(4)] == [502] * 4

    def stopped() -> bool:
        found = running.room("shop")["capacity"]
        return bool(found and found["stopped"])

    greenroom.eventually(stopped, "admissions stop")
    assert time.monotonic() - began_s < 10
    late = running.visitor()
    page = late.get()
    assert page.status == 200
    assert "The site is recovering" in page.text
    assert inside.get().status == 502, "who is inside stays inside"
    assert running.metric('greenroom_room_held_for_slow_origin{room="shop"}') == 1
    assert 0 < running.metric('greenroom_room_capacity_target_sessions{room="shop"}') < 10
    running.wait_until_printed("of documents failed: admissions stop")

    def operate(*words: str) -> str:
        done = CliRunner().invoke(app, ["room", "take-over", "shop", *words, "--config", str(file)])
        return done.output if done.exit_code else ""

    assert "count: must be a number from 1 to 40" in operate("--limit", "41")
    assert operate() == ""
    greenroom.eventually(lambda: late.get().status == 502, "who waits is admitted")
    settings = running.room("shop")
    assert (settings["capacity"], settings["total_active_users"] <= 10) == (None, True)
    assert operate("--end") == ""
    greenroom.eventually(lambda: running.room("shop")["capacity"], "the room follows again")
