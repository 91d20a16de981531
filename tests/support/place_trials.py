"""A trial of visitors who continue on other devices while several data centers serve the room:
pressed at two places at once, links replayed, reports and answers lost, data centers cut off, the
coordinator killed.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Protocol, Self

import msgspec
import redis
from admission_world import START_MS, ticket_id
from msgspec import structs
from redis_twin import Twin

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.memory import (
    CenterRow,
    StoredCoordinator,
    center_row,
    recalled,
    room_row,
)
from greenroom.admission.coordinator.place_relay import LEARNS_MS
from greenroom.admission.ledger.failing import fail, reenter
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.moving_places import move_among
from greenroom.admission.ledger.visiting import visit
from greenroom.admission.messages.moves import MovesDown
from greenroom.admission.messages.places import PlacesDown
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.decision.moving_place import MOVES_MAX, successor
from greenroom.model.room import Room
from greenroom.model.visit import PLACE_KEPT_MS, Outcome, Standing, make_key

STEP_MS = 250
CUTS_MS = (2_000, 6_000, 40_000)


class Center(Protocol):
    """A ledger of one data center, in memory or in Redis."""

    name: str
    room: Room

    def poll(self, one: bytes, key: int, now_ms: int) -> Outcome: ...

    def view(self, one: bytes, now_ms: int) -> Outcome: ...

    def visit(self, one: bytes, key: int, home: str, renewed_ms: int, now_ms: int) -> Outcome: ...

    def move(self, old: bytes, new: bytes, absent: bool, nonce: int, now_ms: int) -> Outcome: ...

    def fail(self, one: bytes, now_ms: int) -> Outcome: ...

    def reenter(self, one: bytes, key: int, now_ms: int) -> Outcome: ...

    def report(self, now_ms: int) -> SyncUp: ...

    def apply(self, down: SyncDown, now_ms: int) -> None: ...

    def inside(self, now_ms: int) -> int: ...

    def lose(self, now_ms: int) -> None:
        """All of its state."""


class PureCenter:
    def __init__(self, room: Room, name: str) -> None:
        self.name, self.room = name, room
        self.lose(START_MS)
        self.bits = Random(name).getrandbits

    def poll(self, one: bytes, key: int, now_ms: int) -> Outcome:
        return self.ledger.poll(one, key, now_ms, self.bits(64))

    def view(self, one: bytes, now_ms: int) -> Outcome:
        return self.ledger.view(one, now_ms)

    def visit(self, one: bytes, key: int, home: str, renewed_ms: int, now_ms: int) -> Outcome:
        return visit(self.ledger, one, key, home, renewed_ms, renewed_ms, now_ms, self.bits(64))

    def move(self, old: bytes, new: bytes, absent: bool, nonce: int, now_ms: int) -> Outcome:
        return move_among(self.ledger, old, new, absent, nonce, now_ms)

    def fail(self, one: bytes, now_ms: int) -> Outcome:
        return fail(self.ledger, one, now_ms)

    def reenter(self, one: bytes, key: int, now_ms: int) -> Outcome:
        return reenter(self.ledger, one, key, now_ms, self.bits(64))

    def report(self, now_ms: int) -> SyncUp:
        self.ledger.sweep(now_ms)
        self.ledger.log.clear()
        return self.ledger.report(now_ms)

    def apply(self, down: SyncDown, now_ms: int) -> None:
        self.ledger.apply(down, now_ms)

    def inside(self, now_ms: int) -> int:
        ledger = self.ledger
        return sum(
            now_ms < (ledger.sessions.renewed(one) or 0) + ledger.life_ms
            for one in ledger.sessions.inside
        )

    def lose(self, now_ms: int) -> None:
        self.ledger = Ledger(self.room, self.name, now_ms, now_ms)


class TwinCenter(Twin):
    """Both ledgers side by side; what they answer differently is in `found`."""

    def __init__(self, server: redis.Redis, room: Room, name: str, now_ms: int = START_MS) -> None:
        self.name = name
        super().__init__(server, room, 1, (name,), here=name, now_ms=now_ms)

    def at(self, now_ms: int) -> Self:
        self.now_ms = now_ms
        return self


class RedisCenter:
    def __init__(self, server: redis.Redis, room: Room, name: str) -> None:
        self.name, self.room, self.server = name, room, server
        self._twin = TwinCenter(server, room, name)

    @property
    def found(self) -> list[str]:
        return self._twin.found

    @property
    def place(self) -> str:
        """What its keys begin with."""
        return self._twin.place

    def poll(self, one: bytes, key: int, now_ms: int) -> Outcome:
        return self._twin.at(now_ms).poll(one, key)

    def view(self, one: bytes, now_ms: int) -> Outcome:
        return self._twin.at(now_ms).view(one)

    def visit(self, one: bytes, key: int, home: str, renewed_ms: int, now_ms: int) -> Outcome:
        return self._twin.at(now_ms).visit(one, key, home, renewed_ms)

    def move(self, old: bytes, new: bytes, absent: bool, nonce: int, now_ms: int) -> Outcome:
        return self._twin.at(now_ms).move_among(old, new, absent, nonce)

    def fail(self, one: bytes, now_ms: int) -> Outcome:
        return self._twin.at(now_ms).fail(one)

    def reenter(self, one: bytes, key: int, now_ms: int) -> Outcome:
        return self._twin.at(now_ms).reenter(one, key)

    def report(self, now_ms: int) -> SyncUp:
        return self._twin.at(now_ms).report()[0]

    def apply(self, down: SyncDown, now_ms: int) -> None:
        self._twin.at(now_ms).apply(msgspec.structs.replace(down, wait_table=None))

    def inside(self, now_ms: int) -> int:
        ledger = self._twin.ledgers
        return sum(
            now_ms < (ledger.sessions.renewed(one) or 0) + ledger.life_ms
            for one in ledger.sessions.inside
        )

    def lose(self, now_ms: int) -> None:
        self.server.delete(*self.server.keys(f"{self.place}:*"))
        found, self._twin = self.found, TwinCenter(self.server, self.room, self.name, now_ms)
        self.found.extend(found)


@dataclass
class Device:
    """A browser with one ticket. `home`: of the session, once it has been inside."""

    one: bytes
    seen_ms: int
    home: str = ""
    renewed_ms: int = 0
    told: bool = False
    """That another device has the place; it asks no more, unless its visitor takes it back."""


@dataclass
class Press:
    person: "Person"
    old: bytes
    center: Center
    absent: bool
    nonce: int
    link: int


@dataclass
class Person:
    key: int
    devices: list[Device]
    links: list[tuple[bytes, bool, int]] = field(default_factory=list)
    """(id, whether it waits, last check-in) of the ticket that each was made of."""
    owner: Device | None = None
    admitted: int = 0
    over: bool = False


class PlaceTrial:
    def __init__(
        self,
        room: Room,
        centers: list[Center],
        seed: int,
        links: int,
        faults: bool = True,
        arrivals_per_s: float = 2.0,
        losses: float = 0.0,
    ) -> None:
        """`links`: how many are made, about. `losses`: of the state of a ledger, a second,
        not before what the one before it knew is known again.
        """
        self.room, self.centers, self.draw = room, centers, Random(seed)
        self.links_left, self.faults, self.per_step = links, faults, arrivals_per_s / 4
        self.faulty, self.losses = faults or losses > 0, losses / 4
        self.now_ms = START_MS
        self.names = tuple(center.name for center in centers)
        self.coordinator = Coordinator(self.names, room, START_MS)
        self.rows: dict[str, CenterRow] = {}
        self.due_ms = dict.fromkeys(self.names, START_MS)
        self.cut_until_ms = dict.fromkeys(self.names, 0)
        self.stale: list[tuple[Center, SyncDown]] = []
        self.people: list[Person] = []
        self.presses: list[Press] = []
        self.admissions: list[int] = []
        self.owners: dict[bytes, Device] = {}
        self.found: list[str] = []
        self.moved = self.refused = self.used = self.back = self.between = self.kills = 0
        self.replacing = self.lost = self.learned_ms = 0

    # -- one step ----------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
            if self.found:
                return

    def step(self) -> None:
        self.now_ms += STEP_MS
        draw = self.draw
        if self.faults:
            if draw.random() < 0.004:
                name = draw.choice(self.names)
                self.cut_until_ms[name] = self.now_ms + draw.choice(CUTS_MS)
            if draw.random() < 0.003:
                self.kill_coordinator()
        if self.losses and draw.random() < self.losses and self.now_ms >= self.learned_ms:
            draw.choice(self.centers).lose(self.now_ms)
            self.lost, self.learned_ms = self.lost + 1, self.now_ms + LEARNS_MS
            for person in self.people:
                person.admitted = 0  # a session may be lost
        for center in self.centers:
            if self.now_ms >= self.due_ms[center.name]:
                self.due_ms[center.name] = self.now_ms + draw.choice((250, 750, 1_500))
                self.sync(center)
        if draw.random() < self.per_step:
            self.arrives()
        self.press_on()
        for person in self.people:
            if not person.over:
                self.lives(person)
        self.check_limits()

    def sync(self, center: Center) -> None:
        up = center.report(self.now_ms)
        if self.now_ms < self.cut_until_ms[center.name] or (
            self.faults and self.draw.random() < 0.05
        ):
            return
        down = self.coordinator.sync(up, self.now_ms, self.draw.getrandbits(64))
        for name, known in self.coordinator.data_centers.items():
            self.rows[name] = center_row(known, self.coordinator.transfers.on_the_way(name))
        if self.faults and self.draw.random() < 0.05:
            self.stale.append((center, down))
            return
        center.apply(down, self.now_ms)
        if self.faults and self.stale and self.draw.random() < 0.1:
            late = self.stale.pop(self.draw.randrange(len(self.stale)))
            late[0].apply(late[1], self.now_ms)

    def kill_coordinator(self) -> None:
        """The next one reads what was stored before each answer."""
        self.kills += 1
        known = room_row(self.coordinator)
        self.coordinator = recalled(
            self.room, self.names, StoredCoordinator(known, self.rows), self.now_ms
        )

    # -- people ------------------------------------------------------------------------------------

    def arrives(self) -> None:
        number = len(self.people) + 1
        person = Person(make_key(self.now_ms, number), [Device(ticket_id(number), self.now_ms)])
        self.people.append(person)
        person.owner = self.owners[person.devices[0].one] = person.devices[0]

    def lives(self, person: Person) -> None:
        draw = self.draw
        for device in person.devices:
            if not device.told and draw.random() < 0.1:
                self.asks(person, device, draw.choice(self.centers))
            elif device.told and draw.random() < 0.01 and self.links_left > 0:
                self.takes_back(person, device)
        owner = person.owner
        if owner is None:
            return
        if owner.told and not self.faulty and not self.moving(person):
            self.found.append(f"{owner} has moved to no other device")
        if self.links_left <= 0:
            return
        if draw.random() < 0.02:
            self.links_left -= 1
            person.links.append((owner.one, not owner.home, owner.seen_ms))
        if person.links and draw.random() < 0.04:
            link = draw.randrange(len(person.links))
            for center in draw.sample(self.centers, draw.choice((1, 1, 2))):
                self.press(person, link, center)

    def asks(self, person: Person, device: Device, center: Center) -> None:
        now_ms = self.now_ms
        if device.home:
            outcome = center.view(device.one, now_ms)
            if outcome.standing is Standing.GONE and not outcome.moved:
                outcome = center.visit(
                    device.one, person.key, device.home, device.renewed_ms, now_ms
                )
        elif now_ms - device.seen_ms > PLACE_KEPT_MS:
            return
        else:
            outcome = center.poll(device.one, person.key, now_ms)
        self.answered(person, device, center, outcome)

    def answered(self, person: Person, device: Device, center: Center, outcome: Outcome) -> None:
        standing = outcome.standing
        if standing is Standing.ADMITTED:
            self.admissions.append(self.now_ms)
            if device.home:
                self.replacing += 1  # a session that cannot be reached: no second one of its own
            else:
                person.admitted += 1
            if person.admitted > 1:
                self.found.append(f"{person} has entered twice")
        if standing in (Standing.ADMITTED, Standing.ACTIVE):
            trusted = self.losses > 0 and standing is Standing.ACTIVE  # its session is sought
            if device is not person.owner and not (trusted or self.moving(person)):
                self.found.append(f"{device} is inside, and {person.owner} has the place")
            if not device.home or (
                not outcome.refresh_ms and outcome.renewed_ms > device.renewed_ms
            ):
                device.home, device.renewed_ms = center.name, outcome.renewed_ms
        elif standing is Standing.WAITING:
            if not outcome.searching:
                device.seen_ms = self.now_ms
        elif outcome.moved:
            device.told = True
        elif device is person.owner:
            if device.home and (
                self.faulty or self.now_ms >= device.renewed_ms + self.room.session_ms
            ):
                person.over = True  # it did not follow in time: `admission_trials` has the laws
            elif not self.moving(person):
                self.found.append(f"{device} has lost its place at {center.name}")

    def moving(self, person: Person) -> bool:
        return any(press.person is person for press in self.presses)

    # -- moves -------------------------------------------------------------------------------------

    def press(self, person: Person, link: int, center: Center) -> None:
        old, waits, seen_ms = person.links[link]
        absent = waits and self.now_ms - seen_ms <= PLACE_KEPT_MS
        nonce = self.draw.getrandbits(32)
        self.presses.append(Press(person, old, center, absent, nonce, link))

    def takes_back(self, person: Person, device: Device) -> None:
        """From the id to which the data center's answers lead."""
        holder, center = device.one, self.draw.choice(self.centers)
        for _ in range(MOVES_MAX):
            if not center.view(holder, self.now_ms).moved:
                break
            holder = successor(holder)
        if holder == device.one:
            return
        absent = not device.home and self.now_ms - device.seen_ms <= PLACE_KEPT_MS
        nonce = self.draw.getrandbits(32)
        self.presses.append(Press(person, holder, center, absent, nonce, -1))
        self.links_left -= 1

    def press_on(self) -> None:
        """As the data center of each press does until it knows."""
        waiting, self.presses = self.presses, []
        for press in waiting:
            new = successor(press.old)
            outcome = press.center.move(press.old, new, press.absent, press.nonce, self.now_ms)
            if outcome.searching and not outcome.storage_failed:
                self.presses.append(press)
                continue
            if outcome.storage_failed:
                self.refused += 1
            elif outcome.standing is Standing.GONE:
                self.used += 1
            else:
                self.has_moved(press, new)

    def has_moved(self, press: Press, new: bytes) -> None:
        person = press.person
        self.moved += 1
        self.back += press.link < 0
        if new in self.owners:
            self.found.append(f"{press.old.hex()} was moved twice, for {person}")
            return
        device = Device(new, self.now_ms)
        self.owners[new] = device
        person.devices.append(device)
        person.owner = device
        self.asks(person, device, press.center)  # the page behind the link goes on to the room

    # -- laws --------------------------------------------------------------------------------------

    def check_limits(self) -> None:
        recent = [at_ms for at_ms in self.admissions[-200:] if at_ms > self.now_ms - 60_000]
        if len(recent) > self.room.new_users_per_minute:
            self.found.append(f"{len(recent)} were admitted in a minute")
        inside = sum(center.inside(self.now_ms) for center in self.centers)
        if inside > self.room.total_active_users:
            self.found.append(f"{inside} are inside")


