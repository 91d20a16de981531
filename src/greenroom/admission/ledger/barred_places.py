"""A ledger's state of moves to another device among several data centers (`messages.places`)."""

from dataclasses import dataclass
from typing import NamedTuple

from greenroom.admission.messages.places import ASK
from greenroom.model.visit import Outcome, Standing

HELD_MS = 1_000
"""Retry of a visitor who is held while a session or place is on its way: about two syncs."""

PENDING_MS = 15_000
"""A move that not all data centers have answered by then is cancelled; a session that has not come
this long after the commit is given up. Twice the longest way of a message.
"""

TOLD_MS = 60_000
"""An id that is barred for longer counts as moved: the move's outcome is lost with its ledger."""

SEEN_MS = 600_000
"""Since the coordinator last relayed the question."""

SEEN_MAX: int = 8_000
"""Questions remembered beyond those of the newest message. A forgotten one that comes again bars a
place that its visitor then takes back.
"""

ASKED_MAX = 4_000
"""Moves begun here in the last half minute or not known everywhere: 130 a second, 160 KB a report.
Further ones are refused: a data center that is cut off answers none.
"""

BARRED_MAX: int = 250_000
"""Ids that have moved, of all data centers: no more moves are begun then. Shortly before, the oldest
are dropped, after an hour or a session.
"""

GONE, MOVED = Outcome(Standing.GONE), Outcome(Standing.GONE, moved=True)
FAILED = Outcome(Standing.WAITING, storage_failed=True)


def held(waiting: int, now_ms: int) -> Outcome:
    return Outcome(Standing.WAITING, 0, 0, now_ms, HELD_MS, 1, 0, waiting, searching=True)


class PlaceMove(NamedTuple):
    old: bytes
    new: bytes
    source: str
    """The data center where it was begun."""
    serial: int


@dataclass(slots=True)
class OpenMove:
    """A move begun here. `nonce` identifies the press: a second one finds the link used."""

    new: bytes
    serial: int
    nonce: int
    absent: bool
    here: int
    """What this ledger knew of the old id."""
    since_ms: int
    phase: int = ASK
    outcome: Outcome | None = None
    done: bool = False
    doubled: bool = False
    """Another data center had a session of the old id too, or one is on its way."""


@dataclass(slots=True)
class Barred:
    source: str
    serial: int
    new: bytes
    at_ms: int
    until_ms: int
    moved: bool
    spent: bool = True
    """False where the id had a session before."""


class MovingPlaces:
    """Times are the ledger's own."""

    __slots__ = ("asked", "barred", "learners", "olds", "said", "seen", "spoken", "tell")

    def __init__(self) -> None:
        self.asked: dict[bytes, OpenMove] = {}
        self.olds: dict[bytes, bytes] = {}
        """New id -> old one, of `asked`."""
        self.barred: dict[bytes, Barred] = {}
        self.seen: dict[tuple[bytes, str], tuple[tuple[int, int], int, int]] = {}
        """(id, source) -> newest (serial, phase), answer, and when it is forgotten."""
        self.said: tuple[tuple[bytes, str, int, int, int], ...] = ()
        self.spoken = False
        self.tell = 0
        self.learners: tuple[str, ...] = ()

    def arrives(self, ticket_id: bytes) -> bool:
        """Whether a move to this id is open. Until its end is known everywhere, another data center
        may treat the id as the holder of a place that stayed.
        """
        asked = self.asked.get(self.olds.get(ticket_id, b""))
        return asked is not None and not asked.done

    def told(self, ticket_id: bytes, waiting: int, now_ms: int) -> Outcome | None:
        """The answer to a ticket of this id; None: it is not barred."""
        barred = self.barred.get(ticket_id)
        if barred is None or now_ms >= barred.until_ms:
            return None
        if barred.moved or now_ms - barred.at_ms >= TOLD_MS:
            return MOVED
        return held(waiting, now_ms)
