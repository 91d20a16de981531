"""Requests through the gateway: forwarded or held, one after the other, in every framing there is."""

import asyncio
import ipaddress
import time

import pytest

from greenroom.decision.verdict import Forward
from greenroom.request.forwarded import ForwardedPolicy


async def test_an_admitted_request_reaches_the_origin_and_its_answer_the_visitor(rig) -> None:
    async with rig.running():
        response = await rig.get("/shop?x=1", head="X-Mine: yes\r\n")
    assert (response.status, response.body) == (200, b"hello from /shop?x=1")
    assert response.header("X-Origin") == "yes"
    (sent,) = rig.requests
    assert (sent.method, sent.target, sent.header("host"), sent.header("x-mine")) == (
        "GET",
        "/shop?x=1",
        "shop.example",
        "yes",
    )
    assert sent.header("x-forwarded-for") == "127.0.0.1"


async def test_a_held_request_never_reaches_the_origin(rig) -> None:
    rig.decisions.decide = rig.hold_all
    async with rig.running():
        response = await rig.get()
        assert (response.status, response.body, response.header("Cache-Control")) == (
            200,
            rig.PAGE.body,
            "no-store",
        )
        assert response.header("Date")
        assert rig.counts.answered == 1
    assert rig.requests == []
    assert rig.origin_connections == 0


@pytest.mark.parametrize("held", [False, True])
async def test_a_decision_that_comes_later_is_waited_for(rig, held) -> None:
    rig.decisions.delay_s = 0.02
    if held:
        rig.decisions.decide = rig.hold_all
    async with rig.running():
        response = await rig.get("/later")
    assert response.body == (rig.PAGE.body if held else b"hello from /later")


async def test_one_connection_carries_many_requests_on_both_sides(rig) -> None:
    async with rig.running(), rig.visitor() as talk:
        for number in range(20):
            assert (await talk.get(f"/{number}")).body == f"hello from /{number}".encode()
    assert rig.origin_connections == 1


async def test_pipelined_requests_are_gated_one_by_one_and_answered_in_order(rig) -> None:
    rig.decisions.decide = rig.hold_held
    started: list[str] = []
    answered: list[str] = []

    async def slow(request, writer) -> None:
        assert len(started) == len(answered), (
            "a request was started before the one before it was answered"
        )
        started.append(request.target)
        await asyncio.sleep(0.01)  # so that a gateway that sends ahead is caught
        answered.append(request.target)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + request.target[:2].encode())

    rig.app = slow
    async with rig.running(), rig.visitor() as talk:
        talk.send(
            b"".join(
                b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % path
                for path in (b"a", b"held", b"b", b"held/2", b"c")
            )
        )
        bodies = [(await talk.response()).body for _ in range(5)]
    assert bodies == [b"/a", rig.PAGE.body, b"/b", rig.PAGE.body, b"/c"]
    assert started == ["/a", "/b", "/c"]


async def test_pipelined_requests_with_late_decisions_stay_in_order(rig) -> None:
    rig.decisions.decide = rig.hold_held
    rig.decisions.delay_s = 0.005
    async with rig.running(), rig.visitor() as talk:
        talk.send(
            b"GET /held HTTP/1.1\r\nHost: a\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /held HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        assert [(await talk.response()).body for _ in range(3)] == [
            rig.PAGE.body,
            b"hello from /a",
            rig.PAGE.body,
        ]


async def test_a_thousand_pipelined_held_requests_are_all_answered(rig) -> None:
    rig.decisions.decide = rig.hold_all
    async with rig.running(), rig.visitor() as talk:
        talk.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)
        for _ in range(1000):
            assert (await talk.response()).body == rig.PAGE.body


async def test_a_request_that_arrives_byte_by_byte_is_the_same_request(rig) -> None:
    async with rig.running(), rig.visitor() as talk:
        for byte in b"POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n":
            talk.send(bytes((byte,)))
            await asyncio.sleep(0)
        assert (await talk.response()).body == b"hello from /slow"
    assert rig.requests[0].body == b"abc"


