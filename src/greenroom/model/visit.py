"""One visit: arrival, ticket, standing, and what a held visitor is told. Made for every request, so
these are msgspec structs without cycles. Times are Unix milliseconds.
"""

from enum import IntEnum

import msgspec

from greenroom.model.arrival_kind import HeaderSigns
from greenroom.model.offer import Offer

TIE_BITS = 12
"""A key is exact in double precision until 2039."""

TICKET_ID_BYTES = 12
"""A collision among 10^12 tickets is less likely than 10^-4."""

PLACE_KEPT_MS = 300_000

AWAY_MAX_MS = 86_400_000
"""How long the ticket of a visitor who is away may be good."""

CHANGES = ("slower", "faster", "stale")
"""Busier than expected, faster line, nothing new reported for a while."""


RAY_BYTES = 7

RAY_SPREAD, RAY_MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
"""An odd number (2^64 / golden ratio): one to one, and spreads consecutive numbers."""


def make_key(arrival_ms: int, tie: int) -> int:
    """Earlier arrival first, ties broken by `tie` (modulo 2**12)."""
    return arrival_ms << TIE_BITS | tie & (1 << TIE_BITS) - 1


def arrival_ms_of(key: int) -> int:
    return key >> TIE_BITS


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """The facts of one HTTP request, in the one canonical form that is matched and forwarded.
    `host` is lower case without port; header names are lower case; `client` is the visitor's
    address behind trusted proxies. For rules only: `target` as sent, `server` (port 0: unknown),
    `ray` (0: none). `readings` and `otherwise` as in `request.canonical.Target`.
    """

    method: str
    scheme: str
    host: str
    path: str
    query: str
    headers: tuple[tuple[bytes, bytes], ...]
    client: str
    target: bytes = b""
    version: str = "HTTP/1.1"
    server: tuple[str, int] = ("", 0)
    ray: int = 0
    readings: tuple[str, ...] = ()
    facts: dict[bytes, bytes] | None = (
        None  # the same headers by name, given when no name comes twice: a lookup is one probe
    )
    lines: bytes = (
        b""  # the header lines as the visitor sent them, each with CRLF in front; empty: not kept
    )
    signs: HeaderSigns | None = (
        # what the headers say of its kind, where that is known already (core.admissible.signs_in)
        None
    )
    asker: object | None = (
        None  # whose request it is, where a front end knows that already (`proxies.dialect`)
    )
    otherwise: object | None = None
    prefix: str = ""  # the path that a trusted proxy took off the front, as said_prefix reads it

    @property
    def ray_id(self) -> str:
        """16 uniformly distributed hexadecimal digits; or empty."""
        return f"{self.ray * RAY_SPREAD & RAY_MASK:016x}" if self.ray else ""

    def header(self, name: bytes) -> bytes | None:
        """`name` is lower case."""
        if self.facts is not None:
            return self.facts.get(name)
        for key, value in self.headers:
            if key == name:
                return value
        return None

    def values(self, name: bytes) -> tuple[bytes, ...]:
        """`name` is lower case."""
        if self.facts is None:
            return tuple([value for key, value in self.headers if key == name])
        value = self.facts.get(name)
        return () if value is None else (value,)


HOME_BYTES = 6
NO_HOME = bytes(HOME_BYTES)


AWAY = b"\x80" + bytes(HOME_BYTES - 1)
"""A waiting ticket's home is not below this when its visitor may close the page (a mark above the
place that was told).
"""


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """What the cookie carries, sealed. `accepted_ms` is 0 while waiting. `checked_ms`: last
    admission attempt or session renewal that counted; `refresh_ms`: the interval to keep after it,
    or from the renewal to the last page on trust. `home`: of the session; while waiting the place
    that was told in a line of several data centers, or NO_HOME.
    """

    id: bytes
    key: int
    accepted_ms: int
    checked_ms: int
    refresh_ms: int
    home: bytes = NO_HOME


class Standing(IntEnum):
    ADMITTED = 1  # let in by this very operation
    ACTIVE = 2  # has a living session
    WAITING = 3  # held; `position` 0 means the place is not real yet, because no ticket came back
    GONE = 4  # no such session (ended, revoked, never here): treat as a newcomer


class Estimate(msgspec.Struct, frozen=True, gc=False):
    """Quartiles of the seconds until admission. `most_s`: the 95th percentile; 0: unknown.
    `change`: one of CHANGES.
    """

    p25_s: float
    p50_s: float
    p75_s: float
    most_s: float = 0.0
    change: str = ""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """`expires_ms`: end of the session when ADMITTED or ACTIVE. `renewed_ms` goes into the ticket
    as checked_ms. For WAITING: `attempted_ms` is the last attempt that counted, `position` = ahead
    + 1 when in line. `estimate` None: unknown. `storage_failed`: nobody is admitted because it
    could not be written. `called`: one of the next permits is this visitor's. `searching`: held
    while the session is searched; the ticket stays. For ACTIVE on trust `refresh_ms` is the time
    since `renewed_ms`, else 0. Place and counts are those of all data centers; `about`: some of
    them have not reported everybody before this visitor. None: there is only one. `kept_ms`, of a turn
    that the origin's failure has kept (`admission.ledger.failures`): ACTIVE, for how long after the
    session's end; above 0 when GONE: it may be taken; when ADMITTED: it was. `moved`, of GONE: another
    device has the place or session.
    """

    standing: Standing
    expires_ms: int = 0
    renewed_ms: int = 0
    attempted_ms: int = 0
    refresh_ms: int = 0
    position: int = 0
    ahead: int = 0
    waiting: int = 0
    estimate: Estimate | None = None
    storage_failed: bool = False
    called: bool = False
    searching: bool = False
    about: bool | None = None
    kept_ms: int = 0
    moved: bool = False


class Held(msgspec.Struct, frozen=True, gc=False):
    now_ms: int
    method: str
    last_updated_ms: int
    refresh_s: (
        int  # assigned interval after last_updated_ms; 0 = this page does not refresh (reject)
    )
    next_try_s: int = (
        0  # seconds from NOW until the next try: what timers and the Refresh header use
    )
    estimate: Estimate | None = None
    # where there is no estimate: the wait by the rate limit and the visitors ahead alone; 0 = not
    # known
    least_minutes: int = 0
    queue_full: bool = False
    queue_all: bool = False
    position: int = 0  # 0 = not in line (yet)
    ahead: int = 0
    waiting: int = 0
    joined_ms: int = (
        0  # when this visitor first came (arrival_ms_of the ticket's key); 0 = not said
    )
    in_line: bool = False  # the ticket came back: the place is real
    storage_failed: bool = False  # admissions stopped because nothing can be written down
    # why the origin stops admissions: "unhealthy", or "slow" when it is too slow or fails; empty: it
    # does not
    origin_stops: str = ""
    event_active: bool = False
    event_prequeueing: bool = False
    event_start_ms: int = 0
    event_end_ms: int = 0
    shuffle_at_event_start: bool = False
    receipt: str = ""  # for the draw of the pre-queue (`admission.draw`); empty = this visitor takes part in none
    draw_commitment: str = ""
    draw_seed: str = ""  # once the draw was held
    drawn_place: int = 0
    drawn_size: int = 0
    turnstile: str = ""
    infinite_queue: bool = False
    offers: tuple[Offer, ...] | None = None  # None: nobody says what is left
    about: bool = False  # the place is about so: not all data centers have reported who is ahead
    away_minutes: int = 0  # the page may be closed, and the place waits so long after its turn
