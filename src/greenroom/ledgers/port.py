"""The decision service's interfaces to a room's ledger and to draws, wherever they live."""

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
    """One room's ledger in one data center. Every operation calls `then` exactly once, now or later.
    Where there is no answer it gets a WAITING outcome without an estimate, never an admission or an
    exception.
    """

    def arrive(self, ticket_id: bytes, key: int, then: Then) -> None:
        """ADMITTED, or WAITING outside the line (position 0) until the ticket comes back."""

    def arrive_provisionally(self, ticket_id: bytes, key: int, then: Then) -> None:
        """ADMITTED for some seconds while there is room to spare; a `view` in that time makes the
        session a full one. Else WAITING, with nothing stored. Takes up to two seconds where permits
        may be had elsewhere.
        """

    def poll(self, ticket_id: bytes, key: int, then: Then) -> None:
        """Takes the place by `key`: ADMITTED, ACTIVE or WAITING. GONE: this id has had its session."""

    def peek(self, ticket_id: bytes, key: int, then: Then) -> None:
        """As `poll`, without changing anything. ACTIVE if admitted meanwhile."""

    def reclaim(self, ticket_id: bytes, key: int, then: Then) -> None:
        """For a visitor who was or may be away: as `peek`, `called` when the turn has come, GONE when
        that was too long ago.
        """

    def view(self, ticket_id: bytes, then: Then) -> None:
        """ACTIVE (renewed when the room renews and the last renewal is older than q) or GONE."""

    def visit(self, ticket: Ticket, home: str, then: Then) -> None:
        """For a ticket that `view` does not know: its session may be in the data center `home`.
        ACTIVE on trust; ADMITTED when a permit was spent instead; WAITING when held; GONE when there
        is no such session.
        """

    def keep(self, ticket_id: bytes, gap_ms: int) -> None:
        """For a visitor in front who tries only every `gap_ms`: keeps the place and the next permit
        where permits are rare, for one visitor at a time.
        """

    def line_table(self, then: TableThen) -> None:
        """None when it cannot be read. Costs about as much as a hundred polls."""

    def leave(self, ticket_id: bytes, key: int = 0, then: Then = nobody) -> None:
        """Answers ACTIVE: there was a session; WAITING: a place; GONE: neither."""

    def move(self, old: bytes, new: bytes, absent: bool, then: Then) -> None:
        """As `admission.ledger.moving`; `new` must be unknown. `storage_failed`: whether it moved is
        not known.
        """

    def extend(self, ticket_id: bytes, times: int, then: Then) -> None:
        """As `Ledger.extend`."""

    def fail(self, ticket_id: bytes, then: Then) -> None:
        """As `admission.ledger.failing.fail`."""

    def reenter(self, ticket_id: bytes, key: int, then: Then) -> None:
        """After a `view` that is GONE with `kept_ms`: as `poll`, by the kept turn."""

    def configure(self, room: Room) -> None:
        """Applies from the next operation on; no visitor is expelled."""

    def before(self, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        """First in line first."""

    def rekey(self, keys: Mapping[bytes, int], then: Callable[[bool], None]) -> None:
        """Gives visitors in line new keys (a draw); idempotent. Answers whether that is stored."""


@runtime_checkable
class PromptLedger(LedgerPort, Protocol):
    """A ledger in this process, which answers at once. `now_ms`: by its own clock."""

    def arrive_now(self, ticket_id: bytes, now_ms: int, told: bool = True) -> Outcome:
        """Not `told`: the page shows no wait, so no estimate is needed."""

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
        """The draw that was held, else what `hold` makes of everybody; the first one stored counts for
        all. `here`: the entries of this data center. Calls `then` exactly once, now or later.
        """
