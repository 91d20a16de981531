"""A request that looks like a CORS preflight gets nothing but that past a full room: no body, no
other method, no credentials, no smuggling.
"""

from typing import Any

import pytest
from attack_rig import NotingOrigin, throw

ROOM = """
origin = "{url}"
[[rooms]]
name = "api"
host = "api.example"
total_active_users = 1
new_users_per_minute = 1
{more}
cors_origins = ["https://www.example.com"]
"""
PREFLIGHT = b"Origin: https://www.example.com\r\nAccess-Control-Request-Method: PUT\r\n"
METHODS = {
    "fifo": "",
    "random": 'queueing_method = "random"',
    "reject": 'queueing_method = "reject"',
    "queue_all": "queue_all = true",
}
ATTACKS = {
    "unlisted": (
        b"OPTIONS",
        b"Origin: https://evil.example\r\nAccess-Control-Request-Method: PUT\r\n",
        b"",
    ),
    "null": (b"OPTIONS", b"Origin: null\r\nAccess-Control-Request-Method: PUT\r\n", b""),
    "two origins": (b"OPTIONS", b"Origin: https://evil.example\r\n" + PREFLIGHT, b""),
    "upper case": (
        b"OPTIONS",
        b"Origin: https://WWW.example.com\r\nAccess-Control-Request-Method: PUT\r\n",
        b"",
    ),
    "a port": (
        b"OPTIONS",
        b"Origin: https://www.example.com:444\r\nAccess-Control-Request-Method: PUT\r\n",
        b"",
    ),
    "below it": (
        b"OPTIONS",
        b"Origin: https://a.www.example.com\r\nAccess-Control-Request-Method: PUT\r\n",
        b"",
    ),
    "no method asked for": (b"OPTIONS", b"Origin: https://www.example.com\r\n", b""),
    "a GET": (b"GET", PREFLIGHT, b""),
    "a POST": (b"POST", PREFLIGHT + b"Content-Length: 3\r\n", b"abc"),
    "a body": (b"OPTIONS", PREFLIGHT + b"Content-Length: 3\r\n", b"abc"),
    "chunks": (b"OPTIONS", PREFLIGHT + b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n0\r\n\r\n"),
    "credentials": (b"OPTIONS", PREFLIGHT + b"Authorization: Basic YTpi\r\n", b""),
    "a cookie": (b"OPTIONS", PREFLIGHT + b"Cookie: session=1\r\n", b""),
    "another method": (b"OPTIONS", PREFLIGHT + b"X-HTTP-Method-Override: GET\r\n", b""),
    "a WebSocket": (b"OPTIONS", PREFLIGHT + b"Upgrade: websocket\r\nConnection: upgrade\r\n", b""),
}


@pytest.mark.parametrize("more", METHODS.values(), ids=METHODS.keys())
def test_only_a_preflight_reaches_the_application(more: str, greenroom: Any) -> None:
    origin = NotingOrigin()
    running = greenroom.config(ROOM.format(url=origin.url, more=more))
    running.visitor("api.example").get("/")
    origin.seen.clear()

    def ask(method: bytes, lines: bytes, body: bytes) -> int:
        head = (
            b"%b /order HTTP/1.1\r\nHost: api.example\r\nAccept: */*\r\nSec-Fetch-Dest: empty\r\n%b\r\n"
            % (method, lines)
        )
        return throw(running.address, head + body)[0].status

    for name, (method, lines, body) in ATTACKS.items():
        assert ask(method, lines, body) in (400, 503), name
    assert origin.seen == []
    before = running.room("api")
    for _ in range(20):
        assert ask(b"OPTIONS", PREFLIGHT + b"Content-Length: 0\r\n", b"") == 200
    assert [one.line for one in origin.seen] == ["OPTIONS /order HTTP/1.1"] * 20
    after = running.room("api")
    assert after.pop("requests") == {**before.pop("requests"), "preflight": 20}
    assert after == before
    assert origin.garbage == []
    origin.close()
