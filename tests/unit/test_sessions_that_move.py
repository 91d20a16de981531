"""A visitor who was let in by one data center and reaches another: what is asked, what is answered,
and whose unit it is.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from admission_world import START_MS, small_room, ticket_id

from greenroom.admission import Coordinator, Ledger, problems, visit
from greenroom.admission.coordinator.memory import StoredCoordinator, center_row, recalled, room_row
from greenroom.admission.coordinator.session_transfers import PendingTransfers, SessionTransfers
from greenroom.admission.ledger.transfers import take_over
from greenroom.model.visit import Outcome, Standing, make_key

ONE = ticket_id(1)
KEY = make_key(START_MS, 1)


class Two:
    """Two data centers; a cut one neither sends nor hears."""

    def __init__(self, strong: bool = False) -> None:
        self.room = small_room(
            total_active_users=4, new_users_per_minute=40, strong_sessions=strong
        )
        self.now_ms = START_MS
        self.bits = Random(1).getrandbits
        self.coordinator = Coordinator(["paris", "oslo"], self.room, self.now_ms)
        self.paris, self.oslo = (
            Ledger(self.room, name, 1, self.now_ms) for name in ("paris", "oslo")
        )
        self.cut: set[str] = set()
        self.pass_time(2_000)
        self.sync(self.paris, 1)
        assert self.paris.arrive(ONE, self.now_ms, 1).standing is Standing.ADMITTED
        self.let_in_ms = self.now_ms
        self.pass_time(2_000)

    def sync(self, ledger: Ledger, want: int = 0) -> None:
        up = ledger.report(self.now_ms, want)
        if ledger.data_center not in self.cut:
            ledger.apply(self.coordinator.sync(up, self.now_ms, self.bits(64)), self.now_ms)

    def pass_time(self, ms: int) -> None:
        for _ in range(ms // 500):
            self.now_ms += 500
            for ledger in (self.paris, self.oslo):
                ledger.sweep(self.now_ms)
                self.sync(ledger)
            assert problems(self.coordinator, [self.paris, self.oslo]) == []

    def third(self) -> Ledger:
        """Rome, where the visitor of Paris has come to by way of Oslo; Oslo has asked Paris for the
        session, and Paris has heard of it.
        """
        self.coordinator.enlist(["paris", "oslo", "rome"], self.now_ms)
        rome = Ledger(self.room, "rome", 1, self.now_ms)
        self.sync(rome)
        assert self.reach(self.oslo).standing is Standing.ACTIVE
        assert self.reach(rome).standing is Standing.ACTIVE
        self.sync(self.oslo)
        self.sync(self.paris)
        return rome

    def goes_on_in(self, rome: Ledger, syncs: int) -> None:
        """The visitor is served there all the time, and the session follows."""
        for _ in range(syncs):
            self.now_ms += 500
            for ledger in (rome, self.oslo, self.paris):
                self.sync(ledger)
            assert self.reach(rome).standing is Standing.ACTIVE
            assert problems(self.coordinator, [self.paris, self.oslo, rome]) == []
        assert ONE in rome.sessions.inside

    def served_late(self) -> int:
        """Serves the visitor on trust in Oslo, shortly before the ticket is over, and lets its end
        pass; returns when the page was served. The session is in Oslo by then.
        """
        self.pass_time(50_000)
        served_ms = self.now_ms
        assert self.reach(self.oslo).refresh_ms == served_ms - self.let_in_ms
        self.pass_time(self.let_in_ms + self.paris.sessions.life_ms - self.now_ms + 500)
        assert ONE in self.oslo.sessions.inside
        return served_ms

    def reach(
        self, ledger: Ledger, home: str = "paris", one: bytes = ONE, served_ms: int = 0
    ) -> Outcome:
        """`served_ms`: the last page on trust that the ticket knows."""
        if one in ledger.sessions.inside:
            return ledger.view(one, self.now_ms)
        renewed_ms = self.let_in_ms
        served_ms = max(served_ms, renewed_ms)
        return visit(ledger, one, KEY, home, renewed_ms, served_ms, self.now_ms, self.bits(64))


def test_a_mover_is_served_on_trust_until_the_unit_has_come() -> None:
    two = Two()
    first = two.reach(two.oslo)
    assert (first.standing, first.expires_ms) == (
        Standing.ACTIVE,
        two.let_in_ms + two.paris.sessions.life_ms,
    )
    assert ONE not in two.oslo.sessions.inside
    two.pass_time(1_500)
    assert ONE in two.oslo.sessions.inside
    assert ONE not in two.paris.sessions.inside
    assert (
        two.oslo.sessions.renewed(ONE) >= two.let_in_ms + 2_000
    )  # the page on trust counts as a renewal
    assert two.reach(two.oslo).standing is Standing.ACTIVE


def test_strong_sessions_hold_a_mover_until_the_unit_has_come() -> None:
    two = Two(strong=True)
    held = two.reach(two.oslo)
    assert (held.standing, held.position) == (Standing.WAITING, 1)
    two.pass_time(1_500)
    assert two.reach(two.oslo).standing is Standing.ACTIVE


def test_one_visitor_is_one_unit_wherever_the_messages_are() -> None:
    two = Two()
    two.reach(two.oslo)
    two.pass_time(10_000)
    held = sum(center.held for center in two.coordinator.data_centers.values())
    spare = sum(ledger.lease.permits + ledger.lease.freed for ledger in (two.paris, two.oslo))
    assert held - spare == 1


def test_who_goes_to_and_fro_keeps_the_session() -> None:
    two = Two()
    for ledger in (two.oslo, two.paris, two.oslo, two.paris):
        assert two.reach(ledger).standing is Standing.ACTIVE
        two.pass_time(2_000)
        assert ONE in ledger.sessions.inside


def test_who_leaves_before_the_unit_has_come_is_not_taken_for_gone() -> None:
    two = Two()
    two.reach(two.oslo)
    two.pass_time(1_000)
    assert two.reach(two.paris).standing is Standing.ACTIVE


def test_a_ticket_whose_session_no_one_has_gives_a_place_in_line() -> None:
    two = Two()
    stranger = ticket_id(9)
    assert (
        two.reach(two.oslo, one=stranger).standing is Standing.ACTIVE
    )  # on trust: no one has said no yet
    two.pass_time(1_500)
    assert two.reach(two.oslo, one=stranger).standing in (Standing.WAITING, Standing.ADMITTED)


def test_a_ticket_that_is_not_good_any_more_is_worth_nothing_anywhere() -> None:
    two = Two()
    two.pass_time(two.paris.sessions.life_ms)
    assert two.reach(two.oslo).standing is Standing.GONE
    assert two.reach(two.paris).standing is Standing.GONE
    assert not two.oslo.moves.claims


def test_when_no_one_answers_an_own_permit_is_spent_and_the_unit_that_comes_late_is_free() -> None:
    two = Two()
    two.sync(two.oslo, 2)
    assert two.oslo.lease.permits > 0
    two.cut = {"paris", "oslo"}
    assert two.reach(two.oslo).standing is Standing.ACTIVE
    two.pass_time(5_000)
    assert two.reach(two.oslo).standing is Standing.ADMITTED
    two.cut = set()
    two.pass_time(5_000)
    assert two.reach(two.oslo).standing is Standing.ACTIVE


def test_without_a_permit_a_strong_room_puts_the_mover_first_in_line() -> None:
    two = Two(strong=True)
    two.oslo.lease.permits, two.oslo.lease.returned_permits = (
        0,
        two.oslo.lease.returned_permits + two.oslo.lease.permits,
    )
    two.cut = {"paris", "oslo"}
    two.reach(two.oslo)
    two.pass_time(5_000)
    waiting = two.reach(two.oslo)
    assert (waiting.standing, waiting.position, len(two.oslo.line)) == (Standing.WAITING, 1, 1)


def test_who_comes_back_to_where_a_session_was_given_away_is_held_in_a_strong_room() -> None:
    two = Two(strong=True)
    assert two.reach(two.oslo).standing is Standing.WAITING
    two.sync(two.oslo)
    two.sync(two.paris)
    assert ONE not in two.paris.sessions.inside
    two.cut, two.paris.halted = {"oslo"}, True  # else it may spend a permit
    two.reach(two.paris)
    two.pass_time(5_000)
    assert two.reach(two.paris).standing is Standing.WAITING
    two.cut = set()
    two.pass_time(3_000)
    assert two.reach(two.paris).standing is Standing.ACTIVE


def test_visitors_of_lost_books_get_its_units_one_to_one_and_only_once() -> None:
    two = Two()
    two.paris = Ledger(two.room, "paris", 2, two.now_ms)
    two.pass_time(1_000)
    assert two.coordinator.data_centers["paris"].orphans >= 1
    orphans = two.coordinator.data_centers["paris"].orphans
    two.let_in_ms -= 1  # before these books began
    assert two.reach(two.paris).standing is Standing.ACTIVE
    two.pass_time(2_000)
    assert ONE in two.paris.sessions.inside
    assert two.coordinator.data_centers["paris"].orphans == orphans - 1
    assert two.reach(two.oslo).standing is Standing.ACTIVE
    two.pass_time(2_000)
    assert two.coordinator.data_centers["paris"].orphans == orphans - 1


@pytest.mark.parametrize("lost", [True, False])
def test_a_unit_of_a_lost_ledger_lasts_as_long_as_any_session_there(lost: bool) -> None:
    two = Two(strong=True)
    two.cut = {"paris"}
    assert two.reach(two.oslo).standing is Standing.WAITING
    two.pass_time(20_000)
    assert two.reach(two.paris).renewed_ms == two.now_ms  # not known in Oslo, which asked before
    renewed_ms = two.now_ms
    if lost:
        two.paris = Ledger(two.room, "paris", two.now_ms, two.now_ms)
        two.cut = set()
    else:
        two.coordinator.give_up("paris", two.now_ms)
    two.pass_time(2_000)
    assert two.oslo.sessions.renewed(ONE) >= renewed_ms


def test_what_was_asked_before_an_operator_ended_all_sessions_brings_none_back() -> None:
    two = Two()
    two.cut = {"oslo"}
    assert two.reach(two.oslo).standing is Standing.ACTIVE
    up = two.oslo.report(two.now_ms)
    ended = replace(two.room, sessions_ended_ms=two.now_ms)
    two.now_ms += 1
    two.oslo.configure(ended, two.now_ms)
    assert two.oslo.report(two.now_ms).moves is None
    two.paris = Ledger(ended, "paris", two.now_ms, two.now_ms)
    two.sync(two.paris)
    two.coordinator.sync(up, two.now_ms, 0)
    two.pass_time(1_000)
    two.cut = set()
    two.pass_time(500)
    assert (two.oslo.sessions.inside, two.oslo.lease.closing) == ({}, 1)


def test_a_place_from_before_the_visitor_was_let_in_elsewhere_is_dropped() -> None:
    two = Two()
    one, key = ticket_id(7), make_key(two.now_ms, 7)
    two.oslo.lease.returned_permits += two.oslo.lease.permits
    two.oslo.lease.permits = 0
    assert (
        two.oslo.poll(one, key, two.now_ms, 1).standing is Standing.WAITING
    )  # in line in Oslo, then on to Paris
    two.now_ms += 2_500
    two.paris.lease.permits += 1
    two.paris.lease.granted_seen += 1
    assert two.paris.poll(one, key, two.now_ms, 1).standing is Standing.ADMITTED
    two.let_in_ms = two.now_ms
    two.now_ms += 500
    lost = two.oslo.line_counts.lost
    assert two.reach(two.oslo, one=one).standing is Standing.ACTIVE
    assert one not in two.oslo.line.slots
    assert two.oslo.line_counts.lost == lost + 1


def test_two_thousand_movers_at_once_are_claimed_in_turns() -> None:
    two = Two()
    for number in range(2_000):
        two.reach(two.oslo, one=ticket_id(100 + number))
    up = two.oslo.report(two.now_ms)
    assert up.moves is not None
    assert len(up.moves.claims) == 1_000


def test_who_goes_on_while_the_unit_is_on_its_way_is_not_told_that_no_one_has_the_session() -> None:
    """Paris gives the session to Oslo, where the visitor was for a moment, and then says truly that
    it has none for Rome.
    """
    two = Two()
    rome = two.third()
    assert ONE not in two.paris.sessions.inside
    two.sync(rome)  # Paris is asked once more, because its gift has not been heard of yet
    two.sync(two.paris)
    two.sync(two.paris)
    two.goes_on_in(rome, 6)


def test_a_new_coordinator_knows_where_a_unit_was_booked_that_is_on_its_way() -> None:
    """The old one booked the session to Oslo and was lost; the visitor is in Rome by then, and
    Paris truly has no session any more.
    """
    two = Two()
    rome = two.third()
    two.sync(two.paris)  # its gift is booked
    old = two.coordinator
    assert old.transfers.on_the_way("oslo"), "the story is about a session on its way"
    rows = {
        name: center_row(old.data_centers[name], old.transfers.on_the_way(name))
        for name in old.data_centers
    }
    two.coordinator = recalled(
        two.room, list(rows), StoredCoordinator(room_row(old), rows), two.now_ms
    )
    for _ in range(3):  # Rome asks Paris through the new one before Oslo is heard of
        two.sync(rome)
        two.sync(two.paris)
    two.goes_on_in(rome, 8)


def known(two: Two) -> Coordinator:
    """The next coordinator, which has what the lost one stored."""
    old = two.coordinator
    rows = {
        name: center_row(center, old.transfers.on_the_way(name))
        for name, center in old.data_centers.items()
    }
    return recalled(two.room, list(rows), StoredCoordinator(room_row(old), rows), two.now_ms)


def unknown(two: Two) -> Coordinator:
    """The next coordinator, without a memory."""
    return Coordinator(list(two.coordinator.data_centers), two.room, two.now_ms)


def settle(two: Two, *ledgers: Ledger) -> None:
    for _ in range(4):
        two.now_ms += 500
        for ledger in ledgers:
            two.sync(ledger)


def is_found(successor: Callable[[Two], Coordinator], where: str) -> bool:
    """The ticket still names Paris, which gave the session to Oslo; the coordinator that booked the
    gift is lost.
    """
    two = Two()
    two.coordinator.enlist(["paris", "oslo", "rome"], two.now_ms)
    rome = Ledger(two.room, "rome", 1, two.now_ms)
    place, ledgers = rome if where == "rome" else two.paris, (rome, two.paris, two.oslo)
    settle(two, *ledgers)
    assert two.reach(two.oslo).standing is Standing.ACTIVE
    settle(two, *ledgers)
    assert ONE in two.oslo.sessions.inside
    two.coordinator = successor(two)
    settle(two, *ledgers)
    served = []
    for _ in range(7):
        served.append(two.reach(place).standing)
        settle(two, *ledgers)
    assert problems(two.coordinator, list(ledgers)) == []
    follows = ONE in place.sessions.inside and ONE not in two.oslo.sessions.inside
    return follows and set(served) == {Standing.ACTIVE}


@pytest.mark.parametrize("successor", [known, unknown])
@pytest.mark.parametrize("where", ["paris", "rome"])
def test_a_session_is_found_whose_gift_the_lost_coordinator_booked(
    successor: Callable[[Two], Coordinator], where: str
) -> None:
    assert is_found(successor, where)


@pytest.mark.needs("patching")
@pytest.mark.parametrize("where", ["paris", "rome"])
def test_a_build_is_found_that_does_not_ask_whom_the_giver_names(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionTransfers, "_follow", lambda *_: None)
    assert not is_found(known, where)


def test_a_search_finds_a_session_whose_gift_the_lost_coordinator_booked() -> None:
    two = Two()
    served_ms = two.served_late()
    two.coordinator = known(two)
    two.pass_time(1_000)
    assert two.reach(two.paris, served_ms=served_ms).searching
    two.pass_time(2_000)
    assert two.reach(two.paris, served_ms=served_ms).standing is Standing.ACTIVE


def test_a_session_that_ended_where_it_was_given_to_is_denied_after_a_loss() -> None:
    two = Two()
    two.reach(two.oslo)
    two.pass_time(2_000)
    two.oslo.leave(ONE, two.now_ms)
    two.coordinator = known(two)
    two.pass_time(1_000)
    assert two.reach(two.paris).standing is Standing.ACTIVE
    two.pass_time(3_000)
    assert two.reach(two.paris).standing is not Standing.ACTIVE
    assert ONE not in two.paris.sessions.inside


def test_a_session_that_comes_takes_back_that_it_was_not_there() -> None:
    two = Two()
    two.reach(two.oslo)
    two.oslo.moves.missing(ONE)
    two.oslo.report(two.now_ms)  # says so, and is lost
    up = two.oslo.report(two.now_ms)
    take_over(two.oslo, ONE, two.now_ms, two.now_ms)
    assert up.moves is not None
    assert up.moves.unknown == (ONE,)
    two.oslo.moves.arrived += 1
    after = two.oslo.report(two.now_ms).moves
    assert after is not None
    assert after.unknown == ()


def test_a_session_is_searched_for_who_was_served_on_trust_before_the_ticket_was_over() -> None:
    for home in (True, False):
        two = Two()
        two.coordinator.enlist(["paris", "oslo", "rome"], two.now_ms)
        rome = Ledger(two.room, "rome", 1, two.now_ms)
        two.sync(rome)
        served_ms = two.served_late()
        place = two.paris if home else rome
        two.sync(rome)
        assert two.reach(place).standing is Standing.GONE, "nothing was served on trust"
        held = two.reach(place, served_ms=served_ms)
        assert (held.standing, held.searching, held.position) == (Standing.WAITING, True, 1)
        for _ in range(4):
            for ledger in (place, two.oslo):
                two.sync(ledger)
        found = two.reach(place, served_ms=served_ms)
        assert found.standing is Standing.ACTIVE
        assert found.expires_ms >= served_ms + two.paris.sessions.life_ms
        assert ONE not in two.oslo.sessions.inside


def nearly_over(two: Two) -> Outcome:
    """The visitor reaches Oslo a second before the session ends in Paris."""
    two.pass_time(two.let_in_ms + two.paris.sessions.life_ms - two.now_ms - 1_000)
    return two.reach(two.oslo)


def test_a_session_that_is_nearly_over_is_held_until_it_has_come() -> None:
    two = Two()
    held = nearly_over(two)
    assert (held.standing, held.searching) == (Standing.WAITING, True)
    asked_ms = two.now_ms
    two.sync(two.oslo)
    two.sync(two.paris)
    two.pass_time(1_500)
    assert two.reach(two.oslo).standing is Standing.ACTIVE
    assert two.oslo.sessions.renewed(ONE) >= asked_ms, "the request counts"


def test_a_session_that_is_over_before_it_is_asked_for_was_promised_no_more() -> None:
    two = Two()
    assert nearly_over(two).searching
    two.oslo.sweep(two.now_ms)
    two.now_ms += 1_500
    settle(two, two.oslo, two.paris)
    assert two.reach(two.oslo).standing is Standing.GONE
    assert ONE not in two.oslo.sessions.inside
    assert not two.oslo.moves.claims


def test_a_session_that_is_nearly_over_is_served_where_no_answer_can_come() -> None:
    two = Two()
    two.cut = {"oslo"}
    assert nearly_over(two).standing in (Standing.ACTIVE, Standing.ADMITTED)


def test_a_session_that_is_searched_in_vain_brings_no_place() -> None:
    two = Two()
    served_ms = two.served_late()
    two.oslo.leave(ONE, two.now_ms)
    assert two.reach(two.paris, served_ms=served_ms).searching
    two.pass_time(2_000)
    assert two.reach(two.paris, served_ms=served_ms).standing is Standing.GONE
    assert not two.paris.moves.claims
    assert not two.paris.line.slots


def test_a_session_is_not_searched_while_cut_off_nor_after_an_operator_ended_all() -> None:
    two = Two()
    served_ms = two.served_late()
    two.cut = {"paris"}
    assert two.reach(two.paris, served_ms=served_ms).searching
    two.pass_time(5_000)
    assert two.reach(two.paris, served_ms=served_ms).standing is Standing.GONE
    assert not two.paris.moves.claims
    two.cut = set()
    two.pass_time(2_000)
    two.paris.configure(replace(two.room, sessions_ended_ms=two.now_ms), two.now_ms)
    assert two.reach(two.paris, served_ms=served_ms).standing is Standing.GONE


def test_a_search_takes_no_orphan() -> None:
    """The session may have been over before Oslo lost its state: then its unit is another's."""
    two = Two()
    served_ms = two.served_late()
    two.oslo = Ledger(two.room, "oslo", 2, two.now_ms)
    two.pass_time(1_000)
    orphans = two.coordinator.data_centers["oslo"].orphans
    assert orphans >= 1
    assert two.reach(two.paris, served_ms=served_ms).searching
    two.pass_time(2_000)
    assert two.reach(two.paris, served_ms=served_ms).standing is Standing.GONE
    two.coordinator.enlist(["paris"], two.now_ms)
    assert two.reach(two.paris, served_ms=served_ms).searching
    two.sync(two.paris)
    two.sync(two.paris)
    assert two.reach(two.paris, served_ms=served_ms).standing is Standing.GONE
    assert two.coordinator.data_centers["oslo"].orphans == orphans


