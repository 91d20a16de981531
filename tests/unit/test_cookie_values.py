"""Finding the ticket among everything that a browser or an attacker sends."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from greenroom.decision.cookies import CANDIDATES_MAX, VALUE_MAX, ticket_values, without_cookies

NAME = b"__cfwaitingroom"


def values(*cookies: bytes, name: bytes = NAME) -> list[bytes]:
    return ticket_values(tuple((b"cookie", cookie) for cookie in cookies), name)


@pytest.mark.parametrize(
    ("cookie", "found"),
    [
        (b"__cfwaitingroom=abc", [b"abc"]),
        (b"a=1; __cfwaitingroom=abc; b=2", [b"abc"]),
        (b"a=1;__cfwaitingroom=abc;b=2", [b"abc"]),
        (b"a=1;\t __cfwaitingroom= abc ;b=2", [b"abc"]),
        (b"__cfwaitingroom=one; __cfwaitingroom=two", [b"one", b"two"]),
        (b"__cfwaitingroom=", [b""]),
        (b"__cfwaitingroom=a=b==", [b"a=b=="]),
        (b"__cfwaitingroom_sale=abc", []),
        (b"x__cfwaitingroom=abc", []),
        (b"x=__cfwaitingroom=abc", []),
        (b"x= __cfwaitingroom=abc", []),
        (b"x=1 __cfwaitingroom=abc", []),
        (b"x=1            __cfwaitingroom=abc", []),
        (b"__CFWAITINGROOM=abc", []),
        (b"__cfwaitingroom", []),
        (b"__cfwaitingroom; x=1", []),
        (b"", []),
        (b";;;= ;=;\x00\xff\r\n; __cfwaitingroom=abc;;", [b"abc"]),
        (b'x="; __cfwaitingroom=abc', [b"abc"]),
        (b"; __cfwaitingroom=abc", [b"abc"]),
        (b"__cfwaitingroom=__cfwaitingroom=x", [b"__cfwaitingroom=x"]),
    ],
)
def test_it_finds_the_ticket_and_nothing_else(cookie: bytes, found: list[bytes]) -> None:
    assert values(cookie) == found


def test_every_cookie_header_is_read_and_no_other() -> None:
    headers = (
        (b"cookie", b"__cfwaitingroom=1"),
        (b"x-cookie", b"__cfwaitingroom=2"),
        (b"host", b"h"),
        (b"cookie", b"a=b; __cfwaitingroom=3"),
    )
    assert ticket_values(headers, NAME) == [b"1", b"3"]
    assert ticket_values((), NAME) == []


def test_a_suffixed_room_and_a_plain_one_do_not_read_each_others() -> None:
    cookie = b"__cfwaitingroom=plain; __cfwaitingroom_a=suffixed; __cfwaitingroom_ab=other"
    assert values(cookie) == [b"plain"]
    assert values(cookie, name=b"__cfwaitingroom_a") == [b"suffixed"]


def test_only_so_many_are_looked_at_and_none_that_is_too_long() -> None:
    many = b"; ".join(b"__cfwaitingroom=%d" % n for n in range(100))
    ends = [
        b"%d" % n for n in (*range(CANDIDATES_MAX // 2), *range(100 - CANDIDATES_MAX // 2, 100))
    ]
    assert values(many) == ends
    assert values(many, many) == ends
    long = b"; ".join(
        [b"__cfwaitingroom=" + b"x" * (VALUE_MAX + 1)] * 40
        + [b"__cfwaitingroom=" + b"x" * VALUE_MAX]
    )
    assert values(long) == [b"x" * VALUE_MAX], (
        "oversized ones do not use up the places of good ones"
    )


pieces = st.sampled_from(
    [
        b"__cfwaitingroom",
        b"=",
        b";",
        b"; ",
        b" ",
        b"\t",
        b"x",
        b"_a",
        b"a=1; ",
        b"\xff",
        b'"',
        b"__cfwaitingroom=v",
    ]
)


@given(st.lists(st.lists(pieces, max_size=7).map(b"".join), max_size=3))
@example([b"  ;  __cfwaitingroom=x ; "])
def test_it_agrees_with_the_plain_way_of_reading_a_cookie_header(cookies: list[bytes]) -> None:
    pairs = [
        pair for cookie in cookies for pair in cookie.split(b";") if not pair.startswith(b" " * 8)
    ]
    ours = [pair.strip(b" \t") for pair in pairs if pair.lstrip(b" \t").startswith(NAME + b"=")]
    expected = [pair[len(NAME) + 1 :].strip(b" \t") for pair in ours]
    assert values(*cookies) == expected[:CANDIDATES_MAX]


@pytest.mark.parametrize(
    "unit",
    [
        b"x__cfwaitingroom=",
        b" ",
        b" __cfwaitingroom=",
        b"; ",
        b"__cfwaitingroom=" + b"y" * 600 + b"; ",
    ],
    ids=lambda unit: repr(unit[:12]),
)
def test_a_hostile_header_costs_no_more_than_its_length(unit: bytes) -> None:
    """Sixteen times the length may cost about sixteen times the work, not 256 times."""

    def cost(size: int) -> float:
        cookie = (unit * (size // len(unit) + 1))[:size]
        best = 1.0
        for _ in range(15):
            begun = time.thread_time()
            values(cookie)
            best = min(best, time.thread_time() - begun)
        return best

    assert cost(1 << 18) < 128 * max(cost(1 << 14), 20e-6)


@given(
    st.lists(
        st.sampled_from([b"t", b"h-t", b"=", b";", b"; ", b" ", b"\t", b"a", b"; t=1", b";t"]),
        max_size=9,
    ).map(b"".join)
)
@example(b"t=1; a=2")
@example(b";a;t;;h-t=x ;")
def test_what_is_left_without_our_cookies_is_left_byte_for_byte(header: bytes) -> None:
    own = frozenset((b"t", b"h-t"))
    parts = header.split(b";")
    kept = [part for part in parts if part.partition(b"=")[0].strip() not in own]
    assert without_cookies(header, own) == (
        header if len(kept) == len(parts) else b";".join(kept).strip()
    )
    assert without_cookies(header, frozenset()) == header
