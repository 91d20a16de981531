"""The event draw: a random order that every visitor can verify afterwards.

The order is HMAC-SHA-256(seed, list_hash ":" blinded receipt); docs/explanation/fair-draw.md says
what this proves. All hashes are SHA-256 over ASCII text in lower-case hexadecimal, so `sha256sum`
checks them. Rank r of n drawn gets the r-th of the n keys just before the start, so drawn visitors
keep their order and precede all later ones.
"""

import hmac
from collections.abc import Collection, Iterable
from hashlib import sha256

import msgspec

from greenroom.model.event import Event
from greenroom.model.room import Room
from greenroom.model.visit import TIE_BITS, make_key

FORMAT = "greenroom-draw-1"
RECEIPT_FORMAT = "greenroom-receipt-1"
SPAN_MS = 1_000
"""Before the start: keys of this time belong to drawn places. Visitors who arrive in it come after."""

SHORT_DIGITS = 32
"""128 bits: beyond guessing, and still short enough to read aloud."""


class ScheduledDraw(msgspec.Struct, frozen=True):
    room_id: str
    event_id: str
    prequeue_start_ms: int
    event_start_ms: int

    @property
    def draw_id(self) -> str:
        return _hash(
            f"draw:{self.room_id}:{self.event_id}:{self.prequeue_start_ms}:{self.event_start_ms}"
        )[:SHORT_DIGITS]


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """`receipts` are blinded and in the order drawn."""

    format: str = FORMAT
    draw: str
    room: str
    event: str
    room_id: str
    event_id: str
    prequeue_start_ms: int
    event_start_ms: int
    commitment: str
    seed: str
    list_hash: str
    receipts: list[str]


def scheduled_draw_of(room: Room, event: Event) -> ScheduledDraw | None:
    if not event.shuffle_at_event_start or event.prequeue_start_ms is None:
        return None
    return ScheduledDraw(
        room.id, event.id or event.name, event.prequeue_start_ms, event.event_start_ms
    )


def commitment(draw_id: str, seed: bytes) -> str:
    return _hash(f"seed:{draw_id}:{seed.hex()}")


def receipt(draw_id: str, ticket_id: bytes) -> str:
    return _hash(f"ticket:{draw_id}:{ticket_id.hex()}")[:SHORT_DIGITS]


def blinded(receipt: str) -> str:
    return _hash(f"receipt:{receipt}")


def list_hash(draw_id: str, receipts: Iterable[str]) -> str:
    joined = "\n".join(sorted(receipts))
    return _hash(f"list:{draw_id}:{joined}")


def entries(draw_id: str, ticket_ids: Iterable[bytes]) -> list[str]:
    return [blinded(receipt(draw_id, ticket_id)) for ticket_id in ticket_ids]


def hold(
    scheduled: ScheduledDraw, seed: bytes, taking_part: Collection[str], room: str, event: str
) -> Draw:
    """Deterministic for a seed and entries. About 4 us a ticket."""
    draw_id = scheduled.draw_id
    closed = list_hash(draw_id, taking_part)
    return Draw(
        draw=draw_id,
        room=room,
        event=event,
        room_id=scheduled.room_id,
        event_id=scheduled.event_id,
        prequeue_start_ms=scheduled.prequeue_start_ms,
        event_start_ms=scheduled.event_start_ms,
        commitment=commitment(draw_id, seed),
        seed=seed.hex(),
        list_hash=closed,
        receipts=sorted(
            taking_part, key=lambda one: hmac.digest(seed, f"{closed}:{one}".encode(), "sha256")
        ),
    )


class Drawn:
    __slots__ = ("_draw_id", "_floor_key", "_places", "first_key", "seed")

    def __init__(self, draw: Draw) -> None:
        self.seed = draw.seed
        self._draw_id = draw.draw
        self._floor_key = make_key(draw.event_start_ms, 0)
        self._places = {one: place for place, one in enumerate(draw.receipts, 1)}
        self.first_key = self._floor_key - len(self._places)

    @property
    def size(self) -> int:
        return len(self._places)

    def place(self, ticket_id: bytes) -> int:
        """1 is first; 0 for a visitor who did not take part."""
        return self._places.get(blinded(receipt(self._draw_id, ticket_id)), 0)

    def key(self, ticket_id: bytes, key: int) -> int:
        if key >= self._floor_key:
            return key
        place = self.place(ticket_id)
        if place:
            return self.first_key + place - 1
        if key >= max(self.first_key, self._floor_key - (SPAN_MS << TIE_BITS)):
            return key  # drawn, and moved to another device since
        return self._floor_key | int.from_bytes(ticket_id[:4], "big") & (1 << TIE_BITS) - 1


def _hash(text: str) -> str:
    return sha256(f"greenroom {text}".encode()).hexdigest()
