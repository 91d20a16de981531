"""A session follows its visitor to another data center, with its unit of capacity.

Both sides repeat themselves until they are confirmed:

    new ledger                       coordinator                      old ledger
        -- claim (id, home) -->                   -- wanted (id, to) -->
                                                  <-- given (id, to, age) --   ends the session
        <-- arrived (id, age) --     moves one unit, once
    takes the session

What was given and what has arrived are absolute counts, so a late or repeated message moves
nothing. docs/explanation/admission.md has the rules, also for lost state.
"""

from collections import deque
from dataclasses import dataclass

import msgspec

from greenroom.admission.messages.places import PlacesDown, PlacesUp
from greenroom.admission.messages.turns import TurnsDown, TurnsUp

NOWHERE = ""
"""Home in the claim of a ticket that is over: it can find a unit booked since, never an orphan,
because the session may have ended before its ledger lost its state.
"""

CLAIMS_MAX = 1_000
"""40 KB. Further visitors who moved within one sync wait for the next."""

KEPT_MAX = 1_000
"""Gifts on their way that are reported again, without the oldest, whose takers are cut off."""


class MovesUp(msgspec.Struct, frozen=True, array_like=True):
    given: int  # sessions ended here because their visitor is elsewhere, since the epoch began
    gifts: tuple[
        tuple[bytes, str, int], ...
    ]  # (id, to, age of the last renewal) of the newest, oldest first; at least the unconfirmed
    arrived: int  # sessions taken over, since the epoch began
    claims: tuple[
        tuple[bytes, str, int], ...
    ] = ()  # (id, home, age of the last renewal that the ticket knows) of visitors who are here
    unknown: tuple[bytes, ...] = ()  # wanted, but there is no such session
    kept: tuple[
        tuple[int, bytes, str, int], ...
    ] = ()  # (number, id, to, age) of gifts that are booked and not known to be taken over
    left: tuple[
        tuple[bytes, str], ...
    ] = ()  # (id, to) of sessions that were given away, and are wanted or claimed here
    turns: TurnsUp | None = None
    places: PlacesUp | None = None


class MovesDown(msgspec.Struct, frozen=True, array_like=True):
    given: int  # gifts that are booked
    arrived: int  # sessions booked to this ledger, since the epoch began
    arrivals: tuple[
        tuple[bytes, int], ...
    ] = ()  # (id, age of the last renewal) of the newest, oldest first; at least the unconfirmed
    wanted: tuple[tuple[bytes, str], ...] = ()  # (id, to): end this session, its visitor is there
    denied: tuple[bytes, ...] = ()  # claims on a session that no ledger has
    taken: tuple[int, ...] = ()  # numbers of `kept` gifts that are no longer on their way
    sources: tuple[str, ...] = ()  # of each arrival, which gift it is; empty: none
    turns: TurnsDown | None = None
    places: PlacesDown | None = None


@dataclass(slots=True)
class Claim:
    home: str
    renewed_ms: int
    since_ms: int
    served_ms: int = 0
    """The last page served on trust."""
    denied: bool = False


