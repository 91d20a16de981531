"""An origin: one web application at a URL or a Unix socket."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from greenroom.gateway.tls import origin_context
from greenroom.outbound import Guard, OutboundPolicy, OutboundRefused, resolve_by_system
from greenroom.outbound.guard import Listening, Resolve, is_same_file, reaches_listener
from greenroom.outbound.policy import NEVER, PRIVATE, read_address
from greenroom.settings.process import SOCKET_FILE

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Equal origins share connections, also across reloads. An empty `host_header` passes on the
    visitor's Host. For https the certificate is verified against `server_name` (default: `host`)
    and the authorities in `ca_file`, unless `verify` is off.
    """

    scheme: str
    host: str
    port: int
    host_header: str = ""
    verify: bool = True
    ca_file: str = ""
    server_name: str = ""
    of_zone: bool = False
    """Chosen by a zone's editor, so its addresses are checked more strictly (`OriginGuard`)."""
    path: str = ""
    """A Unix socket without TLS; then host and port are empty."""

    @classmethod
    def of(
        cls,
        url: str,
        *,
        host_header: str = "",
        verify: bool = True,
        ca_file: str = "",
        server_name: str = "",
        of_zone: bool = False,
    ) -> Self:
        """Parses `http://host[:port]`, `https://host[:port]` or `unix:/path`; raises ValueError."""
        path = url.removeprefix(SOCKET_FILE) if url.startswith(SOCKET_FILE) else ""
        parts = urlsplit("http://unix:1" if path else url)
        if path and of_zone:
            raise ValueError(f"the origin of a zone cannot be a Unix socket: {url!r}")
        if parts.scheme not in _PORTS:
            raise ValueError(f"an origin starts with http:// or https://, not {url!r}")
        if (
            not parts.hostname
            or parts.path not in ("", "/")
            or parts.query
            or parts.fragment
            or parts.username is not None
        ):
            raise ValueError(
                f"an origin is a scheme, a host and perhaps a port, nothing else: not {url!r}"
            )
        if not host_header.isascii() or not host_header.isprintable() or " " in host_header:
            raise ValueError(f"a Host header is plain ASCII without blanks, not {host_header!r}")
        port = parts.port if parts.port is not None else _PORTS[parts.scheme]
        if not port:
            raise ValueError(f"port 0 cannot be connected to: {url!r}")
        if path:
            return cls("http", "", 0, host_header, path=path)
        return cls(
            parts.scheme, parts.hostname, port, host_header, verify, ca_file, server_name, of_zone
        )

    @property
    def url(self) -> str:
        if self.path:
            return f"{SOCKET_FILE}{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def tls(self) -> ssl.SSLContext | None:
        """None for http. Reads `ca_file`; raises OSError or ssl.SSLError."""
        return origin_context(self.verify, self.ca_file) if self.scheme == "https" else None


# Where a connection to an origin may go: never to greenroom itself; for a zone's origin never to
# a link-local address or a file. Names are judged by what they resolve to, at every connection,
# and the connection goes to a judged address.

ZONE_POLICY = OutboundPolicy(ports=(), allowed=PRIVATE, denied=NEVER)
"""For zone origins: public addresses and the operator's private networks."""


class OriginGuard:
    def __init__(
        self,
        listening: Listening = tuple,
        resolve: Resolve = resolve_by_system,
        everywhere: Listening | None = None,
    ) -> None:
        """`listening` returns greenroom's own listeners, `everywhere` also those on other machines,
        which a zone's origin must not reach either.
        """
        self._listening = listening
        self._resolve = resolve
        self._zones = Guard(ZONE_POLICY, resolve, everywhere or listening)

    def check_socket(self, origin: Origin) -> None:
        """Follows links. Raises OutboundRefused for a socket that may not be connected to."""
        if origin.of_zone:
            raise OutboundRefused("the origin of a zone cannot be a Unix socket")
        for text, port in self._listening():
            if not port and is_same_file(text, origin.path):
                raise OutboundRefused(f"{origin.url} is a listener of greenroom itself")

    async def addresses(self, origin: Origin) -> Sequence[str]:
        """Best first. Raises OutboundRefused, or OSError when the name has no address."""
        if origin.of_zone:
            return await self._zones.addresses(origin.host, origin.port)
        found = (
            list(await self._resolve(origin.host, origin.port))
            if read_address(origin.host) is None
            else [origin.host]
        )
        listening = self._listening()
        for text in found:
            address = read_address(text)
            if address is not None and reaches_listener(address, origin.port, listening):
                raise OutboundRefused(
                    f"{origin.host}:{origin.port} is a listener of greenroom itself"
                )
        return found
