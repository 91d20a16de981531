"""Which URLs and addresses greenroom may connect to. An IPv6 address that carries an IPv4 address
(mapped, compatible, NAT64, 6to4) is judged as that one. Hosts that programs read differently
(`2130706433`, `0x7f.1`, `0177.0.0.1`) are refused before anything is resolved.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from greenroom.errors import GreenroomError, InvalidConfig, Problem

URL_MAX = 2_048

DEFAULT_PORTS = {"http": 80, "https": 443}

IpAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


NEVER = (
    "169.254.0.0/16",
    "fe80::/10",
    "fd00:ec2::/32",
    "100.100.100.200/32",
    "0.0.0.0/8",
    "224.0.0.0/4",
    "ff00::/8",
    "::/128",
)
"""Link-local, cloud metadata, and addresses that are no single machine."""

PRIVATE = (
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "::1/128",
    "fc00::/7",
)


class OutboundRefused(GreenroomError):
    """Nothing was sent."""


class OutboundFailed(GreenroomError):
    """The message omits the path, perhaps a secret."""


@dataclass(frozen=True, slots=True)
class OutboundPolicy:
    """`allowed` adds networks to the public addresses, `denied` takes away. Raises InvalidConfig
    with every problem.
    """

    schemes: tuple[str, ...] = ("https", "http")
    ports: tuple[int, ...] = (443, 80)
    """Empty allows every port."""
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = [
            Problem(f"schemes[{index}]", f"must be https or http, not {scheme!r}")
            for index, scheme in enumerate(self.schemes)
            if scheme not in DEFAULT_PORTS
        ]
        problems += [
            Problem(f"ports[{index}]", f"must be 1 to 65535, not {port}")
            for index, port in enumerate(self.ports)
            if not 1 <= port <= 65535
        ]
        for name in ("allowed", "denied"):
            problems += [
                Problem(
                    f"{name}[{index}]",
                    f"must be an address or a network such as 10.0.0.0/8, not {written!r}",
                )
                for index, written in enumerate(getattr(self, name))
                if _network(written) is None
            ]
        if problems:
            raise InvalidConfig(problems)

    def address_problem(self, address: IpAddress) -> str:
        found = unwrapped(address)
        if any(each in network for network in _networks(self.denied) for each in (address, found)):
            return f"{found} is in a network that the settings deny"
        if is_public(found) or any(found in network for network in _networks(self.allowed)):
            return ""
        return f"{found} is not a public address, and the settings do not allow it"

    def target_problem(self, target: "OutboundTarget") -> str:
        if target.scheme not in self.schemes:
            return f"the scheme must be {' or '.join(self.schemes)}, not {target.scheme}"
        if self.ports and target.port not in self.ports:
            return f"port {target.port} is not allowed; allowed: {', '.join(map(str, self.ports))}"
        return "" if target.address is None else self.address_problem(target.address)


@dataclass(frozen=True, slots=True)
class OutboundTarget:
    """`host` has no brackets around IPv6; `path` includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def address(self) -> IpAddress | None:
        return read_address(self.host)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_target(url: str) -> OutboundTarget:
    """Raises OutboundRefused for every URL that two programs could read differently."""
    if not isinstance(url, str) or not 1 <= len(url) <= URL_MAX:
        raise OutboundRefused(f"a URL must have 1 to {URL_MAX} characters")
    if not url.isascii() or re.search(r"[\x00-\x20\x7f\\<>\"^`{|}]", url):
        raise OutboundRefused(
            "a URL must be plain ASCII without spaces or backslashes (international names as xn--…)"
        )
    try:
        parts = urlsplit(url)
        scheme, port = parts.scheme.lower(), parts.port
    except ValueError as error:
        raise OutboundRefused(f"not a URL: {error}") from None
    if scheme not in DEFAULT_PORTS or not parts.netloc:
        raise OutboundRefused("a URL must begin with https:// or http:// and name a host")
    if "@" in parts.netloc:
        raise OutboundRefused("a URL must not contain a user name or password")
    if port == 0 or re.search(r":$", parts.netloc):
        raise OutboundRefused("the port of a URL must be 1 to 65535")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return OutboundTarget(scheme, _read_host(parts), port or DEFAULT_PORTS[scheme], path)


def _read_host(parts: SplitResult) -> str:
    written = (parts.hostname or "").lower()
    reason = host_problem(written, bracketed="[" in parts.netloc)
    if reason:
        raise OutboundRefused(reason)
    return written


def host_problem(host: str, *, bracketed: bool = False) -> str:
    """IPv6 addresses come without brackets."""
    if bracketed or ":" in host:
        return (
            ""
            if isinstance(read_address(host), IPv6Address)
            else f"not an IPv6 address: {host[:60]!r}"
        )
    name = host.removesuffix(".")
    if not _NAME.fullmatch(name) or len(name) > 253:
        return f"not a host name: {host[:60]!r}"
    if _NUMBER.fullmatch(name.rpartition(".")[2]) and (read_address(host) is None):
        return (
            "an address must be written as four decimal numbers such as 192.0.2.1, not"
            f" {host[:60]!r}"
        )
    return ""


def read_address(text: str) -> IpAddress | None:
    """None for a zone index (`%eth0`) too."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def unwrapped(address: IpAddress) -> IpAddress:
    """The IPv4 address inside an IPv6 one that packets would reach."""
    if isinstance(address, IPv4Address):
        return address
    for network, shift in _CARRIERS:
        if address in network and int(address) not in _NOT_CARRIED:
            return IPv4Address(int(address) >> shift & 0xFFFF_FFFF)
    return address


def is_outside(address: str) -> bool:
    read = read_address(address)
    return read is not None and is_public(unwrapped(read))


def outside_only(addresses: Sequence[str]) -> list[str]:
    """Keeps public addresses after a redirect: the owner of a public server must not choose which
    internal server is called. Raises OutboundRefused.
    """
    found = [address for address in addresses if is_outside(address)]
    if not found:
        raise OutboundRefused(
            f"a redirect of a public server leads to {addresses[0]}, which is not a public address"
        )
    return found


def is_public(address: IpAddress) -> bool:
    """Apply `unwrapped` first."""
    if isinstance(address, IPv6Address):
        return (
            address in _GLOBAL_UNICAST
            and address.is_global
            and not any(address in network for network in _NOT_PUBLIC_6)
        )
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in _NOT_PUBLIC_4)
    )


_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.(?!-)[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16")))
_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "192.88.99.0/24",
            "192.0.0.0/24",
            "100.64.0.0/10",
            "198.18.0.0/15",
            "240.0.0.0/4",
            "0.0.0.0/8",
        ),
    )
)
_CARRIERS = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("::/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)
_NOT_CARRIED = frozenset({0, 1})


def _network(written: object) -> Network | None:
    try:
        return ip_network(written) if isinstance(written, str) else None
    except ValueError:
        return None


def _networks(written: Sequence[str]) -> list[Network]:
    return [ip_network(each) for each in written]
