"""Seals a visitor's ticket into a cookie value and opens it again.

A sealed ticket is 81 bytes, 108 characters of base64url: key id (6), nonce (12), AES-256-GCM box of the packed ticket
(47 + 16). Eighty-one is a multiple of three, so there is no padding and there are no spare bits: every ticket has exactly
one spelling, and whatever is not 108 characters of the alphabet is refused before any cryptography. The room id is
associated data: a ticket of one room opens in no other.

`open` answers None for anything that is not a ticket, and never says why: its caller treats the visitor as new.
"""

import os
import struct
import weakref
from binascii import Error as BadBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable

from cryptography.exceptions import InvalidTag

from greenroom.model.visit import HOME_BYTES, TICKET_ID_BYTES, TIE_BITS, Ticket
from greenroom.stores.keys import KEY_ID_BYTES, KeyRing

VERSION = 1
NONCE_BYTES = 12
SEALED_LENGTH = 108
"""Characters of every sealed ticket; nothing else is looked at."""

NONCES_AT_ONCE = 256
"""Nonces drawn in one system call; a fork throws them away, because parent and child must never share one."""

FUTURE_MAX_MS = 5_000
"""How far the clocks of two machines may differ before a ticket counts as made up."""

REFRESH_MAX_MS = 120_000
"""Longest interval ever assigned: 60 s for a room, plus jitter, with room to spare."""

OPENED_REMEMBERED = 4_096
"""Tickets whose opening is remembered, 2 MB at most: a busy browser sends the same one with every request."""

_CONTENT = struct.Struct(f">B{TICKET_ID_BYTES}sQQQI{HOME_BYTES}s")  # version, id, key, accepted_ms, checked_ms, refresh_ms, home
_NONCE_AT = KEY_ID_BYTES
_BOX_AT = KEY_ID_BYTES + NONCE_BYTES
_RAW_LENGTH = SEALED_LENGTH // 4 * 3
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_+/", b"+/**")  # the other alphabet becomes `*`, which strict decoding refuses


class Sealer:
    """Seals with the current key of a ring, opens with any key of it. Not for use by several threads at once."""

    def __init__(self, ring: KeyRing, entropy: Callable[[int], bytes] = os.urandom) -> None:
        """`entropy(n)` gives n unpredictable bytes; nonces come from it."""
        self._ring = ring
        self._entropy = entropy
        self._nonces: list[bytes] = []
        self._opened: dict[tuple[bytes, bytes], Ticket] = {}
        self._opened_with: object = None
        _sealers.add(self)

    def seal(self, ticket: Ticket, room_id: bytes) -> bytes:
        """The cookie value: SEALED_LENGTH cookie-safe ASCII characters. Raises struct.error for a ticket that does not fit."""
        nonces = self._nonces or self._draw()
        nonce = nonces.pop()
        key = self._ring.current
        content = _CONTENT.pack(VERSION, ticket.id, ticket.key, ticket.accepted_ms, ticket.checked_ms, ticket.refresh_ms, ticket.home)
        return b2a_base64(key.id + nonce + key.cipher.encrypt(nonce, content, room_id), newline=False).translate(_TO_URL)

    def open(self, value: bytes, room_id: bytes, now_ms: int) -> Ticket | None:
        """The ticket, or None for whatever this ring did not seal for this room or what cannot be true at `now_ms`."""
        if len(value) != SEALED_LENGTH:
            return None
        if self._opened_with is not self._ring.opening or len(self._opened) >= OPENED_REMEMBERED:
            self._opened, self._opened_with = {}, self._ring.opening
        ticket = self._opened.get((value, room_id)) or self._decrypt(value, room_id)
        if ticket is None or not _possible(ticket, now_ms + FUTURE_MAX_MS):
            return None
        self._opened[value, room_id] = ticket
        return ticket

    def _decrypt(self, value: bytes, room_id: bytes) -> Ticket | None:
        try:
            raw = a2b_base64(value.translate(_FROM_URL), strict_mode=True)
            cipher = self._ring.opening.get(raw[:_NONCE_AT])
            if cipher is None or len(raw) != _RAW_LENGTH:  # strict decoding still lets `=` cut a text short
                return None
            content = cipher.decrypt(raw[_NONCE_AT:_BOX_AT], raw[_BOX_AT:], room_id)
        except (BadBase64, InvalidTag):
            return None
        version, *fields = _CONTENT.unpack(content)
        return Ticket(*fields) if version == VERSION else None

    def _draw(self) -> list[bytes]:
        self._ring.count(NONCES_AT_ONCE)
        drawn = self._entropy(NONCE_BYTES * NONCES_AT_ONCE)
        self._nonces = [drawn[at : at + NONCE_BYTES] for at in range(0, len(drawn), NONCE_BYTES)]
        return self._nonces

    def _forget_nonces(self) -> None:
        self._nonces = []


def _possible(ticket: Ticket, latest_ms: int) -> bool:
    """Whether a ticket can have been given by `latest_ms`."""
    accepted_ms, arrival_ms = ticket.accepted_ms, ticket.key >> TIE_BITS
    if ticket.checked_ms > latest_ms or accepted_ms > latest_ms or arrival_ms > latest_ms or ticket.refresh_ms > REFRESH_MAX_MS:
        return False
    # Two machines may stamp arrival and admission, so "before" allows for the same difference of clocks as "future".
    return not accepted_ms or accepted_ms + FUTURE_MAX_MS >= arrival_ms


_sealers: "weakref.WeakSet[Sealer]" = weakref.WeakSet()


def _after_fork() -> None:
    for sealer in _sealers:
        sealer._forget_nonces()


os.register_at_fork(after_in_child=_after_fork)
