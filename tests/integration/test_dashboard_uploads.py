"""Uploads to the dashboard: nothing of a body is kept before method, origin, session and size have
been judged, and little unfinished.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
from dashboard_rig import DashboardRig, dashboard_in
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from greenroom.dashboard import app as dashboard_app
from greenroom.runtime.listener import AppListener, LingeringApp, LingerLimits
from greenroom.web.refusals import Refused

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        yield found


@contextlib.asynccontextmanager
async def connected(app: ASGIApp) -> AsyncIterator[Streams]:
    sock = socket.create_server(("127.0.0.1", 0))
    listener = AppListener(app, sock)
    await listener.start()
    streams = await asyncio.open_connection(*sock.getsockname())
    try:
        yield streams
    finally:
        streams[1].close()
        await listener.close()


def head(path: str, size: int, *more: str, origin: str = "http://a") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Origin: {origin}", f"Content-Length: {size}"]
    return "\r\n".join([*lines, *more, "", ""]).encode()


async def status(streams: Streams, sent: bytes) -> int:
    streams[1].write(sent)
    line = await asyncio.wait_for(streams[0].readline(), 30)
    return int(line.split()[1])


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(head("/sign-in", 8_388_000), 413, id="a large sign-in"),
        pytest.param(head("/sign-in/code", 8_388_000), 413, id="a large code"),
        pytest.param(head("/sign-in/link", 8_388_000), 413, id="a large link"),
        pytest.param(head("/sign-in", 100, origin="http://b"), 403, id="another origin"),
        pytest.param(head("/settings", 8_388_000), 413, id="large settings"),
        pytest.param(head("/tokens", 8_388_000), 303, id="no session"),
        pytest.param(head("/rooms", 8_388_000), 405, id="another method"),
    ],
)
def test_a_form_is_refused_before_its_body_comes(
    rig: DashboardRig, sent: bytes, expected: int
) -> None:
    async def story() -> int:
        async with connected(rig.app) as streams:
            return await status(streams, sent)

    assert rig.run(story()) == expected


def test_a_sign_in_form_without_a_size_is_cut_at_its_limit(rig: DashboardRig) -> None:
    async def story() -> int:
        async with connected(rig.app) as streams:
            whole = head("/sign-in", 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
            return await status(streams, whole + b"4001\r\n" + b"x" * 0x4001 + b"\r\n")

    assert rig.run(story()) == 413


def test_a_sign_in_form_has_seconds(rig: DashboardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard_app, "PUBLIC_FORM_S", 0.2)

    async def story() -> int:
        async with connected(rig.app) as streams:
            return await status(streams, head("/sign-in", 100) + b"name=")

    assert rig.run(story()) == 408


def test_an_aborted_upload_is_one_event_and_no_traceback(rig: DashboardRig) -> None:
    async def story() -> None:
        async with connected(rig.app) as streams:
            streams[1].write(head("/sign-in", 100) + b"name=")
            await asyncio.sleep(0.3)  # until the dashboard waits for the rest
            streams[1].transport.abort()
            async with asyncio.timeout(30):
                while not events:
                    await asyncio.sleep(0.01)  # a real socket has its own time

    with structlog.testing.capture_logs() as events:
        rig.run(story())
    assert [event["event"] for event in events] == ["upload_aborted"]


def test_unfinished_bodies_have_one_budget() -> None:
    release = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            await request.body()
            await release.wait()
            answer = PlainTextResponse("ok")
        except Refused as refused:
            answer = PlainTextResponse("full", refused.status)
        await answer(scope, receive, send)

    async def one(lingering: LingeringApp) -> int:
        sent = []

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"x" * 60, "more_body": False}

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"60")]}
        await lingering(scope, receive, send)  # type: ignore[arg-type]
        return int(sent[0]["status"])  # type: ignore[call-overload]

    async def story() -> list[int]:
        lingering = LingeringApp(app, LingerLimits(kept_bytes=100))
        first = asyncio.create_task(one(lingering))
        await asyncio.sleep(0)
        second = await one(lingering)
        release.set()
        return [await first, second, await one(lingering)]

    assert asyncio.run(story()) == [200, 429, 200]
