"""Visitors that go away in the middle, or only stop sending: their requests end with them, and
nothing is sent twice.
"""

import asyncio
import socket
import struct

import pytest


async def test_a_visitor_that_goes_away_takes_its_request_with_it(rig) -> None:
    async def endless(_request, writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"5\r\nhello\r\n")
            await writer.drain()
            await asyncio.sleep(0.002)  # a stream that never ends

    rig.app = endless
    async with rig.running():
        async with rig.visitor() as talk:
            talk.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await talk.reader.readuntil(b"hello")
        await rig.until(
            lambda: rig.origin_lost and not rig.counts.origin_connections_open,
            "the origin learns of it",
        )
        assert rig.counts.abandoned == 1


async def test_a_visitor_that_goes_away_before_any_answer_takes_its_request_with_it(rig) -> None:
    gone = asyncio.Event()

    async def patient(_request, writer) -> None:
        await gone.wait()
        await asyncio.sleep(0.05)  # time for the connection to be broken off
        writer.write(b"late")
        await writer.drain()
        raise ConnectionResetError if writer.transport.is_closing() else AssertionError

    rig.app = patient
    async with rig.running(half_closed_s=1):
        async with rig.visitor() as talk:
            talk.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await rig.until(lambda: rig.requests, "the request arrives")
        await rig.until(
            lambda: not rig.counts.origin_connections_open,
            "the origin's connection is broken off",
        )
        gone.set()
        assert rig.counts.abandoned + rig.counts.cut == 1


async def test_a_visitor_that_goes_away_while_its_request_waits_for_a_connection_is_forgotten(
    rig,
) -> None:
    release = asyncio.Event()

    async def app(_request, writer) -> None:
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    rig.app = app
    async with rig.running(origin_connections=1, half_closed_s=1), rig.visitor() as first:
        first.send(b"GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
        await rig.until(lambda: rig.requests, "the first request holds the only connection")
        async with rig.visitor() as second:
            second.send(b"GET /second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            await rig.until(lambda: rig.counts.forwarded == 2, "the second waits")
        await rig.until(lambda: rig.counts.connections_open == 1, "the second is gone")
        release.set()
        assert (await first.response()).status == 200
        assert (await first.get("/third")).status == 200
    assert [request.target for request in rig.requests] == ["/first", "/third"]


@pytest.mark.parametrize("pipelined", [1, 3])
async def test_a_visitor_that_only_closed_its_sending_side_gets_its_answers(rig, pipelined) -> None:
    rig.decisions.delay_s = 0.02
    async with rig.running(), rig.visitor() as talk:
        talk.send(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n" * pipelined)
        talk.writer.write_eof()
        assert (await talk.rest()).count(b"hello from /x") == pipelined


async def test_half_a_request_before_the_end_is_no_request(rig) -> None:
    async with rig.running(half_closed_s=1):
        for part in (
            b"GET / HTTP/1.1\r\nHo",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc",
        ):
            async with rig.visitor() as talk:
                talk.send(part)
                talk.writer.write_eof()
                assert b"200 OK" not in await talk.rest()
        await rig.until(
            lambda: not rig.counts.origin_connections_open, "nothing stays with the origin"
        )
    assert rig.served == []


@pytest.mark.parametrize("reset", [False, True])
async def test_a_request_whose_visitor_is_gone_at_once_is_still_decided(rig, reset: bool) -> None:
    """As a page does that gives up its place: it sends the beacon and is closed."""
    asked = []

    def decide(arrival):
        asked.append(arrival.path)
        return rig.PAGE

    rig.decisions.decide = decide
    async with rig.running():
        for number in range(50):
            async with rig.visitor() as talk:
                talk.send(b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" % number)
                if reset:
                    talk.writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0)
                    )
                talk.writer.close()
        await rig.until(lambda: len(asked) == 50, "all are decided")
        assert asked == [f"/{number}" for number in range(50)]
        assert rig.errors == []
