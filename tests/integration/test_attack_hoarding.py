"""Programs that try to take all connections to the origin, or all of the event loop, from everybody
else.
"""

import asyncio
import time
from ipaddress import ip_network
from typing import Any

import pytest
from rules_visit import arrival
from structlog.testing import capture_logs

from greenroom.decision.verdict import Forward
from greenroom.gateway.visitor.request_body import TURN_BYTES, RequestBody
from greenroom.gateway.wire.body import CHUNKS_FREE, BadBody, ChunkedBody
from greenroom.gateway.wire.head_limits import PARTS_MAX
from greenroom.model.visit import Ticket
from greenroom.request.forwarded import ForwardedPolicy

PROXY = ForwardedPolicy([ip_network("127.0.0.1")])
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
AGREED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"


def by_header(arrival: Any) -> Forward:
    """A request with `X-Ticket` is of an admitted visitor."""
    name = arrival.header(b"x-ticket")
    return (
        Forward(
            room_id="room",
            ticket=Ticket(name.rjust(12, b"-"), int.from_bytes(name[-6:], "big"), 1, 1, 0),
        )
        if name
        else Forward()
    )


class Crowd:
    """Many requests at once, to an origin that answers `/slow` only when it is let go."""

    def __init__(self, rig: Any) -> None:
        self.rig = rig
        self.go = asyncio.Event()
        self.at_once = self.most = 0
        self.waiting: list[asyncio.Task[Any]] = []
        rig.app, rig.decisions.decide = self.app, by_header

    async def app(self, request: Any, writer: Any) -> None:
        if request.target == "/slow":
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            await self.go.wait()
            self.at_once -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def send(
        self, count: int, head: str = "", *, clients: bool = False, network: str = "203.0.113."
    ) -> None:
        for number in range(count):
            client = f"X-Forwarded-For: {network}{number if clients else 1}\r\n"
            self.waiting.append(asyncio.create_task(self.rig.get("/slow", head=client + head)))

    async def settled(self) -> int:
        """How many the origin serves when nothing moves any more."""
        return int(await self.rig.at_rest(lambda: self.at_once, 1_000))

    async def let_go(self) -> list[int]:
        self.go.set()
        return [answer.status for answer in await asyncio.gather(*self.waiting)]


async def other(rig: Any, head: str = "") -> int:
    return int((await rig.get("/", head=f"X-Forwarded-For: 198.51.100.7\r\n{head}")).status)


SHARES = {"origin_connections": 40, "origin_queue": 1_000}


@pytest.mark.parametrize(
    "sent",
    [{}, {"clients": True, "network": "2001:db8::"}],
    ids=["an address", "a network of IPv6"],
)
async def test_one_client_takes_half_of_the_connections_at_most_and_its_requests_go_on_later(
    rig, sent
) -> None:
    async with rig.running(policy=PROXY, **SHARES):
        crowd = Crowd(rig)
        crowd.send(40, **sent)
        assert await crowd.settled() == 20
        assert await other(rig) == 200
        statuses = await crowd.let_go()
        assert statuses == [200] * 40
        assert crowd.most == 20
        assert rig.counts.origin_shares_used_up >= 20
        assert await other(rig) == 200


async def test_requests_that_no_room_covers_leave_a_reserve_for_admitted_visitors(rig) -> None:
    async with rig.running(policy=PROXY, **SHARES):
        crowd = Crowd(rig)
        crowd.send(60, clients=True)
        assert await crowd.settled() == 30
        assert await other(rig, "X-Ticket: inside\r\n") == 200
        assert set(await crowd.let_go()) == {200}


async def test_one_ticket_takes_a_quarter_of_the_connections_at_most(rig) -> None:
    async with rig.running(policy=PROXY, **SHARES):
        crowd = Crowd(rig)
        crowd.send(30, "X-Ticket: greedy\r\n", clients=True)
        assert await crowd.settled() == 10
        assert await other(rig, "X-Ticket: inside\r\n") == 200
        assert set(await crowd.let_go()) == {200}


