"""Bodies through the gateway, of requests and of answers, in every framing there is."""

import asyncio

import pytest

from greenroom.decision.verdict import Verdict
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.visit import Arrival


async def test_head_gets_the_length_and_no_body(rig) -> None:
    rig.decisions.decide = rig.hold_held
    async with rig.running(), rig.visitor() as talk:
        held = await talk.get("/held", method="HEAD")
        assert held.header("Content-Length") == str(len(rig.PAGE.body))
        there = await talk.get("/there", method="HEAD")
        assert (there.status, there.header("Content-Length")) == (200, "17")
        assert (await talk.get("/after")).body == b"hello from /after"


@pytest.mark.parametrize("target", ["/a%5Cb", "/" + "a" * 9_000, "a"])
async def test_a_head_that_is_refused_has_no_body_either(rig, target) -> None:
    async with rig.running(), rig.visitor() as talk:
        refused = await talk.get(target, method="HEAD")
        assert refused.status >= 400
        assert int(refused.header("Content-Length")) > 0
        assert await talk.rest() == b""


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_answers_without_a_body_end_at_their_head(rig, status) -> None:
    rig.app = rig.says(b"HTTP/1.1 " + status + b"\r\nContent-Length: 10\r\nETag: x\r\n\r\n")
    async with rig.running(), rig.visitor() as talk:
        for _ in range(3):
            response = await talk.get()
            assert (response.status, response.header("ETag")) == (int(status[:3]), "x")
            assert response.header("Content-Length") == (None if response.status == 204 else "10")


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_request_body_arrives_as_it_was_sent(rig, size, chunked) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with rig.running(), rig.visitor() as talk:
        if chunked:
            talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            for at in range(0, size, 50_000):
                piece = body[at : at + 50_000]
                talk.send(b"%x;ext=dropped\r\n%b\r\n" % (len(piece), piece))
            talk.send(b"0\r\nTrailer: dropped\r\n\r\n")
            response = await talk.response()
        else:
            response = await talk.get(
                method="POST", body=body, head="" if size else "Content-Length: 0\r\n"
            )
        assert response.status == 200
        assert (await talk.get("/next")).body == b"hello from /next"
    sent = rig.requests[0]
    assert sent.body == body
    assert sent.header("transfer-encoding") == ("chunked" if chunked else None)
    assert sent.header("content-length") == (None if chunked else str(size))
    assert rig.counts.bytes_in >= size


async def test_a_body_that_comes_while_the_decision_is_pending_is_not_lost(rig) -> None:
    body = b"0123456789" * 100_000
    rig.decisions.delay_s = 0.05
    async with rig.running():
        assert (await rig.get(method="PUT", body=body)).status == 200
    assert rig.requests[0].body == body


@pytest.mark.parametrize("minor", [0, 1])
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
        b"HTTP/1.0 200 OK\r\n\r\nhello world",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello world",
    ],
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
async def test_every_framing_of_an_answer_arrives_whole(rig, answer, minor, step) -> None:
    closes = b"chunked" not in answer and b"Length" not in answer
    rig.app = rig.says(
        *(answer[at : at + step] for at in range(0, len(answer), step)), close=closes
    )
    async with rig.running():
        response = await rig.get(minor=minor)
    assert (response.status, response.body, response.whole) == (200, b"hello world", True)
    assert response.header("Trailer") is None
    if not minor:
        assert response.header("Transfer-Encoding") is None


async def test_server_sent_events_arrive_when_they_are_sent(rig) -> None:
    told = asyncio.Event()

    async def events(_, writer) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for number in range(3):
            event = b"data: %d\n\n" % number
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await told.wait()
            told.clear()
        writer.write(b"0\r\n\r\n")

    rig.app = events
    async with rig.running(), rig.visitor() as talk:
        talk.send(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        await talk.reader.readuntil(b"\r\n\r\n")
        for number in range(3):
            assert await talk.reader.readexactly(14) == b"9\r\ndata: %d\n\n\r\n" % number
            told.set()
        assert await talk.reader.readexactly(5) == b"0\r\n\r\n"


async def test_an_answer_may_have_any_status_and_no_body(rig) -> None:
    def decide(arrival: Arrival) -> Verdict:
        return Answer(
            int(arrival.path[1:]),
            AnswerHeaders((b"X-A", b"1")),
            b"" if arrival.path == "/204" else b"body",
        )

    rig.decisions.decide = decide
    async with rig.running(), rig.visitor() as talk:
        for status in (200, 202, 204, 429, 503, 599):
            response = await talk.get(f"/{status}")
            assert (response.status, response.body) == (
                status,
                b"" if status == 204 else b"body",
            )
