"""A passthrough room holds no visitor: also what could not show a waiting page goes on, until
queue_all or a pre-queue holds everybody.
"""

from typing import Any

import pytest

ROOM = """
origin = "{origin}"
[[rooms]]
name = "open"
host = "*"
total_active_users = 1
new_users_per_minute = 1
queueing_method = "passthrough"
{more}
"""
REQUESTS = [
    ("/logo.png", "GET", {"Accept": "image/png"}),
    ("/", "HEAD", {}),
    ("/api", "OPTIONS", {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}),
    ("/", "GET", {"Sec-Fetch-Dest": "image"}),
    ("/", "GET", {"User-Agent": "WhatsApp/2.0"}),
    ("/", "GET", {}),
]


@pytest.mark.parametrize(("more", "held"), [("", False), ("queue_all = true", True)])
def test_everything_goes_on_or_nothing_does(
    greenroom: Any, origin: Any, more: str, held: bool
) -> None:
    running = greenroom.config(ROOM.format(origin=origin.url, more=more))
    asked = {
        f"{method} {path} {headers}": running.visitor().get(path, method, headers).waiting
        for path, method, headers in REQUESTS
    }
    assert set(asked.values()) == {held}, asked