async def test_a_client_that_waits_with_more_requests_than_its_share_is_answered_at_once(
    rig,
) -> None:
    async with rig.running(policy=PROXY, **SHARES):
        crowd = Crowd(rig)
        crowd.send(100)
        assert await crowd.settled() == 20
        await rig.until(
            lambda: sum(task.done() for task in crowd.waiting) == 60,
            "those beyond its share have their answer",
        )
        assert sorted(set(await crowd.let_go())) == [200, 503]


async def test_a_bound_in_flight_lowers_every_share_and_loses_no_request(rig) -> None:
    """Whoever makes an origin slow gets no larger part of what is left."""
    async with rig.running(policy=PROXY, **SHARES):
        crowd = Crowd(rig)
        crowd.send(40)
        assert await crowd.settled() == 20
        (pool,) = rig.gateway.state.pools.values()
        pool.bind(16)
        assert await crowd.let_go() == [200] * 40
        for bound, taken in ((16, 8), (None, 20)):
            pool.bind(bound)
            crowd = Crowd(rig)
            crowd.send(taken + 20)  # twenty may wait, whatever the bound is
            assert await crowd.settled() == taken
            assert await other(rig) == 200
            assert await crowd.let_go() == [200] * (taken + 20)
            assert crowd.most == taken


async def test_answers_on_their_way_take_nothing_from_a_bound(rig) -> None:
    """Streams and slow downloads last for minutes: a bound below them would stop all others."""
    crowd, begun = Crowd(rig), 0

    async def app(request: Any, writer: Any) -> None:
        nonlocal begun
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        if request.target == "/slow":
            begun += 1
            await crowd.go.wait()
        writer.write(b"k")

    rig.app = app
    async with rig.running(policy=PROXY, **SHARES):
        assert await other(rig) == 200
        (pool,) = rig.gateway.state.pools.values()
        pool.bind(16)
        crowd.send(24, clients=True)
        await rig.until(lambda: begun == 24, "the origin is asked for all")
        assert await other(rig) == 200
        pool.bind(20)
        assert await other(rig) == 200
        assert await crowd.let_go() == [200] * 24
        await rig.until(lambda: len(pool.requests) <= 20, "the surplus is closed")
        assert pool.awaited == 0


async def test_a_connection_that_is_closed_is_forgotten(rig) -> None:
    rig.decisions.decide = by_header
    rig.app = rig.says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    async with rig.running(policy=PROXY, **SHARES):
        assert [await other(rig) for _ in range(5)] == [200] * 5
        (pool,) = rig.gateway.state.pools.values()
        await rig.until(lambda: not pool.requests, "no closed one is kept")


async def test_how_long_an_upload_takes_does_not_make_the_origin_slow(rig) -> None:
    rig.decisions.decide = by_header
    async with rig.running(policy=PROXY, body_first_bytes=0), rig.visitor() as talk:
        sent_s = time.monotonic()
        talk.send(
            b"POST / HTTP/1.1\r\nHost: shop.example\r\nX-Ticket: inside\r\n"
            b"Sec-Fetch-Mode: navigate\r\nContent-Length: 10\r\n\r\nhello"
        )
        await rig.until(lambda: rig.counts.origin_connects == 1, "the upload has begun")
        begun_s = time.monotonic()
        await asyncio.sleep(0.6)  # an upload that takes longer than the answer
        uploading_s = time.monotonic() - begun_s
        assert rig.gateway.pending_documents() == {}
        talk.send(b"world")
        assert (await talk.response()).status == 200
        documents = rig.gateway.documents.of("room").histogram
        assert documents.total == 1
        assert documents.sum_ms <= (time.monotonic() - sent_s - uploading_s) * 1_000


