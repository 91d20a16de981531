"""Rooms change while greenroom runs: by signal, by every way a file can be replaced, and never to
something broken.
"""

import http.client
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

ROOM = '[[rooms]]\nname = "{name}"\nhost = "*"\npath = "{path}"\ntotal_active_users = {active}\nnew_users_per_minute = 1000\n{more}\n'


def text(origin, active: int = 1, top: str = "", more: str = "") -> str:
    return f'{top}\norigin = "{origin.url}"\n' + ROOM.format(
        name="main", path="/", active=active, more=more
    )


def in_place(path: Path, content: str) -> None:
    path.write_text(content)


def by_renaming(path: Path, content: str) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(content)
    os.replace(beside, path)


def by_removing(path: Path, content: str) -> None:
    path.unlink()
    path.write_text(content)


@pytest.mark.parametrize("replace", [in_place, by_renaming, by_removing])
def test_a_changed_file_counts_without_a_signal(
    greenroom, origin, replace: Callable[[Path, str], None]
) -> None:
    running = greenroom.config(text(origin, active=1))
    running.visitor().get()
    late = running.visitor()
    assert late.get().waiting
    replace(greenroom.folder / "greenroom.toml", text(origin, active=2))
    running.wait_until_printed("config_loaded")
    assert not late.wait_until_in().waiting
    assert running.metric("greenroom_config_reloads_total") == 1
    assert running.metric('greenroom_room_total_active_users_limit{room="main"}') == 2


def test_a_link_that_is_turned_counts_like_a_changed_file(greenroom, origin) -> None:
    for version, active in (("1", 1), ("2", 2)):
        (greenroom.folder / version).mkdir()
        (greenroom.folder / version / "greenroom.toml").write_text(text(origin, active))
    current = greenroom.folder / "current"
    current.symlink_to("1")
    running = greenroom.serve("--config", str(current / "greenroom.toml"))
    (greenroom.folder / "next").symlink_to("2")
    os.replace(greenroom.folder / "next", current)
    running.wait_until_printed("config_loaded")
    assert running.room()["total_active_users"] == 2


def test_a_file_that_is_refused_for_want_of_a_template_counts_as_soon_as_the_template_is_there(
    greenroom, origin
) -> None:
    running = greenroom.config(text(origin, active=1))
    (greenroom.folder / "greenroom.toml").write_text(
        text(origin, active=2, more='custom_page_file = "late.html"')
    )
    running.wait_until_printed("config_refused")
    in_place(greenroom.folder / "late.html", "<p>{{waitTime}}</p>")
    running.wait_until_printed("config_loaded")
    assert running.room()["total_active_users"] == 2
    assert running.output.count("config_refused [") == 1


def test_sighup_does_not_end_a_greenroom_without_a_file(greenroom, origin) -> None:
    running = greenroom.room(origin.url, 1)
    visitor = running.visitor()
    visitor.get()
    running.send(signal.SIGHUP)
    running.wait_until_printed("config_loaded")
    assert not visitor.get().waiting


def test_a_broken_file_changes_nothing_and_says_why(greenroom, origin) -> None:
    running = greenroom.config(text(origin, active=1))
    first, second = running.visitor(), running.visitor()
    first.get()
    second.get()
    (greenroom.folder / "greenroom.toml").write_text(text(origin, active=0, more="colour = 1"))
    running.wait_until_printed("config_refused")
    assert "line 7: rooms[0].total_active_users: must be at least 1, not 0" in running.output
    assert running.metric("greenroom_config_valid") == 0
    assert running.metric("greenroom_config_reload_failures_total") == 1
    assert running.ask("/readyz").status == 200
    config = running.status()["config"]
    assert not config["valid"]
    assert [(problem["line"], problem["key"]) for problem in config["problems"]] == [
        (7, "rooms[0].total_active_users"),
        (9, "rooms[0].colour"),
    ]
    assert not first.get().waiting
    assert second.get().waiting
    (greenroom.folder / "greenroom.toml").write_text(text(origin, active=2))
    running.wait_until_printed("config_loaded")
    assert running.metric("greenroom_config_valid") == 1
    assert running.status()["config"]["problems"] == []


def test_a_file_that_is_gone_is_a_broken_file(greenroom, origin) -> None:
    running = greenroom.config(text(origin))
    (greenroom.folder / "greenroom.toml").unlink()
    running.wait_until_printed("No such file or directory")
    assert not running.visitor().get().waiting
    (greenroom.folder / "greenroom.toml").write_text(text(origin, active=3))
    running.wait_until_printed("config_loaded")


