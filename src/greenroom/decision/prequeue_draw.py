"""One draw of one room, from announcement to result."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from greenroom.admission.decide import Found
from greenroom.admission.draw import (
    RECEIPT_FORMAT,
    Draw,
    Drawn,
    ScheduledDraw,
    commitment,
    entries,
    hold,
    receipt,
)
from greenroom.errors import StorageFailed
from greenroom.ledgers.port import DrawStore, LedgerPort
from greenroom.model.visit import Ticket, make_key


class DrawStanding(msgspec.Struct, frozen=True):
    """`place` and `size` are 0 before the draw, and without participation."""

    receipt: str = ""
    commitment: str = ""
    seed: str = ""
    place: int = 0
    size: int = 0


NOT_TOLD = DrawStanding()


class ReceiptFile(msgspec.Struct, frozen=True):
    """All that a visitor needs to check the published draw."""

    format: str
    room: str
    event: str
    draw: str
    commitment: str
    receipt: str
    prequeue_start_ms: int
    event_start_ms: int
    place: int | None = None
    of: int | None = None


class PrequeueDraw:
    __slots__ = ("_draws", "_room", "commitment", "draw_id", "drawn", "event", "scheduled")

    def __init__(self, scheduled: ScheduledDraw, draws: DrawStore, room: str, event: str) -> None:
        """Raises StorageFailed when the seed cannot be had."""
        self.draw_id = scheduled.draw_id
        self.commitment = commitment(self.draw_id, draws.seed(self.draw_id))
        self.drawn: Drawn | None = None
        self.scheduled = scheduled
        self._draws = draws
        self._room = room
        self.event = event

    def hold(self, ledger: LedgerPort, then: Callable[[StorageFailed | None], None]) -> None:
        """Draws everybody in line from before the start; repeating gives the same draw. Stored
        before any place changes. Calls `then` once.
        """

        def listed(ticket_ids: Sequence[bytes]) -> None:
            self._draws.settle(
                self.draw_id,
                entries(self.draw_id, ticket_ids),
                self._held,
                lambda draw: settled(draw, ticket_ids),
            )

        def settled(draw: Draw | StorageFailed, ticket_ids: Sequence[bytes]) -> None:
            if isinstance(draw, StorageFailed):
                then(draw)
                return
            drawn = Drawn(draw)

            def placed(written: bool) -> None:
                if written:
                    self.drawn = drawn
                then(None if written else StorageFailed("the places drawn cannot be written down"))

            ledger.rekey({ticket_id: drawn.key(ticket_id, 0) for ticket_id in ticket_ids}, placed)

        ledger.before(make_key(self.scheduled.event_start_ms, 0), listed)

    def _held(self, taking_part: Collection[str]) -> Draw:
        return hold(
            self.scheduled, self._draws.seed(self.draw_id), taking_part, self._room, self.event
        )

    def standing(self, ticket: Ticket) -> Ticket:
        if self.drawn is None or ticket.accepted_ms:
            return ticket
        key = self.drawn.key(ticket.id, ticket.key)
        if key == ticket.key:
            return ticket
        return Ticket(ticket.id, key, 0, ticket.checked_ms, ticket.refresh_ms)

    def counting(self, found: Found) -> Found:
        """One whose key was drawn has no spelling yet."""
        counting = [(self.standing(ticket), ticket, value) for ticket, value in found]
        return [(counts, value if counts is ticket else b"") for counts, ticket, value in counting]

    def told(self, ticket_id: bytes) -> DrawStanding:
        """None after the draw for visitors who did not take part."""
        if self.drawn is None:
            return DrawStanding(receipt(self.draw_id, ticket_id), self.commitment)
        place = self.drawn.place(ticket_id)
        if not place:
            return NOT_TOLD
        return DrawStanding(
            receipt(self.draw_id, ticket_id),
            self.commitment,
            self.drawn.seed,
            place,
            self.drawn.size,
        )

    def has_receipt(self, ticket_id: bytes) -> bool:
        return bool(self.told(ticket_id).receipt)

    def receipt_file(self, ticket_id: bytes) -> bytes | None:
        told = self.told(ticket_id)
        if not told.receipt:
            return None
        times = self.scheduled.prequeue_start_ms, self.scheduled.event_start_ms
        found = ReceiptFile(
            RECEIPT_FORMAT,
            self._room,
            self.event,
            self.draw_id,
            told.commitment,
            told.receipt,
            *times,
        )
        if told.place:
            found = msgspec.structs.replace(found, place=told.place, of=told.size)
        return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
