"""Header lines that are known by their kind are the same lines as those that are read and checked
from the beginning.
"""

from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from greenroom.proxies.spoe.frames import string_bytes
from greenroom.proxies.spoe.questions import SpoeQuestions
from greenroom.request.admissible import signs_of
from greenroom.request.arrival import ArrivalLimits, CheckedLines, checked_lines
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.request.header_cache import HeaderCache
from greenroom.runtime.embedded import AppRequests

Pairs = list[tuple[bytes, bytes]]
HOST = (b"host", b"shop.example")
NAMES = st.sampled_from(
    (
        b"accept",
        b"cookie",
        b"x-forwarded-for",
        b"x-a",
        b"x_b",
        b"xcookie",
        b"bad name",
        b"user-agent",
        b"sec-fetch-dest",
    )
)
TEXTS = st.sampled_from(
    (
        b"",
        b"a=1",
        b" a=1; b ",
        b"document",
        b"\x06cookie",
        b"\x06cookie\x03abc",
        b"\x01",
        b"x" * 300,
        b"192.0.2.1",
    )
)
HEADERS = st.lists(st.tuples(NAMES, TEXTS), max_size=6)


def asking(limits: ArrivalLimits | None = None) -> SpoeQuestions:
    """Only what reads lines."""
    return SpoeQuestions(SimpleNamespace(limits=limits or ArrivalLimits()), print)  # type: ignore[arg-type]


def packed(pairs: Pairs) -> bytes:
    return b"".join([string_bytes(name) + string_bytes(text) for name, text in pairs]) + b"\0\0"


def as_read(pairs: Pairs, tls: bool, address: bytes) -> CheckedLines | Refusal:
    """What these lines say when nothing is known."""
    told = [
        (b"x-forwarded-for", address),
        (b"x-forwarded-proto", b"https" if tls else b"http"),
        HOST,
    ]
    return checked_lines(
        [pair for pair in pairs if pair[0] not in (b"x-forwarded-for", b"host")] + told,
        ArrivalLimits(),
    )


def same(found: CheckedLines | Refusal, wanted: CheckedLines | Refusal) -> bool:
    if isinstance(found, Refusal) or isinstance(wanted, Refusal):
        return found == wanted
    signs = signs_of(wanted.facts or dict(wanted.headers))
    return found[:2] == wanted[:2] and found.signs in (None, signs)


@given(st.lists(HEADERS, min_size=1, max_size=3), st.integers(0, 6), st.booleans())
@example([[(b"cookie", b"a=1")], [(b"x-a", b"\x06cookie\x03a=1")]], 0, False)
@example([[(b"cookie", b"a=1"), (b"cookie", b"a=1")], [(b"cookie", b"a=1")]], 0, True)
def test_what_haproxy_sends_is_read_the_same_when_it_is_known(
    sent: list[Pairs], at: int, tls: bool
) -> None:
    questions = asking()
    for _ in range(3):
        for address in (b"192.0.2.1", b"192.0.2.2"):
            for pairs in sent:
                asked = [*pairs[:at], HOST, *pairs[at:]]
                assert same(
                    questions._lines(packed(asked), address, tls), as_read(asked, tls, address)
                )


@given(st.lists(HEADERS, min_size=1, max_size=3), st.booleans())
def test_what_an_applications_server_gives_is_read_the_same_when_it_is_known(
    sent: list[Pairs], in_lists: bool
) -> None:
    requests = AppRequests(None, ForwardedPolicy(), print)  # type: ignore[arg-type]
    for _ in range(3):
        for pairs in sent:
            given_pairs: Any = [list(pair) for pair in pairs] if in_lists else pairs
            assert same(requests._lines(given_pairs), checked_lines(pairs, ArrivalLimits()))


@given(HEADERS, st.binary(max_size=40))
def test_bytes_that_are_cut_short_are_never_known(pairs: Pairs, more: bytes) -> None:
    questions = asking()
    whole = packed([HOST, *pairs])
    for _ in range(3):
        questions._lines(whole, b"192.0.2.1", False)
        for broken in (whole[:-1], whole[: len(whole) // 2], whole + b"\0" + more):
            assert isinstance(questions._lines(broken, b"192.0.2.1", False), Refusal)


def test_lines_that_come_again_are_known_and_limits_hold_for_them_too() -> None:
    questions = asking(ArrivalLimits(head_bytes=600))
    lines: list[Any] = [
        questions._lines(packed([HOST, (b"cookie", b"a=%d" % number)]), b"192.0.2.1", False)
        for number in range(4)
    ]
    assert lines[3].signs is lines[2].signs is not None
    assert isinstance(
        questions._lines(packed([HOST, (b"cookie", b"a=" + b"x" * 700)]), b"192.0.2.1", False),
        Refusal,
    )
    questions.asking.limits = ArrivalLimits(header_lines=2)
    refused = questions._lines(packed([HOST, (b"cookie", b"a=1")]), b"192.0.2.1", False)
    assert isinstance(refused, Refusal)
    assert refused.status == 431


def test_what_strangers_can_make_us_remember_is_limited() -> None:
    known, limits = HeaderCache(), ArrivalLimits()
    for number in range(12_000):
        pairs = [(b"x-filler", b"a" * 3_000), (b"x-number", b"%d" % number)]
        lines = checked_lines(pairs, limits)
        assert isinstance(lines, CheckedLines)
        known.learn(number % 6_000, (), lines, pairs)
    kinds = known._kinds
    assert sum(kind.cost for kind in kinds.young.values()) <= kinds._most
    assert sum(kind.cost for kind in kinds._older.values()) <= kinds._most
