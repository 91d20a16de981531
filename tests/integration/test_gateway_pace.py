"""A visitor and an origin of different pace: bodies that no one wants, visitors that wait to be
asked, and sides that read slowly.
"""

import asyncio
from ipaddress import ip_network

import pytest

from greenroom.request.forwarded import ForwardedPolicy

SENT = 24 << 20
HELD = 6 << 20
"""More than the kernel's buffers of two connections, those of readers and `write_bytes` together."""
GET = b"GET / HTTP/1.1\r\nHost: a\r\n"


async def test_a_held_post_is_answered_without_waiting_for_its_body(rig) -> None:
    rig.decisions.decide = rig.hold_held
    async with rig.running(), rig.visitor() as talk:
        talk.send(b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
        response = await talk.response()
        assert (response.body, response.header("Connection")) == (rig.PAGE.body, None)
        talk.send(b"x" * 60000)
        assert (await talk.get("/next")).body == b"hello from /next"
    assert [request.target for request in rig.requests] == ["/next"]


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 10000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"]
)
async def test_a_held_post_with_a_large_body_is_answered_and_the_connection_closed(
    rig, framing
) -> None:
    rig.decisions.decide = rig.hold_held
    async with rig.running(linger_s=1), rig.visitor() as talk:
        talk.send(b"POST /held HTTP/1.1\r\nHost: a\r\n" + framing)
        response = await talk.response()
        assert (response.body, response.header("Connection")) == (rig.PAGE.body, "close")
        talk.send(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)
        assert await talk.rest() == b""
    assert len(rig.decisions.arrivals) == 1


async def test_an_upload_that_takes_its_time_ends_with_the_answer_and_not_with_a_reset(rig) -> None:
    rig.decisions.decide = rig.hold_all
    async with rig.running(linger_s=1), rig.visitor() as talk:
        talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7000000\r\n\r\n")
        for _ in range(14):
            talk.send(b"x" * 500_000)
            await talk.writer.drain()
            await asyncio.sleep(0.15)  # two seconds altogether: longer than a visitor may be silent
        response = await talk.response()
        assert (response.body, response.whole) == (rig.PAGE.body, True)
        assert await talk.rest() == b""


async def test_an_unwanted_upload_is_not_discarded_for_ever(rig) -> None:
    rig.decisions.decide = rig.hold_all
    async with rig.running(linger_s=1, linger_bytes=1_000_000), rig.visitor() as talk:
        talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(200):
                talk.send(b"x" * 100_000)
                await talk.writer.drain()
                await asyncio.sleep(0.01)  # a steady upload


async def test_the_answer_to_a_large_unwanted_body_can_be_read_while_it_is_still_being_sent(
    rig,
) -> None:
    rig.decisions.decide = rig.hold_all
    async with rig.running(), rig.visitor() as talk:
        talk.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 5_000_000
        )
        assert (await talk.response()).body == rig.PAGE.body


async def test_a_proxy_that_never_sends_the_body_cannot_have_the_next_visitors_request_read_as_one(
    rig,
) -> None:
    """HAProxy 2.6 forgets a body when the answer comes first, and uses the connection for another
    visitor.
    """
    rig.decisions.decide = rig.hold_held
    unfinished = b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
    async with rig.running(linger_s=1, policy=ForwardedPolicy([ip_network("127.0.0.0/8")])):
        async with rig.visitor() as talk:
            talk.send(unfinished)
            assert (await talk.response()).header("Connection") == "close"
        async with rig.visitor() as talk:
            talk.send(unfinished + b"12345")
            assert (await talk.response()).header("Connection") is None
            assert (await talk.get("/next")).body == b"hello from /next", (
                "a body that is there changes nothing"
            )
    async with rig.running(), rig.visitor() as talk:
        talk.send(unfinished)
        assert (await talk.response()).header("Connection") is None, (
            "a browser's connection has one visitor"
        )
        talk.send(b"12345")
        assert (await talk.get("/next")).body == b"hello from /next"


