"""Where a connection to an origin may go: never to greenroom itself; for a zone's origin never to a
link-local address or a file. Names are judged by what they resolve to, at every connection, and the
connection goes to a judged address.
"""

from collections.abc import Sequence

from greenroom.gateway.origin.address import Origin
from greenroom.outbound import Guard, OutboundPolicy, OutboundRefused, resolve_by_system
from greenroom.outbound.guard import Resolve
from greenroom.outbound.own_listeners import Listening, is_same_file, reaches_listener
from greenroom.outbound.policy import NEVER, PRIVATE, read_address

ZONE_POLICY = OutboundPolicy(ports=(), allowed=PRIVATE, denied=NEVER)
"""For a zone's origin: public addresses and those of an operator's own networks."""


class OriginGuard:
    """Resolves and judges the addresses of origins."""

    def __init__(
        self,
        listening: Listening = tuple,
        resolve: Resolve = resolve_by_system,
        everywhere: Listening | None = None,
    ) -> None:
        """`listening` gives greenroom's own listeners, with those on a free port.

        `everywhere` adds those of processes on other machines: a zone's origin is an address for
        all of them.
        """
        self._listening = listening
        self._resolve = resolve
        self._zones = Guard(ZONE_POLICY, resolve, everywhere or listening)

    def check_socket(self, origin: Origin) -> None:
        """Raises OutboundRefused when this origin's Unix socket may not be connected to. Follows
        links.
        """
        if origin.of_zone:
            raise OutboundRefused("the origin of a zone cannot be a Unix socket")
        for text, port in self._listening():
            if not port and is_same_file(text, origin.path):
                raise OutboundRefused(f"{origin.url} is a listener of greenroom itself")

    async def addresses(self, origin: Origin) -> Sequence[str]:
        """Where to connect, best first. Raises OutboundRefused, or OSError when the name has no
        address.
        """
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
