"""What HAProxy asks over SPOE: the visitor's request as arguments of one message, the verdict as variables of the transaction.

Variables have no room for pages and their headers, so a held visitor is sent on to PAGE_PATH, where the verdict is rendered; the variable
`page` names it. A request with an argument that is missing is not decided about, and has no outcome.
"""

from collections.abc import Callable
from ipaddress import IPv6Address

from greenroom.core.canonical import Refusal
from greenroom.decision.arrival import CheckedLines, Sender, checked_lines
from greenroom.decision.cookies import without_cookies
from greenroom.decision.known_lines import CutValues, KnownLines
from greenroom.decision.render import OUTAGE
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.dialects.dialect import Asked
from greenroom.dialects.service import ProxyQuestions, cookies_of, refusal_answer
from greenroom.dialects.spoe.frames import BadFrame, SpoeValue, headers_at, number_bytes, set_variable, setting, string, string_bytes
from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival

MESSAGE = b"decide"

OUTCOME, TICKET, PASS, COOKIES, PAGE, SERVER = b"outcome", b"ticket", b"pass", b"cookies", b"page", b"server"
FORWARD, HELD, ANSWERED = (set_variable(OUTCOME, text) for text in (b"forward", b"held", b"answered"))
_SET_TICKET, _SET_PASS, _SET_COOKIES, _SET_PAGE, _SET_SERVER = (setting(name) for name in (TICKET, PASS, COOKIES, PAGE, SERVER))

FORWARDED_FOR = b"x-forwarded-for"
_PROXYS_OWN = frozenset((FORWARDED_FOR, b"x-forwarded-proto", b"forwarded", b"host"))
"""Headers of the visitor that count for nothing, because HAProxy says the same in arguments; and Host, which comes last here."""

_COOKIE = b"\x06cookie"
"""How the name is packed; where it is part of a value, the value is no Cookie (`SpoeQuestions._read_lines`)."""

_UNKNOWN = Arrival("GET", "http", "", "/", "", (), "")
Answered = Callable[[bytes], None]


class SpoeQuestions:
    """Decides about the requests of HAProxy. `asking` has the policy, the limits and the verdicts that wait for their page."""

    def __init__(self, asking: ProxyQuestions, on_error: Callable[[BaseException], None]) -> None:
        self.asking = asking
        self.on_error = on_error
        self._known = KnownLines()

    def decide(self, told: dict[bytes, SpoeValue], proxy: Sender, server: bytes, later: Answered) -> bytes | None:
        """Actions that set variables; or None, and then `later` is called exactly once with them. Never raises.

        An error is never `forward`. `server` is where the page is to be fetched, as HAProxy names it.
        """
        try:
            asked = self._visitor_request(told, proxy)
            if isinstance(asked, Refusal):
                return self._not_forwarded(refusal_answer(asked), _UNKNOWN, server)
            verdict = self.asking.decisions.verdict(asked, lambda verdict: later(self._actions(verdict, asked, server)))
        except Exception as error:
            self.on_error(error)
            return self._not_forwarded(OUTAGE, _UNKNOWN, server)
        return None if verdict is None else self._actions(verdict, asked, server)

    def _actions(self, verdict: Verdict, asked: Arrival, server: bytes) -> bytes:
        try:
            return self._forward(verdict, asked) if isinstance(verdict, Forward) else self._not_forwarded(verdict, asked, server)
        except Exception as error:
            self.on_error(error)
            return self._not_forwarded(OUTAGE, _UNKNOWN, server)

    def _visitor_request(self, told: dict[bytes, SpoeValue], proxy: Sender) -> Arrival | Refusal:
        method, target, packed, address = told.get(b"method"), told.get(b"target"), told.get(b"headers"), told.get(b"address")
        tls = told.get(b"tls")
        if not isinstance(method, bytes) or not isinstance(packed, bytes) or not isinstance(address, str) or not isinstance(tls, bool):
            return Refusal(400, "an argument of the message is missing")
        if not isinstance(target, bytes) or not target:
            return Refusal(400, "the request target is not a path")
        lines = self._lines(packed, (str(IPv6Address(address)) if ":" in address else address).encode(), tls)
        if isinstance(lines, Refusal):
            return lines
        return self.asking.visitor_request(Asked(method, target, lines.headers[-1][1]), lines, proxy)

    def _lines(self, packed: bytes, address: bytes, tls: bool) -> CheckedLines | Refusal:
        """The visitor's header lines; the last three say who the visitor is, how HAProxy is spoken to, and with which Host."""
        begins = packed.rfind(_COOKIE) + len(_COOKIE)
        values: CutValues = ((FORWARDED_FOR, address),)
        try:
            if begins < len(_COOKIE):
                kind = (packed, 0, tls)
            else:
                cookie, ends = string(packed, begins)
                kind, values = (packed[:begins] + packed[ends:], begins, tls), (*values, (b"cookie", cookie))
            return self._known.filled(kind, values, self.asking.limits) or self._read_lines(packed, kind, values)
        except BadFrame as wrong:
            return Refusal(400, str(wrong))

    def _read_lines(self, packed: bytes, kind: tuple[bytes, int, bool], values: CutValues) -> CheckedLines | Refusal:
        """Lines of a kind that is not known: their bytes without the cookie, where it was cut out (0: nowhere), and whether over TLS."""
        found = headers_at(packed)
        hosts = [text for name, text, _ in found if name == b"host"]
        if len(hosts) != 1:
            return Refusal(400, "Host is missing or is sent more than once")
        sent = [(name, text) for name, text, _ in found if name not in _PROXYS_OWN]
        sent += [values[0], (b"x-forwarded-proto", b"https" if kind[2] else b"http"), (b"host", hosts[0])]
        lines = checked_lines(sent, self.asking.limits)
        cookies = [at for name, _, at in found if name == b"cookie"]
        if isinstance(lines, CheckedLines) and cookies == [kind[1]] * (len(values) - 1):  # else it was no cookie, or one of several
            self._known.learn(kind, values, lines, sent)
        return lines

    def _forward(self, verdict: Forward, asked: Arrival) -> bytes:
        sent = cookies_of(asked)
        kept = without_cookies(sent, self.asking.decisions.own_cookies) if sent else b""
        parts = [FORWARD]
        for begins, text in ((_SET_COOKIES, kept), (_SET_TICKET, verdict.set_cookie), (_SET_PASS, verdict.pass_cookie)):
            if text:
                parts += (begins, number_bytes(len(text)), text)
        return b"".join(parts)

    def _not_forwarded(self, verdict: Hold | Answer, asked: Arrival, server: bytes) -> bytes:
        name = self.asking.store.keep(verdict, asked)
        outcome = HELD if isinstance(verdict, Hold) else ANSWERED
        return b"".join((outcome, _SET_PAGE, string_bytes(name), _SET_SERVER, string_bytes(server)))
