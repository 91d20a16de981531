"""One draw of one room, from announcement to result."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from greenroom.admission.decide import Found
from greenroom.admission.draw import (
    RECEIPT_FORMAT,
    SPAN_MS,
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
from greenroom.model.visit import AWAY, NO_HOME, Ticket, make_key

CLOSING_MS = 20_000
"""Before the start no move begins: it could take until after it."""


CLOCKS_MS = 5_000
"""By which those of two machines may differ."""


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
    __slots__ = (
        "_draws", "_room", "_settled", "commitment", "draw_id", "drawn", "event", "scheduled",
    )  # fmt: skip

    def __init__(self, scheduled: ScheduledDraw, draws: DrawStore, room: str, event: str) -> None:
        """Raises StorageFailed when the seed cannot be had."""
        self.draw_id = scheduled.draw_id
        self.commitment = commitment(self.draw_id, draws.seed(self.draw_id))
        self.drawn: Drawn | None = None
        self._settled: Drawn | None = None
        self.scheduled = scheduled
        self._draws = draws
        self._room = room
        self.event = event

    def hold(self, ledger: LedgerPort, then: Callable[[StorageFailed | None], None]) -> None:
        """Draws everybody in line from before the start; repeating gives the same draw. Stored
        before any place changes. Who came into line meanwhile is behind all who were drawn. Calls
        `then` once.
        """
        start_key = make_key(self.scheduled.event_start_ms, 0)

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
            # tickets count by it from now on, so nobody comes into line by an earlier key any more
            drawn = self._settled = Drawn(draw)

            def place(late: Sequence[bytes], placed: Callable[[bool], None]) -> None:
                ledger.rekey({ticket_id: drawn.key(ticket_id, 0) for ticket_id in late}, placed)

            def placed(written: bool) -> None:
                if written:
                    self.drawn = drawn
                then(None if written else StorageFailed("the places drawn cannot be written down"))

            def rest(written: bool) -> None:
                if written:
                    ledger.before(drawn.first_key, lambda late: place(late, placed))
                else:
                    placed(False)

            place([one for one in ticket_ids if drawn.place(one)], rest)

        ledger.before(start_key, listed)

    def _held(self, taking_part: Collection[str]) -> Draw:
        return hold(
            self.scheduled, self._draws.seed(self.draw_id), taking_part, self._room, self.event
        )

    def key(self, ticket_id: bytes, key: int) -> int:
        """By which a place of this key counts."""
        return key if self._settled is None else self._settled.key(ticket_id, key)

    def _is_drawn(self, key: int) -> bool:
        return key < make_key(self.scheduled.event_start_ms, 0)

    @property
    def _opens_ms(self) -> int:
        """By the clocks of all machines."""
        return self.scheduled.prequeue_start_ms + CLOCKS_MS

    def is_closing(self, now_ms: int) -> bool:
        return self.drawn is None and now_ms >= self.scheduled.event_start_ms - CLOSING_MS

    def arrival_ms(self, now_ms: int) -> int:
        """Of a newcomer."""
        start_ms = self.scheduled.event_start_ms
        return start_ms if start_ms - SPAN_MS <= now_ms < start_ms else now_ms

    def standing(self, ticket: Ticket) -> Ticket:
        key = ticket.key if ticket.accepted_ms else self.key(ticket.id, ticket.key)
        if key == ticket.key:
            return ticket
        # A place behind all drawn is kept of somebody away only if the visitor was seen in the
        # pre-queue, in which nobody is admitted: the key no longer says whose turn was before.
        away = self._is_drawn(key) or ticket.checked_ms >= self._opens_ms
        home = AWAY if ticket.home >= AWAY and away else NO_HOME
        return Ticket(ticket.id, key, 0, ticket.checked_ms, ticket.refresh_ms, home)

    def counting(self, found: Found) -> Found:
        """One whose key was drawn has no spelling yet."""
        counting = [(self.standing(ticket), ticket, value) for ticket, value in found]
        return [(counts, value if counts is ticket else b"") for counts, ticket, value in counting]

    def standing_of(self, ticket_id: bytes) -> DrawStanding:
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
        return bool(self.standing_of(ticket_id).receipt)

    def receipt_file(self, ticket_id: bytes) -> bytes | None:
        told = self.standing_of(ticket_id)
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
