"""Shares of the connections to one origin, so that no client, ticket or kind of request takes them
all. They count only when connections become scarce. Lent connections are counted when needed, so no
share can leak.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from greenroom.decision.forwarded import SOCKET_PEER, network_of
from greenroom.decision.verdict import Forward
from greenroom.settings.limits import Limits

SHARE_LEAST = 8
"""Connections for every client and ticket: a browser opens six to one host."""

KEY_BYTES = 8

NO_SHARE = 1 << 31


Taker = tuple[str, bytes]
"""A request that has, or wants, a connection: its client, and its ticket or empty."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Most connections for one address, for one ticket, and for all requests without a ticket
    together.
    """

    address: int
    ticket: int
    uncovered: int
    of_one_ticket: str = "origin_ticket_percent"

    @classmethod
    def of_requests(cls, limits: Limits, total: int) -> Self:
        """`total`: connections that there may be."""
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
        """With fewer lent connections every request fits."""
        return min(self.address, self.ticket, self.uncovered)

    def exceeded(self, taker: Taker, lent: Iterable[Taker]) -> str:
        """The limit that one more for `taker` would pass, with these lent; empty when it fits."""
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
    """Whether two requests are of one client, as far as known: visitors whose address a proxy
    withholds are not.
    """
    return network_of(one) == network_of(other) and one != SOCKET_PEER


def _below(total: int, share: int) -> int:
    """A share as large as the total does not limit: another rule limits the total."""
    return share if share < total else NO_SHARE


def ticket_of(forward: Forward | None) -> bytes:
    """The ticket that admitted it, by its key: a move to another device keeps that, and no share is
    renewed by moving. Empty without a ticket, or if provisional.
    """
    return (
        forward.ticket.key.to_bytes(KEY_BYTES, "big")
        if forward is not None and forward.ticket is not None and not forward.provisional
        else b""
    )
