"""One SPOE connection: hands are shaken, questions overtake each other, and everything odd ends it
without a yes.
"""

from pathlib import Path
from typing import Any

import pytest
from admission_world import small_room
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proxy_questions import PROXY, Asking
from spoe_haproxy import HAProxy, arguments, notify_bytes
from visitors import Site

from greenroom.decision.verdict import Forward
from greenroom.proxies.spoe import frames
from greenroom.proxies.spoe.connection import PENDING_MAX
from greenroom.proxies.spoe.frames import frame_bytes, pairs_bytes, string_bytes

HEADERS = ((b"host", b"shop.example"), (b"accept", b"text/html"))
QUESTION = arguments("GET", b"/sale", HEADERS)


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(Site(tmp_path, small_room(total_active_users=1, path="/sale")).decisions)


def connected(asking: Asking, peer: str = PROXY) -> HAProxy:
    return HAProxy(asking.questions, asking.errors.append, peer)


def test_hands_are_shaken_on_one_version_and_a_size(asking: Asking) -> None:
    said = connected(asking).hello()
    assert said == {
        b"kind": frames.AGENT_HELLO,
        b"version": b"2.0",
        b"max-frame-size": 16_380,
        b"capabilities": b"pipelining",
    }
    assert connected(asking).hello(max_frame_size=10**9)[b"max-frame-size"] == frames.FRAME_MAX
    for changed, status in (
        ({"supported_versions": b"1.0"}, frames.BAD_VERSION),
        ({"supported_versions": None}, frames.NO_VERSION),
        ({"max_frame_size": None}, frames.NO_SIZE),
        ({"max_frame_size": 100}, frames.BAD_SIZE),
    ):
        haproxy = connected(asking)
        refused = haproxy.hello(**changed)
        assert (refused[b"kind"], refused[b"status-code"], haproxy.wire.closed) == (
            frames.AGENT_DISCONNECT,
            status,
            True,
        )


def test_a_health_check_is_a_hello_and_no_more(asking: Asking) -> None:
    haproxy = connected(asking)
    said = {
        b"supported-versions": b"1.0, 2.0",
        b"max-frame-size": 16_380,
        b"capabilities": b"",
        b"healthcheck": True,
    }
    haproxy.feed(frame_bytes(frames.HAPROXY_HELLO, 0, 0, pairs_bytes(said)))
    (frame,) = haproxy.frames()
    assert (frame.kind, haproxy.wire.closed) == (frames.AGENT_HELLO, True)


def test_many_questions_in_one_read_get_their_answers_in_one_write(asking: Asking) -> None:
    haproxy = connected(asking)
    haproxy.hello()
    writes = haproxy.wire.writes
    haproxy.feed(
        b"".join([notify_bytes(stream, 1_000 + stream, QUESTION) for stream in range(300)])
    )
    answers = haproxy.answers()
    assert haproxy.wire.writes == writes + 1
    assert [(stream, frame) for stream, frame, _ in answers] == [
        (stream, 1_000 + stream) for stream in range(300)
    ]
    assert [told[b"outcome"] for _, _, told in answers] == [b"forward"] + [b"held"] * 299
    assert len({told[b"page"] for _, _, told in answers[1:]}) == 299, "each has its own page"
    assert {told[b"server"] for _, _, told in answers[1:]} == {b"10.0.0.9:8082"}


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.lists(st.integers(1, 60), min_size=1))
def test_frames_may_come_in_any_pieces(asking: Asking, sizes: list[int]) -> None:
    whole = connected(asking), connected(asking)
    data = b"".join(
        [
            notify_bytes(stream, stream, arguments("GET", b"/open", HEADERS))
            for stream in (1, 500, 70_000)
        ]
    )
    whole[0].hello()
    whole[1].hello()
    whole[0].feed(data)
    at = 0
    while at < len(data):
        for size in sizes:
            whole[1].feed(data[at : at + size])
            at += size
    assert whole[0].answers() == whole[1].answers()


def test_answers_overtake_each_other(asking: Asking) -> None:
    waiting: list[Any] = []

    class Slow:
        own_cookies: frozenset[bytes] = frozenset()

        def verdict(self, _arrival: object, later: Any) -> None:
            waiting.append(later)

    asking.questions.decisions = Slow()  # type: ignore[assignment]
    haproxy = connected(asking)
    haproxy.hello()
    for stream in (1, 2):
        haproxy.notify(stream, 7, QUESTION)
    assert haproxy.answers() == []
    waiting[1](Forward())
    assert haproxy.answers() == [(2, 7, {b"outcome": b"forward"})]
    for stream in range(3, PENDING_MAX + 2):
        haproxy.notify(stream, 7, QUESTION)
    assert haproxy.wire.paused, "nothing more is read while so many wait"
    waiting[0](Forward())
    assert not haproxy.wire.paused
    haproxy.connection.connection_lost(None)
    waiting[5](Forward())  # goes nowhere


def test_only_trusted_addresses_get_an_answer(asking: Asking) -> None:
    assert connected(asking, "192.0.2.1").wire.closed
    haproxy = connected(asking)
    haproxy.hello()
    asking.questions.reconfigure(type(asking.policy)(), asking.questions.limits)
    haproxy.notify(1, 1, QUESTION)
    assert haproxy.told_to_go() == frames.INVALID


