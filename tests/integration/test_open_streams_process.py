"""Sockets, event streams and real processes: an open connection counts as a visitor, whichever
ledger counts.
"""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis_world import RedisServer
from streaming_app import StreamingApp
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

ROOM = """
origin = "{origin}"
[[rooms]]
name = "main"
host = "*"
total_active_users = 1
new_users_per_minute = 1000
session_duration = 1
enabled_origin_commands = ["revoke"]
"""
PROVISIONAL_S = 10

Start = Callable[[], list[Any]]
OpenSocket = Callable[..., ClientConnection | int]


@pytest.fixture
def app() -> Iterator[StreamingApp]:
    running = StreamingApp()
    yield running
    running.close()


@pytest.fixture(params=["memory", "redis"])
def start(request: pytest.FixtureRequest, greenroom: Any, app: StreamingApp) -> Start:
    """Processes that share one room: one with its own ledger, or two with one in Redis."""
    text = ROOM.format(origin=app.url)

    def started() -> list[Any]:
        if request.param == "memory":
            return [greenroom.config(text)]
        server: RedisServer = request.getfixturevalue("server")
        return [
            greenroom.edge(server.url, text, name).wait_until_ready() for name in ("one", "other")
        ]

    return started


@pytest.fixture
def open_socket() -> Iterator[Callable[..., ClientConnection | int]]:
    """Opens a socket at a process; gives the status when it is refused. All are closed at the end."""
    with contextlib.ExitStack() as sockets:

        def opened(running: Any, cookies: dict[str, str] | None = None) -> ClientConnection | int:
            cookie = "; ".join(f"{name}={value}" for name, value in (cookies or {}).items())
            host, port = running.address
            headers = {"Cookie": cookie} if cookie else {}
            try:
                url = f"ws://{host}:{port}/socket"
                return sockets.enter_context(
                    connect(url, additional_headers=headers, open_timeout=60, ping_interval=None)
                )
            except InvalidStatus as refused:
                return refused.response.status_code

        yield opened


def test_three_sockets_in_a_room_of_one_are_impossible(
    start: Start, app: StreamingApp, greenroom: Any, open_socket: OpenSocket
) -> None:
    edges = start()
    first = greenroom.eventually(
        lambda: isinstance(found := open_socket(edges[0]), ClientConnection) and found,
        "there is a permit",
    )
    refused, until = [], time.monotonic() + PROVISIONAL_S + 4
    while time.monotonic() < until:
        refused += [open_socket(edge) for edge in edges]
        time.sleep(0.5)  # beyond the time of a provisional session
    assert set(refused) == {503}
    assert app.most == 1
    first.send("still here")
    assert first.recv(60) == "still here"


def test_a_socket_is_closed_when_its_session_is_revoked_and_the_next_visitor_comes_in(
    start: Start, app: StreamingApp, greenroom: Any, open_socket: OpenSocket
) -> None:
    edges = start()
    visitor = edges[-1].visitor()
    greenroom.eventually(lambda: visitor.get().text == "page", "the visitor is in")
    sockets = [open_socket(edge, visitor.cookies) for edge in edges]
    assert all(isinstance(one, ClientConnection) for one in sockets), "one visitor may have several"
    assert visitor.get("/revoke").text == "over"
    revoked = time.monotonic()
    for one in sockets:
        with pytest.raises(ConnectionClosed) as closed:
            one.recv(60)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013
    assert time.monotonic() - revoked < 45, (
        "within q of a second; the session itself goes on for minutes"
    )
    greenroom.eventually(lambda: not app.open, "the application sees the end")
    assert app.closed_with == [1013] * len(edges)
    greenroom.eventually(
        lambda: isinstance(open_socket(edges[0]), ClientConnection), "the place is free"
    )
    assert edges[0].metric("greenroom_gateway_streams_closed_total") >= 1


def test_an_event_stream_read_by_curl_is_cut_when_its_session_is_revoked(
    start: Start, app: StreamingApp, greenroom: Any
) -> None:
    edge = start()[0]
    visitor = edge.visitor()
    greenroom.eventually(lambda: visitor.get().text == "page", "the visitor is in")
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    host, port = edge.address
    curl = subprocess.Popen(
        ["curl", "-sN", "-b", cookie, f"http://{host}:{port}/events"], stdout=subprocess.PIPE
    )
    assert curl.stdout
    assert curl.stdout.read(12) == b"data: tick\n\n"
    visitor.get("/revoke")
    assert curl.wait(60) == 18, "curl says: transferred a partial file"
