"""Laws of the ticket: what was sealed opens, everything else is nothing, and nothing raises."""

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from greenroom.decision.tickets import FUTURE_MAX_MS, REFRESH_MAX_MS, SEALED_LENGTH, Sealer
from greenroom.keys.ticket_keys import KeyRing
from greenroom.model.visit import TICKET_ID_BYTES, Ticket, arrival_ms_of, make_key

NOW = 1_700_000_000_000
SEALER = Sealer(KeyRing(Path(tempfile.mkdtemp()), NOW))
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@st.composite
def honest_tickets(draw: st.DrawFn) -> Ticket:
    arrival_ms = draw(st.integers(0, NOW + FUTURE_MAX_MS))
    accepted_ms = draw(st.just(0) | st.integers(max(1, arrival_ms), NOW + FUTURE_MAX_MS))
    return Ticket(
        id=draw(st.binary(min_size=TICKET_ID_BYTES, max_size=TICKET_ID_BYTES)),
        key=make_key(arrival_ms, draw(st.integers(0, 2**30))),
        accepted_ms=accepted_ms,
        checked_ms=draw(st.integers(0, NOW + FUTURE_MAX_MS)),
        refresh_ms=draw(st.integers(0, REFRESH_MAX_MS)),
    )


room_ids = st.binary(max_size=40)


@given(honest_tickets(), room_ids)
def test_what_was_sealed_opens_to_the_same_ticket(ticket: Ticket, room_id: bytes) -> None:
    sealed = SEALER.seal(ticket, room_id)
    assert len(sealed) == SEALED_LENGTH
    assert SEALER.open(sealed, room_id, NOW) == ticket


@given(honest_tickets(), room_ids, room_ids)
def test_it_opens_in_its_own_room_only(ticket: Ticket, room_id: bytes, other: bytes) -> None:
    sealed = SEALER.seal(ticket, room_id)
    assert (SEALER.open(sealed, other, NOW) is not None) == (other == room_id)


@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from(ALPHABET), min_size=SEALED_LENGTH, max_size=SEALED_LENGTH).map(bytes)
)
@example(b"=" * SEALED_LENGTH)
@example(b"A" * (SEALED_LENGTH - 1) + b"=")
@example(b"\xff" * SEALED_LENGTH)
def test_anything_made_up_is_nothing(value: bytes) -> None:
    assert SEALER.open(value, b"room", NOW) is None


@given(honest_tickets(), st.data())
def test_anything_changed_is_nothing(ticket: Ticket, data: st.DataObject) -> None:
    """Any stretch replaced by any bytes: shorter, longer or the same length."""
    sealed = SEALER.seal(ticket, b"room")
    begin = data.draw(st.integers(0, SEALED_LENGTH))
    end = data.draw(st.integers(begin, SEALED_LENGTH))
    changed = (
        sealed[:begin]
        + data.draw(
            st.binary(max_size=20) | st.lists(st.sampled_from(ALPHABET), max_size=20).map(bytes)
        )
        + sealed[end:]
    )
    assert SEALER.open(changed, b"room", NOW) == (ticket if changed == sealed else None)


@given(
    honest_tickets(),
    st.integers(0, SEALED_LENGTH),
    st.sampled_from([b"=", b"A", b"*", b" ", b"-", b"\0"]),
)
def test_a_genuine_beginning_filled_up_with_anything_is_nothing(
    ticket: Ticket, kept: int, filler: bytes
) -> None:
    """The key id at the beginning is known to everyone who has a ticket, so the rest of the checks
    must stand by themselves.
    """
    sealed = SEALER.seal(ticket, b"room")
    changed = sealed[:kept] + filler * (SEALED_LENGTH - kept)
    assert changed == sealed or SEALER.open(changed, b"room", NOW) is None


@given(honest_tickets(), honest_tickets(), st.integers(1, SEALED_LENGTH - 1))
def test_two_tickets_cannot_be_joined_into_a_third(one: Ticket, two: Ticket, cut: int) -> None:
    first, second = SEALER.seal(one, b"room"), SEALER.seal(two, b"room")
    joined = first[:cut] + second[cut:]
    assert joined in (first, second) or SEALER.open(joined, b"room", NOW) is None


@given(
    key=st.integers(0, 2**64 - 1),
    accepted_ms=st.integers(0, 2**64 - 1),
    checked_ms=st.integers(0, 2**64 - 1),
    refresh_ms=st.integers(0, 2**32 - 1),
    now_ms=st.integers(-(2**63), 2**63),
)
def test_for_anything_that_a_genuine_seal_says_it_never_raises_and_the_future_never_opens(
    key: int, accepted_ms: int, checked_ms: int, refresh_ms: int, now_ms: int
) -> None:
    opened = SEALER.open(
        SEALER.seal(
            Ticket(b"i" * TICKET_ID_BYTES, key, accepted_ms, checked_ms, refresh_ms), b"room"
        ),
        b"room",
        now_ms,
    )
    assert (
        opened is None
        or max(opened.checked_ms, opened.accepted_ms, arrival_ms_of(opened.key))
        <= now_ms + FUTURE_MAX_MS
    )
