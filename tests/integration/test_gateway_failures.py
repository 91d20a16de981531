"""When one side fails: the visitor keeps the place or sees the failure, and never gets what is not
meant for it.
"""

import asyncio
import socket

import pytest
from tests.integration.conftest import turns

from greenroom.decision.verdict import Forward
from greenroom.gateway.origin.address import Origin

LONG = b"x" * 100


def keep_ticket(rig) -> None:
    rig.decisions.decide = lambda _: Forward(set_cookie=rig.TICKET)


def the_place_is_kept(rig, response) -> bool:
    return response.all("Set-Cookie") == [rig.TICKET.decode()] and "no-store" in response.header(
        "Cache-Control"
    )


async def test_an_origin_that_is_down_is_a_502_that_keeps_the_place_and_tries_again(
    rig, refusing_port
) -> None:
    keep_ticket(rig)
    async with (
        rig.running(origin=Origin.of(f"http://127.0.0.1:{refusing_port()}")),
        rig.visitor() as talk,
    ):
        response = await talk.get()
        assert response.status == 502
        assert the_place_is_kept(rig, response)
        assert (response.header("Refresh"), response.header("Retry-After")) == ("10", "10")
        assert b"nothing is lost" in response.body
        posted = await talk.get(method="POST", body=b"order=1")
        assert (posted.status, posted.header("Refresh")) == (502, None)
        told = await talk.get(head="Accept: application/json\r\n")
        assert told.body == b'{"error":"bad gateway","status":502,"retryAfter":10}'
        assert (rig.counts.failed, rig.counts.origin_connect_failures) == (3, 3)


async def test_an_origin_that_does_not_exist_is_a_502(rig) -> None:
    """A name that no resolver takes: it fails at once, also where the name servers are slow or
    silent.
    """
    async with rig.running(origin=Origin.of("http://-no-such-host-.invalid")):
        assert (await rig.get()).status == 502


async def test_an_origin_that_does_not_take_connections_is_a_504(rig) -> None:
    with socket.socket() as full:  # a backlog of nothing, filled: the kernel drops further attempts
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
            fillers.append(filler)
        keep_ticket(rig)
        async with rig.running(
            origin=Origin.of(f"http://127.0.0.1:{full.getsockname()[1]}"), origin_connect_s=1
        ):
            response = await rig.get()
        assert response.status == 504
        assert the_place_is_kept(rig, response)
        for filler in fillers:
            filler.close()


async def test_an_origin_that_keeps_silent_is_a_504_and_is_let_go(rig) -> None:
    async def silent(_request, _writer) -> None:
        await asyncio.sleep(3600)  # cancelled with the loop

    keep_ticket(rig)
    rig.app = silent
    async with rig.running(origin_read_s=1):
        response = await rig.get()
        assert response.status == 504
        assert the_place_is_kept(rig, response)


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"\x00\x01\x02",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: injected=1\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 99 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000,
        b"HTTP/1.1 103 Hint\r\n\r\n" * 17,
    ],
    ids=range(23),
)
async def test_an_answer_that_is_not_strictly_http_is_a_502(rig, answer) -> None:
    keep_ticket(rig)
    rig.app = rig.says(answer)
    async with rig.running(), rig.visitor() as talk:
        response = await talk.get(minor=0 if b"103" in answer else 1)
        assert response.status == 502
        assert the_place_is_kept(rig, response)
        assert rig.counts.origin_invalid == 1


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison", b"x"])
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("together", [False, True])
async def test_bytes_that_no_one_asked_for_reach_no_one(rig, answer, extra, together) -> None:
    async def app(request, writer) -> None:
        if request.target != "/first":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine")
        elif together:
            writer.write(answer + extra)
        else:
            writer.write(answer)
            await writer.drain()
            await asyncio.sleep(0.02)  # the answer must have been read on its own
            writer.write(extra)

    rig.app = app
    async with rig.running(), rig.visitor() as talk:
        assert (await talk.get("/first")).body == b"ok"
        if not together:
            await rig.until(
                lambda: not rig.counts.origin_connections_open,
                "the poisoned connection is closed",
            )
        assert (await talk.get("/second")).body == b"mine"
    assert rig.origin_connections == 2


