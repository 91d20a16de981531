"""What the gateway does not put up with: too much, too slow, too many, and what is not HTTP."""

import asyncio
from ipaddress import ip_network

import pytest

from greenroom.decision.forwarded import ForwardedPolicy
from greenroom.decision.verdict import Forward

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ")[1])


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (GET + b"X: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (GET + b"X: " + b"a" * 40_000, 431),
        (GET + b"X: a\r\n" * 101 + b"\r\n", 431),
        (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET /" + b"a" * 9_000, 414),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + b"a" * 2000, 413),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        (b"GET /%2f HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 405),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ],
    ids=range(16),
)
def test_what_cannot_be_served_is_refused_and_never_forwarded(rig, run, request_bytes, status) -> None:
    async def story() -> None:
        async with rig.running(body_bytes=1000):
            answer = await rig.talk(request_bytes)
            assert status_of(answer) == status
            assert b"Connection: close\r\n" in answer
            assert rig.counts.refused == 1
        assert rig.served == []

    run(story())


@pytest.mark.parametrize(
    "body",
    [b"x\r\n", b"-1\r\n", b"0x1\r\na\r\n", b"1\na\r\n", b"1\r\nab\r\n", b"1\r\na\n", b" 1\r\na\r\n", b"1;\x00\r\na\r\n", b"\r\n", b"1" * 300, b"10000000000000000\r\n",
     b"0\r\nbad trailer\r\n\r\n", b"0\r\nA: b\nC: d\r\n\r\n", b"0\r\n" + b"A: b\r\n" * 3000 + b"\r\n", b"1\r\na\rb"],
)  # fmt: skip
@pytest.mark.parametrize("split", [False, True])
def test_chunked_garbage_is_refused_and_the_origin_sees_no_whole_request(rig, run, body, split) -> None:
    async def story() -> None:
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        async with rig.running(body_first_bytes=0), rig.visitor() as talk:
            if split:
                talk.send(head + b"2\r\nok\r\n")
                await rig.until(lambda: rig.requests, "the request is under way")
                talk.send(body)
            else:
                talk.send(head + body)
            assert (await talk.response()).status == 400
            assert await talk.rest() == b""
            await rig.until(lambda: rig.origin_lost == rig.origin_connections, "the origin sees it break off")
        assert rig.served == []

    run(story())


def test_a_head_that_trickles_is_a_408_however_busy_it_looks(rig, run) -> None:
    async def story() -> None:
        async with rig.running(head_s=1), rig.visitor() as talk:
            answer = asyncio.create_task(talk.response())
            began = asyncio.get_running_loop().time()
            for byte in GET + b"X: " + b"a" * 1000:
                talk.send(bytes((byte,)))
                await asyncio.sleep(0.02)  # a slow visitor
                if answer.done():
                    break
            assert (await answer).status == 408
            assert asyncio.get_running_loop().time() - began < 3

    run(story())


def test_a_body_that_stops_is_a_408_and_lets_the_origin_go(rig, run) -> None:
    async def story() -> None:
        async with rig.running(body_idle_s=1, body_first_bytes=0), rig.visitor() as talk:
            talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
            assert (await talk.response()).status == 408
            await rig.until(lambda: rig.origin_lost, "the origin is let go")

    run(story())


def test_a_body_that_trickles_is_a_408(rig, run) -> None:
    async def story() -> None:
        async with rig.running(body_idle_s=1, body_rate=1000), rig.visitor() as talk:
            answer = asyncio.create_task(talk.response())
            talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(100):
                talk.send(b"a")
                await asyncio.sleep(0.02)  # a slow visitor
                if answer.done():
                    break
            assert (await answer).status == 408

    run(story())


def test_an_idle_connection_is_closed_without_a_word(rig, run) -> None:
    async def story() -> None:
        async with rig.running(keep_alive_s=1, head_s=1), rig.visitor() as fresh, rig.visitor() as used:
            assert (await used.get()).status == 200
            assert await fresh.rest() == b""
            assert await used.rest() == b""

    run(story())


def test_a_connection_serves_only_so_many_requests(rig, run) -> None:
    async def story() -> None:
        async with rig.running(requests_per_connection=2), rig.visitor() as talk:
            assert (await talk.get()).header("Connection") is None
            assert (await talk.get()).header("Connection") == "close"
            assert await talk.rest() == b""

    run(story())


