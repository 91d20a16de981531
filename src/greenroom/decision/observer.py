"""One frozen event per decision for metrics, analytics, notifications and logs. Subscribers run
inside the request: they must not block; `on_error` receives what they raise.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum

import msgspec

from greenroom.admission.schedule import Effective
from greenroom.decision.room_view import EMPTY, STORAGE_FAILED, RoomView
from greenroom.model.room import Room
from greenroom.model.visit import Arrival, Outcome, Ticket, arrival_ms_of


class Decided(IntEnum):
    """Names in lower case are values of the metric label `result`."""

    UNCOVERED = 0  # no room covers the request
    SUSPENDED = 1
    BYPASSED = 2
    ADMITTED = 3  # let in by this request
    ACTIVE = 4  # has a living session
    HELD = 5  # waits
    PLACELESS = 6  # held without a place, because it can show neither a page nor JSON
    LEFT = 7  # gave up the place in line
    RECEIPT = 8  # saved the receipt of a draw
    REVOKED = 9  # the origin ended the session
    FAILED = 10  # an exception: held, nothing else is known
    PROVISIONAL = 11  # let in for some seconds, because there was room to spare
    UNKNOWN_HOST = 12  # no room, zone or origin names the host: refused
    SEVERAL_ROOMS = (
        13  # the path can be read in several ways, and different rooms cover them: refused
    )
    LINE_TABLE = 14  # was sent the table of the line
    PREFLIGHT = 15  # a CORS preflight of a listed origin: let by
    ENDED = 16  # the visitor ended the session
    NOT_HERE = 17  # asked to leave or to end a session, and there was nothing to end
    MOVE = 18  # continues on another device, or asked how
    CALENDAR = 19  # was sent an entry for a calendar
    SESSION = 20  # asked how long the session lasts, or for more time
    REENTERED = 21  # let in by this request, by the turn that was kept when the origin failed
    CALL = 22  # wants to be called, or asked how


class DecisionEvent(msgspec.Struct, frozen=True, gc=False):
    """`at_ms` is Unix time; `outcome` is None when the ledger was not asked. A revocation has no
    arrival.
    """

    at_ms: int
    decided: Decided
    effective: Effective | None = None
    arrival: Arrival | None = None
    ticket: Ticket | None = None
    outcome: Outcome | None = None

    @property
    def room(self) -> Room | None:
        return self.effective.room if self.effective else None

    @property
    def room_id(self) -> str:
        return self.effective.room.id if self.effective else ""

    @property
    def waited_ms(self) -> int:
        """0 for other decisions."""
        if self.decided is not Decided.ADMITTED or self.ticket is None or self.ticket.accepted_ms:
            return 0
        return max(0, self.at_ms - arrival_ms_of(self.ticket.key))

    @property
    def reason(self) -> str:
        """storage, placeless, prequeue, queue_all, reject, origin or limits; else empty."""
        if self.decided is Decided.PLACELESS:
            return "placeless"
        if self.decided is not Decided.HELD or self.effective is None:
            return ""
        failed = self.outcome is not None and self.outcome.storage_failed
        return RoomView(self.effective, STORAGE_FAILED if failed else EMPTY).state.reason


Observer = Callable[[DecisionEvent], None]


def observed_by(
    observers: Iterable[Observer], on_error: Callable[[BaseException], None]
) -> Observer:
    told = tuple(observers)
    if len(told) == 1:
        return _one_observer(told[0], on_error)

    def observe(event: DecisionEvent) -> None:
        for observer in told:
            try:
                observer(event)
            except Exception as error:
                on_error(error)

    return observe


def _one_observer(observer: Observer, on_error: Callable[[BaseException], None]) -> Observer:
    def observe(event: DecisionEvent) -> None:
        try:
            observer(event)
        except Exception as error:
            on_error(error)

    return observe
