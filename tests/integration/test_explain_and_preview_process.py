"""The route tester and the previews of a running greenroom, asked over HTTP as the command and the
API do.
"""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from greenroom.cli import app

CONFIG = """
origin = "{origin}"
[[rooms]]
name = "shop"
host = "shop.example.com"
total_active_users = 1
new_users_per_minute = 10
[[rooms.rules]]
expression = 'http.request.uri.path == "/open"'
"""


def secret_of(text: str) -> str:
    return max(text.split(), key=len)


@pytest.fixture
def running(greenroom: Any, origin: Any) -> Any:
    return greenroom.config(CONFIG.format(origin=origin.url))


def ask(running: Any, secret: str, url: str, *options: str) -> dict[str, Any]:
    control = f"{running.control[0]}:{running.control[1]}"
    done = CliRunner().invoke(
        app, ["explain", url, "--control", control, "--token", secret, "--json", *options]
    )
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_running_greenroom_explains_with_what_is_in_its_books(
    running: Any, greenroom: Any
) -> None:
    secret = secret_of(
        CliRunner().invoke(app, ["token", "create", "reader", "--data", str(greenroom.data)]).stdout
    )
    browser = ("-H", "Accept: text/html")
    empty = ask(running, secret, "https://shop.example.com/", *browser)
    seats = {
        "active": 0,
        "waiting": 0,
        "origin": "",
        "held_for_origin": False,
        "held_for_slow_origin": False,
        "capacity": None,
        "newcomers_confirmed": False,
        "storage_failed": False,
    }
    assert (empty["result"], empty["word"], empty["seats"]) == ("depends", "limits", seats)
    assert not running.visitor().get("/").waiting
    full = ask(running, secret, "https://shop.example.com/", *browser)
    assert (full["result"], full["word"], full["seats"]["active"]) == ("waiting", "full", 1)
    assert running.visitor().get("/").waiting, "as it was told"
    assert ask(running, secret, "https://shop.example.com/open")["word"] == "bypassed"
    assert not running.visitor().get("/open").waiting
    assert ask(running, secret, "https://other.example.com/")["word"] == "unknown_host"
    assert running.visitor("other.example.com").get("/").status == 421, "as it was told"
    assert ask(running, secret, "https://shop.example.com/a%5cb")["word"] == "malformed"
    assert running.visitor().get("/a%5cb").status == 400


def test_no_client_is_told_without_a_token(running: Any) -> None:
    answer = running.ask("/client/v4/explain?url=https://shop.example.com/")
    assert answer.status == 401
    control = f"{running.control[0]}:{running.control[1]}"
    done = CliRunner().invoke(
        app, ["explain", "https://shop.example.com/", "--control", control, "--token", "wrong"]
    )
    assert done.exit_code == 2
    assert "greenroom: " in done.stderr


def test_a_preview_is_made_with_a_token_and_seen_without_one(running: Any, greenroom: Any) -> None:
    made = CliRunner().invoke(
        app, ["token", "create", "editor", "--scope", "edit", "--data", str(greenroom.data)]
    )
    headers = {
        "Authorization": f"Bearer {secret_of(made.stdout)}",
        "Content-Type": "application/json",
    }
    control = running.control_visitor()

    def call(method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = control.get(f"/client/v4{path}", method, headers, json.dumps(body).encode())
        assert answer.status == 200, answer.text
        return json.loads(answer.body)["result"]

    zone = call(
        "POST",
        "/zones",
        {"name": "example.com", "account": {"id": "67726565656e726f6f6d000000000001"}},
    )["id"]
    page = "<script>var m={{waitTime}}</script>{{#queueAll}}all{{/queueAll}}{{#isEventPrequeueing}}soon{{/isEventPrequeueing}}"
    url = call("POST", f"/zones/{zone}/waiting_rooms/preview", {"custom_html": page})["preview_url"]
    path = url.partition(f":{running.control[1]}")[2]
    plain = control.get(path)
    assert plain.text == "<script>var m=10</script>"
    assert plain.headers["Content-Security-Policy"].startswith("sandbox ")
    assert plain.headers.get("Refresh") is None
    assert control.get(f"{path}?force_queue=true&waitTime=25").text == "<script>var m=0</script>all"
    assert control.get(f"{path}?event=prequeueing").text.endswith("soon")
    assert "<h1>Welcome</h1>" in control.get(f"{path}?queueing_method=passthrough").text
    assert (
        json.loads(control.get(path, headers={"Accept": "application/json"}).body)["cfWaitingRoom"][
            "waitTime"
        ]
        == 10
    )
    assert control.get(f"{path}?waitTime=soon").status == 400
    assert control.get(path[:-4] + "ffff").status == 404


def test_the_built_in_page_can_be_looked_at_in_every_language(running: Any) -> None:
    answer = running.ask("/client/v4/preview/built-in?language=ar-EG&queueing_method=random")
    assert "<html lang=ar-EG dir=rtl>" in answer.text
    assert "script-src 'sha256-" in answer.headers["Content-Security-Policy"]
    update = running.control_visitor().get(
        "/client/v4/preview/built-in?language=ar-EG", headers={"Greenroom-Update": "1"}
    )
    assert json.loads(update.body)["greenroom"]["words"]["view"] == "fifo"
