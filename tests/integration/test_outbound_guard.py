"""Attacks on requests that greenroom makes itself: rebinding names, redirects inwards, answers that
are too large, too slow or too clever.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable

import pytest

from greenroom.outbound import (
    Guard,
    OutboundFailed,
    OutboundPolicy,
    OutboundRefused,
    Request,
    RequestLimits,
    exchange,
)

HERE = OutboundPolicy(ports=(), allowed=("127.0.0.1",))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """A real server; `answers` says what to send for each path, and `heads` keeps what came."""

    def __init__(self, answers: dict[str, bytes | Handler]) -> None:
        self.answers = answers
        self.heads: list[bytes] = []
        self.connections = 0

    async def __aenter__(self) -> "Receiver":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            answer = self.answers[head.split(b" ", 2)[1].decode()]
            if callable(answer):
                await answer(head, writer)
            else:
                writer.write(answer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def to(*addresses: str) -> Callable[[str, int], Awaitable[list[str]]]:
    """A resolver that gives one address after the other, the last one for ever, as an attacker's
    name server does.
    """
    left = list(addresses)

    async def resolve(_host: str, _port: int) -> list[str]:
        return [left.pop(0) if len(left) > 1 else left[0]]

    return resolve


def redirect(where: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode()


async def refusal(guard: Guard, url: str, **limits: float) -> str:
    with pytest.raises((OutboundRefused, OutboundFailed)) as caught:
        await exchange(guard, Request("GET", url), RequestLimits(**limits))
    return f"{caught.type.__name__}: {caught.value}"


async def test_of_several_addresses_only_the_allowed_ones_are_tried() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.2", "10.0.0.1", "127.0.0.1"]

    async with Receiver({"/": OK}) as server:
        guard = Guard(HERE, resolve)
        assert await guard.addresses("several.example", 80) == ["127.0.0.1"]
        assert (
            await exchange(
                guard, Request("GET", f"http://several.example:{server.port}/"), RequestLimits()
            )
        ).body == b"ok"
        assert b"Host: several.example:" in server.heads[0]


async def test_redirects_are_followed_only_where_they_are_wanted_and_not_for_ever() -> None:
    async with Receiver(
        {"/": redirect("/next"), "/next": OK, "/round": redirect("/round")}
    ) as server:
        base = f"http://127.0.0.1:{server.port}"
        assert (
            await exchange(Guard(HERE), Request("GET", f"{base}/"), RequestLimits())
        ).status == 302
        followed = await exchange(
            Guard(HERE), Request("GET", f"{base}/"), RequestLimits(redirects=1)
        )
        assert (followed.body, followed.url) == (b"ok", f"{base}/next")
        assert "more than 5 redirects" in await refusal(Guard(HERE), f"{base}/round", redirects=5)
        assert server.connections == 3 + 6


async def test_headers_for_one_server_are_not_given_to_another() -> None:
    async with (
        Receiver({"/": OK}) as other,
        Receiver({"/": redirect(f"http://127.0.0.1:{other.port}/", 307)}) as first,
    ):
        request = Request(
            "POST",
            f"http://127.0.0.1:{first.port}/",
            (("cf-webhook-auth", "secret"), ("Content-Type", "a/b")),
            b"{}",
        )
        await exchange(Guard(HERE), request, RequestLimits(redirects=1))
        assert b"cf-webhook-auth" in first.heads[0]
        assert b"cf-webhook-auth" not in other.heads[0]
        assert b"Content-Type: a/b" in other.heads[0]
        assert other.heads[0].startswith(b"POST ")


async def endless(_head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x" * 65_536)
        await writer.drain()


async def silent(_head: bytes, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)  # longer than any limit of these tests


async def drop_by_drop(_head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)  # every single read is in time; only the whole is not


async def many_headers(_head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\n"
        + b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(1000))
        + b"\r\n"
    )


async def test_an_endless_body_is_read_up_to_the_limit() -> None:
    async with Receiver({"/": endless}) as server:
        answer = await exchange(
            Guard(HERE),
            Request("GET", f"http://127.0.0.1:{server.port}/"),
            RequestLimits(body_max=100_000),
        )
        assert (len(answer.body), answer.truncated) == (100_000, True)


@pytest.mark.parametrize(
    ("handler", "total_s", "words"),
    [(silent, 0.4, "in time"), (drop_by_drop, 0.4, "in time"), (many_headers, 30.0, "not HTTP")],
)
async def test_an_answer_that_is_too_slow_or_too_long_ends_at_the_limit(
    handler: Handler, total_s: float, words: str
) -> None:
    async with Receiver({"/": handler}) as server:
        begun = time.monotonic()
        assert words in await refusal(
            Guard(HERE), f"http://127.0.0.1:{server.port}/", total_s=total_s
        )
        assert time.monotonic() - begun < 30, "the slow ones go on for a minute and more"


async def test_what_goes_wrong_is_said_without_the_path_of_the_url() -> None:
    async def hangs(_host: str, _port: int) -> list[str]:
        await asyncio.sleep(60)  # a name server that never answers
        return []

    async def unknown(_host: str, _port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        refused = f"http://127.0.0.1:{taken.getsockname()[1]}/T00/secret"
        found = [
            await refusal(Guard(HERE), refused),
            await refusal(Guard(HERE, unknown), "http://unknown.example/secret"),
            await refusal(Guard(HERE, hangs), "http://slow.example/secret", total_s=0.3),
        ]
    assert all(each.startswith("OutboundFailed") and "secret" not in each for each in found), found
    assert found[1].endswith(": cannot resolve the name of the server: Name or service not known")
    assert "in time" in found[2]
