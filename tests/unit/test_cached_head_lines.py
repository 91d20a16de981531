"""What is cached of request heads, so that known lines are read at once: never a cookie, and
never without bound.
"""

from ipaddress import ip_network

import pytest

from greenroom.gateway.wire import header_lines
from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.header_lines import BYTES_KEPT, FRAMES_BYTES, LINE_BYTES
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.request.bounded_cache import ONCE_SEEN_MAX, BoundedCache
from greenroom.request.forwarded import ForwardedPolicy

PEER = Peer("203.0.113.5", tls=False, policy=ForwardedPolicy())

PROXY = Peer("10.0.0.1", tls=False, policy=ForwardedPolicy([ip_network("10.0.0.0/8")]))


def heads_like(kind, *cookies):
    """Heads that differ only in their Cookie line; the first two make the others known."""
    return [
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Kind: %b\r\nCookie:%b\r\nAccept: */*\r\n\r\n"
        % (kind, cookie)
        for cookie in cookies
    ]


def test_what_is_cached_of_a_head_is_not_its_cookie():
    for number, block in enumerate(
        heads_like(b"fresh", *(b" ticket=%d " % number for number in range(5)))
    ):
        head = read_head(block, PEER)
        assert head.arrival.header(b"cookie") == b"ticket=%d" % number
        assert [name for name, _ in head.arrival.headers] == [
            b"host",
            b"x-kind",
            b"cookie",
            b"accept",
        ]
        assert dict(head.arrival.headers) == head.arrival.facts


@pytest.mark.parametrize(
    "wrong", [b" a\x00", b" a\n", b"\x0ba", b" a\r", b"\ra", b"a\nX-B: c", b"a\x7f"]
)
def test_a_cookie_in_lines_that_are_known_may_hold_no_control_character_either(wrong):
    *known, last = heads_like(b"controls", b"a", b"b", b"c", wrong)
    assert all(isinstance(read_head(block, PEER), RequestHead) for block in known)
    assert read_head(last, PEER).status == 400


def test_lines_learned_from_a_stranger_are_read_as_a_proxys_when_a_proxy_sends_them():
    empty = b"GET / HTTP/1.1\r\nHost: a\r\nX-Kind: shared\r\nX-Forwarded-For:\r\nCookie:\r\n%b\r\n"
    for more in (b"", b"X-Forwarded-For:\r\n", b"Cookie:\r\n"):
        for _ in range(3):
            assert read_head(empty % more, PEER).arrival.client == "203.0.113.5"
        for value in (b"192.0.2.1", b"192.0.2.2"):
            said = (empty % more).replace(
                b"X-Forwarded-For:\r\n", b"X-Forwarded-For: %b\r\n" % value, 1
            )
            assert read_head(said, PEER).arrival.client == "203.0.113.5"
            last = (
                "10.0.0.1" if said.count(b"X-Forwarded-For") > 1 else value.decode()
            )  # the rightmost one counts, and it is empty
            assert read_head(said, PROXY).arrival.client == last
            assert read_head(said, PROXY).arrival.header(b"x-forwarded-for") == value


def test_lines_that_never_come_again_are_not_kept():
    before = len(header_lines._cached.young)
    for number in range(300):
        assert isinstance(
            read_head(b"GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: %d\r\n\r\n" % number, PEER),
            RequestHead,
        )
    assert len(header_lines._cached.young) <= before


def costs(lines):
    return sum(
        len(shape) * BYTES_KEPT + known.lines.frame.count * LINE_BYTES
        for shape, known in lines.items()
    )


def test_what_strangers_can_make_us_remember_is_limited(monkeypatch):
    monkeypatch.setattr(header_lines, "_cached", BoundedCache(FRAMES_BYTES))
    filler = b"X-Filler: " + b"a" * 3_800 + b"\r\n"
    one = (len(filler) + 60) * BYTES_KEPT + 4 * LINE_BYTES
    for number in range(3 * FRAMES_BYTES // one):
        for cookie in (b"a=1", b"a=2"):
            read_head(
                b"GET / HTTP/1.1\r\nHost: a\r\n"
                + filler
                + b"X-Number: %d\r\nCookie: %b\r\n\r\n" % (number, cookie),
                PEER,
            )
    assert costs(header_lines._cached.young) <= FRAMES_BYTES
    assert (
        costs(header_lines._cached._older)
        <= FRAMES_BYTES
        < costs(header_lines._cached._older) + one
    )
    assert len(header_lines._cached._once) <= ONCE_SEEN_MAX


def test_lines_that_keep_coming_stay_known_whatever_else_comes(monkeypatch):
    monkeypatch.setattr(header_lines, "_cached", BoundedCache(FRAMES_BYTES))
    usual = b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\nCookie: c=%d\r\n\r\n"
    filler = b"X-Filler: " + b"a" * 3_800 + b"\r\n"
    frames = {id(read_head(usual % number, PEER).lines.frame) for number in (1, 2)}
    for number in range(3_000):
        for cookie in (b"a=1", b"a=2"):
            read_head(
                b"GET / HTTP/1.1\r\nHost: a\r\n"
                + filler
                + b"X-Number: %d\r\nCookie: %b\r\n\r\n" % (number, cookie),
                PEER,
            )
        if number % 500 == 0:
            frames.add(id(read_head(usual % number, PEER).lines.frame))
    assert len(frames) == 2  # the one that was read whole, and the one that was cached ever since