def test_without_renewals_a_page_on_trust_makes_no_session_longer() -> None:
    two = Two()
    fixed = replace(two.room, disable_session_renewal=True)
    for ledger in (two.paris, two.oslo):
        ledger.configure(fixed, two.now_ms)
    assert two.reach(two.oslo).refresh_ms == 0
    two.pass_time(2_000)
    assert two.oslo.sessions.renewed(ONE) == two.let_in_ms


def test_a_provisional_session_whose_ticket_comes_back_elsewhere_becomes_a_full_one() -> None:
    for fixed in (True, False):
        two = Two()
        for ledger in (two.paris, two.oslo):
            ledger.configure(replace(two.room, disable_session_renewal=fixed), two.now_ms)
        two.sync(two.paris, 1)
        other = ticket_id(2)
        passed = two.paris.arrive_provisionally(other, two.now_ms)
        assert passed.standing is Standing.ADMITTED
        two.let_in_ms, began_ms = passed.renewed_ms, two.now_ms
        two.pass_time(2_000)
        assert two.reach(two.oslo, one=other).standing is Standing.ACTIVE
        two.pass_time(2_000)
        assert two.reach(two.oslo, one=other).expires_ms >= began_ms + two.room.session_ms
        assert not two.paris.provisional.holds(other)


