"""WebSocket through the gateway: a tunnel behind a verified agreement, and no tunnel in any other
case.
"""

import asyncio
import contextlib
import time

import pytest

from greenroom.decision.verdict import Forward
from greenroom.gateway.wire.websocket import accept_of

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
HELLO = (
    b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
    + KEY
    + b"\r\n\r\n"
)
AGREED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\nSec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: "

ROUND_CPU_S = 0.3
"""Of this process (gateway, visitors and origin together), for one answer beside three floods: it
takes 0.03 s, and with every frame counted 0.8 s.
"""


def test_the_answer_to_a_key_is_the_one_of_the_standard() -> None:
    assert accept_of(KEY) == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.fixture
def tunnel(rig):
    """An origin that agrees and then sends back everything in capitals, until it is sent `BYE`."""

    async def app(request, writer) -> None:
        writer.write(AGREED + accept_of(KEY) + b"\r\n\r\nfirst")
        reader = rig.reader_of(writer)
        while data := await reader.read(65536):
            if data == b"bye":
                writer.close()
                return
            writer.write(data.upper())
            await writer.drain()
        raise ConnectionResetError

    rig.app = app
    return rig


async def test_a_verified_agreement_opens_a_tunnel_with_the_ticket_on_it(tunnel) -> None:
    tunnel.decisions.decide = lambda _: Forward(set_cookie=tunnel.TICKET)
    async with tunnel.running(), tunnel.visitor() as talk:
        talk.send(HELLO)
        response = await talk.response()
        assert response.status == 101
        assert response.header("Upgrade") == "websocket"
        assert response.header("Connection") == "Upgrade"
        assert response.header("Sec-WebSocket-Accept") == accept_of(KEY).decode()
        assert response.header("Sec-WebSocket-Protocol") == "chat"
        assert response.all("Set-Cookie") == [tunnel.TICKET.decode()]
        assert await talk.reader.readexactly(5) == b"first"
        talk.send(b"GET / HTTP/1.1\r\n\r\n")  # just bytes now
        assert await talk.reader.readexactly(18) == b"GET / HTTP/1.1\r\n\r\n"
        big = b"x" * 3_000_000
        talk.send(big)
        assert await talk.reader.readexactly(len(big)) == big.upper()
        assert (tunnel.counts.tunnels_open, len(tunnel.decisions.arrivals)) == (1, 1)
        talk.send(b"bye")
        assert await talk.rest() == b""
    await tunnel.until(lambda: not tunnel.counts.tunnels_open, "the tunnel is closed")
    (sent,) = tunnel.requests
    assert (
        sent.header("upgrade"),
        sent.header("connection"),
        sent.header("sec-websocket-key"),
    ) == (
        "websocket",
        "Upgrade",
        KEY.decode(),
    )


async def test_bytes_sent_ahead_of_the_agreement_reach_the_tunnel(tunnel) -> None:
    async with tunnel.running(), tunnel.visitor() as talk:
        talk.send(HELLO + b"early")
        assert (await talk.response()).status == 101
        assert await talk.reader.readexactly(10) == b"firstEARLY"


async def test_a_visitor_that_leaves_ends_the_tunnel(tunnel) -> None:
    async with tunnel.running():
        async with tunnel.visitor() as talk:
            talk.send(HELLO)
            await talk.response()
        await tunnel.until(
            lambda: tunnel.origin_lost and not tunnel.counts.tunnels_open,
            "the origin sees the end",
        )


async def test_a_tunnel_that_is_silent_for_too_long_is_closed(tunnel) -> None:
    async with tunnel.running(tunnel_idle_s=1), tunnel.visitor() as talk:
        talk.send(HELLO)
        await talk.response()
        assert await talk.rest() == b"first"
        await tunnel.until(lambda: tunnel.origin_lost, "the origin sees the end")


