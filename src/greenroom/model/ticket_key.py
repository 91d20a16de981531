"""A ticket key as people may see it, without its secret."""

from typing import NamedTuple


class TicketKey(NamedTuple):
    """`opens_until_ms` None while it is the newest."""

    id: str
    made_ms: int
    seals_from_ms: int
    opens_until_ms: int | None
    seals: bool
