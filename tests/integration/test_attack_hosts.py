"""A visitor who invents a Host header to get around the rooms: refused on every way in, unless the
operator wants other hosts to pass.
"""

import http.client
import json
from typing import Any

import pytest
from api_rig import Api, create_token
from typer.testing import CliRunner

from greenroom.cli import app

ROOM = '[[rooms]]\nname = "main"\nhost = "{host}"\ntotal_active_users = 1\nnew_users_per_minute = 100\n'
OTHERS = [
    "x",
    "127.0.0.1",
    "[::1]",
    "localhost",
    "example.com",
    "xshop.example.com",
    "shop.example.com.evil.example",
    "a.shop.example.com",
    "*",
]


def ask(address: tuple[str, int], host: str, path: str = "/") -> tuple[int, bool]:
    """Status, and whether the origin answered."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    connection.request("GET", path, headers={"Host": host, "Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers.get("X-Origin") is not None


def test_a_host_that_nothing_names_does_not_reach_the_origin_and_the_named_one_does_in_every_spelling(
    greenroom: Any, origin: Any
) -> None:
    running = greenroom.config(f'origin = "{origin.url}"\n' + ROOM.format(host="shop.example.com"))
    assert {host: ask(running.address, host) for host in OTHERS} == {
        host: (400 if host == "*" else 421, False) for host in OTHERS
    }
    assert origin.requests == []
    assert ask(running.address, "SHOP.example.com.:8080") == (200, True)


def test_an_operator_may_let_other_hosts_pass_also_by_a_reload(greenroom: Any, origin: Any) -> None:
    text = f'origin = "{origin.url}"\n' + ROOM.format(host="shop.example.com")
    running = greenroom.config(text)
    assert ask(running.address, "x") == (421, False)
    (greenroom.folder / "greenroom.toml").write_text('other_hosts = "pass"\n' + text)
    greenroom.eventually(lambda: ask(running.address, "x") == (200, True), "the other host passes")


def test_hosts_with_an_origin_of_their_own_zones_and_patterns_are_named_too(
    greenroom: Any, origin: Any
) -> None:
    file = (
        f'origin = "{origin.url}"\n'
        + ROOM.format(host="*.shops.example")
        + f'[origins]\n"static.example" = "{origin.url}"\n'
    )
    running = greenroom.config(file)
    assert ask(running.address, "static.example") == (200, True)
    assert ask(running.address, "a.b.shops.example")[0] == 200
    assert ask(running.address, "shops.example") == (421, False)
    assert ask(running.address, "www.zone.example") == (421, False)
    api = Api(running.control, create_token(greenroom.data, "zones", "--scope", "edit"))
    assert api.ask("POST", "/zones", {"name": "zone.example"}).status == 200
    for host in ("zone.example", "www.zone.example"):
        greenroom.eventually(
            lambda host=host: ask(running.address, host) == (200, True), f"{host} belongs to a zone"
        )
    assert ask(running.address, "xzone.example") == (421, False)


def test_a_room_for_every_host_leaves_no_host_unknown(greenroom: Any, origin: Any) -> None:
    running = greenroom.config(f'origin = "{origin.url}"\n' + ROOM.format(host="*"))
    assert ask(running.address, "x") == (200, True)


def test_a_proxy_that_asks_is_told_no_as_well(greenroom: Any) -> None:
    path = greenroom.folder / "greenroom.toml"
    path.write_text('trusted_proxies = ["127.0.0.1"]\n' + ROOM.format(host="shop.example.com"))
    running = greenroom.run(
        "decide",
        "--config",
        str(path),
        "--listen",
        "127.0.0.1:0",
        "--control",
        "127.0.0.1:0",
        "--data",
        str(greenroom.data),
    ).wait_until_ready()
    verdicts = {}
    for host in ("shop.example.com", "x"):
        connection = http.client.HTTPConnection(*running._address("decide"), timeout=60)
        headers = {
            "X-Forwarded-Method": "GET",
            "X-Forwarded-Uri": "/",
            "X-Forwarded-Host": host,
            "X-Forwarded-For": "192.0.2.7",
        }
        connection.request("GET", "/forward-auth", headers={**headers, "Accept": "text/html"})
        verdicts[host] = connection.getresponse().status
    assert verdicts == {"shop.example.com": 200, "x": 421}


def test_check_and_explain_say_so(tmp_path: Any) -> None:
    file = tmp_path / "greenroom.toml"
    text = f'origin = "http://127.0.0.1:9"\ndata = "{tmp_path}"\n' + ROOM.format(
        host="shop.example.com"
    )
    file.write_text(text)
    checked = CliRunner().invoke(app, ["check", str(file)]).output
    assert "hosts      others than those of rooms, zones and origins get 421" in checked
    told = CliRunner().invoke(app, ["explain", "http://x/", "--config", str(file), "--json"]).output
    assert (json.loads(told)["result"], json.loads(told)["word"]) == ("refused", "unknown_host")
    file.write_text('other_hosts = "pass"\n' + text)
    assert "hosts      every host is served" in CliRunner().invoke(app, ["check", str(file)]).output
    assert (
        json.loads(
            CliRunner()
            .invoke(app, ["explain", "http://x/", "--config", str(file), "--json"])
            .output
        )["word"]
        == "no_room"
    )


@pytest.mark.parametrize(
    "lines",
    ["", '[origins]\n"shop.example.com" = "http://127.0.0.1:9"\n'],
    ids=["no origin", "origins of hosts only"],
)
def test_check_claims_no_service_for_hosts_that_have_no_origin(lines: str, tmp_path: Any) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(f'data = "{tmp_path}"\n' + lines)
    checked = CliRunner().invoke(app, ["check", str(file)]).output
    assert "hosts      others than those of zones and origins get 421" in checked
    file.write_text(f'origin = "http://127.0.0.1:9"\ndata = "{tmp_path}"\n' + lines)
    assert "hosts      every host is served" in CliRunner().invoke(app, ["check", str(file)]).output