Ask = tuple[bytes, bytes, str, int, int]


class TwoCenters:
    """The first one can be cut off. A visitor who has not checked in yet moves."""

    def __init__(self, centers: list[Center]) -> None:
        self.trial = PlaceTrial(centers[0].room, centers, 1, 0, faults=False)
        self.here, self.there = centers
        self.one, self.new = ticket_id(1), successor(ticket_id(1))
        self.sync(3, *centers)

    @property
    def now_ms(self) -> int:
        return self.trial.now_ms

    def sync(self, rounds: int, *centers: Center, every_ms: int = 1_000) -> None:
        for _ in range(rounds):
            self.trial.now_ms += every_ms
            for center in centers:
                self.trial.sync(center)

    def move(self, center: Center, old: bytes, nonce: int = 7) -> Outcome:
        """The same press, however often."""
        return center.move(old, successor(old), True, nonce, self.now_ms)

    def asks(self, center: Center, one: bytes) -> Outcome:
        return center.poll(one, make_key(START_MS, 1), self.now_ms)

    def admits(self, center: Center, one: bytes, *centers: Center) -> bool:
        """Within six seconds, in which all of these sync."""
        for _ in range(6):
            for each in centers:
                self.sync(1, each, every_ms=1_000 // len(centers))
                if self.asks(center, one).standing is Standing.ADMITTED:
                    return True
        return False

    def fill(self, center: Center) -> None:
        """With other visitors, until one has to wait."""
        one = ticket_id(100 + self.now_ms)
        while center.poll(one, make_key(self.now_ms, 2), self.now_ms).standing is Standing.ADMITTED:
            self.sync(1, center)
            one = ticket_id(100 + self.now_ms)

    def turn_after_a_failure(self, center: Center, one: bytes) -> Outcome:
        self.keeps_a_turn(center, one)
        return center.reenter(one, make_key(START_MS, 1), self.now_ms)

    def keeps_a_turn(self, center: Center, one: bytes) -> None:
        """The visitor enters, the origin fails, and the session is over."""
        while self.asks(center, one).standing is not Standing.ADMITTED:
            self.sync(1, self.here, self.there, every_ms=2_000)
        assert center.fail(one, self.now_ms).standing is Standing.ACTIVE
        self.sync(8, self.here, self.there, every_ms=9_000)
        self.fill(center)

    def relays(self, center: Center, *asks: Ask) -> tuple[tuple[bytes, str, int, int, int], ...]:
        """To this data center; returns what it says of them."""
        self.tells(center, places=PlacesDown(asks))
        return self.said(center)

    def tells(self, center: Center, **what: object) -> None:
        up = center.report(self.now_ms)
        down = self.trial.coordinator.sync(up, self.now_ms, 0)
        moves = structs.replace(down.moves or MovesDown(0, 0), **what)
        center.apply(structs.replace(down, moves=moves), self.now_ms)

    def said(self, center: Center) -> tuple[tuple[bytes, str, int, int, int], ...]:
        moves = center.report(self.now_ms).moves
        return moves.places.said if moves and moves.places else ()

    def has_moved(self, center: Center, old: bytes) -> bool:
        """A place, by the same press."""
        found = self.move(center, old)
        return found.standing is Standing.WAITING and not (found.searching or found.storage_failed)

    def pressed_at_one_moment(self) -> list[bool]:
        """Who is refused."""
        presses = ((self.here, 8), (self.there, 7))
        for center, nonce in presses:
            assert self.move(center, ticket_id(9), nonce).searching
        self.sync(6, self.here, self.there)
        return [self.move(center, ticket_id(9), nonce).storage_failed for center, nonce in presses]

    def takes_back_what_has_not_moved(self, cut_s: int) -> Outcome:
        """While the end of the cancelled move is on its way to a data center."""
        here, there = self.here, self.there
        assert self.move(here, self.one).searching
        self.sync(1, here, there)
        self.sync(cut_s // 10, there, every_ms=10_000)
        assert self.move(here, self.one).storage_failed
        assert there.view(self.one, self.now_ms).moved
        assert self.move(there, self.new).searching
        self.sync(6, there, here)
        return self.move(there, self.new)
