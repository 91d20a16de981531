"""The data center of a visitor's session, as a fixed-length name for the ticket."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from greenroom.admission.ledger.visiting import is_outlived
from greenroom.ledgers.port import LedgerPort
from greenroom.model.record import replace
from greenroom.model.visit import HOME_BYTES, Outcome, Standing, Ticket


def home_of(name: str) -> bytes:
    """Two of a thousand names collide less often than once in 100 million lists."""
    return sha256(name.encode()).digest()[:HOME_BYTES]


@dataclass(frozen=True, slots=True)
class DataCenters:
    here: bytes
    names: Mapping[bytes, str]

    @classmethod
    def of(cls, here: str, names: Iterable[str]) -> "DataCenters":
        return cls(home_of(here), {home_of(name): name for name in names})

    def name(self, home: bytes) -> str:
        """Empty for a data center no longer listed: its sessions are over."""
        return self.names.get(home, "")


def or_abroad(
    ledger: LedgerPort,
    ticket: Ticket,
    data_centers: DataCenters,
    answered: Callable[[Outcome, bool], None],
) -> Callable[[Outcome], None]:
    """Also looks for a session in the ledger of the data center that its ticket names."""
    home = data_centers.name(ticket.home)

    def viewed(outcome: Outcome) -> None:
        at_home = ticket.home == data_centers.here
        if outcome.standing is Standing.GONE and not (outcome.kept_ms and at_home):
            ledger.visit(ticket, home, lambda found: answered(found, True))
        elif is_outlived(outcome, at_home, ticket.checked_ms):
            kept = replace(outcome, renewed_ms=ticket.checked_ms, refresh_ms=ticket.refresh_ms)
            answered(kept, True)
        else:
            answered(outcome, False)

    return viewed
