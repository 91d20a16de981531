"""The coordinator loses its state while sessions follow their visitors and a ledger is lost too: no
unit is given away that a session uses, and no session is lost (though a visitor who turns back while
one is on its way may have to wait for it).
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest
from admission_world import START_MS, small_room, ticket_id
from broken_builds import Break, Broken, found_by, must_be_found

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.coordinator.forgotten import Forgotten
from greenroom.admission.coordinator.session_transfers import SessionTransfers
from greenroom.admission.laws import ledger_problems
from greenroom.admission.lease import Lease
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.visiting import visit
from greenroom.admission.messages.moves import Moves, MovesDown, MovesUp
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.model.visit import Standing, make_key

NAMES = ("fra", "nyc", "sin")
ROOM = small_room(
    total_active_users=6, new_users_per_minute=40, strong_sessions=True, confirm_newcomers=False
)
BROKEN: Broken = []
T = TypeVar("T")


class Installation:
    """Three data centers, one clock, a network that loses messages, and visitors who are let in and
    then ask for another data center now and then.
    """

    def __init__(self, seed: int, visitors: int = 4) -> None:
        self.draw = Random(seed)
        self.now_ms = START_MS
        self.ledgers = {name: Ledger(ROOM, name, 1, START_MS) for name in NAMES}
        for ledger in self.ledgers.values():
            ledger.empty_ms = 0
        self.lose_the_coordinator()
        self.quiet(10)
        self.home: dict[bytes, str] = {}
        self.renewed: dict[bytes, int] = {}
        for number in range(visitors):
            name, one = NAMES[number % 3], ticket_id(number)
            while self.ledgers[name].arrive(one, self.now_ms, 1).standing is not Standing.ADMITTED:
                self.exchange(name, want=1)
                self.now_ms += 300
            self.home[one], self.renewed[one] = name, self.now_ms

    def lose_the_coordinator(self) -> None:
        self.coordinator = Coordinator(NAMES, ROOM, self.now_ms)

    def lose_ledger(self, name: str) -> None:
        """Its visitors are gone, but their sessions are not over yet."""
        self.ledgers[name] = Ledger(ROOM, name, self.ledgers[name].epoch + 1, self.now_ms)

    def exchange(self, name: str, loss: float = 0.0, want: int = 0) -> None:
        ledger = self.ledgers[name]
        ledger.sweep(self.now_ms)
        up = ledger.report(self.now_ms, want)
        if self.draw.random() >= loss:
            down = self.coordinator.sync(up, self.now_ms, self.draw.getrandbits(64))
            if self.draw.random() >= loss:
                ledger.apply(down, self.now_ms)

    def quiet(self, rounds: int) -> None:
        for _ in range(rounds):
            self.now_ms += 300
            for name in NAMES:
                self.exchange(name)

    def page(self, one: bytes, name: str) -> Standing:
        ledger, renewed_ms = self.ledgers[name], self.renewed[one]
        if one in ledger.sessions.inside:
            outcome = ledger.view(one, self.now_ms)
        else:
            outcome = visit(
                ledger,
                one,
                make_key(START_MS, 1),
                self.home[one],
                renewed_ms,
                renewed_ms,
                self.now_ms,
                1,
            )
        if outcome.renewed_ms:
            self.home[one], self.renewed[one] = name, outcome.renewed_ms
        return outcome.standing

    def units(self) -> int:
        """All that may be used: what ledgers hold, and sessions that are in none of them."""
        held = sum(
            one.lease.permits + one.lease.freed + one.lease.closing + len(one.sessions.inside)
            for one in self.ledgers.values()
        )
        return held + sum(self.is_nowhere(one) for one in self.home)

    def is_nowhere(self, one: bytes) -> bool:
        return all(one not in ledger.sessions.inside for ledger in self.ledgers.values())


def moves(seeds: range = range(60)) -> list[str]:
    """What went wrong with sessions that moved."""
    found = []
    for seed in seeds:
        world = Installation(seed)
        draw = world.draw
        where = {one: draw.choice(NAMES) for one in world.home}
        for step in range(150):
            world.now_ms += draw.choice((0, 50, 200))
            one = draw.choice(list(world.home))
            if draw.random() < 0.05:
                where[one] = draw.choice(NAMES)
            world.page(one, where[one])
            world.exchange(draw.choice(NAMES), 0.2, draw.choice((0, 3)))
            if draw.random() < 0.02:
                world.lose_the_coordinator()
            if world.units() > ROOM.total_active_users:
                found.append(f"seed {seed}, step {step}: {world.units()} units")
            for ledger in world.ledgers.values():
                found += ledger_problems(ledger)
        for one in world.home:
            world.page(one, where[one])
        world.quiet(20)
        found += [f"seed {seed}: a session is lost" for one in world.home if world.is_nowhere(one)]
        if found:
            break
    return found


def test_a_session_on_its_way_outlives_the_coordinators_state() -> None:
    assert moves() == []


@found_by(moves, BROKEN)
def names_a_gift_only_until_it_is_booked(patch: pytest.MonkeyPatch) -> None:
    confirm = Moves.confirm

    def forgetful(self: Moves, down: MovesDown, newest: bool) -> None:
        confirm(self, down, newest)
        self._kept.clear()

    patch.setattr(Moves, "confirm", forgetful)


@found_by(moves, BROKEN)
def books_a_gift_before_it_knows_what_its_taker_has(patch: pytest.MonkeyPatch) -> None:
    begin: Callable[..., None] = SessionTransfers.__init__
    patch.setattr(
        SessionTransfers,
        "__init__",
        lambda self, known, _, names: begin(self, known, lambda _: False, names),
    )


@found_by(moves, BROKEN)
def takes_a_gift_again_that_a_second_coordinator_brings(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Moves, "is_again", lambda *_: False)


@found_by(moves, BROKEN)
def takes_a_gift_for_taken_when_it_is_booked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionTransfers, "_is_on_the_way", lambda *_: False)


def lost_together(told: bool = False, first: bool = False, twice: bool = False) -> int:
    """How many permits too many there are when a ledger and the coordinator are lost, with five
    sessions in the ledger; `told`: the coordinator had heard of it, and is gone with the ledger's new state;
    `first`: nobody has a memory, as at a first start; `twice`: a second coordinator is lost when it
    has answered that ledger alone.
    """
    world = Installation(1, 0)
    for number in range(5):
        while (
            world.ledgers["fra"].arrive(ticket_id(number), world.now_ms, 1).standing
            is not Standing.ADMITTED
        ):
            world.now_ms += 1_000
            world.exchange("fra", want=1)
    world.quiet(3)
    for name in NAMES if first else ("fra",):
        world.lose_ledger(name)
    if told:
        world.quiet(3)
        world.ledgers["fra"].empty_ms = 0  # by its reports all is well
    world.lose_the_coordinator()
    if twice:
        world.exchange("fra")
        world.lose_the_coordinator()
    most = 0
    for _ in range(150):
        world.quiet(1)
        for name in NAMES:
            world.exchange(name, want=2)
        most = max(most, sum(ledger.lease.permits for ledger in world.ledgers.values()))
    return most - (ROOM.total_active_users - 5)


def test_what_was_lost_with_a_ledger_is_not_given_away_by_a_coordinator_that_lost_its_state() -> (
    None
):
    assert lost_together() <= 0
    assert lost_together(told=True) <= 0
    assert lost_together(twice=True) <= 0


def test_a_first_start_waits_for_nothing() -> None:
    assert lost_together(first=True) == 5


def lost() -> list[str]:
    found = lost_together(), lost_together(told=True), lost_together(twice=True)
    return [f"{most} permits" for most in found if most > 0]


@found_by(lost, BROKEN)
def trusts_a_ledger_that_has_just_begun(patch: pytest.MonkeyPatch) -> None:
    report = Forgotten.report

    def trusting(self: Forgotten, up: SyncUp, *more: Any) -> Forgotten:
        return report(self, msgspec.structs.replace(up, remembers_ms=0), *more)

    patch.setattr(Forgotten, "report", trusting)


@found_by(lost, BROKEN)
def tells_no_ledger_what_it_alone_knows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "_unknown_ms", lambda *_: 0)


@found_by(lost, BROKEN)
def tells_that_all_is_known_before_it_has_heard_everybody(patch: pytest.MonkeyPatch) -> None:
    tell = Coordinator._unknown_ms
    patch.setattr(Coordinator, "_unknown_ms", lambda *told: max(0, tell(*told)))


@found_by(lost, BROKEN)
def forgets_at_the_first_word_of_the_next_coordinator(patch: pytest.MonkeyPatch) -> None:
    apply = Lease.apply

    def forgetful(self: Lease, down: SyncDown, now_ms: int) -> None:
        apply(self, down, now_ms)
        self.unknown_until_ms = now_ms + down.unknown_ms

    patch.setattr(Lease, "apply", forgetful)


def restored_from_a_copy() -> list[str]:
    """Three sessions, of which the last began after the copy; another one of the copy has ended
    since, twice: in the lost ledger and again in its successor, which has given its unit back.
    """
    coordinator = Coordinator(("fra",), small_room(total_active_users=3), START_MS)

    def report(epoch: int, number: int, granted: int, returned: int) -> None:
        up = SyncUp(
            "fra", epoch, number, START_MS, granted, 0, returned, granted, 0, 0, 0, (), 0, 0, 0, (), 0.0,
            whole=True,
        )  # fmt: skip
        coordinator.sync(up, START_MS, 1)

    report(1, 1, 3, 0)
    report(2, 1, 3, 1)
    granted = coordinator.data_centers["fra"].granted
    return [f"{granted - 3} permits while three are active"] * (granted > 3)


def test_what_a_copy_does_not_know_keeps_its_unit() -> None:
    assert restored_from_a_copy() == []


@found_by(restored_from_a_copy, BROKEN)
def takes_units_that_were_given_back_for_units_that_are_remembered(
    patch: pytest.MonkeyPatch,
) -> None:
    patch.setattr(
        "greenroom.admission.coordinator.coordinator.remembered_units",
        lambda center, up, adopted, returned: adopted,
    )


def lengthened() -> list[str]:
    """Sessions of a lost ledger, which last twice as long a moment later."""
    world = Installation(1)
    world.lose_ledger("fra")
    world.quiet(1)
    (lost,) = (one.orphans for one in world.coordinator.data_centers.values() if one.orphans)
    longer = replace(ROOM, session_duration=2 * ROOM.session_duration)
    world.coordinator.configure(longer)
    for ledger in world.ledgers.values():
        ledger.configure(longer, world.now_ms)
    rounds = (longer.session_ms + ROOM.renewal_age_ms) // 300
    world.quiet(rounds - 1)
    kept = world.coordinator.data_centers["fra"].orphans
    world.quiet(2 * rounds)
    assert world.coordinator.data_centers["fra"].orphans == 0
    return [f"{lost - kept} of {lost} units are given to others"] * (kept < lost)


def test_units_of_a_lost_ledger_wait_until_longer_sessions_are_over() -> None:
    assert lengthened() == []


@found_by(lengthened, BROKEN)
def gives_lost_units_away_when_the_sessions_of_before_are_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coordinator, "_lengthen", lambda *_: None)


@pytest.mark.needs("patching")
@pytest.mark.parametrize(("trial", "build"), BROKEN, ids=[build.__name__ for _, build in BROKEN])
def test_it_finds_a_build_that(
    trial: Callable[[], list[str]], build: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    must_be_found(trial, build, monkeypatch)


def older(message: Any, kind: type[T], fields: int) -> T:
    """The message as a version with so many fields sends it."""
    parts = msgspec.msgpack.decode(msgspec.msgpack.encode(message))
    return msgspec.msgpack.decode(msgspec.msgpack.encode(parts[:fields]), type=kind)


class TwoVersions(Installation):
    """The coordinator, or else the ledgers, are of a version that does not know these fields."""

    old_ledgers = False

    def exchange(self, name: str, loss: float = 0.0, want: int = 0) -> None:
        ledger = self.ledgers[name]
        up = ledger.report(self.now_ms, want)
        moves = older(up.moves, MovesUp, 5) if up.moves else None
        up = older(msgspec.structs.replace(up, moves=moves), SyncUp, 28) if self.old_ledgers else up
        down = self.coordinator.sync(up, self.now_ms, 1)
        moved = older(down.moves, MovesDown, 5) if down.moves else None
        if not self.old_ledgers:
            down = older(msgspec.structs.replace(down, moves=moved), SyncDown, 20)
        ledger.apply(down, self.now_ms)


class OldLedgers(TwoVersions):
    old_ledgers = True


@pytest.mark.parametrize("versions", [TwoVersions, OldLedgers])
def test_versions_without_these_fields_go_on_as_before(versions: type[TwoVersions]) -> None:
    world = versions(2)
    one = next(iter(world.home))
    for name in (*NAMES, *NAMES):
        world.page(one, name)
        world.quiet(4)
        assert world.page(one, name) is Standing.ACTIVE
        assert world.home[one] == name
        assert world.units() <= ROOM.total_active_users


def test_the_new_fields_are_the_last_ones() -> None:
    assert SyncUp.__struct_fields__[28:] == ("remembers_ms", "unknown_ms")
    assert SyncDown.__struct_fields__[20:] == ("unknown_ms",)
    assert MovesUp.__struct_fields__[5:] == ("kept", "left", "turns", "places")
    assert MovesDown.__struct_fields__[5:] == ("taken", "sources", "turns", "places")
