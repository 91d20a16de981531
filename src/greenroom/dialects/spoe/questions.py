"""What HAProxy asks over SPOE: the visitor's request as arguments of one message, the verdict as variables of the transaction.

Variables have no room for pages and their headers, so a held visitor is sent on to PAGE_PATH, where the verdict is rendered; the variable
`page` names it. A request with an argument that is missing is not decided about, and has no outcome.
"""

from collections.abc import Callable
from ipaddress import IPv6Address

from greenroom.core.canonical import Refusal
from greenroom.decision.arrival import Sender
from greenroom.decision.cookies import without_cookies
from greenroom.decision.render import OUTAGE
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.dialects.dialect import Asked
from greenroom.dialects.service import ProxyQuestions, refusal_answer
from greenroom.dialects.spoe.frames import BadFrame, SpoeValue, headers, set_variable
from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival

MESSAGE = b"decide"

OUTCOME, TICKET, PASS, COOKIES, PAGE, SERVER = b"outcome", b"ticket", b"pass", b"cookies", b"page", b"server"
FORWARD, HELD, ANSWERED = (set_variable(OUTCOME, text) for text in (b"forward", b"held", b"answered"))

_PROXYS_OWN = frozenset((b"x-forwarded-for", b"x-forwarded-proto", b"forwarded"))
"""Headers of the visitor that count for nothing: HAProxy says the same in arguments."""

_UNKNOWN = Arrival("GET", "http", "", "/", "", (), "")
Answered = Callable[[bytes], None]


class SpoeQuestions:
    """Decides about the requests of HAProxy. `asking` has the policy, the limits and the verdicts that wait for their page."""

    def __init__(self, asking: ProxyQuestions, on_error: Callable[[BaseException], None]) -> None:
        self.asking = asking
        self.on_error = on_error

    def decide(self, told: dict[bytes, SpoeValue], proxy: Sender, server: bytes, answered: Answered) -> None:
        """Calls `answered` exactly once with actions that set variables, now or later. Never raises; an error is never `forward`.

        `server` is where the page is to be fetched, as HAProxy names it.
        """
        try:
            found = self._visitor_request(told, proxy)
            asked = refusal_answer(found) if isinstance(found, Refusal) else found
        except Exception as error:
            self.on_error(error)
            asked = OUTAGE
        if isinstance(asked, Answer):
            answered(self._not_forwarded(asked, _UNKNOWN, server))
        else:
            self._ask(asked, server, answered)

    def _ask(self, asked: Arrival, server: bytes, answered: Answered) -> None:
        given = False

        def decided(verdict: Verdict) -> None:
            nonlocal given
            given = True
            try:
                actions = self._forward(verdict, asked) if isinstance(verdict, Forward) else self._not_forwarded(verdict, asked, server)
            except Exception as error:
                self.on_error(error)
                actions = self._not_forwarded(OUTAGE, _UNKNOWN, server)
            answered(actions)

        try:
            self.asking.decisions.receive(asked, decided)
        except Exception as error:
            self.on_error(error)
            if not given:
                answered(self._not_forwarded(OUTAGE, _UNKNOWN, server))

    def _visitor_request(self, told: dict[bytes, SpoeValue], proxy: Sender) -> Arrival | Refusal:
        method, target, packed, address, tls = (told.get(name) for name in (b"method", b"target", b"headers", b"address", b"tls"))
        if not isinstance(method, bytes) or not isinstance(packed, bytes) or not isinstance(address, str) or not isinstance(tls, bool):
            return Refusal(400, "an argument of the message is missing")
        if not isinstance(target, bytes) or not target:
            return Refusal(400, "the request target is not a path")
        try:
            sent = headers(packed)
        except BadFrame as wrong:
            return Refusal(400, str(wrong))
        hosts = [text for name, text in sent if name == b"host"]
        if len(hosts) != 1:
            return Refusal(400, "Host is missing or is sent more than once")
        kept = [pair for pair in sent if pair[0] not in _PROXYS_OWN and pair[0] != b"host"]
        kept.append((b"x-forwarded-for", (str(IPv6Address(address)) if ":" in address else address).encode()))
        kept.append((b"x-forwarded-proto", b"https" if tls else b"http"))
        return self.asking.visitor_request(Asked(method, target, hosts[0]), kept, proxy)

    def _forward(self, verdict: Forward, asked: Arrival) -> bytes:
        actions = FORWARD
        sent = b"; ".join([text for name, text in asked.headers if name == b"cookie"])
        kept = without_cookies(sent, self.asking.decisions.own_cookies) if sent else b""
        for name, text in ((COOKIES, kept), (TICKET, verdict.set_cookie), (PASS, verdict.pass_cookie)):
            if text:
                actions += set_variable(name, text)
        return actions

    def _not_forwarded(self, verdict: Hold | Answer, asked: Arrival, server: bytes) -> bytes:
        name = self.asking.store.keep(verdict, asked)
        outcome = HELD if isinstance(verdict, Hold) else ANSWERED
        return outcome + set_variable(PAGE, name) + set_variable(SERVER, server)
