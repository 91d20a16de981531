"""What a dialect is: how a proxy says which request it asks about, and how it is told the verdict.

A proxy asks with a request of its own (the question), which carries the visitor's headers. The
dialect reads from it what the visitor sent (`Asked`) and words the verdict as an answer that the
proxy understands. Only the configured proxies may ask, because any other client could choose these
headers.
"""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.visit import Arrival
from greenroom.request.canonical import Refusal, Target

VERDICT = b"greenroom-verdict"
STATUS = b"Greenroom-Status"
PASS = b"Greenroom-Pass"


class Asked(NamedTuple):
    """What the visitor sent, according to the proxy."""

    method: bytes
    target: bytes
    host: bytes


ReadQuestion = Callable[[Arrival], Asked | Refusal]
"""What a question asks about, or why it cannot be understood."""


class Dialect(NamedTuple):
    """One way of asking, at `path`; with `whole_path` the visitor's target follows it.

    `own` are headers of the question (lower case) that are not as the visitor sent them, Host among
    them. `target_header` holds the visitor's target; empty: none does.
    """

    name: str
    path: str
    proxies: str
    read: ReadQuestion
    own: frozenset[bytes]
    status_for: tuple[tuple[range, int], ...] = ((range(200, 300), 503),)  # see `held_answer`
    removes: bytes = b""  # header that names request headers for the proxy to remove
    two_steps: bool = False  # the proxy fetches the page in a second request
    whole_path: bool = False
    target_header: bytes = b""


def from_headers(method: bytes, target: bytes, host: bytes) -> ReadQuestion:
    """Names are lower case."""

    def read(question: Arrival) -> Asked | Refusal:
        facts = question.facts
        if facts is not None:  # as nearly always: no header comes twice
            asked = Asked(facts.get(method, b""), facts.get(target, b""), facts.get(host, b""))
            if asked.method and asked.target and asked.host:
                return asked
        for name in (method, target, host):
            values = question.values(name)
            if len(values) != 1 or not values[0]:
                problem = "is sent more than once" if len(values) > 1 else "is missing"
                return Refusal(400, f"{name.decode().title()} {problem}: the proxy must set it")
        return Asked(*[question.values(name)[0] for name in (method, target, host)])

    return read


NOT_CANONICAL = Refusal(400, "the path is not in its canonical form")


def forwarded_as_sent(arrival: Arrival) -> Arrival | Refusal:
    """Returns the arrival as it is judged where it goes on unchanged, or a refusal where it could
    be read as another path.

    The gateway can forward the canonical path; another proxy forwards what the visitor sent.
    Escapes may be spelled freely, but some servers resolve dot segments, and doubled slashes and
    session ids must lead to the same room in any reading.
    """
    sent, matched = arrival.target.partition(b"?")[0], arrival.path.encode()
    if sent[:1] == b"/" and (
        sent == matched or unquote_to_bytes(sent) == unquote_to_bytes(matched)
    ):
        return (
            replace(arrival, otherwise=NOT_CANONICAL)
            if isinstance(arrival.otherwise, Target)
            else arrival
        )
    return NOT_CANONICAL


_FORWARD = AnswerHeaders((b"Greenroom-Verdict", b"forward"), (b"Cache-Control", b"no-store"))


def forward_answer(
    set_cookie: bytes, cookies: bytes, removes: bytes, pass_cookie: bytes = b""
) -> Answer:
    """Tells the proxy to forward. `cookies` are those for the application, `removes` see `Dialect`.

    `pass_cookie` is for a proxy that verifies passes: a Set-Cookie value in the header
    Greenroom-Pass.
    """
    seen = ((b"Cookie", cookies),) if cookies else ((removes, b"cookie"),) if removes else ()
    if pass_cookie:
        return Answer(200, _FORWARD.with_own((PASS, pass_cookie), *seen), b"", set_cookie)
    return Answer(200, _FORWARD.with_own(*seen) if seen else _FORWARD, b"", set_cookie)


def held_answer(answer: Answer, status_for: tuple[tuple[range, int], ...]) -> Answer:
    """Replaces statuses that this proxy would take for something else (a yes, a broken service), by
    `status_for`; the original is then in `Greenroom-Status`.
    """
    for statuses, status in status_for:
        if answer.status in statuses:
            return Answer(
                status,
                answer.headers.with_own((STATUS, b"%d" % answer.status)),
                answer.body,
                answer.set_cookie,
            )
    return answer
