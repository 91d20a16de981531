"""What the core asks of the world. Adapters in `stores` and `runtime` answer; nothing here does anything."""

from collections.abc import Callable
from typing import Protocol

from greenroom.model.room import Room
from greenroom.model.visit import Outcome


class Clock(Protocol):
    """Unix time that never runs backwards within a process, nor across a restart of one that kept its data."""

    def now_ms(self) -> int:
        """Whole milliseconds."""


class Ledger(Protocol):
    """One room's books in one data center (docs/explanation/admission.md).

    Every operation answers through `then`, exactly once, at once or later (a distributed ledger sends the operations of one
    event-loop turn as one batch). An answer that cannot be given (store unreachable, disk full) is a WAITING outcome
    without an estimate: never an admission, never an exception.
    """

    def arrive(self, ticket_id: bytes, key: int, then: Callable[[Outcome], None]) -> None:
        """A newcomer without a ticket: ADMITTED, or WAITING outside the line (position 0) until the ticket comes back."""

    def poll(self, ticket_id: bytes, key: int, then: Callable[[Outcome], None]) -> None:
        """A waiting ticket came back in time: takes its place by `key` if it is unknown here; ADMITTED, ACTIVE or WAITING.

        GONE when this ticket id has already had its session (a replayed old cookie).
        """

    def peek(self, ticket_id: bytes, key: int, then: Callable[[Outcome], None]) -> None:
        """A waiting ticket came back too early: as `poll`, but no attempt, nothing changes. ACTIVE if it was let in meanwhile."""

    def view(self, ticket_id: bytes, then: Callable[[Outcome], None]) -> None:
        """An accepted ticket: ACTIVE (renewed when the room renews and the last renewal is older than q) or GONE."""

    def leave(self, ticket_id: bytes) -> None:
        """The visitor gave up the place (or the session) themselves; unknown ids are ignored."""

    def configure(self, room: Room) -> None:
        """The room's settings changed; they count from the next operation on, nobody is expelled."""


class Journal(Protocol):
    """An append-only record on disk. `append` returns only when the record would survive kill -9 of this process."""

    def append(self, records: bytes) -> None:
        """Raises StorageFailed, having written nothing that a reader would see, when the disk refuses."""