async def test_a_tunnel_holds_no_more_than_its_buffers(tunnel) -> None:
    async def app(_request, writer) -> None:
        writer.write(AGREED + accept_of(KEY) + b"\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    tunnel.app = app
    async with tunnel.running(), tunnel.visitor(buffer=1 << 10) as talk:
        talk.writer.transport.pause_reading()
        talk.send(HELLO)
        await tunnel.at_rest(lambda: tunnel.counts.bytes_out, 4 << 20)


async def test_a_flood_of_tiny_frames_through_tunnels_leaves_the_others_their_turn(tunnel) -> None:
    frame = b"\x81\x81\0\0\0\0X"  # a masked text of one letter: the most frames for the bytes
    tunnel.decisions.decide = lambda arrival: Forward() if arrival.path == "/chat" else tunnel.PAGE
    took: list[float] = []
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(tunnel.running())
        floods = [await stack.enter_async_context(tunnel.visitor()) for _ in range(3)]
        other = await stack.enter_async_context(tunnel.visitor())
        await other.get()
        for talk in floods:
            talk.send(HELLO)
            assert (await talk.response()).status == 101
            assert await talk.reader.readexactly(5) == b"first"
        sizes = [len(frame) * 300_000] * len(floods)
        reading = [
            asyncio.create_task(talk.reader.readexactly(size))
            for talk, size in zip(floods, sizes, strict=True)
        ]
        for talk, size in zip(floods, sizes, strict=True):
            talk.send(frame * (size // len(frame)))
        carried = tunnel.counts.bytes_out
        await tunnel.until(
            lambda: tunnel.counts.bytes_out > carried + len(frame) * 1_000,
            "the flood has begun",
        )
        while not all(read.done() for read in reading):
            before = time.process_time()
            await other.get()
            took.append(time.process_time() - before)
        assert [await read == frame * 300_000 for read in reading] == [True] * 3, (
            "nothing is lost or changed"
        )
    assert max(took) < ROUND_CPU_S, "others are answered while the flood lasts"


@pytest.mark.parametrize(
    "answer",
    [
        AGREED + b"wrong\r\n\r\n",
        AGREED.replace(b"Upgrade: WebSocket", b"Upgrade: h2c") + accept_of(KEY) + b"\r\n\r\n",
        AGREED.replace(b"Connection: upgrade", b"Connection: keep-alive")
        + accept_of(KEY)
        + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        AGREED + accept_of(KEY) + b"\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_an_agreement_that_is_not_proven_is_a_502(rig, answer) -> None:
    rig.app = rig.says(answer)
    async with rig.running(), rig.visitor() as talk:
        talk.send(HELLO)
        assert (await talk.response()).status == 502
        assert rig.counts.tunnels == 0


async def test_an_origin_that_declines_gives_an_ordinary_answer_and_the_next_request_is_gated(
    rig,
) -> None:
    rig.decisions.decide = rig.hold_held
    async with rig.running(), rig.visitor() as talk:
        talk.send(HELLO + b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await talk.response()).body == b"hello from /chat"
        assert (await talk.response()).body == rig.PAGE.body
    assert len(rig.decisions.arrivals) == 2


async def test_a_held_websocket_gets_the_page(rig) -> None:
    rig.decisions.decide = rig.hold_all
    async with rig.running(), rig.visitor() as talk:
        talk.send(HELLO)
        assert (await talk.response()).body == rig.PAGE.body


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"Sec-WebSocket-Key: short\r\n",
        b"Sec-WebSocket-Key: " + KEY + b"\r\nSec-WebSocket-Key: " + KEY + b"\r\n",
    ],
)
async def test_a_websocket_without_exactly_one_proper_key_is_refused(rig, key) -> None:
    async with rig.running():
        answer = await rig.talk(HELLO.replace(b"Sec-WebSocket-Key: " + KEY + b"\r\n", key))
        assert answer.startswith(b"HTTP/1.1 400 ")
    assert rig.requests == []


@pytest.mark.parametrize(
    "head",
    [
        HELLO.replace(b"Upgrade: websocket", b"Upgrade: h2c"),
        HELLO.replace(b"Upgrade: websocket", b"Upgrade: websocket, h2c"),
        HELLO.replace(b"Upgrade: websocket", b"Upgrade: websocket/13"),
        HELLO.replace(b"Connection: Upgrade", b"Connection: keep-alive"),
        HELLO.replace(b"GET", b"PUT"),
        HELLO.replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
async def test_any_other_upgrade_is_not_passed_on_and_its_101_not_believed(tunnel, head) -> None:
    async with tunnel.running(), tunnel.visitor() as talk:
        talk.send(head)
        assert (await talk.response()).status == 502
        assert tunnel.counts.tunnels == 0
    assert tunnel.requests[0].header("upgrade") is None
