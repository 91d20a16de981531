"""The visitor's address behind trusted proxies. Every proxy appends the address it saw to
`X-Forwarded-For`, so the rightmost untrusted entry is the visitor, and anything further left may be
invented.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple

import msgspec

from greenroom.request.path_readings import PathPolicies
from greenroom.settings.process import TRUSTED_HEADERS

HOPS_MAX = 16
"""No real chain of proxies is longer."""

ADDRESSES_CACHED, ADDRESS_MAX = 4_096, 64
"""About 1 MB; parsing costs 2 us."""

NETWORK_BITS = 64

_PREFIX_FORM = re.compile(rb"(/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]{1,64}){1,8}/?")

AddressRange = IPv4Network | IPv6Network
Headers = tuple[tuple[bytes, bytes], ...]


class ForwardedVisitor(msgspec.Struct, frozen=True):
    """`host` is empty unless a proxy may set it."""

    client: str
    scheme: str
    host: bytes = b""


class ForwardedPolicy:
    """Which peers are trusted about the visitor. A zone's own proxies are trusted for its hosts
    only: the editor of one zone must not choose a visitor's address in another.
    """

    __slots__ = (
        "_clients",
        "_zones",
        "default_host",
        "kept",
        "paths",
        "trust_host",
        "trust_socket",
        "trusted_proxies",
    )

    def __init__(
        self,
        trusted_proxies: Iterable[AddressRange] = (),
        *,
        trust_host: bool = False,
        trust_socket: bool = False,
        zones: Mapping[str, Iterable[AddressRange]] | None = None,
        kept: Iterable[str] = TRUSTED_HEADERS,
        default_host: str = "",
        paths: PathPolicies | None = None,
    ) -> None:
        """`trust_host`: believe `X-Forwarded-Host`. `kept`: headers that trusted proxies may send
        to the origin. `default_host`: for HTTP/1.0 without a host. `zones`: extra proxies by zone
        name.
        """
        self.paths = paths or PathPolicies()
        self.trusted_proxies = tuple(trusted_proxies)
        self.trust_host = trust_host
        self.trust_socket = trust_socket
        self.kept = frozenset(name.lower().encode() for name in kept)
        self.default_host = default_host
        own = (zones or {}).items()
        self._zones = {
            name: ForwardedPolicy((*self.trusted_proxies, *more), trust_host=trust_host)
            for name, more in own
        }
        self._clients: dict[bytes, str] = {}

    def trusts(self, address: str) -> bool:
        parsed = parse_address(address) if self.trusted_proxies or self._zones else None
        return parsed is not None and (
            self._covers(parsed) or any(zone._covers(parsed) for zone in self._zones.values())
        )

    def covers(self, address: str) -> bool:
        parsed = parse_address(address) if self.trusted_proxies else None
        return parsed is not None and self._covers(parsed)

    def of(self, host: str) -> "ForwardedPolicy":
        while self._zones and host:
            if host in self._zones:
                return self._zones[host]
            host = host.partition(".")[2]
        return self

    def visitor(
        self, peer: str, scheme: str, headers: Headers, facts: Mapping[bytes, bytes] | None = None
    ) -> ForwardedVisitor:
        """Malformed headers fall back to the connection. `X-Forwarded-For` counts before
        `Forwarded`. `facts`: headers by name, where no name comes twice.
        """
        if (
            facts is not None and not self.trust_host
        ):  # as nearly always: a proxy that is known, which says both
            known, said_scheme = (
                self._clients.get(facts.get(_FOR, b"")),
                _SCHEMES.get(facts.get(_PROTO, b"")),
            )
            if known and said_scheme:
                return ForwardedVisitor(known, said_scheme)
        found = _values(headers, facts, _FOR)
        client = self._known_client(found[0]) if len(found) == 1 else self._client(_items(found))
        forwarded = [] if client else _elements(_items(_values(headers, facts, b"forwarded")))
        if not client and forwarded:
            client = self._client([element.get(b"for", b"") for element in forwarded])
        said = forwarded[-1] if forwarded else {}
        proto = _last(_values(headers, facts, _PROTO)) or said.get(b"proto", b"")
        host = (
            (_last(_values(headers, facts, b"x-forwarded-host")) or said.get(b"host", b""))
            if self.trust_host
            else b""
        )
        return ForwardedVisitor(
            client or peer, _SCHEMES.get(proto) or _SCHEMES.get(proto.lower(), scheme), host
        )

    def _known_client(self, value: bytes) -> str:
        client = self._clients.get(value)
        if client is None:
            client = self._client(_items((value,)))
            if len(value) <= ADDRESS_MAX:
                if len(self._clients) >= ADDRESSES_CACHED:
                    self._clients.clear()
                self._clients[value] = client
        return client

    def _client(self, entries: list[bytes]) -> str:
        """The leftmost when all are trusted; empty when unreadable."""
        client = ""
        for entry in reversed(entries[-HOPS_MAX:]):
            address = parse_address(entry.decode("latin-1"))
            if address is None:
                return ""
            client = str(address)
            if not self._covers(address):
                return client
        return client if len(entries) <= HOPS_MAX else ""

    def _covers(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self.trusted_proxies)


def stripped_prefix(headers: Headers, facts: Mapping[bytes, bytes] | None) -> str:
    """Of a TRUSTED peer, such as `/shop`. The rightmost value counts: the peer wrote it."""
    return prefix_of(_last(_values(headers, facts, b"x-forwarded-prefix")))


def prefix_of(path: bytes) -> str:
    """Empty when it could not stand in a cookie."""
    return path.rstrip(b"/").decode() if path and _PREFIX_FORM.fullmatch(path) else ""


def forwarding_lines(client: str, scheme: str) -> bytes:
    """The last line ends after `host=`, before the quoted host."""
    address = parse_address(client)
    known = str(address) if address else "unknown"
    node = f'"[{known}]"' if isinstance(address, IPv6Address) else known
    return (
        f"x-forwarded-for: {known}\r\nx-real-ip: {known}\r\nx-forwarded-proto:"
        f" {scheme}\r\nforwarded: for={node};proto={scheme};host="
    ).encode("ascii")


_BRACKETED = re.compile(r"\[([0-9A-Fa-f:.]{2,45})\](?::[0-9]{1,5})?")
_WITH_PORT = re.compile(r"([0-9.]{7,15}):[0-9]{1,5}")


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """With or without a port (`1.2.3.4:5`, `[::1]:5`); mapped IPv4 becomes IPv4."""
    return _address(text) if len(text) <= ADDRESS_MAX else None


@lru_cache(maxsize=ADDRESSES_CACHED)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    found = _BRACKETED.fullmatch(text) or _WITH_PORT.fullmatch(text)
    if found is None and "%" in text:
        return None
    try:
        address = ip_address(found[1] if found else text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def network_of(client: str) -> str:
    """The unit in which requests and connections are counted: an IPv6 /64 is one household."""
    return _network(client) if ":" in client else client


@lru_cache(maxsize=ADDRESSES_CACHED)
def _network(client: str) -> str:
    address = parse_address(client)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, NETWORK_BITS), strict=False))
    return str(address) if address else client


_FOR, _PROTO = b"x-forwarded-for", b"x-forwarded-proto"
_SCHEMES = {b"http": "http", b"https": "https", b"ws": "http", b"wss": "https"}


def _values(headers: Headers, facts: Mapping[bytes, bytes] | None, name: bytes) -> Sequence[bytes]:
    if facts is None:
        return [value for key, value in headers if key == name]
    value = facts.get(name)
    return () if value is None else (value,)


def _items(values: Sequence[bytes]) -> list[bytes]:
    return [item.strip() for value in values for item in value.split(b",")]


def _last(values: Sequence[bytes]) -> bytes:
    return values[-1].rpartition(b",")[2].strip() if values else b""


_PAIR = re.compile(rb"([A-Za-z]+)=(?:\"([^\"\\]*)\"|([!#$%&'*+.^_`|~0-9A-Za-z:\[\]-]*))")


def _elements(items: list[bytes]) -> list[dict[bytes, bytes]]:
    """An unreadable element is empty. A comma inside a quoted string makes two unreadable
    halves.
    """
    return [dict(_pairs(item)) for item in items]


def _pairs(item: bytes) -> Iterator[tuple[bytes, bytes]]:
    found = [_PAIR.fullmatch(pair.strip()) for pair in item.split(b";")]
    if all(found):
        yield from (
            (pair[1].lower(), pair[2] if pair[2] is not None else pair[3]) for pair in found if pair
        )


# The peer of a connection: an address, or a local program that could open a Unix socket. Such a
# peer is trusted as a proxy at every host; visitors whose address it does not say must not become
# one client with one share of the limits.

SOCKET_PEER = "unix:"
"""Only the kernel makes a peer one: no policy trusts the text, which a client could send."""


class SocketEnds(NamedTuple):
    """A Unix socket has a `path`."""

    peer: str
    server: tuple[str, int]
    path: str = ""

    @property
    def is_file(self) -> bool:
        return self.peer == SOCKET_PEER


def socket_ends(info: Callable[[str], Any]) -> SocketEnds:
    """`info`: a transport's `get_extra_info`. The peer is empty when it has gone already."""
    here, there = info("sockname"), info("peername")
    if isinstance(here, str) and here:
        return SocketEnds(SOCKET_PEER, ("", 0), here)
    address, port = here[:2] if isinstance(here, tuple) else ("", 0)
    return SocketEnds(there[0] if isinstance(there, tuple) else "", (address, port))
