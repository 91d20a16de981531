"""A front end without HTTP: requests are values, so are answers. All it takes to have the decision
service decide.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from greenroom.decision.render import render
from greenroom.decision.service import DecisionService
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.request.arrival import Sender, arrival_from
from greenroom.request.canonical import Refusal
from greenroom.request.forwarded import ForwardedPolicy

Pairs = tuple[tuple[bytes, bytes], ...]
Origin = Callable[[str, str], tuple[int, Pairs, bytes]]


@dataclass
class Given:
    """What a visitor is given. `cookie` is the Set-Cookie value of greenroom, or empty."""

    status: int
    headers: Pairs
    body: bytes
    cookie: bytes = b""


@dataclass
class PlainFrontEnd:
    """Asks the service about each request; `origin` answers method and path of those that go on."""

    decisions: DecisionService
    origin: Origin
    policy: ForwardedPolicy = field(default_factory=ForwardedPolicy)

    def request(self, method: str, target: str, headers: Pairs, client: str = "127.0.0.1") -> Given:
        """One request, from its arrival to its answer."""
        arrival = arrival_from(method, target.encode(), headers, Sender(client, False, self.policy))
        if isinstance(arrival, Refusal):
            return Given(arrival.status, (), arrival.reason.encode())
        verdicts: list[Verdict] = []
        self.decisions.receive(arrival, verdicts.append)
        (verdict,) = verdicts
        if isinstance(verdict, Forward):
            status, kept, body = self.origin(method, arrival.path)
            command = next(
                (value for name, value in kept if name.lower() == b"cf-waiting-room-command"), b""
            )
            kept = tuple(pair for pair in kept if pair[0].lower() != b"cf-waiting-room-command")
            if verdict.session:
                kept += ((b"Greenroom-Session", verdict.session),)
            return Given(
                status, kept, body, self.decisions.obey(verdict, command) or verdict.set_cookie
            )
        answer = render(verdict, arrival) if isinstance(verdict, Hold) else verdict
        return Given(
            answer.status,
            answer.headers.pairs,
            answer.body if method != "HEAD" else b"",
            answer.set_cookie,
        )
