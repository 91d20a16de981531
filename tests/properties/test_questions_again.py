"""Questions of proxies that come again: known by their bytes, they mean what they would mean if
they were read as a whole.
"""

from ipaddress import ip_network
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from greenroom.decision.verdict import Forward
from greenroom.gateway.wire.header_lines import IN_QUESTIONS
from greenroom.gateway.wire.question_heads import QuestionHeads
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival
from greenroom.proxies.dialect import Asker
from greenroom.proxies.service import ProxyQuestions, VerdictStore
from greenroom.request.arrival import ArrivalLimits
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.request.path_readings import PathPolicies, PathPolicy
from greenroom.settings.limits import Limits

POLICY = ForwardedPolicy([ip_network("10.0.0.0/8")])
LIMITS = Limits()


class Recorder:
    """Decides nothing: keeps what it was asked about."""

    own_cookies = frozenset((b"__cfwaitingroom",))

    def __init__(self) -> None:
        self.asked: list[Arrival] = []

    def verdict(self, asked: Arrival, _later: object) -> Forward:
        self.asked.append(asked)
        return Forward(set_cookie=b"ticket")


class Listener:
    """The listener where proxies ask; `knows`: as it is, or reading each question as a whole."""

    def __init__(self, knows: bool) -> None:
        self.decisions, self.errors = Recorder(), list[BaseException]()
        self.questions = ProxyQuestions(
            self.decisions, POLICY, VerdictStore(bytes, lambda: 0.0), self.errors.append
        )  # type: ignore[arg-type]
        self.read = QuestionHeads(self.questions).read if knows else read_head
        self.peers: dict[str, Peer] = {}
        self.again = 0

    def ask(
        self, block: bytes, address: str = "10.0.0.1", limits: Limits = LIMITS
    ) -> tuple[Any, ...]:
        """What became of a question: the refusal, or the answer and what was decided about."""
        peer = self.peers.get(address)
        if peer is None or peer.limits is not limits:
            peer = self.peers[address] = Peer(
                address, False, ForwardedPolicy(), ("10.0.0.9", 80), limits, IN_QUESTIONS
            )
        head = self.read(block, peer)
        if isinstance(head, Refusal):
            return (head,)
        self.again += isinstance(head.arrival.asker, Asker)
        self.decisions.asked.clear()
        answer = self.questions.verdict(head.arrival, lambda _: None)
        assert isinstance(answer, Answer)
        assert self.errors == []
        said = (answer.status, answer.headers.pairs, answer.body, answer.set_cookie)
        framing = (
            head.framing.keep_alive,
            head.framing.method,
            head.framing.minor,
            head.framing.embodied,
        )
        asked = [
            {
                name: getattr(one, name)
                for name in one.__struct_fields__
                if name not in ("asker", "signs", "lines")
            }
            for one in self.decisions.asked
        ]
        return (*said, framing, asked)


TARGETS = (
    b"/", b"/a", b"/a?b=c", b"/a/b/c.css", b"/%41", b"/caf%C3%A9", b"/a//b", b"//a", b"/a/../b", b"/a/.", b"/a;b", b"/a%2fb", b"/a%3bb",
    b"/%2e%2e/a", b"*", b"", b"a", b"http://full.example/a", b"http://other.example/a", b" /a", b"/a ", b"/a\t", b"/a\x00b", b"/a\x7f",
    b"/a\xff", b"/caf\xc3\xa9", b"/a#b", b"/a?\xc3\xa9", b"/" + b"a" * 9_000, b"/a\rb", b"/a?x=/../y",
)  # fmt: skip
LINES = (
    b"X-Original-Method: GET", b"X-Original-Method: POST", b"X-Original-Host: full.example", b"X-Original-Host: other.example",
    b"X-Forwarded-For: 192.0.2.1", b"X-Forwarded-For: nonsense", b"X-Forwarded-Proto: https", b"X-Forwarded-Host: full.example",
    b"X-Forwarded-Method: GET", b"X-Forwarded-Uri: /forged", b"x-original-uri: /forged", b"X-Original-URI: /forged", b"X-Original-URI:/x",
    b"X-Original-URI : /x", b"Host: greenroom", b"Cookie: __cfwaitingroom=x; a=b", b"Cookie: a=X-Original-URI: /x", b"Accept: text/html",
    b"Content-Length: 0", b"Content-Length: 3", b"Connection: close", b"A: \r\n X-Original-URI: /folded",
)  # fmt: skip
QUESTION_LINES = (
    b"GET /nginx/decide HTTP/1.1",
    b"GET /forward-auth HTTP/1.1",
    b"GET /nginx/decide HTTP/1.0",
    b"HEAD /nginx/decide HTTP/1.1",
)
USUAL = LINES[0], LINES[2], LINES[4], LINES[14]


