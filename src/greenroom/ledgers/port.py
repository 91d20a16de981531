"""What the decision service asks of a room's ledger and of draws, wherever they live."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from greenroom.admission.draw import Draw
from greenroom.errors import StorageFailed
from greenroom.model.line_table import LineTable
from greenroom.model.room import Room
from greenroom.model.visit import Outcome

Then = Callable[[Outcome], None]

TableThen = Callable[[LineTable | None], None]


def nobody(_: Outcome) -> None:
    """Discards an answer."""


class LedgerPort(Protocol):
    """One room's ledger in one data center (docs/explanation/admission.md).

    Every operation answers through `then`, exactly once, at once or later (a distributed ledger
    sends the operations of one event-loop turn as one batch). An answer that cannot be given (store
    unreachable, disk full) is a WAITING outcome without an estimate: never an admission, never an
    exception.
    """

    def arrive(self, ticket_id: bytes, key: int, then: Then) -> None:
        """A newcomer without a ticket: ADMITTED, or WAITING outside the line (position 0) until the
        ticket comes back.
        """

    def arrive_provisionally(self, ticket_id: bytes, key: int, then: Then) -> None:
        """A request that cannot wait: ADMITTED for some seconds while there is room to spare, else
        WAITING, and nothing is remembered.

        Where permits ran out here and may be had elsewhere, the answer comes when the coordinator
        has been asked, within about two seconds. A `view` in that time makes the session a full
        one.
        """

    def poll(self, ticket_id: bytes, key: int, then: Then) -> None:
        """A waiting ticket came back in time: takes its place by `key` if it is unknown here;
        ADMITTED, ACTIVE or WAITING.

        GONE when this ticket id has already had its session (a replayed old cookie).
        """

    def peek(self, ticket_id: bytes, key: int, then: Then) -> None:
        """A waiting ticket came back too early: as `poll`, but no attempt, nothing changes. ACTIVE
        if it was let in meanwhile.
        """

    def view(self, ticket_id: bytes, then: Then) -> None:
        """An accepted ticket: ACTIVE (renewed when the room renews and the last renewal is older
        than q) or GONE.
        """

    def visit(self, ticket_id: bytes, key: int, home: str, renewed_ms: int, then: Then) -> None:
        """An accepted ticket that `view` does not know: its session may be in the data center
        `home` (or here, before the ledger was lost).

        `renewed_ms` is the last renewal that the ticket knows. ACTIVE on trust, until the session
        has followed; ADMITTED when a permit was spent instead; WAITING when held; GONE when there
        is no such session.
        """

    def keep(self, ticket_id: bytes, gap_ms: int) -> None:
        """A visitor in front who tries every `gap_ms` only has tried in vain: the place is kept
        until the next try, and a permit with it.

        Only where permits come rarely, and for one visitor at a time; else nothing happens.
        """

    def line_table(self, then: TableThen) -> None:
        """The line of a fifo room as everybody may see it; None when it cannot be read. Costs about
        as much as a hundred polls.
        """

    def leave(self, ticket_id: bytes, key: int = 0, then: Then = nobody) -> None:
        """The visitor gave up the place (or the session) themselves; unknown ids are ignored. `key`
        is that of a waiting ticket.

        Answers what there was until now: ACTIVE a session, WAITING a place, GONE neither.
        """

    def configure(self, room: Room) -> None:
        """The room's settings changed; they apply from the next operation on, and no visitor is
        expelled.
        """

    def before(self, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        """The ids of everybody present in line whose key is below this one, first in line first."""

    def rekey(self, keys: Mapping[bytes, int], then: Callable[[bool], None]) -> None:
        """Those of these ids who are in line stand by these keys from now on (a draw). Answers
        whether that is written down.

        Asked again with the same keys, nothing changes. Ids that are not in line are left out;
        nothing is remembered of them.
        """


@runtime_checkable
class PromptLedger(LedgerPort, Protocol):
    """A ledger in this process: it knows every answer at once, so its most frequent questions need
    no `then`.

    `now_ms` is the time of its own clock, read by the caller just before. The answers are those of
    the questions of `LedgerPort`.
    """

    def arrive_now(self, ticket_id: bytes, now_ms: int, told: bool = True) -> Outcome:
        """As `arrive`. Not `told`: what the newcomer is shown does not say how long the wait is, so
        there need not be an estimate.
        """

    def poll_now(self, ticket_id: bytes, key: int, now_ms: int) -> Outcome:
        """As `poll`."""

    def peek_now(self, ticket_id: bytes, key: int, now_ms: int) -> Outcome:
        """As `peek`."""

    def view_now(self, ticket_id: bytes, now_ms: int) -> Outcome:
        """As `view`."""


class DrawStore(Protocol):
    """Seeds and results of draws (`admission.draw`), shared by all processes that serve a room."""

    def seed(self, draw_id: str) -> bytes:
        """The 32 secret bytes of this draw: always the same, and secret until the draw has been
        held. Raises StorageFailed.
        """

    def settle(
        self,
        draw_id: str,
        here: Sequence[str],
        hold: Callable[[Collection[str]], Draw],
        then: Callable[[Draw | StorageFailed], None],
    ) -> None:
        """The draw of this id: the one that was held, or else what `hold` makes of everybody, kept
        for good and published first.

        `here` are the entries of those in line in this data center; those of the others are added.
        Of several draws at once the first that is kept counts for all. Calls `then` exactly once,
        now or later.
        """
