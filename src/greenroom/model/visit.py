"""One visit: arrival, ticket, standing, and the data of a waiting page. Made for every request, so
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

RAY_BYTES = 7

RAY_SPREAD, RAY_MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
"""2^64 / golden ratio, odd: one to one, and spreads consecutive numbers."""


def make_key(arrival_ms: int, tie: int) -> int:
    """By arrival, then `tie` (modulo 2**12)."""
    return arrival_ms << TIE_BITS | tie & (1 << TIE_BITS) - 1


def arrival_ms_of(key: int) -> int:
    return key >> TIE_BITS


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """The facts of one HTTP request, in the canonical form that is matched and forwarded. `host` is
    lower case without port; header names are lower case; `client` is the visitor's address behind
    trusted proxies. For rules: `target` as sent, `server` (port 0: unknown), `ray` (0: none).
    `readings` and `otherwise`: as in `request.canonical.Target`.
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
    # the same headers by name, given if no name occurs twice, for quick lookups
    facts: dict[bytes, bytes] | None = None
    lines: bytes = b""  # the header lines as sent, each with CRLF in front; empty: not kept
    # its kind by the headers, where that is known already (`request.admissible.signs_in`)
    signs: HeaderSigns | None = None
    asker: object | None = None  # whose request it is, where a front end knows (`proxies.dialect`)
    otherwise: object | None = None
    prefix: str = ""  # the path that a trusted proxy removed, as stripped_prefix reads it

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
"""A waiting ticket's home is at least this if its visitor may close the page (a mark above the place
that was shown).
"""


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """The sealed content of the cookie. `accepted_ms` is 0 while waiting. `checked_ms`: last admission
    attempt or session renewal that counted; `refresh_ms`: the interval to keep after it, or from the
    renewal to the last page on trust. `home`: of the session; while waiting the place shown in a line
    of several data centers, or NO_HOME.
    """

    id: bytes
    key: int
    accepted_ms: int
    checked_ms: int
    refresh_ms: int
    home: bytes = NO_HOME


class Standing(IntEnum):
    ADMITTED = 1  # by this operation
    ACTIVE = 2  # has a living session
    WAITING = 3  # held; `position` 0: not in line yet, because no ticket came back
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
    """`expires_ms`: end of the session when ADMITTED or ACTIVE. `renewed_ms` becomes the ticket's
    checked_ms. For WAITING: `attempted_ms` is the last attempt that counted, `position` = ahead + 1
    when in line. `storage_failed`: nobody is admitted because nothing can be stored. `called`: one of
    the next permits is this visitor's. `searching`: held while the session is searched; the ticket
    stays. For ACTIVE on trust `refresh_ms` is the time since `renewed_ms`, else 0. Place and counts
    are of all data centers; `about`: some have not reported everybody before this visitor (None: there
    is only one). `kept_ms`, of a turn that the origin's failure has kept
    (`admission.ledger.failures`): ACTIVE: how long after the session's end; GONE, above 0: it may be
    taken; ADMITTED, above 0: it was. `moved`, with GONE: another device has the place or session.
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
    refresh_s: int  # assigned interval after last_updated_ms; 0 = no refresh (reject)
    next_try_s: int = 0  # seconds from now until the next try, for timers and the Refresh header
    estimate: Estimate | None = None
    # without an estimate: the wait by the rate limit and the visitors ahead; 0 = unknown
    least_minutes: int = 0
    queue_full: bool = False
    queue_all: bool = False
    position: int = 0  # 0 = not in line (yet)
    ahead: int = 0
    waiting: int = 0
    joined_ms: int = 0  # when this visitor first came (arrival_ms_of the ticket's key); 0 = unknown
    in_line: bool = False  # the ticket came back
    storage_failed: bool = False  # admissions stopped because nothing can be stored
    # why the origin stops admissions: "unhealthy", "slow" (also failing), or empty
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
    about: bool = False  # the place is approximate: not all data centers have reported who is ahead
    away_minutes: int = 0  # the page may be closed: how long the place waits after its turn
