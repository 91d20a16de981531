"""Clients of the control listener and of the status pages that connect and do nothing: they get
their time, and take nothing from others.
"""

import asyncio
import contextlib
import itertools
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from tests.integration.conftest import without_stalls
from uvicorn.protocols.http import h11_impl

from greenroom.runtime.listener import AppConnectionLimits, AppListener, connections_most
from greenroom.runtime.logs import QUIET

PATIENCE_S = 40
SHORT = AppConnectionLimits(connections=100, head_s=0.4, body_s=0.4, send_s=0.4)
LONG = AppConnectionLimits(connections=3, head_s=600, body_s=600, send_s=600)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]


async def _read(request: Request) -> Response:
    return PlainTextResponse(f"{len(await request.body())}")


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65_536
        await asyncio.sleep(0)  # or it would never be told that its client is gone


APP = Starlette(
    routes=[
        Route("/", lambda _: PlainTextResponse("ok")),
        Route("/read", _read, methods=["POST"]),
        Route("/endless", lambda _: StreamingResponse(_endless())),
    ]
)


@contextlib.asynccontextmanager
async def listening(limits: AppConnectionLimits) -> AsyncIterator[Connect]:
    loop = asyncio.get_running_loop()
    loop.time = without_stalls(loop.time)  # type: ignore[method-assign]  # limits are short
    sock = socket.create_server(("127.0.0.1", 0))
    listener = AppListener(APP, sock, limits=limits)
    await listener.start()
    opened: list[Streams] = []

    async def connect() -> Streams:
        opened.append(await asyncio.open_connection(*sock.getsockname(), limit=1_024))
        return opened[-1]

    try:
        yield connect
    finally:
        for _, writer in opened:
            writer.close()
        await listener.close()


async def ended(streams: Streams) -> bytes:
    """What came until the connection ended."""
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(streams[0].read(), PATIENCE_S)
    return b""


async def answer(streams: Streams, request: bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") -> bytes:
    streams[1].write(request)
    await asyncio.wait_for(streams[0].readuntil(b"\r\n\r\n"), PATIENCE_S)
    return await asyncio.wait_for(streams[0].readexactly(2), PATIENCE_S)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([b""], id="nothing"),
        pytest.param([b"GET / HTTP/1.1\r\nHost: a\r\n"], id="half a head"),
        pytest.param(
            [b"GET / HTTP/1.1\r\nHost: a\r\n", *[b"X: y\r\n"] * 1_000], id="a head that trickles"
        ),
        pytest.param(
            [b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", *[b"x"] * 99],
            id="a body that trickles",
        ),
        pytest.param(
            [
                b"GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
            ],
            id="half a request behind another",
        ),
    ],
)
async def test_a_client_that_does_not_finish_its_request_is_cut(sent: list[bytes]) -> None:
    async with listening(SHORT) as connect:
        streams = await connect()
        end = asyncio.create_task(ended(streams))
        for part in sent:
            streams[1].write(part)
            await asyncio.sleep(0.05)  # slow is the point
            if end.done():
                break
        await end
        assert await answer(await connect()) == b"ok"


async def test_a_client_that_reads_nothing_is_cut_and_one_that_reads_is_not() -> None:
    async with listening(SHORT) as connect:
        unread, reading = await connect(), await connect()
        for _, writer in (unread, reading):
            writer.write(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        until = time.monotonic() + 4 * SHORT.send_s
        while time.monotonic() < until:
            assert await asyncio.wait_for(reading[0].read(1 << 20), PATIENCE_S)
        while True:  # what the kernel kept for it, then the end
            with contextlib.suppress(ConnectionError):
                if await asyncio.wait_for(unread[0].read(1 << 20), PATIENCE_S):
                    continue
            break
        assert await asyncio.wait_for(reading[0].read(1 << 20), PATIENCE_S)


async def test_with_too_many_connections_a_new_one_takes_the_place_of_the_one_that_waits_longest_for_nothing() -> (
    None
):
    async with listening(LONG) as connect:
        silent, busy, kept = await connect(), await connect(), await connect()
        busy[1].write(b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        assert await answer(kept) == b"ok"
        assert await answer(await connect()) == b"ok"
        assert await ended(silent) == b""
        assert await answer(kept) == b"ok", "it was used later than the silent one"
        assert await answer(await connect()) == b"ok"
        assert await ended(kept) == b""
        busy[1].write(b"123456789")
        assert (await asyncio.wait_for(busy[0].readuntil(b"\r\n\r\n9"), PATIENCE_S)).endswith(
            b"9"
        ), "a request under way is finished"


@pytest.mark.parametrize(
    "sent", ["what is no HTTP", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket"]
)
async def test_no_client_writes_into_the_log(caplog: pytest.LogCaptureFixture, sent: str) -> None:

    caplog.set_level(QUIET["uvicorn.error"], "uvicorn.error")
    async with listening(LONG) as connect:
        streams = await connect()
        streams[1].write(f"{sent}\r\nConnection: Upgrade, close\r\n\r\n".encode())
        assert (await ended(streams)).startswith(b"HTTP/1.1 ")
    assert caplog.messages == []


def test_silent_clients_of_the_status_pages_take_no_descriptor_from_visitors(
    greenroom: Any, origin: Any, free_port: Any
) -> None:
    port, few = free_port(), 256
    path = greenroom.folder / "greenroom.toml"
    room = '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 100\nnew_users_per_minute = 100\n'
    path.write_text(
        f'origin = "{origin.url}"\nstatus_listen = "127.0.0.1:{port}"\n[[status_pages]]\ntitle = "Status"\nrooms = ["*"]\n'
        + room
    )
    places = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(greenroom.data))
    within = ("sh", "-c", f'ulimit -n {few}; exec "$@"', "sh")
    running = greenroom.run(
        "serve", "--config", str(path), *places, within=within
    ).wait_until_ready()
    with contextlib.ExitStack() as silent:
        for _ in range(few):
            silent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
        kept = [running.visitor() for _ in range(20)]
        assert [visitor.get("/").status for visitor in kept] == [200] * len(kept)
        assert running.metric("greenroom_gateway_connections_shed_total") == 0
        assert connections_most() >= 1


UNFINISHED = b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1"


@pytest.mark.parametrize("network", ["127.0.0.1", "2001:db8::{:x}"])
async def test_unfinished_bodies_of_one_address_do_not_occupy_a_listener(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = itertools.count(1)
    monkeypatch.setattr(h11_impl, "get_remote_addr", lambda _: (network.format(next(addresses)), 1))
    limits = AppConnectionLimits(connections=16, head_s=600, body_s=600, body_idle_s=600)
    async with listening(limits) as connect:
        stalled = []
        for _ in range(2 * limits.connections):
            stalled.append(await connect())
            stalled[-1][1].write(UNFINISHED)
            assert await answer(await connect()) == b"ok"
        open_still = [one for one in stalled if not one[0].at_eof() and not one[0].exception()]
        assert len(open_still) <= limits.stalled_per_address


async def test_a_body_of_which_nothing_comes_is_cut_and_one_that_comes_slowly_is_not() -> None:
    limits = AppConnectionLimits(connections=100, body_idle_s=0.5)
    async with listening(limits) as connect:
        silent, slow = await connect(), await connect()
        for _, writer in (silent, slow):
            writer.write(UNFINISHED)
        for _ in range(8):
            await asyncio.sleep(0.1)  # slow is the point
            slow[1].write(b"x")
        assert await asyncio.wait_for(slow[0].readuntil(b"\r\n\r\n9"), PATIENCE_S)
        assert await ended(silent) == b""
