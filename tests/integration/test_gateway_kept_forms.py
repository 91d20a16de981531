"""The gateway reads the form of a held visitor before it answers with the waiting page: in every
framing, up to a limit, in time.
"""

import asyncio

import pytest

from greenroom.decision.verdict import Hold, Verdict
from greenroom.model.room import Room
from greenroom.model.visit import Arrival, Held
from greenroom.pages import compile_page
from greenroom.request.form_replay import FORM_BYTES_MAX

HELD = Held(
    1_790_000_000_000,
    "fifo",
    1_790_000_000_000,
    20,
    20,
    position=3,
    ahead=2,
    waiting=9,
    in_line=True,
)
PAGE = compile_page(Room(name="a", host="*", total_active_users=1, new_users_per_minute=1))
FORM = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\n"
CROSS = FORM.replace("same-origin", "cross-site")


def hold(_: Arrival) -> Verdict:
    return Hold("room", PAGE, 200, False, False, HELD)


@pytest.fixture
def held(rig):
    rig.decisions.decide = hold
    return rig


async def test_the_form_comes_back_on_the_page_and_the_connection_goes_on(held) -> None:
    async with held.running(), held.visitor() as talk:
        for delay_s in (None, 0.01):
            held.decisions.delay_s = delay_s
            response = await talk.get("/order", method="POST", head=FORM, body=b"cake=2&tea=1")
            assert b'name="cake" value="2"' in response.body
            assert response.header("Connection") is None
        talk.send(
            b"POST /order HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
            + FORM.encode()
            + b"\r\n4\r\na=1&\r\n"
        )
        await asyncio.sleep(0.01)  # so that it comes in two parts
        talk.send(b"3\r\nb=2\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b'name="b" value="2"' in (await talk.response()).body
        assert b"id=kept" not in (await talk.response()).body
        assert b"id=kept" in (await talk.get("/order", method="POST", head=FORM)).body
    assert held.requests == []
    assert held.counts.answered == 5


async def test_it_is_asked_for_where_the_visitor_waits_for_that(held) -> None:
    async with held.running(), held.visitor() as talk:
        talk.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n"
            + FORM.encode()
            + b"\r\n"
        )
        assert (await talk.response()).status == 100
        talk.send(b"a=1")
        assert b'name="a" value="1"' in (await talk.response()).body


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_beyond_the_limit_is_not_kept_and_the_answer_arrives(held, chunked) -> None:
    async with held.running(), held.visitor() as talk:
        body = b"a=" + b"x" * (2 * FORM_BYTES_MAX)
        framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
        sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
        talk.send(f"POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n{FORM}\r\n".encode() + sent)
        response = await talk.response()
        assert (b"id=lost" in response.body, b"id=kept" in response.body) == (True, False)


async def test_the_form_of_another_site_is_not_even_read(held) -> None:
    async with held.running(), held.visitor() as talk:
        talk.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n" + CROSS.encode() + b"\r\n")
        assert b"id=lost" in (await talk.response()).body


async def test_a_form_that_never_comes_ends_with_408_and_reaches_no_origin(held) -> None:
    async with held.running(body_idle_s=1), held.visitor() as talk:
        talk.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n" + FORM.encode() + b"\r\na=1"
        )
        assert (await talk.response()).status == 408
    assert held.requests == []
    assert held.errors == []


async def test_a_malformed_chunk_is_refused_and_a_visitor_who_goes_away_costs_nothing(held) -> None:
    async with held.running():
        async with held.visitor() as talk:
            talk.send(
                b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                + FORM.encode()
                + b"\r\nxyz\r\n"
            )
            assert (await talk.response()).status == 400
        async with held.visitor() as talk:
            talk.send(
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n" + FORM.encode() + b"\r\na=1"
            )
        assert b"id=kept" in (await held.get("/", method="POST", head=FORM, body=b"a=1")).body
    assert held.errors == []