@pytest.mark.parametrize(
    ("minor", "head", "stays"),
    [
        (1, "", True),
        (1, "Connection: close\r\n", False),
        (0, "", False),
        (0, "Connection: keep-alive\r\n", True),
    ],
)
@pytest.mark.parametrize("target", ["/held", "/on"])
async def test_a_connection_stays_as_the_visitor_wishes(rig, minor, head, stays, target) -> None:
    rig.decisions.decide = rig.hold_held
    async with rig.running(), rig.visitor() as talk:
        first = await talk.get(target, minor=minor, head=head)
        assert first.whole
        if not stays:
            assert first.header("Connection") == "close"
            assert await talk.rest() == b""
            return
        assert first.header("Connection") == (None if minor else "keep-alive")
        assert (await talk.get(target, minor=minor, head=head)).status == 200


STYLE, DOCUMENT = "Accept: text/css,*/*;q=0.1\r\n", "Accept: text/html\r\n"


@pytest.mark.parametrize(
    ("fresh", "asks", "says", "unchanged"),
    [
        (
            True,
            STYLE,
            "Cache-Control: public, max-age=9, immutable\r\nCDN-Cache-Control: max-age=99\r\n",
            True,
        ),
        (False, STYLE, "Cache-Control: public, max-age=9\r\n", False),
        (True, DOCUMENT, "Cache-Control: public, max-age=9\r\n", False),
        (True, STYLE, "Cache-Control: private, max-age=9\r\n", False),
        (True, STYLE, "Cache-Control: public, max-age=9\r\nSet-Cookie: a=1\r\n", False),
        (True, STYLE, "", False),
    ],
)
async def test_what_shared_caches_may_keep_stays_so_while_the_ticket_is_fresh(
    rig, fresh, asks, says, unchanged
) -> None:
    rig.decisions.decide = lambda _: Forward(rig.TICKET, "room", renews_early=fresh)
    rig.app = rig.says(f"HTTP/1.1 200 OK\r\n{says}Content-Length: 0\r\n\r\n".encode())
    async with rig.running():
        response = await rig.get(head=asks)
    assert (rig.TICKET.decode() not in response.all("Set-Cookie")) == unchanged
    assert response.header("Cache-Control").startswith("public" if unchanged else "private")
    assert (response.header("CDN-Cache-Control") is not None) == unchanged


async def test_how_long_origins_take_is_counted_to_the_head_of_the_answer(rig) -> None:
    async def slow(_, writer) -> None:
        await asyncio.sleep(0.2)  # the origin thinks
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        await asyncio.sleep(0.5)  # the body is late, which is not counted
        writer.write(b"ok")

    rig.app = slow
    async with rig.running():
        began = time.monotonic()
        assert (await rig.get()).status == 200
        whole_s = time.monotonic() - began
        assert (
            0.15 < rig.counts.origin_wait_seconds < whole_s - 0.25
        )  # timers of the loop may be early by a millisecond
        before = rig.counts.origin_wait_seconds
        rig.app = rig.says(b"HTTP/1.1 204 No Content\r\n\r\n")
        assert (await rig.get()).status == 204
        assert rig.counts.origin_wait_seconds > before


async def test_hints_go_on_to_visitors_that_know_them(rig) -> None:
    rig.app = rig.says(
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    )
    async with rig.running():
        async with rig.visitor() as talk:
            hint = await talk.get()
            assert (hint.status, hint.headers) == (103, [("Link", "</a.css>; rel=preload")])
            assert (await talk.response()).status == 200
        assert (await rig.get(minor=0)).status == 200


async def test_the_ticket_goes_out_with_the_answer_and_no_shared_cache_keeps_it(rig) -> None:
    rig.decisions.decide = lambda _: Forward(set_cookie=rig.TICKET)
    rig.app = rig.says(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: theirs=1\r\nset-cookie:  __cfwaitingroom=stolen; Path=/\r\n"
        b"CDN-Cache-Control: max-age=600\r\nCache-Control: public, max-age=60, s-maxage=600\r\nSurrogate-Control: max-age=9\r\n\r\n"
    )
    async with rig.running():
        response = await rig.get()
    assert response.all("Set-Cookie") == ["theirs=1", rig.TICKET.decode()]
    assert response.all("Cache-Control") == ["private, max-age=60"]
    assert response.header("CDN-Cache-Control") is None
    assert response.header("Surrogate-Control") is None


