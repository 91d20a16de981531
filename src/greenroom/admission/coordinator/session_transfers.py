"""The coordinator's side of sessions that follow their visitors (`moves`)."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from greenroom.admission.coordinator.data_center import DataCenter
from greenroom.admission.coordinator.place_relay import PlaceRelay
from greenroom.admission.coordinator.turn_relay import TurnRelay
from greenroom.admission.messages.moves import NOWHERE, MovesDown, MovesUp

KnownDataCenters = Callable[[str], DataCenter | None]
Doubts = Callable[[str], bool]
"""Whether bookings of an earlier coordinator may still be on their way to a data center."""


@dataclass(slots=True)
class PendingTransfers:
    arrivals: deque[tuple[bytes, int, str]] = field(default_factory=deque)
    """(id, last renewal, source) booked to it and not known to be taken over."""
    wanted: dict[bytes, str] = field(default_factory=dict)
    """Sessions there whose visitors are elsewhere."""
    claims: dict[bytes, tuple[str, int, str]] = field(default_factory=dict)
    """Id -> the data center asked, the last renewal that the ticket knows, and its home."""
    denied: set[bytes] = field(default_factory=set)
    missed: set[bytes] = field(default_factory=set)
    """Claims on sessions that are not where their unit was last booked: a kept turn may have begun
    one since in the data center that the ticket names.
    """
    searched: set[bytes] = field(default_factory=set)
    """Claims of tickets that are over (`moves.NOWHERE`)."""
    taken: tuple[int, ...] = ()
    """Numbers of its reported gifts that are no longer on their way."""

    def miss(self, ticket_id: bytes, owner: str, home: str) -> None:
        """`owner` has no such session: `home` is asked too, for a living one only."""
        again = home not in (owner, NOWHERE) and ticket_id not in self.missed
        (self.missed if again else self.denied).add(ticket_id)


class SessionTransfers:
    """All moves of one room."""

    def __init__(
        self, known: KnownDataCenters, doubts: Doubts, names: Callable[[], Iterable[str]]
    ) -> None:
        self._known, self._doubts, self._names = known, doubts, names
        self._turns = TurnRelay()
        self._places = PlaceRelay()
        self._by_data_center: dict[str, PendingTransfers] = {}
        self._whereabouts: dict[bytes, tuple[str, int]] = {}
        """Id -> where its unit was last booked or reported, and when that is forgotten, soonest
        first.
        """

    def begin_epoch(self, name: str, now_ms: int) -> None:
        """The ledger lost its state: what was on its way to it is among its orphans."""
        self._turns.forget(name)
        self._places.forget(name, now_ms)
        pending = self._by_data_center.get(name)
        if pending:
            pending.arrivals.clear()
            pending.taken = ()

    def book(
        self, center: DataCenter, up: MovesUp, now_ms: int, until_ms: int, remembered: int
    ) -> int:
        """Applies counts, in any order. A gift to a doubted data center is not booked yet: an earlier
        coordinator may have booked it. Returns the change of the pool, by such bookings.

        `remembered`: the most units of such bookings that may still be there, among its orphans.
        """
        change = self._book_gifts(center, up, now_ms, until_ms)
        strangers = max(0, up.arrived - center.moved_in)
        if strangers:  # booked by a coordinator before this one
            center.moved_in += strangers
            orphans = min(strangers, center.orphans, remembered)
            center.orphans -= orphans
            change -= strangers - orphans
        center.arrived = max(center.arrived, up.arrived)
        pending = self._by_data_center.get(center.name)
        while pending and len(pending.arrivals) > center.moved_in - center.arrived:
            pending.arrivals.popleft()
        return change

    def _book_gifts(self, center: DataCenter, up: MovesUp, now_ms: int, until_ms: int) -> int:
        """Returns how many gifts an earlier coordinator had booked."""
        before, booked, given = center.moved_out, 0, up.given
        first = up.given - len(up.gifts) + 1
        for number, ticket_id, to, age_ms in (
            *up.kept,
            *((first + place, *gift) for place, gift in enumerate(up.gifts)),
        ):
            if number <= before:
                continue
            if self._doubts(to):
                given = number - 1
                break
            booked += 1
            source = f"{center.name}|{center.epoch}|{number}"
            lost = self._bring(ticket_id, to, now_ms - age_ms, until_ms, source)
            if lost:  # nobody takes it over: unused until the session must have ended
                center.orphans += lost
                center.orphans_until_ms = max(center.orphans_until_ms, until_ms)
        center.moved_out = max(before, given)
        return center.moved_out - before - booked

    def hear(self, center: DataCenter, up: MovesUp, now_ms: int, until_ms: int) -> None:
        """Claims and denials; call it for the newest report only."""
        self._forget(now_ms)
        self._turns.hear(center.name, up.turns, now_ms)
        self._places.hear(center.name, up.places)
        pending = self._pending(center.name)
        pending.taken = tuple(
            [
                number
                for number, ticket_id, to, _ in up.kept
                if number <= center.moved_out and not self._is_on_the_way(ticket_id, to)
            ]
        )
        if self._doubts(center.name):
            return
        self._lost_on_the_way(center, pending, until_ms)
        asked = {ticket_id for ticket_id, _, _ in up.claims}
        for ticket_id in [one for one in pending.claims if one not in asked]:
            self._withdraw(pending, ticket_id, center.name)
        pending.denied &= asked
        pending.missed &= asked
        pending.searched = {ticket_id for ticket_id, home, _ in up.claims if home == NOWHERE}
        left = dict(up.left)
        for ticket_id in up.unknown:
            self._follow(center.name, ticket_id, left, until_ms)
            to = pending.wanted.pop(ticket_id, None)
            if to is None:
                continue
            claimant = self._pending(to)
            missed = ticket_id in claimant.missed
            if not missed and self._is_elsewhere(center, pending, ticket_id):
                continue
            _, renewed_ms, home = claimant.claims[ticket_id]
            if (
                missed
                or ticket_id in claimant.searched
                or not self._orphan(center, ticket_id, to, renewed_ms, until_ms)
            ):
                claimant.miss(ticket_id, center.name, home)
        for ticket_id, home, age_ms in up.claims:
            if home in (center.name, NOWHERE):
                self._follow(center.name, ticket_id, left, until_ms)
            self._claim(center, ticket_id, home, now_ms - age_ms, until_ms)

    def has_learned(self, center: DataCenter, applied: int, now_ms: int) -> bool:
        """Whether the next answer may have permits (`PlaceRelay`)."""
        return not self._places.heard or self._places.has_learned(
            center.name, self._others(center.name), center.answered, applied, now_ms
        )

    def answer(self, center: DataCenter, now_ms: int) -> MovesDown | None:
        """None while no visitor has ever moved."""
        pending = self._by_data_center.get(center.name)
        turns = None
        if self._turns.heard:  # `_others` costs more than the rest of a sync
            turns = self._turns.answer(center.name, self._others(center.name), now_ms)
        places = None
        if self._places.heard:
            places = self._places.answer(center.name, self._others(center.name))
        if not (pending or center.moved_in or center.moved_out or turns or places):
            return None
        pending = pending or PendingTransfers()
        arrivals = tuple([(one, now_ms - renewed_ms) for one, renewed_ms, _ in pending.arrivals])
        return MovesDown(
            center.moved_out,
            center.moved_in,
            arrivals,
            tuple(pending.wanted.items()),
            tuple(pending.denied),
            pending.taken,
            tuple([source for _, _, source in pending.arrivals]),
            turns,
            places,
        )

    def on_the_way(self, name: str) -> tuple[tuple[bytes, int, str], ...]:
        """(id, last renewal, source) booked to a data center and not known to be taken over."""
        pending = self._by_data_center.get(name)
        return tuple(pending.arrivals) if pending else ()

    def recall(self, name: str, arrivals: Iterable[tuple[bytes, int, str]], until_ms: int) -> None:
        """Restores `on_the_way` of an earlier coordinator, and where those units are until
        `until_ms`.
        """
        arrivals = tuple(arrivals)
        self._pending(name).arrivals.extend(arrivals)
        self._whereabouts.update((ticket_id, (name, until_ms)) for ticket_id, *_ in arrivals)

    # -- inside ------------------------------------------------------------------------------------

    def _others(self, name: str) -> list[str]:
        known = ((other, self._known(other)) for other in self._names() if other != name)
        return [
            other for other, center in known if center and not (center.retired or center.given_up)
        ]

    def _pending(self, name: str) -> PendingTransfers:
        return self._by_data_center.setdefault(name, PendingTransfers())

    def _claim(
        self,
        center: DataCenter,
        ticket_id: bytes,
        home: str,
        renewed_ms: int,
        until_ms: int,
    ) -> None:
        pending = self._by_data_center[center.name]
        missed = ticket_id in pending.missed
        owner_name = home if missed else self._whereabouts.get(ticket_id, (home, 0))[0]
        if any(ticket_id == one for one, *_ in pending.arrivals) or ticket_id in pending.denied:
            return
        owner = self._known(owner_name)
        if owner is None or owner is center or owner.retired or owner.given_up:
            if (
                owner is None
                or missed
                or home == NOWHERE
                or not self._orphan(owner, ticket_id, center.name, renewed_ms, until_ms)
            ):
                pending.miss(ticket_id, owner_name, home)
            return
        if pending.claims.get(ticket_id, ("", 0, ""))[0] != owner_name:
            self._withdraw(pending, ticket_id, center.name)
        pending.claims[ticket_id] = owner_name, renewed_ms, home
        self._pending(owner_name).wanted[ticket_id] = center.name

    def _is_elsewhere(
        self, center: DataCenter, pending: PendingTransfers, ticket_id: bytes
    ) -> bool:
        """Whether a ledger rightly lacks the session: its unit was booked to another one or is on its
        way. The claim stays open: the claimant's next report asks the data center that then has it.
        """
        booked = self._whereabouts.get(ticket_id)
        return booked is not None and (
            booked[0] != center.name or any(ticket_id == one for one, *_ in pending.arrivals)
        )

    def _follow(
        self, name: str, ticket_id: bytes, left: Mapping[bytes, str], until_ms: int
    ) -> None:
        """Trusts a ledger about its own gift where nothing newer is known, as after the loss of the
        coordinator that booked it. Only decides whom to ask; moves no unit.
        """
        to = left.get(ticket_id)
        booked = self._whereabouts.get(ticket_id, (name, 0))[0]
        if to and booked == name and not self._is_on_the_way(ticket_id, name):
            self._whereabouts.pop(ticket_id, None)
            self._whereabouts[ticket_id] = (to, until_ms)

    def _is_on_the_way(self, ticket_id: bytes, to: str) -> bool:
        pending = self._by_data_center.get(to)
        return pending is not None and any(ticket_id == one for one, *_ in pending.arrivals)

    def _withdraw(self, pending: PendingTransfers, ticket_id: bytes, claimant: str) -> None:
        claim = pending.claims.pop(ticket_id, None)
        if claim is not None:
            wanted = self._pending(claim[0]).wanted
            if wanted.get(ticket_id) == claimant:
                del wanted[ticket_id]

    def _bring(
        self, ticket_id: bytes, to: str, renewed_ms: int, until_ms: int, source: str = ""
    ) -> int:
        """Books one unit to a data center; returns 1 if nothing runs there."""
        center = self._known(to)
        if center is None or center.retired or center.given_up:
            return 1
        center.moved_in += 1
        pending = self._pending(to)
        pending.arrivals.append((ticket_id, renewed_ms, source))
        self._withdraw(pending, ticket_id, to)
        for other in self._by_data_center.values():
            other.missed.discard(ticket_id)
        self._whereabouts.pop(ticket_id, None)
        self._whereabouts[ticket_id] = (to, until_ms)
        return 0

    def _orphan(
        self, owner: DataCenter, ticket_id: bytes, to: str, renewed_ms: int, until_ms: int
    ) -> bool:
        """Gives one unit of a ledger that lost its state to one of its visitors."""
        if not owner.orphans:
            return False
        owner.orphans -= 1
        owner.orphans += self._bring(ticket_id, to, renewed_ms, until_ms)
        return True

    def _lost_on_the_way(
        self, center: DataCenter, pending: PendingTransfers, until_ms: int
    ) -> None:
        """Units that an earlier coordinator booked to an unknown ledger stay unused until any such
        session must have ended.
        """
        lost = center.moved_in - center.arrived - len(pending.arrivals)
        if lost > 0:
            center.moved_in -= lost
            center.orphans += lost
            center.orphans_until_ms = until_ms

    def lengthen(self, longer_ms: int) -> None:
        self._whereabouts = {
            ticket_id: (to, until_ms + longer_ms)
            for ticket_id, (to, until_ms) in self._whereabouts.items()
        }

    def _forget(self, now_ms: int) -> None:
        while self._whereabouts:
            ticket_id = next(iter(self._whereabouts))
            if self._whereabouts[ticket_id][1] > now_ms:
                break
            del self._whereabouts[ticket_id]
