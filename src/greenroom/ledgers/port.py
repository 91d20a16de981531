"""What the decision service asks of a room's ledger and of draws, wherever they live."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from greenroom.admission.draw import Draw
from greenroom.errors import StorageFailed
from greenroom.model.line_table import LineTable
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Ticket

Then = Callable[[Outcome], None]

TableThen = Callable[[LineTable | None], None]


def nobody(_: Outcome) -> None: ...


class LedgerPort(Protocol):
    """One room's ledger in one data center. Every operation answers through `then`, exactly once,
    at once or later. An answer that cannot be given is a WAITING outcome without an estimate: never
    an admission, never an exception.
    """

    def arrive(self, ticket_id: bytes, key: int, then: Then) -> None:
        """ADMITTED, or WAITING outside the line (position 0) until the ticket comes back."""

    def arrive_provisionally(self, ticket_id: bytes, key: int, then: Then) -> None:
        """ADMITTED for some seconds while there is room to spare, else WAITING, and nothing is
        remembered. Where permits may be had elsewhere, the answer takes up to two seconds. A `view`
        in that time makes the session a full one.
        """

    def poll(self, ticket_id: bytes, key: int, then: Then) -> None:
        """Takes the place by `key`; ADMITTED, ACTIVE or WAITING. GONE when this ticket id has
        already had its session.
        """

    def peek(self, ticket_id: bytes, key: int, then: Then) -> None:
        """As `poll`, but nothing changes. ACTIVE if admitted meanwhile."""

    def reclaim(self, ticket_id: bytes, key: int, then: Then) -> None:
        """Of a visitor who was or may be away: as `peek`, `called` when the turn has
        come meanwhile, and GONE when that was too long ago.
        """

    def view(self, ticket_id: bytes, then: Then) -> None:
        """ACTIVE (renewed when the room renews and the last renewal is older than q) or GONE."""

    def visit(self, ticket: Ticket, home: str, then: Then) -> None:
        """For a ticket that `view` does not know: its session may be in the data center `home`.
        ACTIVE on trust; ADMITTED when a permit was spent instead; WAITING when held; GONE when there
        is no such session.
        """

    def keep(self, ticket_id: bytes, gap_ms: int) -> None:
        """For a visitor in front who tries every `gap_ms` only, in vain: keeps the place and the
        next permit, for one visitor at a time, where permits come rarely.
        """

    def line_table(self, then: TableThen) -> None:
        """None when it cannot be read. Costs about as much as a hundred polls."""

    def leave(self, ticket_id: bytes, key: int = 0, then: Then = nobody) -> None:
        """Answers what there was: ACTIVE a session, WAITING a place, GONE neither."""

    def move(self, old: bytes, new: bytes, absent: bool, then: Then) -> None:
        """The place or session of one ticket id goes on under another one, which nobody has had;
        the old one is spent.

        Answers what moved: ACTIVE a session, WAITING a place, GONE nothing. `storage_failed`:
        whether it moved is not known. `absent`: as in `admission.ledger.moving`.
        """

    def extend(self, ticket_id: bytes, times: int, then: Then) -> None:
        """More time for a session, as `Ledger.extend`."""

    def fail(self, ticket_id: bytes, then: Then) -> None:
        """The origin failed to answer this visitor, as in `admission.ledger.failures`. ACTIVE or
        GONE.
        """

    def reenter(self, ticket_id: bytes, key: int, then: Then) -> None:
        """After a `view` that is GONE with `kept_ms`: as `poll`, by the turn that was kept."""

    def configure(self, room: Room) -> None:
        """Applies from the next operation on; no visitor is expelled."""

    def before(self, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        """First in line first."""

    def rekey(self, keys: Mapping[bytes, int], then: Callable[[bool], None]) -> None:
        """Gives visitors in line new keys (a draw). Answers whether that is written down. Repeating
        changes nothing.
        """


@runtime_checkable
class PromptLedger(LedgerPort, Protocol):
    """A ledger in this process: it answers at once. `now_ms` is the time of its own clock."""

    def arrive_now(self, ticket_id: bytes, now_ms: int, told: bool = True) -> Outcome:
        """Not `told`: the page does not say how long the wait is, so there need not be an
        estimate.
        """

    def poll_now(self, ticket_id: bytes, key: int, now_ms: int) -> Outcome: ...

    def peek_now(self, ticket_id: bytes, key: int, now_ms: int) -> Outcome: ...

    def view_now(self, ticket_id: bytes, now_ms: int) -> Outcome: ...


class DrawStore(Protocol):
    """Shared by all processes that serve a room."""

    def seed(self, draw_id: str) -> bytes:
        """Always the same, and secret until the draw has been held. Raises StorageFailed."""

    def settle(
        self,
        draw_id: str,
        here: Sequence[str],
        hold: Callable[[Collection[str]], Draw],
        then: Callable[[Draw | StorageFailed], None],
    ) -> None:
        """The draw that was held, or else what `hold` makes of everybody, published first. `here`:
        the entries of this data center. The first that is kept counts for all. Calls `then` exactly
        once, now or later.
        """