@st.composite
def rounds(draw: Any) -> list[tuple[bytes, str]]:
    """Questions that are alike but for the value of one line, which begins in one of several ways,
    from one proxy or two.
    """
    first, name = (
        draw(st.sampled_from(QUESTION_LINES)),
        draw(st.sampled_from((b"X-Original-URI: ", b"X-Forwarded-Uri: ", b"x-original-uri: "))),
    )
    lines = draw(st.lists(st.sampled_from(LINES), max_size=5))
    if draw(st.booleans()):
        lines = [*USUAL, *lines]
    at = draw(st.integers(0, len(lines)))
    asked = draw(
        st.lists(
            st.tuples(
                st.sampled_from(TARGETS), st.sampled_from(("10.0.0.1", "10.0.0.2", "192.0.2.9"))
            ),
            min_size=4,
            max_size=9,
        )
    )
    return [
        (b"\r\n".join([first, *lines[:at], name + target, *lines[at:], b"", b""]), address)
        for target, address in asked
    ]


def usual(
    target: bytes, name: bytes = b"X-Original-URI: ", first: bytes = QUESTION_LINES[0]
) -> bytes:
    return b"\r\n".join(
        [
            first,
            *USUAL,
            b"Cookie: __cfwaitingroom=x; a=b",
            name + target,
            b"Accept: text/html",
            b"",
            b"",
        ]
    )


@given(rounds())
@example([(usual(target), "10.0.0.1") for target in (b"/", b"/", *TARGETS)])
@example(
    [
        (usual(target).replace(b"Accept: text/html", b"X-Original-URI: /b"), "10.0.0.1")
        for target in (b"/", b"/", *TARGETS)
    ]
)
@example([(usual(target, b"X-Forwarded-Uri: "), "10.0.0.1") for target in (b"/", b"/", *TARGETS)])
@example(
    [
        (usual(b"/"), address)
        for address in ("10.0.0.1", "10.0.0.1", "192.0.2.9", "10.0.0.2", "10.0.0.1")
    ]
)
def test_a_question_that_comes_again_means_what_it_says(asked: list[tuple[bytes, str]]) -> None:
    knowing, reading = Listener(True), Listener(False)
    for block, address in asked:
        assert knowing.ask(block, address) == reading.ask(block, address)


def test_the_third_question_of_a_visitor_is_not_read_again() -> None:
    for first, name in (
        (QUESTION_LINES[0], b"X-Original-URI: "),
        (QUESTION_LINES[1], b"X-Forwarded-Uri: "),
    ):
        listener = Listener(True)
        block = usual(b"/a", name, first)
        if first == QUESTION_LINES[1]:
            block = block.replace(b"X-Original-Method", b"X-Forwarded-Method").replace(
                b"X-Original-Host", b"X-Forwarded-Host"
            )
        found = [listener.ask(block.replace(b"/a", b"/%d" % number))[0] for number in range(5)]
        assert (found, listener.again) == ([200] * 5, 3)


def test_what_a_reload_replaces_is_not_remembered() -> None:
    listener, other = (
        Listener(True),
        ForwardedPolicy([ip_network("10.0.0.1/32")], paths=PathPolicies(PathPolicy(True, True))),
    )
    asking = listener.questions
    for number in range(3):
        assert listener.ask(usual(b"/%d" % number), "10.0.0.2")[0] == 200
    asking.reconfigure(other, asking.limits)
    assert listener.ask(usual(b"/a"), "10.0.0.2")[0] == 403, "no longer trusted"
    for number in range(3):
        listener.ask(usual(b"/%d" % number))
    assert listener.again == 1 + 1, "a proxy with another address is another asker"
    asking.reconfigure(other, ArrivalLimits(url_bytes=3))
    assert [listener.ask(usual(target))[0] for target in (b"/1", b"/2", b"/abc")] == [
        200,
        200,
        401,
    ], "the target is too long now"
    listener.decisions.own_cookies = frozenset((b"a",))
    listener.ask(usual(b"/1"))
    pairs = dict(listener.ask(usual(b"/2"))[1])
    assert pairs[b"Cookie"] == b"__cfwaitingroom=x", "another cookie is greenroom's own now"
    small = Limits(head_bytes=1_024)
    block = usual(b"/" + b"a" * 1_000)
    assert (listener.ask(block, limits=small)[0].status, listener.errors) == (431, [])


def test_an_error_while_deciding_is_never_a_yes() -> None:
    listener = Listener(True)
    for number in range(3):
        listener.ask(usual(b"/%d" % number))

    def broken(*_: object) -> Forward:
        raise RuntimeError("broken")

    listener.decisions.verdict = broken  # type: ignore[method-assign]
    head = listener.read(usual(b"/a"), listener.peers["10.0.0.1"])
    assert not isinstance(head, Refusal)
    assert isinstance(head.arrival.asker, Asker)
    answer = listener.questions.verdict(head.arrival, lambda _: None)
    assert isinstance(answer, Answer)
    assert answer.status == 503
