"""`greenroom decide` as an operator runs it, and the same listener beside the gateway."""

import http.client
from typing import Any

ROOM = '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 100\n'


def ask(
    address: tuple[str, int], method: str = "GET", path: str = "/", cookie: str = ""
) -> http.client.HTTPResponse:
    """The question of a forward-auth proxy."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    headers = {
        "X-Forwarded-Method": method,
        "X-Forwarded-Uri": path,
        "X-Forwarded-Host": "shop.example",
        "X-Forwarded-For": "192.0.2.7",
    }
    connection.request(
        "GET",
        "/forward-auth",
        headers={**headers, "Accept": "text/html", **({"Cookie": cookie} if cookie else {})},
    )
    return connection.getresponse()


def started(greenroom: Any, text: str, *options: str) -> Any:
    path = greenroom.folder / "greenroom.toml"
    path.write_text(text)
    return greenroom.run(
        "decide",
        "--config",
        str(path),
        "--control",
        "127.0.0.1:0",
        "--data",
        str(greenroom.data),
        *options,
    )


def test_a_process_that_only_decides_needs_no_origin_and_no_public_address(greenroom: Any) -> None:
    running = started(
        greenroom, f'trusted_proxies = ["127.0.0.1"]\n{ROOM}', "--listen", "127.0.0.1:0"
    ).wait_until_ready()
    assert "visitors" not in running.output
    decide = running._address("decide")
    first = ask(decide)
    assert (first.status, first.headers["Greenroom-Verdict"]) == (200, "forward")
    held = ask(decide)
    assert (held.status, held.headers["Greenroom-Status"]) == (503, "200")
    assert b"line" in held.read()
    assert ask(decide, cookie=first.headers["Set-Cookie"].partition(";")[0]).status == 200
    assert running.room()["requests"] == {"admitted": 1, "held": 1, "active": 1}
    assert running.metric("greenroom_gateway_requests_total") == 3
    assert running.metric("greenroom_gateway_forwarded_total") == 0
    path = greenroom.folder / "greenroom.toml"
    path.write_text(f'trusted_proxies = ["10.0.0.1"]\n{ROOM}')
    greenroom.eventually(lambda: ask(decide).status == 403, "the new configuration counts")
    assert running.stop() == 0


def test_it_is_beside_the_gateway_too_and_shares_its_limits(greenroom: Any, origin: Any) -> None:
    text = (
        f'origin = "{origin.url}"\ntrusted_proxies = ["127.0.0.1"]\ndecide = "127.0.0.1:0"\n{ROOM}'
    )
    running = greenroom.config(text)
    assert running.visitor().get().status == 200
    assert ask(running._address("decide")).headers["Greenroom-Status"] == "200"


def test_what_is_missing_is_said(greenroom: Any) -> None:
    running = started(greenroom, ROOM, "--listen", "127.0.0.1:0")
    assert running.end() == 1
    assert "trusted_proxies: is required with decide" in running.output
    running = started(greenroom, f'trusted_proxies = ["127.0.0.1"]\n{ROOM}')
    assert running.end() == 2
    assert "--listen is required" in running.output
    running = started(greenroom, f'trusted_proxies = ["127.0.0.1"]\n{ROOM}', "--listen", "nowhere")
    assert running.end() == 1
    assert "must be address:port" in running.output
