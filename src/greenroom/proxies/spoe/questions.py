"""HAProxy's questions over SPOE: the visitor's request as arguments of one message, the verdict as
variables of the transaction. Variables cannot hold pages, so a held visitor is sent to PAGE_PATH,
and the variable `page` names the verdict. A request without an argument has no outcome. The target
comes first, because the rest is cached.
"""

from collections.abc import Callable
from ipaddress import IPv6Address

import msgspec

from greenroom.decision.cookies import without_cookies
from greenroom.decision.render import OUTAGE
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.model.answer import Answer
from greenroom.model.visit import Arrival
from greenroom.proxies.dialect import Asked, forwarded_as_sent
from greenroom.proxies.service import ProxyQuestions, cookies_of, refusal_answer
from greenroom.proxies.spoe.frames import (
    INVALID,
    BadFrame,
    SpoeValue,
    headers_at,
    message,
    number_bytes,
    set_variable,
    setting,
    string,
    string_bytes,
)
from greenroom.request.arrival import (
    ArrivalLimits,
    CheckedLines,
    Sender,
    arrival_at,
    checked_lines,
)
from greenroom.request.bounded_cache import BoundedCache
from greenroom.request.canonical import Refusal, Target
from greenroom.request.header_cache import CutValues, HeaderCache
from greenroom.request.path_readings import PathPolicy, read_target

MESSAGE = b"decide"

OUTCOME, TICKET, PASS, SESSION, COOKIES, PAGE, SERVER = (
    b"outcome",
    b"ticket",
    b"pass",
    b"session",
    b"cookies",
    b"page",
    b"server",
)
FORWARD, HELD, ANSWERED = (
    set_variable(OUTCOME, text) for text in (b"forward", b"held", b"answered")
)
_SET_TICKET, _SET_PASS, _SET_SESSION, _SET_COOKIES, _SET_PAGE, _SET_SERVER = (
    setting(name) for name in (TICKET, PASS, SESSION, COOKIES, PAGE, SERVER)
)

FORWARDED_FOR = b"x-forwarded-for"
_PROXYS_OWN = frozenset((FORWARDED_FOR, b"x-forwarded-proto", b"forwarded", b"host"))
"""HAProxy says the same in arguments; and Host, which comes last here."""

_COOKIE = b"\x06cookie"
"""As packed; as part of a value it is no Cookie."""

_TARGET_FIRST = string_bytes(MESSAGE) + b"\x05" + string_bytes(b"target") + b"\x08"

ASKERS_BYTES, ASKER_MAX = 8_000_000, 4_096
"""Of each of two generations: 2,000 askers."""

ASKER_BYTES = 2_000

_UNKNOWN = Arrival("GET", "http", "", "/", "", (), "")
Answered = Callable[[bytes, bytes], None]


class _Asker(msgspec.Struct, frozen=True, gc=False):
    """Valid while what it was made with is in use."""

    arrival: Arrival  # one of its requests
    forward: bytes  # the actions that let it go on, but for the ticket
    paths: PathPolicy
    proxy: Sender
    limits: ArrivalLimits
    own_cookies: frozenset[bytes]
    cost: int

    def is_of(self, proxy: Sender, limits: ArrivalLimits, own_cookies: frozenset[bytes]) -> bool:
        """All three are replaced as a whole by a reload."""
        return self.proxy is proxy and self.limits is limits and self.own_cookies is own_cookies


def _arguments(asked: bytes) -> dict[bytes, SpoeValue]:
    name, told = message(asked)
    if name != MESSAGE:
        raise BadFrame(INVALID, "the message is not called decide")
    return told


