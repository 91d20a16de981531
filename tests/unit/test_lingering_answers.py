"""The rest of a refused upload is discarded within bounds, and the answer is out before."""

import asyncio
from typing import Any

import pytest

from greenroom.runtime.listener import LingeringApp, LingerLimits

PIECE = b"x" * 1000
LIMITS = LingerLimits(most_bytes=20_000, silence_s=0.05, most_s=30)


class Client:
    """Sends so many pieces of a body, then nothing more unless that was its end. Notes what it is
    sent, and after how many pieces.
    """

    def __init__(self, pieces: int, *, ends: bool = True, hurries: bool = True) -> None:
        self._left, self._ends, self._hurries = pieces, ends, hurries
        self.taken = 0
        self.got: list[tuple[int, dict[str, Any]]] = []

    async def receive(self) -> dict[str, Any]:
        if not self._left and not self._ends:
            await asyncio.Event().wait()
        if not self._hurries:
            await asyncio.sleep(0.01)  # it is a slow client
        self._left -= 1
        self.taken += 1
        return {
            "type": "http.request",
            "body": PIECE,
            "more_body": self._left > 0 or not self._ends,
        }

    async def send(self, message: Any) -> None:
        self.got.append((self.taken, message))


async def refuses(_scope: Any, receive: Any, send: Any) -> None:
    """Answers when it has seen the beginning."""
    await receive()
    await at_once(_scope, receive, send)


async def at_once(_scope: Any, _receive: Any, send: Any) -> None:
    await send(
        {"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"3")]}
    )
    await send({"type": "http.response.body", "body": b"big"})


def ask(client: Client, app: Any = refuses, limits: LingerLimits = LIMITS, **headers: str) -> None:
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(
        LingeringApp(app, limits)({"type": "http", "headers": sent}, client.receive, client.send)
    )


@pytest.mark.parametrize("app", [refuses, at_once])
def test_the_answer_is_out_before_the_rest_is_read_and_ends_behind_it(app) -> None:
    client = Client(10)
    ask(client, app, content_length="10000")
    (_, start), (whole_after, answer), (ended_after, end) = client.got
    assert (b"connection", b"close") in start["headers"]
    assert (answer["body"], answer["more_body"], whole_after) == (b"big", True, int(app is refuses))
    assert (end, ended_after) == ({"type": "http.response.body"}, 10)


def test_no_more_is_discarded_than_the_limit() -> None:
    client = Client(1_000_000)
    ask(client, at_once, transfer_encoding="chunked")
    assert client.taken == 20


def test_a_client_that_falls_silent_is_not_waited_for() -> None:
    client = Client(3, ends=False)
    ask(client, content_length="9999")
    assert client.taken == 3


def test_a_client_that_trickles_is_not_waited_for_either() -> None:
    client = Client(1_000_000, hurries=False)
    ask(
        client,
        limits=LingerLimits(most_bytes=1 << 40, silence_s=30, most_s=0.1),
        content_length="999999999",
    )
    assert 1 <= client.taken <= 11


@pytest.mark.parametrize(
    "headers", [{}, {"content_length": "0"}, {"content_length": "10000", "expect": "100-continue"}]
)
def test_a_client_that_sends_no_body_is_not_waited_for(headers) -> None:
    client = Client(0, ends=False)
    ask(client, at_once, **headers)
    assert [message["type"] for _, message in client.got] == [
        "http.response.start",
        "http.response.body",
    ]


def test_a_client_that_was_asked_for_its_body_may_finish_it() -> None:
    client = Client(10)
    ask(client, content_length="10000", expect="100-continue")
    assert client.taken == 10
