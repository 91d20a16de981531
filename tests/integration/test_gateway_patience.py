"""Turns and patience: many requests at once wait for the others, and a client that is slow but
moves is waited for.
"""

import asyncio
import socket

import pytest
from tests.integration.test_gateway_websocket import HELLO, tunnel  # noqa: F401  (a fixture)

from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival

GET = b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n"
READ_MOST = 256 << 10
"""What an event loop reads from a socket at once."""


async def test_a_flood_of_pipelined_requests_leaves_the_others_their_turn_and_is_not_kept(
    rig,
) -> None:
    served = kept = most = 0

    def decide(_: Arrival) -> Answer:
        nonlocal served, kept
        served += 1
        kept = max(kept, *(len(connection._buffer) for connection in rig.gateway._connections.open))
        return rig.PAGE

    rig.decisions.decide = decide
    async with rig.running(), rig.visitor() as flood, rig.visitor() as other:
        await other.get()
        reading = asyncio.create_task(flood.reader.read(-1))
        flood.send(GET % b"/flood" * 60_000)
        await rig.until(lambda: served > 1_000, "the flood has begun")
        for _ in range(5):
            before = served
            await other.get()
            most = max(most, served - before)
        reading.cancel()
    assert most <= 300, (
        "an answer takes some turns of the event loop, and the flood gets one request in each"
    )
    assert kept <= rig.gateway.state.limits.pipelined_bytes + READ_MOST


async def test_many_requests_before_the_end_of_sending_are_all_answered(rig) -> None:
    rig.decisions.decide = rig.hold_all
    async with rig.running(), rig.visitor() as talk:
        talk.send(GET % b"/" * 400)
        talk.writer.write_eof()
        assert (await talk.rest()).count(rig.PAGE.body) == 400


async def test_a_head_longer_than_what_is_kept_ahead_may_follow_a_request_under_way(rig) -> None:
    rig.decisions.delay_s = 0.1
    async with rig.running(pipelined_bytes=1024, head_s=2), rig.visitor() as talk:
        long = b"GET /long HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 6_000
        talk.send(GET % b"/first" + long[:4_000])
        assert (await talk.response()).body == b"hello from /first"
        talk.send(long[4_000:] + b"\r\n\r\n")
        assert (await talk.response()).body == b"hello from /long"


async def test_an_empty_line_behind_a_body_begins_no_head(rig) -> None:
    async with rig.running(head_s=1, keep_alive_s=60), rig.visitor() as talk:
        talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab\r\n")
        assert (await talk.response()).status == 200
        await asyncio.sleep(1.2)  # a head would have had its time
        assert (await talk.get("/next")).body == b"hello from /next"


async def test_a_held_visitor_that_asked_and_sends_in_parts_keeps_the_connection_it_was_promised(
    rig,
) -> None:
    rig.decisions.decide = rig.hold_held
    async with rig.running(), rig.visitor() as talk:
        talk.send(
            b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhe"
        )
        assert (await talk.response()).header("Connection") is None
        talk.send(b"llo" + GET % b"/next")
        assert (await talk.response()).body == b"hello from /next"


async def test_a_body_that_trickles_behind_its_answer_ends_the_connection_without_a_second_answer(
    rig,
) -> None:
    rig.decisions.decide = rig.hold_all
    async with rig.running(body_idle_s=1, linger_s=1), rig.visitor() as talk:
        talk.send(b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n")
        assert (await talk.response()).body == rig.PAGE.body
        for _ in range(30):
            talk.send(b"x")
            await asyncio.sleep(0.05)  # the slowness is what is tried
        assert await talk.rest() == b""


async def test_a_visitor_that_reads_slowly_is_waited_for(rig) -> None:
    async def app(_request, writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    rig.app = app
    loop = asyncio.get_running_loop()
    async with rig.running(send_idle_s=1):
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
            sock.setblocking(False)
            await loop.sock_connect(sock, rig.address)
            await loop.sock_sendall(sock, GET % b"/")
            for _ in range(35):
                assert await loop.sock_recv(sock, 16_384)
                await asyncio.sleep(0.1)  # the slowness is what is tried
            assert (rig.counts.cut, rig.counts.connections_open) == (0, 1)
            await rig.until(lambda: rig.counts.cut, "a visitor that stops reading is cut off")


async def test_a_tunnel_may_be_silent_after_back_pressure_as_long_as_before(tunnel) -> None:  # noqa: F811
    async with tunnel.running(tunnel_idle_s=300, origin_read_s=1), tunnel.visitor() as talk:
        talk.send(HELLO)
        await talk.response()
        (connection,) = tunnel.gateway._connections.open
        for full, room in (
            (connection.pause_writing, connection.resume_writing),
            (connection.exchange.origin_is_full, connection.exchange.origin_has_room),
        ):
            full()
            room()
            assert connection.deadline > tunnel.gateway.state.now() + 200


@pytest.mark.parametrize(
    ("status", "connections"), [(b"204 No Content", 3), (b"304 Not Modified", 1)]
)
async def test_a_connection_with_a_body_that_must_not_be_is_not_used_again(
    rig, status, connections
) -> None:
    rig.app = rig.says(b"HTTP/1.1 " + status + b"\r\nContent-Length: 10\r\n\r\n")
    async with rig.running(), rig.visitor() as talk:
        for _ in range(3):
            await talk.get()
    assert rig.origin_connections == connections


async def test_a_request_that_has_come_is_not_late(rig) -> None:
    """The connection's time to send one ends in the turn of the loop in which it is read."""
    rig.decisions.decide = rig.hold_all
    async with rig.running(), rig.visitor() as talk:
        await talk.get()
        (connection,) = rig.gateway._connections.open
        connection.data_received(GET % b"/")
        connection.deadline = 0.0
        rig.gateway._sweep()
        assert (await talk.response()).status == 200
