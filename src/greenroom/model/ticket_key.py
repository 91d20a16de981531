"""A ticket key as people may see it, without its secret."""

from typing import NamedTuple


class TicketKey(NamedTuple):
    """`seals_from_ms`: when it begins to seal. `opens_until_ms`: when it stops opening tickets;
    None while it is the newest.
    """

    id: str
    made_ms: int
    seals_from_ms: int
    opens_until_ms: int | None
    seals: bool
