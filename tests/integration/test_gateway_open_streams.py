"""Streams through the gateway end with their session: sockets with a goodbye, bodies cut, uploads
refused.
"""

import asyncio

import pytest

from greenroom.decision.verdict import Forward
from greenroom.gateway.wire.websocket import accept_of
from greenroom.model.visit import Ticket
from greenroom.settings.limits import Limits

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
HELLO = (
    b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
    + KEY
    + b"\r\n\r\n"
)
AGREED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: "
GOODBYE = b"\x88\x02\x03\xf5"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
WITH_SESSION = Forward(room_id="room", ticket=Ticket(bytes(12), 1, 1, 1, 0))


@pytest.fixture
def gated(rig):
    rig.decisions.decide = lambda _: WITH_SESSION
    return rig


def socket_app(rig, frames: bytes):
    async def app(_request, writer) -> None:
        writer.write(AGREED + accept_of(KEY) + b"\r\n\r\n" + frames)
        reader = rig.reader_of(writer)
        rig.sent_to_origin = b""
        while data := await reader.read(65536):
            rig.sent_to_origin += data
        raise ConnectionResetError

    return app


async def test_a_socket_is_closed_with_a_frame_at_both_ends(gated) -> None:
    gated.app = socket_app(gated, b"\x81\x02hi")
    async with gated.running(), gated.visitor() as talk:
        talk.send(HELLO)
        assert (await talk.response()).status == 101
        assert await talk.reader.readexactly(4) == b"\x81\x02hi"
        talk.send(b"\x81\x82maskXX")
        await gated.until(lambda: gated.sent_to_origin, "the frame is there")
        gated.decisions.over = True
        assert await talk.rest() == GOODBYE
        await gated.until(lambda: gated.origin_lost, "the origin sees the end")
        assert gated.sent_to_origin.startswith(b"\x81\x82maskXX\x88\x82")
        assert len(gated.sent_to_origin) == 8 + 8
        assert (gated.counts.tunnels_open, gated.counts.streams_closed) == (0, 1)


async def test_in_the_middle_of_a_frame_a_socket_is_closed_without_words(gated) -> None:
    gated.app = socket_app(gated, b"\x81\x05hal")
    async with gated.running(), gated.visitor() as talk:
        talk.send(HELLO)
        await talk.response()
        assert await talk.reader.readexactly(5) == b"\x81\x05hal"
        gated.decisions.over = True
        assert await talk.rest() == b""


@pytest.mark.parametrize(
    "framing",
    [
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n",
        b"Content-Length: 100\r\n\r\nfirst",
        b"\r\nfirst",
    ],
)
async def test_a_body_is_cut_and_never_looks_complete(gated, framing: bytes) -> None:
    gated.app = gated.says(STREAM + framing)
    async with gated.running(), gated.visitor() as talk:
        talk.send(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        reading = asyncio.create_task(talk.response())
        await gated.until(lambda: gated.counts.bytes_out, "the stream has begun")
        gated.decisions.over = True
        response = await reading
        assert (response.status, response.whole) == (200, False)
        assert gated.counts.streams_closed == 1
        await gated.until(lambda: gated.origin_lost, "the origin is let go")


async def test_an_upload_is_refused_and_a_request_that_was_sent_whole_is_answered(gated) -> None:
    late = asyncio.Event()

    async def app(_request, writer) -> None:
        await late.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    gated.app = app
    async with gated.running(), gated.visitor() as slow, gated.visitor() as whole:
        first = (
            Limits().body_first_bytes
        )  # before these are there no connection to the origin is taken
        slow.send(
            b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (2 * first)
            + b"x" * first
        )
        whole.send(b"POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok")
        await gated.until(lambda: len(gated.requests) == 2 and gated.served, "both are under way")
        gated.decisions.over = True
        assert (await slow.response()).status == 503
        await asyncio.sleep(0.1)  # some sweeps
        late.set()
        assert (await whole.response()).body == b"done"
        assert gated.counts.streams_closed == 1


async def test_what_ends_by_itself_is_finished_once_and_requests_without_a_session_are_not_watched(
    gated,
) -> None:
    gated.app = gated.says(STREAM + b"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
    async with gated.running():
        async with gated.visitor() as talk:
            talk.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await gated.until(lambda: gated.gateway._streams._under_way, "it is watched")
        await gated.until(lambda: gated.decisions.finished, "the visitor is gone")
        await asyncio.sleep(0.1)  # some sweeps
        assert gated.decisions.finished == 1
        gated.decisions.decide = lambda _: Forward()
        gated.decisions.over = True
        async with gated.visitor() as talk:
            talk.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await gated.until(lambda: len(gated.requests) == 2, "it is under way")
            await asyncio.sleep(0.1)  # some sweeps
            assert not gated.gateway._streams._under_way
        assert gated.counts.streams_closed == 0


async def test_a_look_that_fails_is_reported_and_ends_nothing(gated) -> None:
    def broken() -> bool:
        raise ZeroDivisionError

    gated.decisions.is_over = broken
    gated.app = gated.says(STREAM + b"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
    async with gated.running(), gated.visitor() as talk:
        talk.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await gated.until(lambda: len(gated.errors) > 2, "it is told")
        assert not talk.reader.at_eof()
        gated.decisions.is_over = lambda: True
        assert not (await talk.response()).whole
        gated.errors.clear()