@pytest.mark.parametrize("limit", ["connections", "connections_per_address"])
def test_one_connection_too_many_is_a_503_and_the_others_go_on(rig, run, limit) -> None:
    async def story() -> None:
        async with rig.running(**{limit: 2}), rig.visitor() as one, rig.visitor() as two:
            assert (await one.get()).status == (await two.get()).status == 200
            answer = await rig.talk(b"")
            assert status_of(answer) == 503
            assert b"Retry-After" in answer
            assert (await one.get()).status == 200
            assert rig.counts.connections_refused == 1
            one.writer.close()
            await rig.until(lambda: rig.counts.connections_open == 1, "one is gone")
            assert (await rig.get()).status == 200

    run(story())


def test_no_more_connections_to_the_origin_than_allowed_and_the_rest_waits_in_order(rig, run) -> None:
    async def story() -> None:
        busy = most = 0

        async def app(request, writer) -> None:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0.01)  # so that requests overlap
            busy -= 1
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        rig.app = app
        async with rig.running(origin_connections=3):
            assert [r.status for r in await asyncio.gather(*(rig.get(f"/{n}") for n in range(20)))] == [200] * 20
        assert most == 3
        assert rig.origin_connections == 3

    run(story())


def test_a_full_queue_for_the_origin_is_a_503_that_keeps_the_place(rig, run) -> None:
    async def story() -> None:
        release = asyncio.Event()

        async def app(_request, writer) -> None:
            await release.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        rig.app = app
        rig.decisions.decide = lambda _: Forward(set_cookie=rig.TICKET)
        async with rig.running(origin_connections=1, origin_queue=1):
            first, second = asyncio.create_task(rig.get()), asyncio.create_task(rig.get())
            await rig.until(lambda: rig.counts.forwarded == 2 and rig.requests, "one is served and one waits")
            third = await rig.get()
            assert (third.status, third.all("Set-Cookie")) == (503, [rig.TICKET.decode()])
            release.set()
            assert ((await first).status, (await second).status) == (200, 200)

    run(story())


def test_a_request_waits_only_so_long_for_a_connection(rig, run) -> None:
    async def story() -> None:
        async def app(_request, _writer) -> None:
            await asyncio.sleep(3600)  # cancelled with the loop

        rig.app = app
        async with rig.running(origin_connections=1, origin_queue_s=1), rig.visitor() as first:
            first.send(GET + b"\r\n")
            await rig.until(lambda: rig.requests, "the only connection is taken")
            assert (await rig.get()).status == 503

    run(story())