class Moves:
    __slots__ = (
        "_gifts",
        "_kept",
        "_unknown",
        "_unknown_told",
        "arrived",
        "claims",
        "denied",
        "elsewhere",
        "given",
        "sources",
        "unconfirmed",
    )

    def __init__(self) -> None:
        self.claims: dict[bytes, Claim] = {}
        self.denied: dict[bytes, int] = {}
        """Id -> last renewal that its ticket knew when no ledger had the session. A ticket without a
        later one may claim again, but is not served on trust meanwhile.
        """
        self.given = 0
        self.arrived = 0
        self.unconfirmed = 0
        """Pages served on trust."""
        self.elsewhere: dict[bytes, tuple[int, str]] = {}
        """Id -> until when it may be wanted, and the data center it was given to."""
        self.sources: dict[str, int] = {}
        """Gift taken over -> when it is forgotten: a coordinator that has lost its state may bring
        one again.
        """
        self._gifts: deque[tuple[bytes, str, int]] = deque()  # those that are not booked
        self._kept: dict[int, tuple[bytes, str, int]] = {}  # those on their way, by number
        self._unknown: set[bytes] = set()
        self._unknown_told: set[bytes] = set()

    @property
    def net(self) -> int:
        """Units that came less those that went."""
        return self.arrived - self.given

    def claim(self, ticket_id: bytes, home: str, renewed_ms: int, now_ms: int) -> Claim:
        found = self.claims.get(ticket_id)
        if found is None:
            found = self.claims[ticket_id] = Claim(home, renewed_ms, now_ms)
        return found

    def give(self, ticket_id: bytes, to: str, renewed_ms: int, until_ms: int) -> None:
        self.given += 1
        self.elsewhere[ticket_id] = (until_ms, to)
        self._gifts.append((ticket_id, to, renewed_ms))

    def missing(self, ticket_id: bytes) -> None:
        if all(ticket_id != gift[0] for gift in (*self._gifts, *self._kept.values())):
            self._unknown.add(ticket_id)

    def found(self, ticket_id: bytes) -> None:
        self.elsewhere.pop(ticket_id, None)
        self._unknown.discard(ticket_id)
        self._unknown_told.discard(ticket_id)

    def report(
        self, life_ms: int, turns: TurnsUp | None, places: PlacesUp | None, now_ms: int
    ) -> MovesUp | None:
        """None while no visitor has ever moved."""
        self.elsewhere = {one: given for one, given in self.elsewhere.items() if given[0] > now_ms}
        self.claims = {
            one: claim for one, claim in self.claims.items() if claim.renewed_ms + life_ms > now_ms
        }
        self.denied = {
            one: renewed_ms
            for one, renewed_ms in self.denied.items()
            if renewed_ms + life_ms > now_ms
        }
        self.sources = {
            source: until_ms for source, until_ms in self.sources.items() if until_ms > now_ms
        }
        self._kept = {
            number: gift
            for number, gift in list(self._kept.items())[-KEPT_MAX:]
            if gift[2] + life_ms > now_ms
        }
        if not (self.claims or self.given or self.arrived or self._unknown or turns or places):
            return None
        claims = [
            (one, claim.home, now_ms - claim.renewed_ms)
            for one, claim in self.claims.items()
            if not claim.denied
        ]
        gifts = tuple([(one, to, now_ms - renewed_ms) for one, to, renewed_ms in self._gifts])
        self._unknown_told |= self._unknown
        kept = [
            (number, one, to, now_ms - renewed_ms)
            for number, (one, to, renewed_ms) in self._kept.items()
        ]
        return MovesUp(
            self.given,
            gifts,
            self.arrived,
            tuple(claims[:CLAIMS_MAX]),
            tuple(self._unknown_told),
            tuple(kept),
            tuple(
                [
                    (one, self.elsewhere[one][1])
                    for one in (*self._unknown_told, *[one for one, *_ in claims[:CLAIMS_MAX]])
                    if one in self.elsewhere
                ]
            ),
            turns,
            places,
        )

    def confirm(self, down: MovesDown, newest: bool) -> None:
        """`newest`: it answers the last report."""
        for _ in range(len(self._gifts) - (self.given - down.given)):
            number = self.given - len(self._gifts) + 1
            self._kept[number] = self._gifts.popleft()
        for number in down.taken:
            self._kept.pop(number, None)
        if newest:
            self._unknown -= self._unknown_told
            self._unknown_told.clear()
        for ticket_id in down.denied:
            claim = self.claims.get(ticket_id)
            if claim:
                claim.denied = True

    def new_arrivals(self, down: MovesDown) -> tuple[tuple[bytes, int, str], ...]:
        """(id, age, source). Counts them as taken."""
        new = min(len(down.arrivals), max(0, down.arrived - self.arrived))
        self.arrived += new
        sources = down.sources or ("",) * len(down.arrivals)
        found = [(*one, source) for one, source in zip(down.arrivals, sources, strict=True)]
        return tuple(found[len(found) - new :])

    def is_again(self, source: str, until_ms: int) -> bool:
        """Notes a gift; returns whether it was taken over before."""
        if not source:
            return False
        again = source in self.sources
        self.sources[source] = until_ms
        return again