@pytest.mark.parametrize(
    ("answer", "minor"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + LONG, 1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + LONG, 0),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + LONG + b"\r\n", 1),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + LONG + b"\r\nXX\r\n", 1),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + LONG + b"garbage", 1),
    ],
)
async def test_an_origin_that_dies_in_the_middle_leaves_no_whole_answer(rig, answer, minor) -> None:
    async def app(_request, writer) -> None:
        head, _, body = answer.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n" + body[:50])
        await begun.wait()
        writer.write(body[50:])
        writer.close()

    begun = asyncio.Event()
    rig.app = app
    async with rig.running(), rig.visitor() as talk:
        response = asyncio.create_task(talk.get(minor=minor))
        await rig.until(lambda: rig.counts.origin_answers[2], "the answer begins")
        begun.set()
        assert ((await response).status, (await response).whole) == (200, False)
        assert rig.counts.cut == 1


async def test_an_http_1_0_visitor_sees_a_reset_when_a_chunked_answer_breaks_off(rig) -> None:
    rig.app = rig.says(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + LONG, close=True
    )
    async with rig.running(), rig.visitor() as talk:
        talk.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            await talk.reader.read()
            await talk.reader.read()


async def test_an_origin_that_is_reset_in_a_body_that_ends_with_the_connection_leaves_no_whole_answer(
    rig,
) -> None:
    async def app(_request, writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + LONG)
        await rig.until(lambda: rig.counts.origin_answers[2], "the answer begins")
        await turns()  # the reset would overtake the bytes
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        writer.transport.abort()

    rig.app = app
    async with rig.running():
        response = await rig.get()
        assert (response.body, response.whole) == (LONG, False)


@pytest.mark.parametrize(
    ("method", "body", "retried"),
    [
        ("GET", b"", True),
        ("HEAD", b"", True),
        ("OPTIONS", b"", True),
        ("POST", b"", False),
        ("GET", b"x", False),
        ("DELETE", b"", False),
    ],
)
async def test_only_a_harmless_request_on_a_stale_connection_is_sent_again(
    rig, method, body, retried
) -> None:
    async def app(request, writer) -> None:
        if request.target == "/dies" and rig.origin_connections == 1:
            writer.close()  # as if it had been closed just before this request arrived
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    keep_ticket(rig)
    rig.app = app
    async with rig.running(), rig.visitor() as talk:
        assert (await talk.get("/warm")).status == 200
        response = await talk.get("/dies", method=method, body=body)
        assert response.status == (200 if retried else 502)
        assert the_place_is_kept(rig, response) or retried
        assert rig.counts.origin_retries == retried
    assert [request.target for request in rig.requests].count("/dies") == 1 + retried


async def test_a_fresh_connection_that_closes_without_an_answer_is_not_tried_again(rig) -> None:
    async def app(_request, writer) -> None:
        writer.close()

    rig.app = app
    async with rig.running():
        assert (await rig.get()).status == 502
    assert len(rig.requests) == 1


async def test_a_retry_happens_once(rig) -> None:
    async def app(request, writer) -> None:
        if request.target == "/dies":
            writer.close()
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    rig.app = app
    async with rig.running(), rig.visitor() as talk:
        await talk.get("/warm")
        assert (await talk.get("/dies")).status == 502
    assert [request.target for request in rig.requests] == ["/warm", "/dies", "/dies"]


@pytest.mark.parametrize("said", [b"Connection: close\r\n", b"Keep-Alive: timeout=1\r\n"])
async def test_a_connection_that_the_origin_will_close_is_not_used_again(rig, said) -> None:
    rig.app = rig.says(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + said + b"\r\n")
    async with rig.running(), rig.visitor() as talk:
        for _ in range(3):
            assert (await talk.get()).status == 200
    assert rig.origin_connections == 3


async def test_an_idle_connection_to_the_origin_is_closed_after_its_time(rig) -> None:
    async with rig.running(origin_idle_s=1):
        await rig.get()
        assert rig.counts.origin_connections_open == 1
        await rig.until(
            lambda: not rig.counts.origin_connections_open, "the idle connection is closed"
        )
        assert (await rig.get()).status == 200


async def test_an_origin_that_answers_before_it_has_read_the_body_is_heard(rig) -> None:
    rig.app = rig.says(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
    async with rig.running(), rig.visitor() as talk:
        talk.send(b"STREAM / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 1000)
        response = await talk.response()
        assert (response.status, response.body, response.header("Connection")) == (
            413,
            b"big",
            "close",
        )
        assert await talk.rest() == b""
        await rig.until(
            lambda: not rig.counts.origin_connections_open,
            "a half-sent request's connection is not used again",
        )
