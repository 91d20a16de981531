"""What a sealed ticket looks like, what opens it, and what it costs an attacker to change anything."""

import base64
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from greenroom.decision import tickets
from greenroom.decision.tickets import (
    FUTURE_MAX_MS,
    NONCE_BYTES,
    REFRESH_MAX_MS,
    SEALED_LENGTH,
    Sealer,
)
from greenroom.keys.key_file import KEY_ID_BYTES
from greenroom.keys.ticket_keys import KeyRing
from greenroom.model.record import replace
from greenroom.model.visit import TIE_BITS, Ticket, make_key

NOW = 1_700_000_000_000
ROOM = b"room-1"


class Counted:
    """Entropy that is the same in every run: 0, 1, 2, ... as many bytes as asked."""

    def __init__(self, start: int = 0) -> None:
        self.next = start

    def __call__(self, size: int) -> bytes:
        drawn = bytes((self.next + offset) % 251 for offset in range(size))
        self.next += size
        return drawn


def ticket(
    arrival_ms: int = NOW, accepted_ms: int = 0, checked_ms: int = NOW, refresh_ms: int = 20_000
) -> Ticket:
    return Ticket(bytes(range(12)), make_key(arrival_ms, 5), accepted_ms, checked_ms, refresh_ms)


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    return KeyRing(tmp_path, NOW, Counted())


@pytest.fixture
def sealer(ring: KeyRing) -> Sealer:
    return Sealer(ring, Counted(7))


def test_a_sealed_ticket_is_a_hundred_cookie_safe_characters_and_opens_again(
    sealer: Sealer,
) -> None:
    sealed = sealer.seal(ticket(), ROOM)
    assert len(sealed) == SEALED_LENGTH == 108
    assert set(sealed) <= set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert sealer.open(sealed, ROOM, NOW) == ticket()


def test_the_format_is_the_one_that_is_already_in_peoples_browsers(
    sealer: Sealer, ring: KeyRing
) -> None:
    """Taken apart by hand. A change that fails here throws every visitor out of the line: give it a
    new version instead.
    """
    raw = base64.urlsafe_b64decode(
        sealer.seal(replace(ticket(accepted_ms=NOW + 1), home=b"harbor"), ROOM)
    )
    key_id, nonce, box = raw[:6], raw[6:18], raw[18:]
    assert key_id == ring.current.id
    content = AESGCM(ring.current.secret).decrypt(nonce, box, ROOM)
    assert content[0] == 1
    assert content[1:13] == bytes(range(12))
    assert [int.from_bytes(content[at : at + 8], "big") for at in (13, 21, 29)] == [
        NOW << TIE_BITS | 5,
        NOW + 1,
        NOW,
    ]
    assert int.from_bytes(content[37:41], "big") == 20_000
    assert content[41:] == b"harbor"


def test_two_seals_of_one_ticket_never_look_alike(ring: KeyRing) -> None:
    sealer = Sealer(ring)
    assert len({sealer.seal(ticket(), ROOM) for _ in range(1_000)}) == 1_000


def test_every_single_changed_character_makes_it_nothing(sealer: Sealer) -> None:
    sealed = sealer.seal(ticket(), ROOM)
    for place in range(SEALED_LENGTH):
        for other in b"AZaz09-_":
            if sealed[place] != other:
                assert (
                    sealer.open(sealed[:place] + bytes([other]) + sealed[place + 1 :], ROOM, NOW)
                    is None
                )


def test_there_is_one_spelling_only(sealer: Sealer) -> None:
    """Same bytes, other alphabet, blanks, padding or percent signs in as many characters: refused."""
    sealed = next(
        value
        for value in (sealer.seal(ticket(), ROOM) for _ in range(1000))
        if b"-" in value and b"_" in value
    )
    assert sealer.open(sealed, ROOM, NOW) is not None
    assert sealer.open(sealed.replace(b"-", b"+"), ROOM, NOW) is None
    assert sealer.open(sealed.replace(b"_", b"/"), ROOM, NOW) is None
    for odd in (b"=", b" ", b"\n", b"\x00", b"%", b"\xff", b"*", b"."):
        for place in (0, 1, 50, 98, 99):
            assert sealer.open(sealed[:place] + odd + sealed[place + 1 :], ROOM, NOW) is None
    assert sealer.open(sealed[:98] + b"==", ROOM, NOW) is None
    assert sealer.open(sealed[:96] + b"====", ROOM, NOW) is None
    for known_key in (8, 12, 16, 24, 28):
        for junk in b"=* +":
            assert (
                sealer.open(
                    sealed[:known_key] + bytes([junk]) * (SEALED_LENGTH - known_key), ROOM, NOW
                )
                is None
            )


def test_a_ticket_under_another_installations_key_is_nothing(
    sealer: Sealer, tmp_path: Path
) -> None:
    stranger = Sealer(KeyRing(tmp_path / "elsewhere", NOW))
    assert sealer.open(stranger.seal(ticket(), ROOM), ROOM, NOW) is None


def test_a_ticket_under_another_key_with_the_same_id_is_nothing(
    sealer: Sealer, tmp_path: Path
) -> None:
    def same_id(size: int) -> bytes:
        return sealer.ring.current.id if size == KEY_ID_BYTES else b"\x01" * size

    stranger = Sealer(KeyRing(tmp_path / "elsewhere", NOW, same_id))
    assert sealer.open(stranger.seal(ticket(), ROOM), ROOM, NOW) is None


def test_another_version_is_nothing(sealer: Sealer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "VERSION", 2)
    sealed = sealer.seal(ticket(), ROOM)
    monkeypatch.undo()
    assert sealer.open(sealed, ROOM, NOW) is None


@pytest.mark.parametrize(
    ("impossible", "barely"),
    [
        (ticket(checked_ms=NOW + FUTURE_MAX_MS + 1), ticket(checked_ms=NOW + FUTURE_MAX_MS)),
        (ticket(accepted_ms=NOW + FUTURE_MAX_MS + 1), ticket(accepted_ms=NOW + FUTURE_MAX_MS)),
        (ticket(arrival_ms=NOW + FUTURE_MAX_MS + 1), ticket(arrival_ms=NOW + FUTURE_MAX_MS)),
        (ticket(accepted_ms=NOW - FUTURE_MAX_MS - 1), ticket(accepted_ms=NOW - FUTURE_MAX_MS)),
        (ticket(accepted_ms=1), ticket(accepted_ms=0)),
        (ticket(refresh_ms=REFRESH_MAX_MS + 1), ticket(refresh_ms=REFRESH_MAX_MS)),
    ],
    ids=[
        "checked in the future",
        "accepted in the future",
        "arrived in the future",
        "accepted before arrival",
        "accepted in 1970",
        "refresh",
    ],
)
def test_what_cannot_be_true_is_nothing(sealer: Sealer, impossible: Ticket, barely: Ticket) -> None:
    assert sealer.open(sealer.seal(impossible, ROOM), ROOM, NOW) is None
    assert sealer.open(sealer.seal(barely, ROOM), ROOM, NOW) == barely


def test_every_seal_has_a_nonce_of_its_own_and_counts_for_rotation(ring: KeyRing) -> None:
    sizes = []

    def entropy(size: int) -> bytes:
        sizes.append(size)
        return os.urandom(size)

    sealer = Sealer(ring, entropy)
    for _ in range(3):
        sealer.seal(ticket(), ROOM)
    assert sizes == [NONCE_BYTES] * 3
    assert ring.seals == 3
