"""Seals a ticket into a cookie value: 81 bytes, 108 characters of base64url without padding or
spare bits, so every ticket has exactly one spelling. The room id is associated data: a ticket of
one room opens in no other. Layout: docs/explanation/tickets.md.
"""

import os
import struct
from binascii import Error as BadBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable

from cryptography.exceptions import InvalidTag

from greenroom.keys.key_file import KEY_ID_BYTES
from greenroom.keys.ticket_keys import KeyRing
from greenroom.model.record import replace
from greenroom.model.room import SESSION_LONGEST
from greenroom.model.visit import AWAY, HOME_BYTES, TICKET_ID_BYTES, TIE_BITS, Ticket

VERSION: int = 1
NONCE_BYTES = 12
SEALED_LENGTH = 108

FUTURE_MAX_MS = 5_000
"""Largest clock difference of two machines before a ticket counts as forged."""

REFRESH_MAX_MS = 120_000
"""60 s, plus jitter, with room to spare."""

TRUST_MAX_MS = (SESSION_LONGEST + 1) * 60_000
"""Longest time from a renewal to a page on trust: the longest session and q."""

_CONTENT = struct.Struct(
    f">B{TICKET_ID_BYTES}sQQQI{HOME_BYTES}s"
)  # version, id, key, accepted_ms, checked_ms, refresh_ms, home
_BOX_BYTES = SEALED_LENGTH // 4 * 3 - KEY_ID_BYTES - NONCE_BYTES
_SEALED = struct.Struct(f"{KEY_ID_BYTES}s{NONCE_BYTES}s{_BOX_BYTES}s")  # key id, nonce, box
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(
    b"-_+/", b"+/**"
)  # the other alphabet becomes `*`, which strict decoding refuses


def marked(ticket: Ticket) -> Ticket:
    """Of a visitor in line who may close the page."""
    return replace(ticket, home=bytes((ticket.home[0] | AWAY[0],)) + ticket.home[1:])


class Sealer:
    def __init__(self, ring: KeyRing, entropy: Callable[[int], bytes] = os.urandom) -> None:
        """`entropy`: for nonces."""
        self.ring = ring
        """`ring.opening` is another object when the keys have changed."""
        self._entropy = entropy

    def seal(self, ticket: Ticket, room_id: bytes) -> bytes:
        """Raises struct.error for a ticket that does not fit."""
        ring, take = self.ring, self._entropy
        nonce = take(NONCE_BYTES)
        ring.seals += 1
        key = ring.current
        content = _CONTENT.pack(
            VERSION,
            ticket.id,
            ticket.key,
            ticket.accepted_ms,
            ticket.checked_ms,
            ticket.refresh_ms,
            ticket.home,
        )
        return b2a_base64(
            key.id + nonce + key.cipher.encrypt(nonce, content, room_id), newline=False
        ).translate(_TO_URL)

    def open(self, value: bytes, room_id: bytes, now_ms: int) -> Ticket | None:
        """None for a value not sealed by this key ring for this room, or impossible at `now_ms`."""
        if len(value) != SEALED_LENGTH:
            return None
        try:
            key_id, nonce, box = _SEALED.unpack(
                a2b_base64(value.translate(_FROM_URL), strict_mode=True)
            )
            cipher = self.ring.opening.get(key_id)
            if cipher is None:
                return None
            content = cipher.decrypt(nonce, box, room_id)
        except (
            BadBase64,
            InvalidTag,
            struct.error,
        ):  # strict decoding still lets `=` cut a text short
            return None
        version, ticket_id, key, accepted_ms, checked_ms, refresh_ms, home = _CONTENT.unpack(
            content
        )
        arrival_ms, latest_ms = key >> TIE_BITS, now_ms + FUTURE_MAX_MS
        if (
            version != VERSION
            or arrival_ms > latest_ms
            or checked_ms > latest_ms
            or refresh_ms > (TRUST_MAX_MS if accepted_ms else REFRESH_MAX_MS)
        ):
            return None
        # Two machines may stamp arrival and admission, so "before" allows for the same difference
        # of clocks as "future".
        if accepted_ms and not arrival_ms - FUTURE_MAX_MS <= accepted_ms <= latest_ms:
            return None
        return Ticket(ticket_id, key, accepted_ms, checked_ms, refresh_ms, home)