async def test_a_slow_origin_is_bound_while_its_rooms_follow_it(rig) -> None:
    def documents(seconds: float) -> None:
        (pool,) = rig.gateway.state.pools.values()
        for _ in range(100):
            pool.flights.answered(inside, document, 200, seconds, 40)

    inside = Forward(room_id="room", ticket=Ticket(b"-" * 12, 1, 1, 1, 0))
    document = arrival(headers=((b"sec-fetch-mode", b"navigate"),))
    async with rig.running(policy=PROXY, **SHARES):
        assert (await rig.get("/")).status == 200
        (pool,) = rig.gateway.state.pools.values()
        rig.gateway.bound_in_flight({"room": 500})
        documents(2.0)
        rig.gateway.bound_in_flight({"room": 500})
        assert pool.bound == rig.counts.origin_in_flight_bound == 32
        rig.gateway.bound_in_flight({"room": 500})
        assert pool.bound == 32, "silence changes nothing"
        documents(2.0)
        rig.gateway.bound_in_flight({"other": 500})
        assert pool.bound is None, "the room has a fixed limit"
        rig.gateway.bound_in_flight({})
        assert pool.flights is None
        assert rig.counts.origin_in_flight_bound == 0


@pytest.mark.parametrize("chunked", [False, True])
async def test_slow_bodies_hold_no_connection_to_the_origin(rig, chunked) -> None:
    async with rig.running(origin_connections=1):
        slow = []
        for _ in range(10):
            reader, writer = await asyncio.open_connection(*rig.address)
            framing = (
                b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
                if chunked
                else b"Content-Length: 10\r\n\r\nhello"
            )
            writer.write(b"POST /slow HTTP/1.1\r\nHost: shop.example\r\n" + framing)
            slow.append((reader, writer))
        await rig.until(lambda: rig.counts.forwarded == 10, "all are allowed to go on")
        assert (await rig.get()).status == 200
        assert [request.method for request in rig.requests] == ["GET"]
        for reader, writer in slow:
            writer.write(b"5\r\nworld\r\n0\r\n\r\n" if chunked else b"world")
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            writer.close()
        assert [request.body for request in rig.served[1:]] == [b"helloworld"] * 10