class SpoeQuestions:
    def __init__(self, asking: ProxyQuestions, on_error: Callable[[BaseException], None]) -> None:
        self.asking = asking
        self.on_error = on_error
        self._known = HeaderCache()
        self._askers: BoundedCache[bytes, _Asker] = BoundedCache(ASKERS_BYTES)

    def decide(
        self, asked: bytes, numbers: bytes, proxy: Sender, server: bytes, later: Answered
    ) -> bytes | None:
        """None: `later` is called exactly once. Raises BadFrame for a message that cannot be read,
        and nothing else. An error is never `forward`.
        """
        try:
            request, forward = self._read(asked, proxy)
            if isinstance(request, Refusal):
                return self._not_forwarded(refusal_answer(request), _UNKNOWN, server)
            verdict = self.asking.decisions.verdict(
                request,
                lambda verdict: later(numbers, self._actions(verdict, request, forward, server)),
            )
        except BadFrame:
            raise
        except Exception as error:
            self.on_error(error)
            return self._not_forwarded(OUTAGE, _UNKNOWN, server)
        return None if verdict is None else self._actions(verdict, request, forward, server)

    def _actions(self, verdict: Verdict, asked: Arrival, forward: bytes, server: bytes) -> bytes:
        try:
            if not isinstance(verdict, Forward):
                return self._not_forwarded(verdict, asked, server)
            ticket = verdict.set_cookie
            actions = forward or self._forward(asked)
            if ticket:
                actions = b"%b%b%b%b" % (actions, _SET_TICKET, number_bytes(len(ticket)), ticket)
            return actions + _also(verdict) if verdict.lines else actions
        except Exception as error:
            self.on_error(error)
            return self._not_forwarded(OUTAGE, _UNKNOWN, server)

    def _read(self, asked: bytes, proxy: Sender) -> tuple[Arrival | Refusal, bytes]:
        if not asked.startswith(_TARGET_FIRST):
            return self._visitor_request(_arguments(asked), proxy), b""
        target, ends = string(asked, len(_TARGET_FIRST))
        rest, asking = asked[ends:], self.asking
        known = self._askers.young.get(rest) or self._askers.again(rest)
        if (
            known is not None
            and known.is_of(proxy, asking.limits, asking.decisions.own_cookies)
            and len(target) <= known.limits.url_bytes
        ):
            found = read_target(target, known.paths)
            if isinstance(found, Target):
                request = arrival_at(known.arrival, target, found)
                return (
                    request
                    if found.raw == target and not found.readings
                    else forwarded_as_sent(request)
                ), known.forward
        whole = self._visitor_request(_arguments(asked), proxy)
        if isinstance(whole, Arrival) and len(rest) <= ASKER_MAX and self._askers.came_before(rest):
            paths, own = proxy.policy.paths.of(whole.host), asking.decisions.own_cookies
            cost = ASKER_BYTES + len(rest)
            self._askers.keep(
                rest, _Asker(whole, self._forward(whole), paths, proxy, asking.limits, own, cost)
            )
        return whole, b""

    def _visitor_request(self, told: dict[bytes, SpoeValue], proxy: Sender) -> Arrival | Refusal:
        method, target, packed, address = (
            told.get(b"method"),
            told.get(b"target"),
            told.get(b"headers"),
            told.get(b"address"),
        )
        tls = told.get(b"tls")
        if (
            not isinstance(method, bytes)
            or not isinstance(packed, bytes)
            or not isinstance(address, str)
            or not isinstance(tls, bool)
        ):
            return Refusal(400, "an argument of the message is missing")
        if not isinstance(target, bytes) or not target:
            return Refusal(400, "the request target is not a path")
        lines = self._lines(
            packed, (str(IPv6Address(address)) if ":" in address else address).encode(), tls
        )
        if isinstance(lines, Refusal):
            return lines
        return self.asking.visitor_request(
            Asked(method, target, lines.headers[-1][1]), lines, proxy
        )

    def _lines(self, packed: bytes, address: bytes, tls: bool) -> CheckedLines | Refusal:
        """The last three say who the visitor is, how HAProxy is spoken to, and with which Host."""
        begins = packed.rfind(_COOKIE) + len(_COOKIE)
        values: CutValues = ((FORWARDED_FOR, address),)
        try:
            if begins < len(_COOKIE):
                kind = (packed, 0, tls)
            else:
                cookie, ends = string(packed, begins)
                kind, values = (
                    (packed[:begins] + packed[ends:], begins, tls),
                    (*values, (b"cookie", cookie)),
                )
            return self._known.filled(kind, values, self.asking.limits) or self._read_lines(
                packed, kind, values
            )
        except BadFrame as wrong:
            return Refusal(400, str(wrong))

    def _read_lines(
        self, packed: bytes, kind: tuple[bytes, int, bool], values: CutValues
    ) -> CheckedLines | Refusal:
        """`kind`: bytes without the cookie, where it was cut out (0: nowhere), and whether over
        TLS.
        """
        found = headers_at(packed)
        hosts = [text for name, text, _ in found if name == b"host"]
        if len(hosts) != 1:
            return Refusal(400, "Host is missing or is sent more than once")
        sent = [(name, text) for name, text, _ in found if name not in _PROXYS_OWN]
        sent += [
            values[0],
            (b"x-forwarded-proto", b"https" if kind[2] else b"http"),
            (b"host", hosts[0]),
        ]
        lines = checked_lines(sent, self.asking.limits)
        cookies = [at for name, _, at in found if name == b"cookie"]
        if isinstance(lines, CheckedLines) and cookies == [kind[1]] * (
            len(values) - 1
        ):  # else it was no cookie, or one of several
            self._known.learn(kind, values, lines, sent)
        return lines

    def _forward(self, asked: Arrival) -> bytes:
        sent = cookies_of(asked)
        kept = without_cookies(sent, self.asking.decisions.own_cookies) if sent else b""
        return FORWARD + _SET_COOKIES + string_bytes(kept) if kept else FORWARD

    def _not_forwarded(self, verdict: Hold | Answer, asked: Arrival, server: bytes) -> bytes:
        name = self.asking.store.keep(verdict, asked)
        outcome = HELD if isinstance(verdict, Hold) else ANSWERED
        return b"".join((outcome, _SET_PAGE, string_bytes(name), _SET_SERVER, string_bytes(server)))


def _also(verdict: Forward) -> bytes:
    """The pass, and when the session ends."""
    passed = _SET_PASS + string_bytes(verdict.pass_cookie) if verdict.pass_cookie else b""
    return passed + _SET_SESSION + string_bytes(verdict.session) if verdict.session else passed
