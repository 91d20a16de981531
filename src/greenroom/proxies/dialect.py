"""How a proxy asks about a request and receives the verdict. Only configured proxies may ask,
because any client could send these headers.
"""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec

from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.record import replace
from greenroom.model.visit import Arrival
from greenroom.request.arrival import ArrivalLimits, Sender
from greenroom.request.canonical import Refusal, Target
from greenroom.request.path_readings import PathPolicy, read_target

VERDICT = b"greenroom-verdict"
STATUS = b"Greenroom-Status"
PASS = b"Greenroom-Pass"
SESSION = b"Greenroom-Session"


class Asked(NamedTuple):
    method: bytes
    target: bytes
    host: bytes


ReadQuestion = Callable[[Arrival], Asked | Refusal]


class Dialect(NamedTuple):
    """`whole_path`: the visitor's target follows `path`. `own`: headers of the question that are
    not as the visitor sent them. `target_header` empty: none holds the target.
    """

    name: str
    path: str
    read: ReadQuestion
    own: frozenset[bytes]
    status_for: tuple[tuple[range, int], ...] = ((range(200, 300), 503),)  # see `held_answer`
    removes: bytes = b""  # header that names request headers for the proxy to remove
    two_steps: bool = False  # the proxy fetches the page in a second request
    whole_path: bool = False
    target_header: bytes = b""


def from_headers(method: bytes, target: bytes, host: bytes) -> ReadQuestion:
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
    """Refuses a path that can be read in two ways: other proxies forward what the visitor sent, not
    the canonical path.
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
    set_cookie: bytes,
    cookies: bytes,
    removes: bytes,
    pass_cookie: bytes = b"",
    session: bytes = b"",
) -> Answer:
    """`cookies`: for the application. `pass_cookie`: a Set-Cookie value in the header
    Greenroom-Pass. `session`: the value of Greenroom-Session for the visitor's answer.
    """
    seen = ((b"Cookie", cookies),) if cookies else ((removes, b"cookie"),) if removes else ()
    if session:
        seen = ((SESSION, session), *seen)
    if pass_cookie:
        return Answer(200, _FORWARD.with_own((PASS, pass_cookie), *seen), b"", set_cookie)
    return Answer(200, _FORWARD.with_own(*seen) if seen else _FORWARD, b"", set_cookie)


def held_answer(answer: Answer, status_for: tuple[tuple[range, int], ...]) -> Answer:
    """Replaces statuses that this proxy would take for something else; the original is in
    `Greenroom-Status`.
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


# Every way of asking that greenroom understands over HTTP.

_FORWARDED = (b"x-forwarded-method", b"x-forwarded-uri", b"x-forwarded-host")
_ORIGINAL = (b"x-original-method", b"x-original-uri", b"x-original-host")

# a GET with the visitor's method, scheme, host and URI in X-Forwarded-*
FORWARD_AUTH = Dialect(  # Traefik, Caddy
    "forward-auth",
    "/forward-auth",
    from_headers(*_FORWARDED),
    frozenset({*_FORWARDED, b"host"}),
    target_header=_FORWARDED[1],
)

# The answer is yes or no; a second request, which names the verdict, fetches the page. nginx
# passes on neither body nor most headers of a refused question (`VerdictStore`).
AUTH_REQUEST = Dialect(  # nginx
    "auth_request",
    "/nginx/decide",
    from_headers(*_ORIGINAL),
    frozenset({*_ORIGINAL, b"host"}),
    two_steps=True,
    target_header=_ORIGINAL[1],
)

NGINX_PAGE_PATH = "/nginx/page"

_EXT_AUTHZ_PATH = "/ext-authz"


def _behind_prefix(question: Arrival) -> Asked | Refusal:
    host = question.header(b"host") or b""
    return Asked(question.method.encode(), question.target[len(_EXT_AUTHZ_PATH) :], host)


EXT_AUTHZ = Dialect(  # Envoy, Istio
    "ext_authz",
    _EXT_AUTHZ_PATH,
    _behind_prefix,
    frozenset({b"x-envoy-internal", b"x-envoy-expected-rq-timeout-ms", b"host"}),
    status_for=(
        (range(200, 300), 429),
        (range(500, 600), 429),
    ),  # Envoy takes 5xx for a broken service and drops the page
    removes=b"x-envoy-auth-headers-to-remove",
    whole_path=True,
)

DIALECTS: tuple[Dialect, ...] = (FORWARD_AUTH, AUTH_REQUEST, EXT_AUTHZ)

SPOE_PAGE_PATH = "/spoe/page"


_BY_TARGET = {dialect.path.encode(): dialect for dialect in DIALECTS}


def dialect_of(target: bytes) -> Dialect | None:
    known = _BY_TARGET.get(target)
    if known is not None:
        return known
    path = target.partition(b"?")[0].decode("latin-1")
    for dialect in DIALECTS:
        if path == dialect.path or (dialect.whole_path and path.startswith(dialect.path + "/")):
            return dialect
    return None


# Whose request it is: everything of a question but the target. A browser fetches a page and its
# parts with the same headers, so what such a question means is cached.


class Asker(msgspec.Struct, frozen=True, gc=False):
    """Valid while what it was made with is in use."""

    arrival: Arrival  # one of its requests
    dialect: Dialect
    forward: AnswerHeaders  # of the answer that lets it go on
    paths: PathPolicy
    sender: Sender
    limits: ArrivalLimits
    own_cookies: frozenset[bytes]

    def request(self, raw: bytes) -> Arrival | None:
        """None where the question must be read as a whole."""
        if len(raw) > self.limits.url_bytes:
            return None
        target = read_target(raw, self.paths)
        if not isinstance(target, Target) or target.raw != raw or target.readings:
            return None
        like = self.arrival
        return Arrival(
            like.method, like.scheme, like.host, target.path, target.query, like.headers, like.client, raw, like.version, like.server,
            0, (), like.facts, b"", like.signs, self,
        )  # fmt: skip
