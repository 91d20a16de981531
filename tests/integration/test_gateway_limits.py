"""What the gateway does not put up with: too much, too slow, too many, and what is not HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from greenroom.decision.verdict import Forward
from greenroom.gateway.state import GatewayState
from greenroom.gateway.visitor import connection
from greenroom.gateway.wire.request_head import Peer

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
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n"
            + b"a" * 2000,
            413,
        ),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n", 400),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        (b"GET /%5c HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 405),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ],
    ids=range(16),
)
async def test_what_cannot_be_served_is_refused_and_never_forwarded(
    rig, request_bytes, status
) -> None:
    async with rig.running(body_bytes=1000):
        answer = await rig.talk(request_bytes)
        assert status_of(answer) == status
        assert b"Connection: close\r\n" in answer
        assert rig.counts.refused == 1
    assert rig.served == []


@pytest.mark.parametrize(
    "body",
    [b"x\r\n", b"-1\r\n", b"0x1\r\na\r\n", b"1\na\r\n", b"1\r\nab\r\n", b"1\r\na\n", b" 1\r\na\r\n", b"1;\x00\r\na\r\n", b"\r\n", b"1" * 300, b"10000000000000000\r\n",
     b"0\r\nbad trailer\r\n\r\n", b"0\r\nA: b\nC: d\r\n\r\n", b"0\r\n" + b"A: b\r\n" * 3000 + b"\r\n", b"1\r\na\rb"],
)  # fmt: skip
@pytest.mark.parametrize("split", [False, True])
async def test_chunked_garbage_is_refused_and_the_origin_sees_no_whole_request(
    rig, body, split
) -> None:
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
        await rig.until(
            lambda: rig.origin_lost == rig.origin_connections, "the origin sees it break off"
        )
    assert rig.served == []


async def test_a_head_that_trickles_is_a_408_however_busy_it_looks(rig) -> None:
    async with rig.running(head_s=1), rig.visitor() as talk:
        answer = asyncio.create_task(talk.response())
        sent = 0
        for sent, byte in enumerate(GET + b"X: " + b"a" * 1000):
            talk.send(bytes((byte,)))
            await asyncio.sleep(0.02)  # a slow visitor
            if answer.done():
                break
        assert (await answer).status == 408
        assert sent < 3 / 0.02, "bytes are counted: a machine that stands still sends none"


async def test_a_body_that_stops_is_a_408_and_lets_the_origin_go(rig) -> None:
    async with rig.running(body_idle_s=1, body_first_bytes=0), rig.visitor() as talk:
        talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        assert (await talk.response()).status == 408
        await rig.until(lambda: rig.origin_lost, "the origin is let go")


async def test_a_body_that_trickles_is_a_408(rig) -> None:
    async with rig.running(body_idle_s=1, body_rate=1000), rig.visitor() as talk:
        answer = asyncio.create_task(talk.response())
        talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(100):
            talk.send(b"a")
            await asyncio.sleep(0.02)  # a slow visitor
            if answer.done():
                break
        assert (await answer).status == 408


async def test_an_idle_connection_is_closed_without_a_word(rig) -> None:
    async with (
        rig.running(keep_alive_s=1, head_s=1),
        rig.visitor() as fresh,
        rig.visitor() as used,
    ):
        assert (await used.get()).status == 200
        assert await fresh.rest() == b""
        assert await used.rest() == b""


async def test_a_connection_serves_only_so_many_requests(rig) -> None:
    async with rig.running(requests_per_connection=2), rig.visitor() as talk:
        assert (await talk.get()).header("Connection") is None
        assert (await talk.get()).header("Connection") == "close"
        assert await talk.rest() == b""


@contextlib.asynccontextmanager
async def two_requests_under_way(rig, **limits: int) -> AsyncIterator[None]:
    release = asyncio.Event()

    async def app(_request, writer) -> None:
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    rig.app = app
    async with rig.running(**limits):
        asked = [asyncio.create_task(rig.get()) for _ in range(2)]
        await rig.until(lambda: len(rig.requests) == 2, "both are at the origin")
        yield
        release.set()
        assert [(await answer).status for answer in asked] == [200, 200]


LIMITS = ("connections", "connections_per_address")


@pytest.mark.parametrize("limit", LIMITS)
async def test_one_connection_too_many_is_a_503_and_requests_under_way_go_on(rig, limit) -> None:
    async with two_requests_under_way(rig, **{limit: 2}):
        answer = await rig.talk(b"")
        assert status_of(answer) == 503
        assert b"Retry-After" in answer
        assert (rig.counts.connections_refused, rig.counts.connections_shed) == (1, 0)


@pytest.mark.parametrize("limit", LIMITS)
async def test_a_new_connection_takes_the_place_of_an_idle_one(rig, limit) -> None:
    async with rig.running(**{limit: 2}), rig.visitor() as one, rig.visitor() as two:
        assert (await one.get()).status == (await two.get()).status == 200
        async with rig.visitor() as new:
            assert (await new.get()).status == 200
            assert rig.counts.connections_open == 2
            assert (rig.counts.connections_refused, rig.counts.connections_shed) == (0, 1)


UNFINISHED = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1"


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(("stalled_s", "status"), [(-1.0, 200), (connection.STALLED_S, 503)])
async def test_a_body_that_has_stopped_coming_makes_room_and_one_that_comes_does_not(
    rig, monkeypatch, limit, stalled_s, status
) -> None:

    monkeypatch.setattr(connection, "STALLED_S", stalled_s)
    async with rig.running(**{limit: 2}), rig.visitor() as one, rig.visitor() as two:
        for talk in (one, two):
            talk.send(UNFINISHED)
        await rig.until(lambda: rig.counts.forwarded == 2, "both have begun")
        async with rig.visitor() as new:
            assert (await new.get()).status == status
        assert rig.counts.connections_shed == (status == 200)


@pytest.mark.parametrize(("stalled_s", "status"), [(-1.0, 200), (connection.STALLED_S, 503)])
async def test_an_upload_that_has_stopped_coming_gives_its_origin_connection_to_others(
    rig, monkeypatch, stalled_s, status
) -> None:

    monkeypatch.setattr(connection, "STALLED_S", stalled_s)
    async with (
        rig.running(origin_connections=1, origin_queue_s=1, body_first_bytes=0),
        rig.visitor() as talk,
    ):
        talk.send(UNFINISHED)
        await rig.until(lambda: rig.counts.origin_connections_open, "it is at the origin")
        assert (await rig.get()).status == status
        if status == 200:
            assert status_of(await talk.rest()) == 408


@pytest.mark.parametrize(
    ("full", "stalled_s", "status"),
    [
        ("origin_connections", 0.0, 200),
        ("connections", 0.0, 200),
        ("connections", connection.STALLED_S, 503),
    ],
)
async def test_a_visitor_who_reads_no_more_makes_room_for_others(
    rig, monkeypatch, full, stalled_s, status
) -> None:
    async def app(_request, writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()

    monkeypatch.setattr(connection, "STALLED_S", stalled_s)
    rig.app = app
    async with rig.running(**{full: 1}, origin_queue_s=1), rig.visitor(buffer=1 << 10) as one:
        one.writer.transport.pause_reading()
        one.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await rig.at_rest(lambda: rig.counts.bytes_out, 100_000_000)
        rig.app = type(rig).app
        if full == "connections":  # the first look may see that it has read
            await rig.get()
            await asyncio.sleep(0.05)  # until the gateway looks again
        assert (await rig.get()).status == status
        assert rig.counts.cut + rig.counts.connections_shed == (status == 200)


async def test_the_addresses_of_one_network_of_ipv6_count_together(rig, monkeypatch) -> None:
    addresses = iter(("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"))

    def peer_of(_transport: object, gateway: GatewayState) -> Peer:
        return Peer(next(addresses), False, gateway.forwarded_policy, limits=gateway.limits)

    monkeypatch.setattr(connection, "peer_of", peer_of)
    async with two_requests_under_way(rig, connections_per_address=2):
        assert status_of(await rig.talk(b"")) == 503
        async with rig.visitor():
            await rig.until(lambda: rig.counts.connections_open == 3, "another network")


async def test_no_more_connections_to_the_origin_than_allowed_and_the_rest_waits_in_order(
    rig,
) -> None:
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
        assert [r.status for r in await asyncio.gather(*(rig.get(f"/{n}") for n in range(20)))] == [
            200
        ] * 20
    assert most == 3
    assert rig.origin_connections == 3


async def test_a_full_queue_for_the_origin_is_a_503_that_keeps_the_place(rig) -> None:
    release = asyncio.Event()

    async def app(_request, writer) -> None:
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    rig.app = app
    rig.decisions.decide = lambda _: Forward(set_cookie=rig.TICKET)
    async with rig.running(origin_connections=1, origin_queue=1):
        first, second = asyncio.create_task(rig.get()), asyncio.create_task(rig.get())
        await rig.until(
            lambda: rig.counts.forwarded == 2 and rig.requests, "one is served and one waits"
        )
        third = await rig.get()
        assert (third.status, third.all("Set-Cookie")) == (503, [rig.TICKET.decode()])
        release.set()
        assert ((await first).status, (await second).status) == (200, 200)


async def test_what_goes_first_gets_a_connection_before_others_and_their_place_in_the_queue(
    rig,
) -> None:
    release, served = asyncio.Event(), list[str]()

    async def app(request, writer) -> None:
        served.append(request.target)
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    rig.app = app
    async with rig.running(origin_connections=1, origin_queue=2):
        asked = []
        for number, path in enumerate(("/", "/older", "/newer", "/first"), 1):
            asked.append(asyncio.create_task(rig.get(path)))
            await rig.until(lambda n=number: rig.counts.forwarded == n, path)
        await rig.until(lambda: served, "one is served")
        assert (await asked[2]).status == 503, "the queue is full"
        release.set()
        assert [(await asked[one]).status for one in (0, 1, 3)] == [200] * 3
        assert served == ["/", "/first", "/older"]


async def test_a_request_waits_only_so_long_for_a_connection(rig) -> None:
    async def app(_request, _writer) -> None:
        await asyncio.sleep(3600)  # cancelled with the loop

    rig.app = app
    async with rig.running(origin_connections=1, origin_queue_s=1), rig.visitor() as first:
        first.send(GET + b"\r\n")
        await rig.until(lambda: rig.requests, "the only connection is taken")
        assert (await rig.get()).status == 503
