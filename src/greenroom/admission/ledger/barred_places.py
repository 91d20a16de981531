"""What a ledger knows of moves to another device among several data centers (`messages.places`)."""

from dataclasses import dataclass

from greenroom.admission.messages.places import ASK
from greenroom.model.visit import Outcome, Standing

HELD_MS = 1_000
"""Retry of a visitor who is held while a session or place is on its way: two syncs take about as long."""

PENDING_MS = 15_000
"""A move that not all data centers have answered by then is cancelled; one whose session has not
come so long after that is given up. Twice the longest way of a message.
"""

TOLD_MS = 60_000
"""An id that is barred for longer has moved: what became of the move is lost with its ledger."""

SEEN_MS = 600_000
"""After the last time that the coordinator relayed the question."""

SEEN_MAX: int = 8_000
"""Questions that are remembered beyond those of the newest message; the newest ones. One that is
forgotten and comes again bars a place that its visitor then takes back.
"""

ASKED_MAX = 4_000
"""Moves that were begun here in the last half minute, or are not known everywhere yet: 130 a second,
160 KB a report. Further ones are refused: a data center that is cut off answers none of them.
"""

BARRED_MAX: int = 250_000
"""Ids that have moved, of all data centers. With nearly so many the oldest go, after an hour or a session;
with so many no more moves are begun.
"""

GONE, MOVED = Outcome(Standing.GONE), Outcome(Standing.GONE, moved=True)
FAILED = Outcome(Standing.WAITING, storage_failed=True)


def held(waiting: int, now_ms: int) -> Outcome:
    """Until it is known whether the place moves."""
    return Outcome(Standing.WAITING, 0, 0, now_ms, HELD_MS, 1, 0, waiting, searching=True)


@dataclass(slots=True)
class OpenMove:
    """A move that was begun here. `nonce`: of the press; a second one finds the link used."""

    new: bytes
    serial: int
    nonce: int
    absent: bool
    here: int
    """What was known of the old id here."""
    since_ms: int
    phase: int = ASK
    outcome: Outcome | None = None
    done: bool = False
    doubled: bool = False
    """Another data center had a session of the old id as well, or one is on its way."""


@dataclass(slots=True)
class Barred:
    source: str
    serial: int
    new: bytes
    at_ms: int
    until_ms: int
    moved: bool
    spent: bool = True
    """Not where the id had a session before."""


class MovingPlaces:
    """Times are the ledger's own."""

    __slots__ = ("asked", "barred", "learners", "olds", "said", "seen", "spoken", "tell")

    def __init__(self) -> None:
        self.asked: dict[bytes, OpenMove] = {}
        self.olds: dict[bytes, bytes] = {}
        """New id -> old one, of `asked`."""
        self.barred: dict[bytes, Barred] = {}
        self.seen: dict[tuple[bytes, str], tuple[tuple[int, int], int, int]] = {}
        """(id, source) -> newest (serial, phase), answer, and until when that is remembered."""
        self.said: tuple[tuple[bytes, str, int, int, int], ...] = ()
        self.spoken = False
        self.tell = 0
        self.learners: tuple[str, ...] = ()
        """Of the newest answer."""

    def arrives(self, ticket_id: bytes) -> bool:
        """Whether a move to this id is open: a data center that has not heard of its end may take
        it for the holder of a place that has stayed where it was.
        """
        asked = self.asked.get(self.olds.get(ticket_id, b""))
        return asked is not None and not asked.done

    def told(self, ticket_id: bytes, waiting: int, now_ms: int) -> Outcome | None:
        """What a ticket of this id is answered; None: it is not barred."""
        barred = self.barred.get(ticket_id)
        if barred is None or now_ms >= barred.until_ms:
            return None
        if barred.moved or now_ms - barred.at_ms >= TOLD_MS:
            return MOVED
        return held(waiting, now_ms)