def test_a_connection_lives_through_a_reload_and_meets_the_new_rooms(greenroom, origin) -> None:
    running = greenroom.config(text(origin, active=5))
    connection = http.client.HTTPConnection(*running.address, timeout=60)

    def asked() -> str | None:
        connection.request("GET", "/", headers={"Host": "a", "Accept": "text/html"})
        answer = connection.getresponse()
        answer.read()
        assert answer.headers.get("Connection") != "close"
        return answer.headers.get("X-Origin")

    assert asked() == "yes"
    socket = connection.sock
    (greenroom.folder / "greenroom.toml").write_text(text(origin, more="queue_all = true"))
    running.wait_until_printed("config_loaded")
    assert asked() is None
    assert connection.sock is socket


def test_an_answer_under_way_is_not_cut_by_a_reload(greenroom, origin) -> None:
    running = greenroom.config(text(origin, active=5))
    connection = http.client.HTTPConnection(*running.address, timeout=60)
    connection.request("GET", "/slow?60", headers={"Host": "a"})
    answer = connection.getresponse()
    running.send(signal.SIGHUP)
    running.wait_until_printed("config_loaded")
    origin.ends.set()
    assert b"/slow" in answer.read()


def test_a_page_in_a_file_of_its_own_is_watched_too(greenroom, origin) -> None:
    page = greenroom.folder / "page.html"
    page.write_text("<p>first {{waitTimeFormatted}}</p>")
    running = greenroom.config(
        text(origin, more='queue_all = true\ncustom_page_file = "page.html"')
    )
    assert running.visitor().get().text == "<p>first unavailable</p>"
    page.write_text("<p>second {{#queueAll}}")
    running.wait_until_printed("page.html line 1")
    assert running.visitor().get().text == "<p>first unavailable</p>"
    page.write_text("<p>third</p>")
    running.wait_until_printed("config_loaded")
    assert running.visitor().get().text == "<p>third</p>"


def test_what_cannot_change_while_running_is_said(
    greenroom, origin, free_port: Callable[[], int]
) -> None:
    listen, control, other = (f"127.0.0.1:{free_port()}" for _ in range(3))
    fixed = f'data = "{greenroom.data}"\ncontrol = "{control}"\nlisten = '
    (greenroom.folder / "greenroom.toml").write_text(text(origin, top=f'{fixed}"{listen}"'))
    running = greenroom.run(
        "serve", "--config", str(greenroom.folder / "greenroom.toml")
    ).wait_until_ready()
    (greenroom.folder / "greenroom.toml").write_text(
        text(origin, active=9, top=f'{fixed}"{other}"')
    )
    running.wait_until_printed("config_restart_required")
    assert running.room()["total_active_users"] == 9
    assert running.metric("greenroom_config_pending_changes") == 1
    (pending,) = running.status()["config"]["needs_restart"]
    assert pending == f"listen (public listen address) stays {listen}; the file says {other}"
    assert running.visitor().get().status == 200


def test_a_room_that_comes_back_remembers(greenroom, origin) -> None:
    both = text(origin, active=1) + ROOM.format(
        name="sale",
        path="/sale",
        active=1,
        more='json_response_enabled = true\ncookie_suffix = "s"',
    )
    running = greenroom.config(both)
    inside, waiting = running.visitor(), running.visitor()
    inside.get("/sale")
    waiting.take_place("/sale")
    (greenroom.folder / "greenroom.toml").write_text(text(origin, active=1))
    running.wait_until_printed("config_loaded")
    assert [room["name"] for room in running.status()["rooms"]] == ["main"]
    (greenroom.folder / "greenroom.toml").write_text(both)
    running.wait_until_printed("room sale: 1 session, 1 in line")
    assert not inside.get("/sale").waiting
    assert waiting.get("/sale").waiting
    assert running.visitor().get("/sale").waiting
    assert running.room("sale")["active_users"] == 1


def test_origins_and_limits_change_too(greenroom, origin, refusing_port: Callable[[], int]) -> None:
    running = greenroom.config(text(origin, active=5))
    visitor = running.visitor()
    assert visitor.get("/" + "x" * 3000).status == 200
    (greenroom.folder / "greenroom.toml").write_text(
        text(origin, active=5) + "[limits]\nurl_bytes = 1000\n"
    )
    running.wait_until_printed("config_loaded")
    assert visitor.get("/" + "x" * 3000).status == 414
    (greenroom.folder / "greenroom.toml").write_text(
        text(origin, active=5).replace(origin.url, f"http://127.0.0.1:{refusing_port()}")
    )
    running.wait_until_printed("config_loaded", times=2)
    assert visitor.get().status == 502