@pytest.mark.parametrize("size", [65_536, 65_537, 300_000])
async def test_a_large_chunked_body_waits_for_a_connection_after_its_beginning_and_arrives_whole(
    rig, size
) -> None:
    crowd = Crowd(rig)
    async with rig.running(origin_connections=1):
        crowd.send(1)
        assert await crowd.settled() == 1
        async with rig.visitor() as talk:
            talk.send(
                b"POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            for _ in range(size // 1_000):
                talk.send(b"3e8\r\n" + b"x" * 1_000 + b"\r\n")
            talk.send(
                b"%x\r\n%b\r\n0\r\n\r\n" % (size % 1_000, b"y" * (size % 1_000))
                if size % 1_000
                else b"0\r\n\r\n"
            )
            await asyncio.sleep(0.1)  # time to do it wrong
            assert len(rig.requests) == 1
            crowd.go.set()
            assert (await talk.response()).status == 200
            assert (await talk.get("/next")).status == 200
    assert rig.served[1].body == b"x" * (size // 1_000 * 1_000) + b"y" * (size % 1_000)


async def test_a_collected_body_that_stops_is_a_408_and_one_too_slow_too(rig) -> None:
    async with rig.running(body_idle_s=1), rig.visitor() as talk:
        talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        assert (await talk.response()).status == 408
        assert rig.requests == []


def test_one_pass_opens_so_many_websockets_and_they_take_no_connection_from_requests(
    rig, run
) -> None:
    async def story() -> None:
        rig.decisions.decide = by_header
        rig.app = rig.says(AGREED)
        async with rig.running(policy=PROXY, origin_connections=4, tunnels_per_ticket=6):
            talks, statuses, told = [], [], []
            for number in range(10):
                reader, writer = await asyncio.open_connection(*rig.address)
                client = f"X-Forwarded-For: 203.0.113.{number}\r\nX-Ticket: greedy\r\n"
                writer.write(
                    f"GET /socket HTTP/1.1\r\nHost: shop.example\r\n{client}{UPGRADE}\r\n".encode()
                )
                statuses.append((await reader.readuntil(b"\r\n"))[9:12])
                if statuses[-1] == b"503":
                    told.append(await reader.read())
                talks.append(writer)
            assert statuses == [b"101"] * 6 + [b"503"] * 4
            assert all(b"too many open WebSockets (tunnels_per_ticket)" in text for text in told)
            refusals = [row for row in logged if row["event"] == "websocket_refused"]
            assert [row["limit"] for row in refusals] == ["tunnels_per_ticket"]
            assert rig.counts.tunnels_refused == 4
            rig.app = rig.says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            assert [await other(rig, "X-Ticket: greedy\r\n") for _ in range(5)] == [200] * 5
            talks[0].close()
            await rig.until(lambda: rig.counts.tunnels_open == 5, "one is gone")
            rig.app = rig.says(AGREED)
            answer = await rig.get("/socket", head=f"X-Ticket: greedy\r\n{UPGRADE}")
            assert answer.status == 101

    with capture_logs() as logged:
        run(story())


async def test_a_flood_of_tiny_chunks_is_refused_after_the_first_thousand(rig) -> None:
    async with rig.running(), rig.visitor() as talk:
        talk.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"1\r\nx\r\n" * 200_000
        )
        assert (await talk.response()).status == 400
        assert rig.requests == []


def test_chunks_are_counted_by_their_average_size() -> None:
    many = b"1\r\nx\r\n" * CHUNKS_FREE
    assert ChunkedBody(16).feed(many) == b"x" * CHUNKS_FREE
    with pytest.raises(BadBody, match="too small"):
        ChunkedBody(16).feed(many + b"1\r\nx\r\n")
    assert len(
        ChunkedBody(16).feed(
            b"10\r\n" + b"x" * 16 + b"\r\n" + (b"10\r\n" + b"x" * 16 + b"\r\n") * 5 * CHUNKS_FREE
        )
    ) == 16 * (5 * CHUNKS_FREE + 1)
    large = ChunkedBody(16)
    large.feed(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
    assert large.feed(many + many) == b"x" * 2 * CHUNKS_FREE
    assert ChunkedBody().feed(many * 3) == b"x" * 3 * CHUNKS_FREE


@pytest.mark.needs("patching")
async def test_no_connection_reads_more_of_a_chunked_body_than_its_turn(rig, monkeypatch) -> None:
    pieces: list[int] = []
    take = RequestBody.take

    def noted(self: RequestBody, data: bytes) -> bytes:
        pieces.append(len(data))
        return take(self, data)

    monkeypatch.setattr(RequestBody, "take", noted)
    chunk = b"10\r\n" + b"x" * 16 + b"\r\n"
    async with rig.running(), rig.visitor() as talk, rig.visitor() as held:
        talk.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            + chunk * 50_000
            + b"0\r\n\r\n"
        )
        assert (await talk.response()).status == 200
        assert (await talk.get("/next")).status == 200
        rig.decisions.decide = rig.hold_all
        held.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 50_000
        )
        assert (await held.response()).header("Connection") == "close"
    assert rig.served[0].body == b"x" * 16 * 50_000
    assert max(pieces) <= TURN_BYTES


async def test_a_head_in_too_many_pieces_is_a_408_however_quickly_they_come(rig) -> None:
    async with rig.running(), rig.visitor() as talk:
        answer = asyncio.create_task(talk.response())
        head = b"GET / HTTP/1.1\r\nHost: a\r\nX: "
        for byte in head + b"a" * 3 * PARTS_MAX:
            talk.send(bytes((byte,)))
            await asyncio.sleep(0.001)  # so that each is a packet of its own
            if answer.done():
                break
        assert (await answer).status == 408
        assert rig.counts.refused == 1
