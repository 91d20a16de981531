"""A room's wait table, read from the ledger at most once a second and shared by everybody. While a
distributed ledger fetches a newer one, the old one is sent for at most STALE_MS.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from greenroom.ledgers.port import LedgerPort
from greenroom.model.answer import Answer, AnswerHeaders
from greenroom.model.line_table import FRESH_MS, LOOK_S, LineTable
from greenroom.model.offer import Offer, left_of
from greenroom.model.room import Room
from greenroom.model.visit import Arrival
from greenroom.pages.builtin import READS_TABLE
from greenroom.pages.variables import offer_items
from greenroom.request.admissible import UPDATE_HEADER

STALE_MS = 3_000

_COMMON = (
    (b"Content-Type", b"application/json"),
    (b"X-Robots-Tag", b"noindex"),
    (b"X-Content-Type-Options", b"nosniff"),
)
_SHARED = AnswerHeaders(*_COMMON, (b"Cache-Control", b"public, max-age=1"))
_NOT_KNOWN = Answer(
    503,
    AnswerHeaders(*_COMMON, (b"Cache-Control", b"no-store"), (b"Retry-After", b"%d" % LOOK_S)),
    b'{"greenroomLine":null}',
)

_encode = msgspec.json.encode


def body_of(table: LineTable, offers: tuple[Offer, ...] | None = None) -> bytes:
    """Arrivals are milliseconds from the first one."""
    from_ms = table.knots[0].arrival_ms if table.knots else table.made_ms
    line: dict[str, Any] = {
        "madeMs": table.made_ms,
        "waiting": table.waiting,
        "open": table.open,
        "checkInUpToMs": table.up_to_ms,
        "spreadSeconds": table.spread_s,
        "nextSeconds": LOOK_S,
        "fromMs": from_ms,
        "arrivedMs": [knot.arrival_ms - from_ms for knot in table.knots],
        "ahead": [knot.ahead for knot in table.knots],
        "waitSeconds": [round(knot.wait_s) for knot in table.knots],
    }
    if offers is not None:
        line["offers"] = {
            "soldOut": bool(offers) and left_of(offers) == 0,
            "items": offer_items(offers),
        }
    return _encode({"greenroomLine": line})


def refresh_ms_for(refresh_ms: int, room: Room, arrival: Arrival) -> int:
    """At most `refresh_max_seconds`, +- 10 %, unless the page reads the table."""
    if not room.line_table:
        return refresh_ms
    most_ms = room.refresh_max_seconds * 1000
    if refresh_ms <= most_ms or (arrival.header(UPDATE_HEADER) or b"").endswith(READS_TABLE):
        return refresh_ms
    return most_ms * 9 // 10 + refresh_ms % (most_ms // 5)


class SharedTable:
    __slots__ = (
        "_answer",
        "_asked_ms",
        "_asking",
        "_ledger",
        "_made_ms",
        "_offers",
        "_until_ms",
        "_waiting",
    )

    def __init__(self, ledger: LedgerPort, offers: tuple[Offer, ...] | None = None) -> None:
        self._ledger = ledger
        self._offers = offers
        self._answer: Answer = _NOT_KNOWN
        self._until_ms = self._made_ms = self._asked_ms = 0
        self._asking = False
        self._waiting: list[Callable[[Answer], None]] = []

    def answer(self, now_ms: int, later: Callable[[Answer], None]) -> Answer | None:
        """None: `later` gets it, once. Raises what the ledger raises."""
        if now_ms < self._until_ms:
            return self._answer
        if not self._asking:
            self._asking, self._asked_ms = True, now_ms
            try:
                self._ledger.line_table(self._heard)
            except Exception:
                self._asking = False
                raise
            if now_ms < self._until_ms:
                return self._answer
        if now_ms - self._made_ms < STALE_MS:
            return self._answer
        self._waiting.append(later)
        return None

    def _heard(self, table: LineTable | None) -> None:
        self._asking = False
        asked_ms = self._asked_ms
        self._until_ms = asked_ms + FRESH_MS
        if table is not None:
            self._answer, self._made_ms = (
                Answer(200, _SHARED, body_of(table, self._offers)),
                asked_ms,
            )
        elif asked_ms - self._made_ms >= STALE_MS:
            self._answer = _NOT_KNOWN
        waiting, self._waiting = self._waiting, []
        for later in waiting:
            later(self._answer)
