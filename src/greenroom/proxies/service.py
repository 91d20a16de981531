"""Answers questions of proxies, as a receiver of the built-in gateway. This listener forwards
nothing. After an error, no answer means yes to a proxy.
"""

from collections import OrderedDict
from collections.abc import Callable

from greenroom.decision.cookies import without_cookies
from greenroom.decision.kept_turn import FailedDocument
from greenroom.decision.open_session import OpenSession
from greenroom.decision.render import OUTAGE, render
from greenroom.decision.service import DecisionService
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.visit import Arrival
from greenroom.proxies.dialect import (
    NGINX_PAGE_PATH,
    SPOE_PAGE_PATH,
    VERDICT,
    Asked,
    Asker,
    Dialect,
    dialect_of,
    forward_answer,
    forwarded_as_sent,
    held_answer,
)
from greenroom.request.admissible import UPDATE_HEADER
from greenroom.request.arrival import ArrivalLimits, CheckedLines, Sender, arrival_of
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import SOCKET_PEER, ForwardedPolicy

# Verdicts that wait between two requests of a proxy: the question, and the fetching of the page.

KEPT_S = 10.0

KEPT_MAX = 4_096

ID_BYTES = 16

_RENDERED = frozenset(
    b"accept accept-language accept-encoding access-control-request-method origin purpose referer"
    b" sec-fetch-dest sec-fetch-mode sec-purpose sec-websocket-key upgrade user-agent x-moz"
    b" x-purpose x-requested-with".split()
) | {UPDATE_HEADER}

VALUE_MAX = 1_024
"""No honest Accept header is longer."""


class VerdictStore:
    """Verdicts by unguessable id; each is given out once."""

    def __init__(self, entropy: Callable[[int], bytes], now_s: Callable[[], float]) -> None:
        self._entropy = entropy
        self._now_s = now_s
        self._kept: dict[bytes, tuple[float, Verdict, Arrival]] = {}  # in the order of their coming

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, verdict: Verdict, arrival: Arrival) -> bytes:
        now_s = self._now_s()
        while self._kept:
            oldest = next(iter(self._kept))
            if len(self._kept) < KEPT_MAX and self._kept[oldest][0] > now_s:
                break
            del self._kept[oldest]
        name = self._entropy(ID_BYTES).hex().encode()
        self._kept[name] = (now_s + KEPT_S, verdict, _small(arrival))
        return name

    def page(self, name: bytes) -> Answer:
        """A page that tries again by itself when the verdict is not kept."""
        until_s, verdict, arrival = self._kept.pop(name, (0.0, OUTAGE, None))
        if arrival is None or until_s <= self._now_s() or isinstance(verdict, Forward):
            return OUTAGE
        return render(verdict, arrival) if isinstance(verdict, Hold) else verdict


def _small(arrival: Arrival) -> Arrival:
    headers = tuple(
        [(name, value[:VALUE_MAX]) for name, value in arrival.headers if name in _RENDERED]
    )
    path = arrival.path if len(arrival.path) <= VALUE_MAX else "/"
    facts = None if arrival.facts is None else dict(headers)
    return Arrival(
        arrival.method,
        arrival.scheme,
        arrival.host,
        path,
        "",
        headers,
        "",
        facts=facts,
        signs=arrival.signs,
    )


SENDERS_CACHED = 256

_PLAIN = AnswerHeaders(
    (b"Content-Type", b"text/plain; charset=utf-8"),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Cache-Control", b"private, no-store"),
    (b"X-Robots-Tag", b"noindex"),
)
_NO_BODY = AnswerHeaders((b"Cache-Control", b"no-store"))
_PAGE_TARGETS = frozenset((NGINX_PAGE_PATH.encode(), SPOE_PAGE_PATH.encode()))
_NO_PROXY = Refusal(403, "only the addresses in trusted_proxies may ask here")
_NO_DIALECT = Refusal(404, "there is no way of asking at this path")


def cookies_of(asked: Arrival) -> bytes:
    facts = asked.facts
    return facts.get(b"cookie", b"") if facts is not None else b"; ".join(asked.values(b"cookie"))


def refusal_answer(refusal: Refusal) -> Answer:
    return Answer(refusal.status, _PLAIN, f"{refusal.status}: {refusal.reason}\n".encode())


