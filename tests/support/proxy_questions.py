"""Each dialect as a proxy speaks it, without sockets: a visitor's request in, the proxy's question
asked, its answer to the visitor out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_network

from plain_front_end import Given, Origin, Pairs
from spoe_haproxy import HAProxy, arguments

from greenroom.decision.service import DecisionService
from greenroom.decision.verdict import Verdict
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.proxies.service import ProxyQuestions, VerdictStore
from greenroom.request.arrival import Sender, arrival_from
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy

PROXY = "10.0.0.1"
POLICY = ForwardedPolicy([ip_network("10.0.0.0/8")])


def header(answer: Answer, name: bytes) -> bytes:
    return answer.headers.get(name) or b""


@dataclass
class Asking:
    """The listener where proxies ask; `now` is its clock."""

    decisions: DecisionService
    policy: ForwardedPolicy = field(default_factory=lambda: POLICY)
    now: float = 0.0
    errors: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._given = 0
        self.store = VerdictStore(self._entropy, lambda: self.now)
        self.questions = ProxyQuestions(self.decisions, self.policy, self.store, self.errors.append)

    def _entropy(self, count: int) -> bytes:
        self._given += 1
        return self._given.to_bytes(count, "big")

    def ask(self, method: str, target: bytes, headers: Pairs, proxy: str = PROXY) -> Answer:
        """One question over a connection from `proxy`, as the gateway would read it."""
        question = arrival_from(method, target, headers, Sender(proxy, False, ForwardedPolicy()))
        if isinstance(question, Refusal):
            return Answer(question.status, _NONE, question.reason.encode())
        answers: list[Verdict] = []
        at_once = self.questions.verdict(question, answers.append)
        (answer,) = answers if at_once is None else [*answers, at_once]
        assert isinstance(answer, Answer), "nothing is forwarded from here"
        return answer


def spoe_variables(
    asking: Asking, method: str, target: bytes, headers: Pairs, client: str
) -> dict[bytes, bytes]:
    """What HAProxy is told about this request, over a connection of its own."""
    haproxy = HAProxy(asking.questions, asking.errors.append, PROXY)
    haproxy.hello()
    haproxy.notify(1, 1, arguments(method, target, headers, client))
    ((stream, frame, variables),) = haproxy.answers()
    assert (stream, frame) == (1, 1)
    return variables


_NONE = AnswerHeaders()
Ask = Callable[[Asking, str, bytes, Pairs, str], Answer]


def _others(headers: Pairs) -> Pairs:
    return tuple(pair for pair in headers if pair[0].lower() != b"host")


def _host(headers: Pairs) -> bytes:
    return next((value for name, value in headers if name.lower() == b"host"), b"")


def forward_auth(asking: Asking, method: str, target: bytes, headers: Pairs, client: str) -> Answer:
    said = (
        (b"Host", b"greenroom:8082"),
        *_others(headers),
        (b"X-Forwarded-Method", method.encode()),
        (b"X-Forwarded-Uri", target),
        (b"X-Forwarded-Host", _host(headers)),
        (b"X-Forwarded-Proto", b"http"),
        (b"X-Forwarded-For", client.encode()),
    )
    return asking.ask("GET", b"/forward-auth", said)


def auth_request(asking: Asking, method: str, target: bytes, headers: Pairs, client: str) -> Answer:
    said = (
        (b"Host", b"greenroom"),
        *_others(headers),
        (b"X-Original-Method", method.encode()),
        (b"X-Original-URI", target),
        (b"X-Original-Host", _host(headers)),
        (b"X-Forwarded-Proto", b"http"),
        (b"X-Forwarded-For", client.encode()),
    )
    answer = asking.ask("GET", b"/nginx/decide", said)
    if answer.status != 401:
        return answer
    page = asking.ask(
        "GET",
        b"/nginx/page",
        ((b"Host", b"greenroom"), (b"Greenroom-Verdict", header(answer, b"Greenroom-Verdict"))),
    )
    assert page.set_cookie == answer.set_cookie
    return page


def ext_authz(asking: Asking, method: str, target: bytes, headers: Pairs, client: str) -> Answer:
    said = (*headers, (b"X-Forwarded-Proto", b"http"), (b"X-Forwarded-For", client.encode()))
    return asking.ask(method, b"/ext-authz" + target, said)


def spoe(asking: Asking, method: str, target: bytes, headers: Pairs, client: str) -> Answer:
    variables = spoe_variables(asking, method, target, headers, client)
    if variables.get(b"outcome") == b"forward":
        cookies = variables.get(b"cookies")
        said = AnswerHeaders(
            (b"Greenroom-Verdict", b"forward"),
            *([(b"Cookie", cookies)] if cookies else []),
            *([(b"Greenroom-Session", ends)] if (ends := variables.get(b"session")) else []),
        )
        return Answer(200, said, b"", variables.get(b"ticket", b""))
    return asking.ask(
        "GET",
        b"/spoe/page",
        ((b"Host", b"greenroom"), (b"Greenroom-Verdict", variables.get(b"page", b""))),
    )


SPEAKING: dict[str, Ask] = {
    "forward-auth": forward_auth,
    "auth_request": auth_request,
    "ext_authz": ext_authz,
    "spoe": spoe,
}


@dataclass
class AskingProxy:
    """A proxy that asks before it forwards to `origin`, in one dialect; what it tells the visitor
    is what a visitor is given.
    """

    asking: Asking
    speak: Ask
    origin: Origin
    served: list[Pairs] = field(default_factory=list)

    def request(self, method: str, target: str, headers: Pairs, client: str = "127.0.0.1") -> Given:
        if sum(name.lower() == b"host" for name, _ in headers) != 1:
            return Given(
                400, (), b""
            )  # as every proxy does by itself: see the tests with real servers
        answer = self.speak(self.asking, method, target.encode(), headers, client)
        if 200 <= answer.status < 300 and header(answer, b"Greenroom-Verdict") == b"forward":
            status, kept, body = self.origin(method, target.partition("?")[0])
            cookies = header(answer, b"Cookie")
            self.served.append(
                (
                    *[pair for pair in headers if pair[0].lower() != b"cookie"],
                    *([(b"Cookie", cookies)] if cookies else []),
                )
            )
            return Given(
                status,
                tuple(
                    pair
                    for pair in (*kept, *answer.headers.pairs)
                    if pair[0] == b"Greenroom-Session"
                    or (pair in kept and pair[0] != b"Cf-Waiting-Room-Command")
                ),
                body,
                answer.set_cookie,
            )
        status = int(header(answer, b"Greenroom-Status") or answer.status)
        shown = tuple(pair for pair in answer.headers.pairs if pair[0] != b"Greenroom-Status")
        return Given(status, shown, answer.body if method != "HEAD" else b"", answer.set_cookie)
