"""Shares of the connections to one origin: no client, ticket or kind of request gets them all. They
apply only when connections are scarce. Usage is computed from lent connections when needed, so no
share can leak.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from greenroom.decision.verdict import Forward
from greenroom.request.forwarded import SOCKET_PEER, network_of
from greenroom.settings.limits import Limits

SHARE_LEAST = 8
"""Minimum for every client and ticket: a browser opens six per host."""

KEY_BYTES = 8

NO_SHARE = 1 << 31


Taker = tuple[str, bytes]
"""(client, ticket or empty) of a request that has or wants a connection."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Limits per address, per ticket, and for all requests without a ticket."""

    address: int
    ticket: int
    uncovered: int
    of_one_ticket: str = "origin_ticket_percent"

    @classmethod
    def of_requests(cls, limits: Limits, total: int) -> Self:
        return cls(
            _below(total, max(SHARE_LEAST, total * limits.origin_address_percent // 100)),
            _below(total, max(SHARE_LEAST, total * limits.origin_ticket_percent // 100)),
            _below(total, total - total * limits.origin_reserve_percent // 100),
        )

    @classmethod
    def of_tunnels(cls, limits: Limits) -> Self:
        total = limits.origin_tunnels
        address = max(SHARE_LEAST, total * limits.origin_address_percent // 100)
        return cls(
            _below(total, address),
            limits.tunnels_per_ticket,
            _below(total, total - total * limits.origin_reserve_percent // 100),
            "tunnels_per_ticket",
        )

    @property
    def easy(self) -> int:
        """With fewer lent connections no share can be exceeded."""
        return min(self.address, self.ticket, self.uncovered)

    def exceeded(self, taker: Taker, lent: Iterable[Taker]) -> str:
        """The limit that one more connection for `taker` would exceed; empty when it fits."""
        client, ticket = taker
        of_client = of_ticket = uncovered = 0
        for its_client, its_ticket in lent:
            of_client += is_same_client(its_client, client)
            if not its_ticket:
                uncovered += 1
            elif its_ticket == ticket:
                of_ticket += 1
        if of_client >= self.address:
            return "origin_address_percent"
        if of_ticket >= self.ticket:
            return self.of_one_ticket
        return "" if ticket or uncovered < self.uncovered else "origin_reserve_percent"


def is_same_client(one: str, other: str) -> bool:
    """Visitors whose address a proxy withholds are never the same client."""
    return network_of(one) == network_of(other) and one != SOCKET_PEER


def _below(total: int, share: int) -> int:
    """A share equal to the total is no limit: another rule limits the total."""
    return share if share < total else NO_SHARE


def ticket_of(forward: Forward | None) -> bytes:
    """The ticket's key, which survives a move to another device, so moving renews no share. Empty
    without a ticket, or if provisional.
    """
    return (
        forward.ticket.key.to_bytes(KEY_BYTES, "big")
        if forward is not None and forward.ticket is not None and not forward.provisional
        else b""
    )