async def test_an_answer_without_a_ticket_stays_as_cacheable_as_the_origin_says(rig) -> None:
    rig.app = rig.says(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nCache-Control: public, s-maxage=600\r\nCDN-Cache-Control: max-age=5\r\n\r\n"
    )
    async with rig.running():
        response = await rig.get()
    assert response.all("Cache-Control") == ["public, s-maxage=600"]
    assert response.all("CDN-Cache-Control") == ["max-age=5"]


@pytest.mark.parametrize("enabled", [False, True])
async def test_a_command_of_the_origin_is_obeyed_if_enabled_and_never_shown(rig, enabled) -> None:
    rig.decisions.decide = lambda _: Forward(set_cookie=rig.TICKET, obeys_origin=enabled)
    rig.app = rig.says(
        b"HTTP/1.1 200 OK\r\ncf-waiting-room-COMMAND: revoke\r\nContent-Length: 0\r\n"
        b"Cf-Waiting-Room-Command: x\r\n\r\n"
    )
    async with rig.running():
        response = await rig.get()
        assert response.header("Cf-Waiting-Room-Command") is None
        assert response.all("Set-Cookie") == [
            (rig.decisions.obeyed if enabled else rig.TICKET).decode()
        ]
        rig.decisions.obeyed = b""
        assert (await rig.get()).all("Set-Cookie") == [rig.TICKET.decode()]
    assert rig.decisions.commands == ([b"revoke,x"] * 2 if enabled else [])


async def test_what_the_origin_says_is_left_is_heard_and_never_shown(rig) -> None:
    rig.app = rig.says(
        b'HTTP/1.1 200 OK\r\nGREENROOM-Offers: [{"name": "a"}]\r\nContent-Length: 0\r\n\r\n'
    )
    async with rig.running():
        response = await rig.get(head="Greenroom-Offers: of a visitor\r\n")
    assert response.header("Greenroom-Offers") is None
    assert rig.decisions.commands == [b'[{"name": "a"}]']


async def test_headers_for_one_hop_stop_here(rig) -> None:
    rig.app = rig.says(
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nProxy-Connection: close\r\n"
        b"Upgrade: h2c\r\nX-End: 2\r\nContent-Length: 0\r\n\r\n"
    )
    async with rig.running():
        response = await rig.get(
            head="Connection: X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nCookie: a=b; __cfwaitingroom=x\r\n"
        )
    assert response.headers == [("X-End", "2"), ("Content-Length", "0")]
    (sent,) = rig.requests
    assert {name.lower() for name, _ in sent.headers}.isdisjoint(
        {"connection", "x-mine", "te", "upgrade"}
    )
    assert sent.header("cookie") == "a=b"


async def test_the_visitor_of_a_trusted_proxy_is_its_client(rig) -> None:
    policy = ForwardedPolicy([ipaddress.ip_network("127.0.0.0/8")])
    async with (
        rig.running(policy=policy, connections_per_address=1),
        rig.visitor() as first,
        rig.visitor() as second,
    ):
        for talk in (first, second):
            assert (
                await talk.get(head="X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n")
            ).status == 200
    assert [(arrival.client, arrival.scheme) for arrival in rig.decisions.arrivals] == [
        ("203.0.113.9", "https")
    ] * 2


async def test_proxies_of_one_zone_have_no_more_connections_than_anybody(rig) -> None:
    policy = ForwardedPolicy(zones={"shop.example": [ipaddress.ip_network("127.0.0.0/8")]})
    async with rig.running(policy=policy, connections_per_address=1), rig.visitor() as first:
        assert (await first.get()).status == 200
        async with rig.visitor():
            await rig.until(lambda: rig.counts.connections_shed == 1, "the first makes room")


async def test_each_host_has_its_own_origin(rig) -> None:
    async with rig.running():
        here = rig.origin

        async def answer(reader, writer) -> None:
            assert b"\r\nhost: inner\r\n" in await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthere")

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        there = type(here)(
            "http", "127.0.0.1", server.sockets[0].getsockname()[1], host_header="inner"
        )
        rig.gateway.state.origins = lambda host: there if host == "there" else here
        for host, body in (
            ("here", b"hello from /"),
            ("there", b"there"),
            ("here", b"hello from /"),
        ):
            assert (await rig.talk(f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())).endswith(
                body
            )
        server.close()
