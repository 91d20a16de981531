"""Builds an Arrival from a request of any front end, in the one form that is matched and forwarded.
What two programs could read in two ways is refused, never repaired.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple

from greenroom.model.arrival_kind import HeaderSigns
from greenroom.model.visit import Arrival
from greenroom.request.canonical import Refusal, Target
from greenroom.request.forwarded import ForwardedPolicy, Headers, parse_address, stripped_prefix
from greenroom.request.path_readings import PathPolicy, read_target

METHOD_MAX = 24
"""The longest registered method (UPDATEREDIRECTREF) has 17 characters."""

HOSTS_CACHED, HOST_MAX = 1_024, 260
"""At most 1 MB."""

TOO_LONG = Refusal(414, "the request line is too long")
TOO_LARGE = Refusal(431, "the head of the request is too large")
TOO_MANY = Refusal(431, "there are too many header lines")

_UNPRINTABLE = Refusal(400, "a header value contains a control character")
HOSTS_OF_SENDER = 64

NO_HOST = Refusal(400, "Host is missing or is not a host name with an optional port")

NAMES_CACHED, NAME_CACHED_MAX = 1_024, 64
"""Browsers send some thirty."""

WRONG, DROPPED = b"", b"_"
"""`header_name` of a name that is no token, and of a dropped one."""

# a token in lower case, without the underscore
_NAME = b"!#$%&'*+-.^`|~0123456789abcdefghijklmnopqrstuvwxyz"
IS_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")

_USUAL_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_METHOD = re.compile(rb"[!#$%%&'*+.^_`|~0-9A-Za-z-]{1,%d}" % METHOD_MAX)
_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_ONCE = frozenset((b"host", b"content-length", b"transfer-encoding", b"expect"))
_ABSOLUTE = re.compile(rb"([A-Za-z]+)://([^/?#]*)(.*)", re.DOTALL)
_HOST = re.compile(
    rb"(\[[0-9A-Fa-f:.]{2,45}\]|(?=.{1,254}(?::|\Z))(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?)(?::([0-9]{1,5}))?"
)
_USUAL_PORTS = {"http": 80, "https": 443}


class ArrivalLimits(NamedTuple):
    head_bytes: int = 32 * 1024
    header_lines: int = 100
    url_bytes: int = 8 * 1024


USUAL_LIMITS = ArrivalLimits()


class NamedHost(NamedTuple):
    """`policy` is None where the sender is not trusted about the visitor."""

    host: str
    policy: ForwardedPolicy | None
    paths: PathPolicy


class Sender:
    __slots__ = (
        "_named",
        "address",
        "by_socket",
        "client",
        "policy",
        "scheme",
        "server",
        "trusted",
    )

    def __init__(
        self,
        address: str,
        tls: bool,
        policy: ForwardedPolicy,
        server: tuple[str, int] = ("", 0),
        *,
        by_socket: bool = False,
    ) -> None:
        """`server` is the listener's address and port (`0`: unknown); `by_socket`: a Unix
        socket.
        """
        parsed = parse_address(address)
        self.address = self.client = str(parsed) if parsed else address
        self.policy = policy
        self.scheme = "https" if tls else "http"
        self.by_socket = by_socket
        self.trusted = policy.trust_socket if by_socket else policy.trusts(address)
        self.server = server
        self._named: dict[bytes, NamedHost] = {}

    def is_trusted_at(self, host: str) -> bool:
        return self.trusted and (self.by_socket or self.policy.of(host).covers(self.address))

    def named(self, authority: bytes) -> NamedHost:
        """The host is empty when it is no host name."""
        known = self._named.get(authority)
        if known is None:
            host = read_host(authority)
            policy = self.policy.of(host)
            known = NamedHost(
                host, policy if self.is_trusted_at(host) else None, self.policy.paths.of(host)
            )
            if (
                self.trusted and len(authority) <= HOST_MAX
            ):  # a proxy's connection brings many visitors
                if len(self._named) >= HOSTS_OF_SENDER:
                    self._named.clear()
                self._named[authority] = known
        return known


class CheckedLines(NamedTuple):
    """Valid lines in order: names in lower case, stripped values. `facts` maps names to values,
    None for a repeated name.
    """

    headers: Headers
    facts: dict[bytes, bytes] | None
    signs: HeaderSigns | None = None


class Visitor(NamedTuple):
    """`host` as it is matched; `prefix`: the path that a proxy took off."""

    client: str
    scheme: str
    host: str
    authority: bytes
    prefix: str = ""


def arrival_from(
    method: str,
    target: bytes,
    headers: Iterable[Sequence[bytes]],
    sender: Sender,
    limits: ArrivalLimits = USUAL_LIMITS,
    version: str = "HTTP/1.1",
    prefix: str | None = "",
) -> Arrival | Refusal:
    """Returns the arrival, or why it is refused (status 400 to 431); never raises. `headers`: names
    in any case, the host among them. `prefix`: the path taken off the front; None: what a trusted
    proxy says in X-Forwarded-Prefix.
    """
    lines = checked_lines(headers, limits)
    if isinstance(lines, Refusal):
        return _refused_line(method, target, limits) or lines
    return arrival_of(method, target, lines, sender, limits, version, prefix)


def checked_lines(
    headers: Iterable[Sequence[bytes]], limits: ArrivalLimits
) -> CheckedLines | Refusal:
    """Never raises, for any bytes."""
    given = [(name, value.strip(b" \t")) for name, value in headers]
    values = b"".join([value for _, value in given])
    wrong = too_large(
        len(given), sum([len(name) for name, _ in given]) + len(values) + 4 * len(given), limits
    )
    if wrong is not None:
        return wrong
    if _CONTROLS.search(values):
        return _UNPRINTABLE
    kept = tuple(
        [
            (_name_of(name) if len(name) <= NAME_CACHED_MAX else header_name(name), value)
            for name, value in given
        ]
    )
    facts = dict(kept)
    if WRONG in facts:
        return Refusal(400, "a header name is not a token")
    if DROPPED in facts:
        kept = tuple([item for item in kept if item[0] != DROPPED])
        del facts[DROPPED]
    twice = repeated(kept) if len(facts) != len(kept) else ""
    if twice:
        return Refusal(400, f"{twice} is sent more than once")
    return CheckedLines(kept, facts if len(facts) == len(kept) else None)


def too_large(lines: int, size: int, limits: ArrivalLimits) -> Refusal | None:
    """Each line counts four extra bytes."""
    if lines > limits.header_lines:
        return TOO_MANY
    return TOO_LARGE if size > limits.head_bytes else None


def checked_value(value: bytes) -> bytes | Refusal:
    return _UNPRINTABLE if _CONTROLS.search(value) else value.strip(b" \t")


def arrival_of(
    method: str,
    target: bytes,
    lines: CheckedLines,
    sender: Sender,
    limits: ArrivalLimits = USUAL_LIMITS,
    version: str = "HTTP/1.1",
    prefix: str | None = "",
) -> Arrival | Refusal:
    if method not in _USUAL_METHODS or len(target) > limits.url_bytes:
        wrong = _refused_line(method, target, limits)
        if wrong:
            return wrong
    headers, facts = lines.headers, lines.facts
    authority = (dict(headers) if facts is None else facts).get(b"host", b"")
    visitor = visitor_of(headers, authority, sender, facts)
    if isinstance(visitor, Refusal):
        return visitor
    client, scheme, host, said, said_before = visitor
    found = target_of(target, method, authority, scheme, sender.named(said).paths)
    if isinstance(found, Refusal):
        return found
    return Arrival(
        method,
        scheme,
        host,
        found.path,
        found.query,
        headers,
        client,
        target,
        version,
        sender.server,
        facts=facts,
        readings=found.readings,
        signs=lines.signs,
        otherwise=found.otherwise,
        prefix=said_before if prefix is None else prefix,
    )


def arrival_at(like: Arrival, raw: bytes, target: Target) -> Arrival:
    return Arrival(
        like.method,
        like.scheme,
        like.host,
        target.path,
        target.query,
        like.headers,
        like.client,
        raw,
        like.version,
        like.server,
        facts=like.facts,
        readings=target.readings,
        signs=like.signs,
        otherwise=target.otherwise,
        prefix=like.prefix,
    )


def _refused_line(method: str, target: bytes, limits: ArrivalLimits) -> Refusal | None:
    wrong = (
        None if method in _USUAL_METHODS else refused_method(method.encode("latin-1", "replace"))
    )
    return wrong or (TOO_LONG if len(target) > limits.url_bytes else None)


def refused_method(method: bytes) -> Refusal | None:
    if not _METHOD.fullmatch(method):
        return Refusal(400, f"the method is not a token of at most {METHOD_MAX} characters")
    return (
        Refusal(405, "CONNECT and TRACE are not supported")
        if method in (b"CONNECT", b"TRACE")
        else None
    )


def header_name(raw: bytes) -> bytes:
    """In lower case; WRONG for no token. A name with an underscore is DROPPED, as in nginx: CGI,
    WSGI and PHP cannot tell `X_Forwarded_For` from `X-Forwarded-For`.
    """
    name = raw.lower()
    odd = name.translate(None, _NAME)
    if not name or odd.strip(b"_"):
        return WRONG
    return DROPPED if odd else name


_name_of = lru_cache(maxsize=NAMES_CACHED)(header_name)


def repeated(headers: Headers) -> str:
    names = [name for name, _ in headers]
    return next((name.decode() for name in _ONCE if names.count(name) > 1), "")


def visitor_of(
    headers: Headers, authority: bytes, sender: Sender, facts: Mapping[bytes, bytes] | None
) -> Visitor | Refusal:
    """`facts`: the headers by name, where no name comes twice."""
    host, policy, _ = sender.named(authority)
    if not host:
        return NO_HOST
    if policy is None:
        return Visitor(sender.client, sender.scheme, host, authority)
    said = policy.visitor(sender.client, sender.scheme, headers, facts)
    told = sender.named(said.host) if said.host else None
    prefix = stripped_prefix(headers, facts)
    if told is None or not told.host or told.policy is None:
        return Visitor(said.client, said.scheme, host, authority, prefix)
    return Visitor(said.client, said.scheme, told.host, said.host, prefix)


def read_host(authority: bytes) -> str:
    """`Shop.Example.com.:8080` as `shop.example.com`; empty for no host."""
    return _host(authority) if len(authority) <= HOST_MAX else ""


def origin_of(scheme: str, authority: bytes) -> str:
    """As browsers write it: `https` and `Ops.Example.com.:443` are `https://ops.example.com`; empty
    for none.
    """
    host, usual = read_host(authority), _USUAL_PORTS.get(scheme)
    found = _HOST.fullmatch(authority) if host else None
    if found is None or usual is None:
        return ""
    port = int(found[2]) if found[2] else usual
    return f"{scheme}://{host}" if port == usual else f"{scheme}://{host}:{port}"


@lru_cache(maxsize=HOSTS_CACHED)
def _host(authority: bytes) -> str:
    found = _HOST.fullmatch(authority)
    if not found or (found[2] and not 0 < int(found[2]) < 65_536):
        return ""
    name = found[1].decode("ascii").lower()
    if not name.startswith("["):
        return name.removesuffix(".")
    try:
        return f"[{IPv6Address(name[1:-1])}]"
    except AddressValueError:
        return ""


def target_of(
    raw: bytes, method: str, authority: bytes, scheme: str, paths: PathPolicy
) -> Target | Refusal:
    """`*` of OPTIONS is gated like `/`; an absolute URL must name the scheme and host in use."""
    if raw[:1] == b"/":
        return read_target(raw, paths)
    if raw == b"*" and method == "OPTIONS":
        return Target("/", "", b"*")
    found = _ABSOLUTE.fullmatch(raw)
    if not found:
        return Refusal(400, "the request target is neither a path nor an http URL")
    if found[1].lower() != scheme.encode() or found[2].lower() != authority.lower():
        return Refusal(
            400, "the URL in the request line names another host or scheme than the request"
        )
    return read_target(found[3] if found[3].startswith(b"/") else b"/" + found[3], paths)
