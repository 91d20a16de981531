"""A key that seals tickets, as people may see it: without its secret."""

from typing import NamedTuple


class TicketKey(NamedTuple):
    """`seals_from_ms`: when it begins to seal. `opens_until_ms`: when it stops to open tickets;
    None while no newer key has followed.
    """

    id: str
    made_ms: int
    seals_from_ms: int
    opens_until_ms: int | None
    seals: bool
    """Whether it seals at the moment."""