def asks(two: Two, place: Ledger, rome: Ledger) -> Outcome:
    for _ in range(12):
        two.now_ms += 500
        found = two.reach(place)
        for ledger in (rome, two.oslo, two.paris):
            two.sync(ledger)
    return found


def gone_from_oslo() -> tuple[Two, Ledger]:
    """Where the session of Paris went, the visitor has left."""
    two = Two()
    rome = two.third()
    asks(two, two.oslo, rome)
    assert two.oslo.leave(ONE, two.now_ms) is Standing.ACTIVE
    return two, rome


@pytest.mark.parametrize("away", [True, False])
def test_a_session_that_begins_again_by_a_kept_turn_is_found_there(away: bool) -> None:
    two, rome = gone_from_oslo()
    two.paris.sessions.revive(ONE)
    two.sync(two.paris, 2)
    assert two.paris.poll(ONE, KEY, two.now_ms, 0).standing is Standing.ADMITTED
    two.let_in_ms = two.now_ms
    found = asks(two, rome if away else two.oslo, rome)
    assert (found.standing, found.refresh_ms) == (Standing.ACTIVE, 0)


def test_who_has_left_where_the_session_went_takes_no_orphan_of_where_it_began() -> None:
    two, rome = gone_from_oslo()
    two.sync(two.paris, 2)
    assert two.paris.lease.permits
    two.paris = Ledger(two.room, "paris", 2, two.now_ms)
    two.sync(two.paris)
    orphans = two.coordinator.data_centers["paris"].orphans
    asks(two, rome, rome)
    assert ONE not in rome.sessions.inside
    assert two.coordinator.data_centers["paris"].orphans == orphans > 0


@pytest.mark.needs("patching")
def test_a_build_that_asks_only_where_the_unit_was_booked_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PendingTransfers, "miss", lambda self, one, *_: self.denied.add(one))
    with pytest.raises(AssertionError):
        test_a_session_that_begins_again_by_a_kept_turn_is_found_there(True)