def test_a_held_post_is_answered_without_waiting_for_its_body(rig, run) -> None:
    async def story() -> None:
        rig.decisions.decide = rig.hold_held
        async with rig.running(), rig.visitor() as talk:
            talk.send(b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
            response = await talk.response()
            assert (response.body, response.header("Connection")) == (rig.PAGE.body, None)
            talk.send(b"x" * 60000)
            assert (await talk.get("/next")).body == b"hello from /next"
        assert [request.target for request in rig.requests] == ["/next"]

    run(story())


@pytest.mark.parametrize("framing", [b"Content-Length: 10000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_a_held_post_with_a_large_body_is_answered_and_the_connection_closed(rig, run, framing) -> None:
    async def story() -> None:
        rig.decisions.decide = rig.hold_held
        async with rig.running(linger_s=1), rig.visitor() as talk:
            talk.send(b"POST /held HTTP/1.1\r\nHost: a\r\n" + framing)
            response = await talk.response()
            assert (response.body, response.header("Connection")) == (rig.PAGE.body, "close")
            talk.send(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)
            assert await talk.rest() == b""
        assert len(rig.decisions.arrivals) == 1

    run(story())


def test_an_upload_that_takes_its_time_ends_with_the_answer_and_not_with_a_reset(rig, run) -> None:
    async def story() -> None:
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

    run(story())


def test_an_unwanted_upload_is_not_discarded_for_ever(rig, run) -> None:
    async def story() -> None:
        rig.decisions.decide = rig.hold_all
        async with rig.running(linger_s=1, linger_bytes=1_000_000), rig.visitor() as talk:
            talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
            with pytest.raises(ConnectionError):
                for _ in range(200):
                    talk.send(b"x" * 100_000)
                    await talk.writer.drain()
                    await asyncio.sleep(0.01)  # a steady upload

    run(story())


def test_the_answer_to_a_large_unwanted_body_can_be_read_while_it_is_still_being_sent(rig, run) -> None:
    async def story() -> None:
        rig.decisions.decide = rig.hold_all
        async with rig.running(), rig.visitor() as talk:
            talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 5_000_000)
            assert (await talk.response()).body == rig.PAGE.body

    run(story())


def test_a_proxy_that_never_sends_the_body_cannot_have_the_next_visitors_request_read_as_one(rig, run) -> None:
    """HAProxy 2.6 forgets a body when the answer comes first, and uses the connection for another visitor."""

    async def story() -> None:
        rig.decisions.decide = rig.hold_held
        unfinished = b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
        async with rig.running(linger_s=1, policy=ForwardedPolicy([ip_network("127.0.0.0/8")])):
            async with rig.visitor() as talk:
                talk.send(unfinished)
                assert (await talk.response()).header("Connection") == "close"
            async with rig.visitor() as talk:
                talk.send(unfinished + b"12345")
                assert (await talk.response()).header("Connection") is None
                assert (await talk.get("/next")).body == b"hello from /next", "a body that is there changes nothing"
        async with rig.running(), rig.visitor() as talk:
            talk.send(unfinished)
            assert (await talk.response()).header("Connection") is None, "a browser's connection has one visitor"
            talk.send(b"12345")
            assert (await talk.get("/next")).body == b"hello from /next"

    run(story())


def test_a_small_chunked_body_of_a_held_request_keeps_the_connection(rig, run) -> None:
    async def story() -> None:
        rig.decisions.decide = rig.hold_held
        async with rig.running(), rig.visitor() as talk:
            talk.send(
                b"POST /held HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n"
            )
            assert (await talk.response()).body == rig.PAGE.body
            assert (await talk.response()).body == b"hello from /next"

    run(story())


EXPECTING = b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"


def test_a_visitor_that_asks_before_sending_is_told_to_go_on_only_when_it_may(rig, run) -> None:
    async def story() -> None:
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
                assert (held.status, held.body, held.header("Connection")) == (200, rig.PAGE.body, "close")
                assert await talk.rest() == b""
        assert [(request.target, request.body) for request in rig.requests] == [("/in", b"hello"), ("/more", b"")]

    run(story())


def test_a_visitor_that_asks_but_does_not_wait_is_served_too(rig, run) -> None:
    async def story() -> None:
        rig.decisions.decide = rig.hold_held
        async with rig.running(), rig.visitor() as talk:
            talk.send(EXPECTING % b"/held" + b"hello" + EXPECTING % b"/in" + b"hello")
            assert (await talk.response()).body == rig.PAGE.body
            assert (await talk.response()).body == b"hello from /in"

    run(story())


def test_a_fast_origin_waits_for_a_slow_visitor(rig, run) -> None:
    size = 64 << 20

    async def story() -> None:
        sent = 0

        async def app(_request, writer) -> None:
            nonlocal sent
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            while sent < size:
                writer.write(b"x" * 65536)
                sent += 65536
                await writer.drain()

        rig.app = app
        async with rig.running(), rig.visitor(buffer=1 << 16) as talk:
            talk.send(GET + b"\r\n")
            before = -1
            while before != sent:  # until nothing moves any more
                before = sent
                await asyncio.sleep(0.2)  # kernel buffers fill
            assert 0 < sent < 24 << 20
            await talk.reader.readuntil(b"\r\n\r\n")
            assert len(await talk.reader.readexactly(size)) == size

    run(story())


def test_a_fast_visitor_waits_for_a_slow_origin(rig, run) -> None:
    size = 64 << 20

    async def story() -> None:
        go = asyncio.Event()

        async def app(request, writer) -> None:
            await go.wait()
            left = size
            while left:
                left -= len(await request.body.read(1 << 20))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        rig.app = app
        async with rig.running(), rig.visitor() as talk:
            talk.send(b"STREAM / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)
            sent, before = 0, -1
            while before != sent and sent < size:
                before = sent
                for _ in range(64):
                    if sent < size and talk.writer.transport.get_write_buffer_size() == 0:
                        talk.send(b"x" * 65536)
                        sent += 65536
                    await asyncio.sleep(0)
                await asyncio.sleep(0.05)  # kernel buffers fill
            assert sent < 24 << 20
            assert rig.counts.bytes_in < 24 << 20
            go.set()
            while sent < size:
                talk.send(b"x" * 65536)
                sent += 65536
                await talk.writer.drain()
            assert (await talk.response()).body == b"ok"

    run(story())


def test_a_visitor_that_pipelines_and_never_reads_is_not_served_ahead(rig, run) -> None:
    async def story() -> None:
        rig.decisions.decide = lambda _: type(rig.PAGE)(200, type(rig.PAGE.headers)(), b"x" * 50_000)
        async with rig.running(send_idle_s=1), rig.visitor(buffer=1 << 10) as talk:
            talk.writer.transport.pause_reading()
            for _ in range(200):
                talk.send(GET + b"\r\n")
            await rig.until(lambda: not rig.counts.connections_open, "it is cut off")
            assert rig.counts.bytes_out < 8 << 20

    run(story())


def test_the_origin_is_let_go_when_a_visitor_stops_reading(rig, run) -> None:
    async def story() -> None:
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

    run(story())
