"""What is remembered of those who ask over SPOE: a request that is known but for its target is read
as if nothing were known of it.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from proxy_questions import POLICY, PROXY
from spoe_haproxy import arguments

from greenroom.model.record import replace
from greenroom.model.visit import Arrival
from greenroom.proxies.service import ProxyQuestions
from greenroom.proxies.spoe.frames import BadFrame, string_bytes
from greenroom.proxies.spoe.questions import ASKERS_BYTES, MESSAGE, SpoeQuestions
from greenroom.request.arrival import ArrivalLimits, Sender
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.request.path_readings import PathPolicies, PathPolicy

TARGETS = st.sampled_from(
    (
        b"/",
        b"/a",
        b"/a?b=1",
        b"/a?",
        b"//a",
        b"/a/../b",
        b"/%61",
        b"/a;b",
        b"/a%2fb",
        b"/" + b"x" * 300,
        b"*",
        b"",
        b"http://shop.example/a",
    )
)
METHODS = st.sampled_from(("GET", "POST", "OPTIONS", "CONNECT", "PURGE", "bad method"))
NAMES = st.sampled_from(
    (b"accept", b"cookie", b"x-forwarded-for", b"x_b", b"bad name", b"host", b"greenroom-update")
)
TEXTS = st.sampled_from(
    (b"", b"a=1", b"a=1; __cfwaitingroom=x", b"__cfwaitingroom=x", b"shop.example", b"\x01")
)
ASKED = st.tuples(
    METHODS,
    st.lists(st.tuples(NAMES, TEXTS), max_size=4).map(
        lambda more: ((b"host", b"shop.example"), *more)
    ),
    st.sampled_from(("192.0.2.1", "2001:db8::1")),
)
STRICT = PathPolicy("refuse", True)
POLICIES = st.sampled_from(
    (STRICT, PathPolicy(), PathPolicy("pass", True), PathPolicy("pass", False))
)
OWN = frozenset((b"__cfwaitingroom",))


def service(paths: PathPolicy = STRICT, limits: ArrivalLimits | None = None) -> Any:
    """Only what reads questions, and the proxy that asks them."""
    policy = ForwardedPolicy(POLICY.trusted_proxies, paths=PathPolicies(paths))
    return ProxyQuestions(SimpleNamespace(own_cookies=OWN), policy, None, print, limits)  # type: ignore[arg-type]


def read(questions: SpoeQuestions, proxy: Sender, asked: bytes) -> Any:
    """What this question is read as, and what its answer begins with when it may go on."""
    found, forward = questions._read(string_bytes(MESSAGE) + asked, proxy)
    if isinstance(found, Refusal):
        return found
    return replace(found, signs=None), forward or questions._forward(found)


def known(questions: SpoeQuestions) -> int:
    return len(questions._askers.young)


@given(st.lists(ASKED, min_size=1, max_size=2), st.lists(TARGETS, min_size=1, max_size=4), POLICIES)
@example(
    [("GET", ((b"host", b"shop.example"), (b"cookie", b"a=1; __cfwaitingroom=x")), "192.0.2.1")],
    [b"/a", b"/a;b", b"//a", b"*"],
    PathPolicy(True),
)
def test_a_request_is_read_the_same_when_its_asker_is_known(
    askers: list[Any], targets: list[bytes], paths: PathPolicy
) -> None:
    asking = service(paths, ArrivalLimits(url_bytes=100))
    proxy = asking.sender(PROXY)
    questions = SpoeQuestions(asking, print)
    for target in (*targets, *targets, *targets):
        for method, headers, client in askers:
            asked = arguments(method, target, headers, client)
            assert read(questions, proxy, asked) == read(
                SpoeQuestions(asking, print),
                proxy,
                arguments(method, target, headers, client, b"tls"),
            )


def ask(path: bytes = b"/a") -> bytes:
    return arguments("GET", path, ((b"host", b"shop.example"), (b"cookie", b"a=1; b=2")))


def test_an_asker_is_known_from_the_second_time_on_and_only_whole() -> None:
    asking = service()
    proxy, questions = asking.sender(PROXY), SpoeQuestions(asking, print)
    for number, wanted in enumerate((0, 1, 1)):
        read(questions, proxy, ask(b"/%d" % number))
        assert known(questions) == wanted
    shared = [
        questions._read(string_bytes(MESSAGE) + ask(b"/%d" % number), proxy)[0]
        for number in range(2)
    ]
    assert isinstance(shared[0], Arrival)
    assert isinstance(shared[1], Arrival)
    assert shared[0].facts is shared[1].facts
    for broken in (ask()[:-1], ask() + b"\0", ask()[:30], b"\x06" + ask()[1:]):
        with pytest.raises(BadFrame):
            read(questions, proxy, broken)


def test_a_reload_counts_for_those_who_are_known() -> None:
    asking = service()
    questions = SpoeQuestions(asking, print)
    for _ in range(3):
        read(questions, asking.sender(PROXY), ask(b"/a;b"))
    assert isinstance(read(questions, asking.sender(PROXY), ask(b"/a;b")), Refusal)
    asking.decisions.own_cookies = frozenset((b"a",))
    assert read(questions, asking.sender(PROXY), ask())[1].endswith(b"\x03b=2")
    asking.reconfigure(
        ForwardedPolicy(POLICY.trusted_proxies, paths=PathPolicies(PathPolicy(True))), asking.limits
    )
    assert len(read(questions, asking.sender(PROXY), ask(b"/a;b"))[0].readings) > 1
    asking.reconfigure(asking.policy, ArrivalLimits(url_bytes=3))
    assert read(questions, asking.sender(PROXY), ask(b"/abc")).status == 414
    asking.reconfigure(asking.policy, ArrivalLimits(head_bytes=20))
    assert read(questions, asking.sender(PROXY), ask()).status == 431


def test_what_strangers_can_make_it_remember_is_limited() -> None:
    asking = service()
    proxy, questions = asking.sender(PROXY), SpoeQuestions(asking, print)
    for number in range(9_000):
        asked = arguments(
            "GET",
            b"/",
            ((b"host", b"shop.example"), (b"x-filler", b"a" * 2_000 + b"%d" % (number % 4_500))),
        )
        questions._read(string_bytes(MESSAGE) + asked, proxy)
    assert 100 < known(questions) < ASKERS_BYTES / 4_000
    long = arguments("GET", b"/", ((b"host", b"shop.example"), (b"x-filler", b"a" * 5_000)))
    before = known(questions)
    for _ in range(3):
        questions._read(string_bytes(MESSAGE) + long, proxy)
    assert known(questions) == before
