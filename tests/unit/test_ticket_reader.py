"""The tickets among a visitor's cookies: found, opened, cached for no longer than they are
good.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from decision_sites import sites_in

from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.ticket_reader import (
    HEADER_CACHED_MAX,
    HEADERS_CACHED,
    WAITING_CACHED,
    FoundTickets,
    TicketReader,
)
from greenroom.decision.tickets import FUTURE_MAX_MS, Sealer
from greenroom.keys.ticket_keys import ACTIVATION_DELAY_MS, KEY_OVERLAP_MS, KeyRing
from greenroom.model.record import replace
from greenroom.model.visit import Arrival, Ticket, make_key

NOW = 1_700_000_000_000
NAME, ROOM = b"__cfwaitingroom", b"room-1"


@cache
def stage() -> CompiledRoom:
    with TemporaryDirectory() as folder:
        return sites_in(Path(folder))().stage


def found(
    reader: TicketReader,
    visit: Arrival,
    now_ms: int = NOW,
    room_id: bytes = ROOM,
    cookie_name: bytes = NAME,
) -> FoundTickets:
    return reader.find(replace(stage(), id=room_id, cookie_name=cookie_name), visit, now_ms)


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    return KeyRing(tmp_path, NOW)


def ticket(number: int = 1, checked_ms: int = NOW, accepted_ms: int = NOW) -> Ticket:
    return Ticket(number.to_bytes(12, "big"), make_key(NOW, 5), accepted_ms, checked_ms, 20_000)


def arrival(*headers: tuple[bytes, bytes]) -> Arrival:
    facts = dict(headers)
    return Arrival(
        "GET",
        "http",
        "a.example",
        "/",
        "",
        headers,
        "192.0.2.1",
        facts=facts if len(facts) == len(headers) else None,
    )


def cookie(*values: bytes) -> tuple[bytes, bytes]:
    return b"cookie", b"; ".join(NAME + b"=" + value for value in values)


def test_tickets_come_with_their_spelling_in_the_order_sent_from_one_header_or_several(
    ring: KeyRing,
) -> None:
    sealer = Sealer(ring)
    one, two = (sealer.seal(ticket(number), ROOM) for number in (1, 2))
    expected = ((ticket(1), one), (ticket(2), two))
    brought = TicketReader(sealer)
    for visit in (
        arrival(cookie(one, two)),
        arrival(cookie(one), cookie(two)),
        arrival(cookie(one, b"junk", two)),
    ):
        for _ in range(2):
            assert found(brought, visit) == expected
    assert found(brought, arrival((b"accept", b"*/*"))) == ()
    assert found(brought, arrival(cookie(one)), room_id=b"room-2") == ()
    assert found(brought, arrival(cookie(one)), cookie_name=NAME + b"_other") == ()


def test_a_ticket_from_the_future_is_refused_until_its_time_has_come(ring: KeyRing) -> None:
    sealer = Sealer(ring)
    later = ticket(checked_ms=NOW + FUTURE_MAX_MS + 1)
    visit, brought = arrival(cookie(sealer.seal(later, ROOM))), TicketReader(sealer)
    assert found(brought, visit) == ()
    assert [one for one, _ in found(brought, visit, NOW + 1)] == [later]


def test_nothing_is_cached_beyond_the_life_of_its_key(ring: KeyRing) -> None:
    sealer = Sealer(ring)
    visit, brought = arrival(cookie(sealer.seal(ticket(), ROOM))), TicketReader(sealer)
    assert found(brought, visit)
    ring.rotate(NOW)
    ring.tend(NOW + ACTIVATION_DELAY_MS)
    assert found(brought, visit, NOW + ACTIVATION_DELAY_MS), "the old key still opens"
    late = NOW + ACTIVATION_DELAY_MS + KEY_OVERLAP_MS + 1
    ring.tend(late)
    assert found(brought, visit, late) == ()


def test_what_strangers_send_takes_bounded_memory(ring: KeyRing) -> None:
    sealer = Sealer(ring)
    brought = TicketReader(sealer)
    good = cookie(sealer.seal(ticket(), ROOM))[1]
    for number in range(HEADERS_CACHED + 10):
        found(brought, arrival((b"cookie", b"visits=%d; " % number + good)))
    assert 0 < len(brought._known) <= HEADERS_CACHED
    long = arrival(
        (b"cookie", b"x" * HEADER_CACHED_MAX + b"; " + cookie(sealer.seal(ticket(), ROOM))[1])
    )
    held = dict(brought._known)
    assert len(found(brought, long)) == 1
    assert brought._known == held


def test_visitors_in_line_and_those_without_a_ticket_do_not_push_out_what_is_cached_of_the_others(
    ring: KeyRing,
) -> None:
    sealer = Sealer(ring)
    brought = TicketReader(sealer)
    inside = arrival(cookie(sealer.seal(ticket(), ROOM)))
    found(brought, inside)
    held = dict(brought._known)
    assert len(held) == 1
    for visit in (
        arrival(cookie(sealer.seal(ticket(2, accepted_ms=0), ROOM))),
        arrival((b"cookie", b"theme=dark")),
    ):
        found(brought, visit)
    assert brought._known == held


def test_the_parts_of_a_page_that_waits_are_read_once_and_what_that_takes_is_bounded(
    ring: KeyRing,
) -> None:
    sealer = Sealer(ring)
    brought = TicketReader(sealer)
    for number in range(WAITING_CACHED + 10):
        waiting = arrival(cookie(sealer.seal(ticket(number, accepted_ms=0), ROOM)))
        first = found(brought, waiting)
        assert found(brought, waiting) is first
        assert 0 < len(brought._waiting) <= WAITING_CACHED
    ring.rotate(NOW)
    late = NOW + ACTIVATION_DELAY_MS
    ring.tend(late)
    ring.tend(late + KEY_OVERLAP_MS + 1)
    assert found(brought, waiting, late + KEY_OVERLAP_MS + 1) == ()
