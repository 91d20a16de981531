"""Bypass rules through a real process: who is let by, what is counted, what a visitor keeps, and
what `check` says of a bad one.
"""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from greenroom.cli import app

ROOM = """
origin = "{origin}"

[[lists]]
name = "office"
kind = "ip"
items = ["198.51.100.0/24", "2001:db8::/32"]

[[lists]]
name = "partners"
kind = "hostname"
items = ["*.partner.example"]

[[rooms]]
name = "shop"
host = "*"
total_active_users = 1
new_users_per_minute = 1
queue_all = true
"""


def rules(*expressions: str) -> str:
    return "".join(
        f"\n[[rooms.rules]]\nexpression = '''{expression}'''\n" for expression in expressions
    )


def serve(greenroom: Any, origin: Any, *expressions: str, top: str = ""):
    return greenroom.config(top + ROOM.format(origin=origin.url) + rules(*expressions))


def test_a_rule_lets_by_without_a_cookie_and_everybody_else_is_held(
    greenroom: Any, origin: Any
) -> None:
    running = serve(
        greenroom,
        origin,
        'starts_with(http.request.uri.path, "/api/") or ends_with(http.request.uri.path, ".js")',
    )
    for path in ("/api/stock", "/shop.js"):
        answer = running.visitor().get(path)
        assert not answer.waiting
        assert answer.headers.get("Set-Cookie") is None
    assert running.visitor().get("/apis").waiting
    assert running.room("shop")["requests"] == {"bypassed": 2, "held": 1}
    assert running.metric('greenroom_room_requests_total{result="bypassed",room="shop"}') == 2
    assert running.room("shop")["active_users"] == 0


def test_everything_of_the_request_line_and_the_connection_reaches_the_rules(
    greenroom: Any, origin: Any
) -> None:
    expressions = {
        'raw.http.request.uri.path == "/a/./%62" and http.request.uri.path == "/a/b"': (
            "/a/./%62",
            {},
        ),
        'http.request.version == "HTTP/1.1" and http.request.uri.query == "version"': (
            "/?version",
            {},
        ),
        'cf.edge.server_ip == 127.0.0.1 and cf.edge.server_port > 0 and http.request.uri.path == "/server"': (
            "/server",
            {},
        ),
        'len(cf.ray_id) == 16 and http.request.uri.path == "/ray"': ("/ray", {}),
        'any(http.request.headers["x-vip"][*] == "yes")': ("/", {"X-Vip": "yes"}),
        'http.request.cookies["pass"][0] == "blue"': ("/", {"Cookie": "a=b; pass=blue"}),
        "http.host in $partners": ("/", {"Host": "deep.shop.partner.example:8080"}),
        'http.request.method == "PUT"': ("/", {}),
    }
    running = serve(greenroom, origin, *expressions)
    assert running.visitor().get("/").waiting
    for expression, (path, headers) in expressions.items():
        method = "PUT" if "PUT" in expression else "GET"
        assert not running.visitor().get(path, method, headers).waiting, expression


def test_a_visitor_who_is_let_by_keeps_the_place_taken_before(greenroom: Any, origin: Any) -> None:
    running = serve(greenroom, origin, 'http.request.uri.path == "/status"')
    visitor = running.visitor()
    visitor.get("/")
    ticket = dict(visitor.cookies)
    assert not visitor.get("/status").waiting
    assert visitor.cookies == ticket
    sent = json.loads(visitor.get("/status").body)["headers"]
    assert "__cfwaitingroom" not in str(sent), "the ticket is not the origin's business"


def test_check_draws_every_fault_on_the_line_of_the_file_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(
        'origin = "http://127.0.0.1:3000"\n[[lists]]\nname = "office"\nkind = "ip"\nitems = ["nowhere"]\n'
        '[[rooms]]\nname = "a"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 1\n'
        "[[rooms.rules]]\nexpression = '''\nssl\nor http.hots == \"a\"\nor ip.src in $office or ip.src in $ofice'''\n"
        "[[rooms.rules]]\nexpresion = 'ssl'\n"
    )
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 1
    assert (
        f'{file}:14: rooms[0].rules[0].expression: Filter parsing error (2:4):\nor http.hots == "a"\n   ^^^^^^^^^ '
        in done.stderr
    )
    assert f"{file}:15: rooms[0].rules[0].expression: Filter parsing error (3:35)" in done.stderr
    assert (
        f"{file}:17: rooms[0].rules[1].expresion: unknown field; did you mean expression?"
        in done.stderr
    )
    assert f"{file}:5: lists[0].items[0]" in done.stderr
    assert "$office" not in done.stderr.replace("in $office or", ""), (
        "a list that is there but broken is reported once, at the list"
    )
    file.write_text(
        file.read_text()
        .replace("nowhere", "192.0.2.1")
        .replace("hots", "host")
        .replace("ofice", "office")
        .replace("expresion", "expression")
    )
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 0, done.stderr
    assert "list       $office: 1 address or network" in done.stdout
    assert (
        '  bypass: ssl or http.host == "a" or ip.src in $office or ip.src in $office' in done.stdout
    )