async def test_a_small_chunked_body_of_a_held_request_keeps_the_connection(rig) -> None:
    rig.decisions.decide = rig.hold_held
    async with rig.running(), rig.visitor() as talk:
        talk.send(
            b"POST /held HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        assert (await talk.response()).body == rig.PAGE.body
        assert (await talk.response()).body == b"hello from /next"


EXPECTING = b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"


async def test_a_visitor_that_asks_before_sending_is_told_to_go_on_only_when_it_may(rig) -> None:
    rig.decisions.delay_s = 0.02
    rig.decisions.decide = rig.hold_held
    async with rig.running():
        async with rig.visitor() as talk:
            talk.send(EXPECTING % b"/in")
            assert (await talk.response()).status == 100
            talk.send(b"hello")
            assert (await talk.response()).body == b"hello from /in"
            assert (await talk.get("/more")).body == b"hello from /more"
        async with rig.visitor() as talk:
            talk.send(EXPECTING % b"/held")
            held = await talk.response()
            assert (held.status, held.body, held.header("Connection")) == (
                200,
                rig.PAGE.body,
                "close",
            )
            assert await talk.rest() == b""
    assert [(request.target, request.body) for request in rig.requests] == [
        ("/in", b"hello"),
        ("/more", b""),
    ]


async def test_a_visitor_that_asks_but_does_not_wait_is_served_too(rig) -> None:
    rig.decisions.decide = rig.hold_held
    async with rig.running(), rig.visitor() as talk:
        talk.send(EXPECTING % b"/held" + b"hello" + EXPECTING % b"/in" + b"hello")
        assert (await talk.response()).body == rig.PAGE.body
        assert (await talk.response()).body == b"hello from /in"


async def test_a_fast_origin_waits_for_a_slow_visitor(rig, tmp_path) -> None:
    sent = 0

    async def app(_request, writer) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SENT)
        while sent < SENT:
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    rig.app = app
    async with rig.running(file=tmp_path / "app"), rig.visitor(buffer=1 << 16) as talk:
        talk.send(GET + b"\r\n")
        await rig.at_rest(lambda: sent, HELD)
        await talk.reader.readuntil(b"\r\n\r\n")
        assert len(await talk.reader.readexactly(SENT)) == SENT


async def test_a_fast_visitor_waits_for_a_slow_origin(rig, tmp_path) -> None:
    go = asyncio.Event()

    async def app(request, writer) -> None:
        await go.wait()
        left = SENT
        while left:
            left -= len(await request.body.read(1 << 20))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    rig.app = app
    async with rig.running(file=tmp_path / "app"), rig.visitor() as talk:
        talk.send(b"STREAM / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % SENT)
        sent = 0

        async def upload() -> None:
            nonlocal sent
            while sent < SENT:
                talk.send(b"x" * 65536)
                sent += 65536
                await talk.writer.drain()

        uploading = asyncio.create_task(upload())
        await rig.at_rest(lambda: sent, HELD)
        go.set()
        await uploading
        assert (await talk.response()).body == b"ok"


async def test_a_visitor_that_pipelines_and_never_reads_is_not_served_ahead(rig) -> None:
    rig.decisions.decide = lambda _: type(rig.PAGE)(200, type(rig.PAGE.headers)(), b"x" * 50_000)
    async with rig.running(send_idle_s=1), rig.visitor(buffer=1 << 10) as talk:
        talk.writer.transport.pause_reading()
        for _ in range(200):
            talk.send(GET + b"\r\n")
        await rig.until(lambda: not rig.counts.connections_open, "it is cut off")
        assert rig.counts.bytes_out < 4 << 20


async def test_the_origin_is_let_go_when_a_visitor_stops_reading(rig) -> None:
    async def app(_request, writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    rig.app = app
    async with rig.running(send_idle_s=1), rig.visitor(buffer=1 << 10) as talk:
        talk.writer.transport.pause_reading()
        talk.send(GET + b"\r\n")
        await rig.until(lambda: rig.counts.origin_answers[2], "the answer begins")
        await rig.until(lambda: not rig.counts.origin_connections_open, "the origin is let go")
        assert rig.counts.cut == 1