class ProxyQuestions:
    """`policy` and `limits` may be replaced at any time."""

    own_cookies: frozenset[bytes] = frozenset()

    def __init__(
        self,
        decisions: DecisionService,
        policy: ForwardedPolicy,
        store: VerdictStore,
        on_error: Callable[[BaseException], None],
        limits: ArrivalLimits | None = None,
    ) -> None:
        self.decisions = decisions
        self.limits = limits or ArrivalLimits()
        self.store = store
        self._on_error = on_error
        self._senders: OrderedDict[str, Sender] = OrderedDict()
        self.policy = policy

    def reconfigure(self, policy: ForwardedPolicy, limits: ArrivalLimits) -> None:
        self.policy, self.limits = policy, limits
        self._senders.clear()

    def obey(self, _forward: Forward, _command: bytes) -> bytes:
        # No origin answers here.
        return b""

    def receive_offers(self, _forward: Forward, _said: bytes) -> None: ...

    def goes_first(self, forward: Forward | None, arrival: Arrival) -> bool:
        return self.decisions.goes_first(forward, arrival)

    def failed_document(self, forward: Forward) -> FailedDocument:
        return self.decisions.failed_document(forward)

    def open_session(self, forward: Forward, place: int) -> OpenSession:
        # Nothing is forwarded from here, so no request is ever under way.
        return self.decisions.open_session(forward, place)

    def verdict(
        self,
        question: Arrival,
        later: Callable[[Verdict], None],
        late: object = None,  # noqa: ARG002 - proxies do not wait
    ) -> Verdict | None:
        """None: `later` is called; `question.client` is the other end of the connection. Never
        raises.
        """
        try:
            if isinstance(asker := question.asker, Asker):
                return self._decide(asker.dialect, question, later, asker.forward)
            sender = self.sender(question.client)
            if sender is None:
                return refusal_answer(_NO_PROXY)
            if question.target in _PAGE_TARGETS:
                return self.store.page(question.header(VERDICT) or b"")
            return self._ask(question, sender, later)
        except Exception as error:
            self._on_error(error)
            return OUTAGE

    def sender(self, address: str) -> Sender | None:
        sender = self._senders.get(address)
        if sender is None:
            sender = Sender(
                address, False, self.policy, by_socket=address == SOCKET_PEER
            )  # the address is the kernel's word
            if not sender.trusted:
                return None
            if len(self._senders) >= SENDERS_CACHED:
                self._senders.popitem(last=False)
            self._senders[address] = sender
        return sender

    def _ask(
        self, question: Arrival, sender: Sender, later: Callable[[Verdict], None]
    ) -> Answer | None:
        dialect = dialect_of(question.target)
        if dialect is None:
            return refusal_answer(_NO_DIALECT)
        asked = self._visitor_request(dialect, question, sender)
        if isinstance(asked, Refusal):
            return self._not_forwarded(dialect, refusal_answer(asked), question)
        return self._decide(dialect, asked, later)

    def _decide(
        self,
        dialect: Dialect,
        asked: Arrival,
        later: Callable[[Verdict], None],
        forward: AnswerHeaders | None = None,
    ) -> Answer | None:
        def worded(verdict: Verdict) -> Answer:
            try:
                if forward is not None and type(verdict) is Forward and not verdict.lines:
                    return Answer(200, forward, b"", verdict.set_cookie)
                return self._worded(dialect, verdict, asked)
            except Exception as error:
                self._on_error(error)
                return OUTAGE

        verdict = self.decisions.verdict(asked, lambda verdict: later(worded(verdict)))
        return None if verdict is None else worded(verdict)

    def asker(self, question: Arrival, header: bytes) -> Asker | None:
        """None where more than this header differs."""
        dialect, sender = dialect_of(question.target), self.sender(question.client)
        if (
            dialect is None
            or sender is None
            or dialect.target_header != header
            or question.facts is None
        ):
            return None
        asked = self._visitor_request(dialect, question, sender)
        if isinstance(asked, Refusal):
            return None
        sent, own = cookies_of(asked), self.decisions.own_cookies
        forward = forward_answer(
            b"", without_cookies(sent, own) if sent else b"", dialect.removes if sent else b""
        ).headers
        return Asker(
            asked, dialect, forward, sender.policy.paths.of(asked.host), sender, self.limits, own
        )

    def again(self, asker: Asker, target: bytes, address: str) -> Arrival | None:
        """None where the question must be read as a whole."""
        if self._senders.get(address) is not asker.sender or self.limits is not asker.limits:
            return None  # a reload has replaced what it was made with
        return asker.request(target) if self.decisions.own_cookies is asker.own_cookies else None

    def _visitor_request(
        self, dialect: Dialect, question: Arrival, sender: Sender
    ) -> Arrival | Refusal:
        asked = dialect.read(question)
        if isinstance(asked, Refusal):
            return asked
        own = dialect.own
        headers = (
            *[pair for pair in question.headers if pair[0] not in own],
            (b"host", asked.host),
        )
        facts = question.facts
        if facts is not None:
            facts = facts.copy()
            for name in own:
                facts.pop(name, None)
            facts[b"host"] = asked.host
        return self.visitor_request(asked, CheckedLines(headers, facts, question.signs), sender)

    def visitor_request(
        self, asked: Asked, lines: CheckedLines, sender: Sender
    ) -> Arrival | Refusal:
        if sender.named(asked.host).policy is None:
            return Refusal(403, "this proxy is not trusted for this host")
        arrival = arrival_of(
            asked.method.decode("latin-1"), asked.target, lines, sender, self.limits
        )
        return arrival if isinstance(arrival, Refusal) else forwarded_as_sent(arrival)

    def _worded(self, dialect: Dialect, verdict: Verdict, asked: Arrival) -> Answer:
        if not isinstance(verdict, Forward):
            return self._not_forwarded(dialect, verdict, asked)
        sent = cookies_of(asked)
        kept = without_cookies(sent, self.decisions.own_cookies) if sent else b""
        return forward_answer(
            verdict.set_cookie,
            kept,
            dialect.removes if sent else b"",
            verdict.pass_cookie,
            verdict.session,
        )

    def _not_forwarded(self, dialect: Dialect, verdict: Hold | Answer, asked: Arrival) -> Answer:
        if dialect.two_steps:
            name = self.store.keep(verdict, asked)
            cookie = verdict.set_cookie
            return Answer(401, _NO_BODY.with_own((b"Greenroom-Verdict", name)), b"", cookie)
        return held_answer(
            render(verdict, asked) if isinstance(verdict, Hold) else verdict, dialect.status_for
        )