ODD = {
    "a question before HELLO": (False, notify_bytes(1, 1, QUESTION), frames.INVALID),
    "a second HELLO": (True, frame_bytes(frames.HAPROXY_HELLO, 0, 0, b""), frames.INVALID),
    "a frame of an agent": (True, frame_bytes(frames.ACK, 1, 1, b""), frames.INVALID),
    "another message": (True, notify_bytes(1, 1, QUESTION, b"other"), frames.INVALID),
    "two messages": (
        True,
        notify_bytes(1, 1, QUESTION + string_bytes(b"decide") + QUESTION),
        frames.INVALID,
    ),
    "a larger frame than was agreed": (True, (16_381).to_bytes(4, "big"), frames.TOO_BIG),
    "a huge frame": (False, b"\0\x02\0\0", frames.TOO_BIG),
    "an empty frame": (True, b"\0\0\0\0", frames.INVALID),
    "a beginning of several": (True, b"\0\0\0\x07\x03\0\0\0\0\x01\x01", frames.FRAGMENTED),
    "its continuation": (True, b"\0\0\0\x07\0\0\0\0\x01\x01\x01", frames.FRAGMENTED),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_frame_ends_the_connection_with_a_reason(name: str, asking: Asking) -> None:
    greets, data, status = ODD[name]
    haproxy = connected(asking)
    if greets:
        haproxy.hello()
    haproxy.feed(data)
    assert haproxy.told_to_go() == status
    assert asking.errors == []


@settings(
    max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.data())
def test_no_changed_byte_is_a_yes_for_a_visitor_who_waits(
    asking: Asking, data: st.DataObject
) -> None:
    """The place is taken. A changed question may ask about another path or host, which no room
    covers; it never lets into this one.
    """
    full = connected(asking)
    full.hello()
    full.notify(1, 1, QUESTION)
    full.answers()
    sent = bytearray(notify_bytes(2, 3, QUESTION))
    for _ in range(data.draw(st.integers(1, 3))):
        sent[data.draw(st.integers(0, len(sent) - 1))] = data.draw(st.integers(0, 255))
    haproxy = connected(asking)
    haproxy.hello()
    haproxy.feed(bytes(sent))
    found = haproxy.frames()
    assert len(found) <= 2
    assert asking.errors == []
    untouched = b"/sale" in sent and b"shop.example" in sent
    for frame in found:
        assert not (
            untouched
            and frame.kind == frames.ACK
            and b"forward" in frame.data
            and b"ticket" in frame.data
        )


def test_a_question_without_an_argument_is_refused_and_an_error_is_never_a_yes(
    asking: Asking,
) -> None:
    for name in (b"method", b"target", b"headers", b"address", b"tls"):
        haproxy = connected(asking)
        haproxy.hello()
        haproxy.notify(1, 1, QUESTION.replace(string_bytes(name), string_bytes(b"?" * len(name))))
        ((_, _, told),) = haproxy.answers()
        assert told[b"outcome"] == b"answered", name
    asking.questions.decisions = None  # type: ignore[assignment]
    haproxy = connected(asking)
    haproxy.hello()
    haproxy.notify(1, 1, QUESTION)
    ((_, _, told),) = haproxy.answers()
    assert told[b"outcome"] == b"answered"
    assert len(asking.errors) == 1
    page = asking.ask(
        "GET", b"/spoe/page", ((b"Host", b"greenroom"), (b"Greenroom-Verdict", told[b"page"]))
    )
    assert page.status == 503


def test_an_answer_that_is_too_large_has_no_outcome(asking: Asking) -> None:
    haproxy = connected(asking)
    haproxy.hello(max_frame_size=256)
    headers = ((b"host", b"shop.example"), (b"cookie", b"a=" + b"x" * 100))
    haproxy.notify(1, 1, arguments("GET", b"/open", headers))
    assert haproxy.answers()[0][2][b"outcome"] == b"forward"
    haproxy.notify(1, 2, arguments("GET", b"/sale", headers))
    assert haproxy.answers() == [(1, 2, {})], "ticket and cookies have no room in 256 bytes"


def test_what_the_visitor_says_about_itself_does_not_count(tmp_path: Path) -> None:
    site = Site(tmp_path, small_room(total_active_users=1, path="/sale"))
    forged = (
        (b"x-forwarded-for", b"198.51.100.7"),
        (b"x-forwarded-proto", b"https"),
        (b"forwarded", b"for=198.51.100.8;host=other.example"),
    )
    haproxy = connected(Asking(site.decisions))
    haproxy.hello()
    for number, client in enumerate(("192.0.2.1", "2001:db8::1")):
        haproxy.notify(
            1,
            number,
            arguments(
                "GET",
                b"/sale",
                (*HEADERS, *forged, (b"x-forwarded-host", b"other.example")),
                client,
            ),
        )
    seen = [event.arrival for event in site.events_seen if event.arrival is not None]
    assert [(one.client, one.scheme, one.host) for one in seen] == [
        ("192.0.2.1", "http", "shop.example"),
        ("2001:db8::1", "http", "shop.example"),
    ]
