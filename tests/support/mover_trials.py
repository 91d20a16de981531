"""A trial of visitors who change data centers while messages go astray and ledgers are lost: what a
ticket that is over may still bring.
"""

from dataclasses import dataclass, replace
from random import Random

from admission_trials import Astray
from admission_world import small_room

from greenroom.admission.lease import CUT_OFF_MS
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.visiting import visit
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing

GAPS_MS = (500, 3_000, 20_000, 40_000, 55_000, 59_000, 61_500)


@dataclass
class Carried:
    """What an accepted ticket says, in true time; and when its visitor comes next."""

    key: int
    home: int
    renewed_ms: int
    served_ms: int
    next_ms: int


class Movers(Astray):
    """Visitors who reach another data center with every other page."""

    def __init__(self, seed: int, room: Room, centers: int) -> None:
        super().__init__(seed, room, centers)
        self.tickets: dict[bytes, Carried] = {}
        self.lost_of: dict[bytes, int] = {}
        """Sessions of ledgers that were lost: until when they last."""
        self.ended_ms = [0] * centers
        self.searched: set[bytes] = set()
        self.back = 0
        """Searched sessions that came."""

    def _crash(self, index: int) -> None:
        skew = self.skews[index]
        self.lost_of |= {one: ends_ms - skew for one, ends_ms in self.inside[index].items()}
        self.inside[index].clear()
        old = self.ledgers[index]
        self.ledgers[index] = Ledger(self.room, old.data_center, old.epoch + 1, self._local(index))
        self.ended_ms[index] = self.ledgers[index].all_ended_ms

    def _end_all(self) -> None:
        self.room = replace(self.room, sessions_ended_ms=self.now_ms)
        self.coordinator.configure(self.room)
        for index, ledger in enumerate(self.ledgers):
            ledger.configure(self.room, self._local(index))
            ledger.log.clear()
            self.ended_ms[index] = self._local(index)
            self.inside[index].clear()
        self.lost_of.clear()  # their units are not free before they are over

    def _active(self) -> int:
        here = {
            one: ends_ms - self.skews[index]
            for index, inside in enumerate(self.inside)
            for one, ends_ms in inside.items()
        }
        return sum(1 for ends_ms in (self.lost_of | here).values() if ends_ms > self.now_ms)

    def _entered(self, index: int, one: bytes, key: int, outcome: Outcome) -> None:
        super()._entered(index, one, key, outcome)
        self._given(index, one, key, outcome)

    def _given(self, index: int, one: bytes, key: int, outcome: Outcome) -> None:
        renewed_ms = outcome.renewed_ms - self.skews[index]
        next_ms = self.now_ms + self.draw.choice(GAPS_MS)
        self.tickets[one] = Carried(
            key, index, renewed_ms, renewed_ms + outcome.refresh_ms, next_ms
        )

    def _browse(self, index: int) -> None:
        if self.draw.random() < 0.001:
            self._end_all()
        due = [one for one, carried in self.tickets.items() if carried.next_ms <= self.now_ms]
        if due:
            self._page(self.draw.choice(due), index)

    def _page(self, one: bytes, index: int) -> None:
        ticket, ledger, local_ms = self.tickets[one], self.ledgers[index], self._local(index)
        skew, life_ms = self.skews[index], ledger.life_ms
        renewed_ms, served_ms = ticket.renewed_ms + skew, ticket.served_ms + skew
        over, here = local_ms >= renewed_ms + life_ms, one in ledger.sessions.inside
        before = (
            ledger.lease.permits,
            ledger.lease.freed,
            ledger.lease.used,
            dict(ledger.line.slots),
        )
        outcome = (
            ledger.view(one, local_ms)
            if here
            else visit(
                ledger,
                one,
                ticket.key,
                self.ledgers[ticket.home].data_center,
                renewed_ms,
                served_ms,
                local_ms,
                self.draw.getrandbits(64),
            )
        )
        standing = outcome.standing
        after = (
            ledger.lease.permits,
            ledger.lease.freed,
            ledger.lease.used,
            dict(ledger.line.slots),
        )
        if over and not here:
            self.law(
                standing is Standing.GONE or outcome.searching,
                f"a ticket that is over is {standing!r} before its session has come",
            )
            self.law(before == after, "a ticket that is over spent a permit, or took a place")
        if outcome.searching:
            self.searched.add(one)
            near = local_ms >= renewed_ms + life_ms - CUT_OFF_MS
            self.law(near and not here, "a session was searched without need")
            most_ms = max(served_ms, renewed_ms + CUT_OFF_MS)
            self.law(local_ms < most_ms + life_ms, "a session is searched that must be over")
        if renewed_ms <= self.ended_ms[index] and not here:
            self.law(standing is Standing.GONE, "an operator ended this session")
        ledger.log.clear()
        if standing is Standing.GONE:
            del self.tickets[one]
        elif standing is Standing.WAITING:
            ticket.next_ms = self.now_ms + 1_000
        elif one in ledger.sessions.inside:
            self.back += over and one in self.searched
            for inside in self.inside:
                inside.pop(one, None)
            self.lost_of.pop(one, None)
            if standing is Standing.ADMITTED:
                self._entered(index, one, ticket.key, outcome)
            else:
                self.inside[index][one] = outcome.expires_ms
                self._given(index, one, ticket.key, outcome)
        else:
            ticket.served_ms = ticket.renewed_ms + outcome.refresh_ms
            ticket.next_ms = self.now_ms + self.draw.choice(GAPS_MS)

    def law(self, holds: bool, problem: str) -> None:
        if not holds:
            self.found.append(problem)


def tickets_that_are_over(seeds: range = range(12), steps: int = 2_500) -> list[str]:
    """A ticket that is over brings no page, permit or place before its session has come, and no
    session when an operator has ended all; and no limit is passed, whatever is lost meanwhile.
    """
    found: list[str] = []
    back = 0
    for seed in seeds:
        draw = Random(seed)
        room = small_room(
            total_active_users=draw.choice((2, 20, 40)), new_users_per_minute=draw.choice((20, 60))
        )
        world = Movers(seed, room, 3)
        found += [f"seed {seed}: {problem}" for problem in world.run(steps)]
        back += world.back
        if found:
            return found
    if back < 5:
        found.append(f"{back} sessions were found: the trial says nothing")
    return found
