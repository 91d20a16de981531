"""The keys that seal tickets, in a file that processes may share. A key is written
ACTIVATION_DELAY_MS before it seals, so that every process has read it, and opens for KEY_OVERLAP_MS
after its replacement. An unreadable file stops the start: new keys would throw every visitor out of
the line. Nonces are random, so a key may seal 2**32 tickets (NIST SP 800-38D, 8.3).
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from greenroom.errors import StorageFailed
from greenroom.keys.key_file import (
    KEY_ID_BYTES,
    KEYS_MAX,
    SECRET_BYTES,
    Key,
    KeysOnDisk,
    by_activation,
    key_of,
    key_row,
)
from greenroom.model.room import SESSION_LONGEST
from greenroom.model.visit import PLACE_KEPT_MS


class TicketKey(NamedTuple):
    """A key without its secret, to be shown. `opens_until_ms` is None for the newest."""

    id: str
    made_ms: int
    seals_from_ms: int
    opens_until_ms: int | None
    seals: bool


KEY_FILE = "keys.json"

KEY_AGE_MAX_MS = 24 * 3_600_000
"""Limits the use of a stolen copy of the file."""

SEALS_MAX = 1 << 28
"""By one process: a sixteenth of a key's limit."""

ACTIVATION_DELAY_MS = 15_000

KEY_OVERLAP_MS = SESSION_LONGEST * 60_000 + PLACE_KEPT_MS + 60_000
"""The longest session, a kept place, and a minute for slow clocks."""

RETRY_MS = 60_000


class KeyRing:
    """Call `tend` about once a second; the rest never touches the disk. `opening` maps key ids to
    ciphers; it is replaced, never changed.
    """

    def __init__(
        self, data: Path, now_ms: int, entropy: Callable[[int], bytes] = os.urandom
    ) -> None:
        """Makes `<data>/keys.json` with a key that is valid at once. Raises InvalidConfig when the
        file is not keys or others can read it, StorageFailed on disk errors.
        """
        self._file = _file(data)
        self._entropy = entropy
        self.seals = 0
        self._retry_ms = 0
        self._listed: tuple[Key, ...] = ()
        self.opening: dict[bytes, AESGCM] = {}
        if not self._file.exists:
            self._publish(now_ms, 0, lambda keys: not keys, wait=True)
        self._listed, self._stamp = self._file.read()
        self.current = _sealing(self._listed, now_ms)
        self._settle(now_ms)

    def __repr__(self) -> str:
        return (
            f"KeyRing({self._file.path}, current={self.current.id.hex()}, keys={len(self.opening)})"
        )

    def tend(self, now_ms: int, *, rotates: bool = True) -> bool:
        """Returns whether `current` changed. Not `rotates`: other machines could not get a new key. On
        InvalidConfig or StorageFailed the current keys stay in use; writing is retried after
        RETRY_MS.
        """
        before = self.current.id
        self.reload(now_ms)
        outdated = len(self._listed) > len(self.opening) or (
            rotates and self._wants_rotation(self._listed, now_ms)
        )
        if outdated and now_ms >= self._retry_ms:
            self._retry_ms = now_ms + RETRY_MS
            self._publish(
                now_ms,
                ACTIVATION_DELAY_MS,
                lambda keys: rotates and self._wants_rotation(keys, now_ms),
            )
            self._retry_ms = 0
            self.reload(now_ms)
        return self.current.id != before

    def rotate(self, now_ms: int) -> None:
        """Raises StorageFailed."""
        self._publish(now_ms, ACTIVATION_DELAY_MS, lambda _: True)
        self.reload(now_ms)

    def reload(self, now_ms: int) -> None:
        """On an error the current keys stay in use."""
        try:
            if self._file.stamp() != self._stamp:
                self._listed, self._stamp = self._file.read()
        finally:
            self._settle(now_ms)

    def _settle(self, now_ms: int) -> None:
        opening = {key.id: key.cipher for key in _still_valid(self._listed, now_ms)}
        if opening.keys() != self.opening.keys():
            self.opening = opening
        current = _sealing(self._listed, now_ms)
        if current.id != self.current.id:
            self.current = current
            self.seals = 0

    def _wants_rotation(self, keys: tuple[Key, ...], now_ms: int) -> bool:
        # a key of a machine whose clock was wrong may begin in years
        newest = _sealing(keys, now_ms + ACTIVATION_DELAY_MS)
        if newest.id == self.current.id and self.seals >= SEALS_MAX:
            return True
        return now_ms - newest.active_ms >= KEY_AGE_MAX_MS

    def _publish(
        self,
        now_ms: int,
        delay_ms: int,
        wanted: Callable[[tuple[Key, ...]], bool],
        wait: bool = False,
    ) -> None:
        with self._file.alone(wait=wait):
            keys = self._file.read()[0] if self._file.exists else self._listed
            kept = _still_valid(keys, now_ms)
            if wanted(keys):
                if len(kept) >= KEYS_MAX:
                    raise StorageFailed(
                        f"{self._file.path}: holds {KEYS_MAX} keys that still open tickets; rotate"
                        " later"
                    )
                secret = self._entropy(SECRET_BYTES)
                kept = (
                    *kept,
                    Key(
                        self._entropy(KEY_ID_BYTES),
                        secret,
                        now_ms,
                        now_ms + delay_ms,
                        AESGCM(secret),
                    ),
                )
            if kept != keys:
                self._file.write(kept)


def ticket_keys(data: Path, now_ms: int) -> list[TicketKey]:
    """Newest first. Raises InvalidConfig or StorageFailed."""
    file = _file(data)
    with file.disk():
        keys = _still_valid(file.read()[0], now_ms)
    until = [key.active_ms + KEY_OVERLAP_MS for key in keys[1:]]
    sealing = _sealing(keys, now_ms)
    told = zip(keys, [*until, None], strict=True)
    return [
        TicketKey(key.id.hex(), key.created_ms, key.active_ms, end, key.id == sealing.id)
        for key, end in told
    ][::-1]


def exchange(data: Path, theirs: Iterable[Any], now_ms: int) -> list[dict[str, Any]]:
    """Returns all rows that still open tickets, without invalid ones. Raises InvalidConfig or
    StorageFailed.
    """
    file = _file(data)
    known = {key.id: key for key in map(key_of, theirs) if key is not None}
    with file.alone(wait=True):
        own = file.read()[0] if file.exists else ()
        found = known | {key.id: _announced(key, known, now_ms) for key in own}
        kept = _still_valid(by_activation(found.values()), now_ms)[-KEYS_MAX:]
        if kept != own:
            file.write(kept)
    return [key_row(key) for key in kept]


def _announced(key: Key, known: Mapping[bytes, Key], now_ms: int) -> Key:
    """Delays a key that others do not know: it would seal tickets that they cannot open."""
    sealing_ms = max(
        (other.active_ms for other in known.values() if other.active_ms <= now_ms), default=None
    )
    takes_over = key.id not in known and sealing_ms is not None and key.active_ms >= sealing_ms
    if not takes_over or key.active_ms >= now_ms + ACTIVATION_DELAY_MS // 2:
        return key
    return replace(key, active_ms=now_ms + ACTIVATION_DELAY_MS)


def _file(data: Path) -> KeysOnDisk:
    return KeysOnDisk(data / KEY_FILE, "ticket", "all visitors then start again")


def _sealing(keys: tuple[Key, ...], now_ms: int) -> Key:
    """The oldest one if the clock was set back before all."""
    return next((key for key in reversed(keys) if key.active_ms <= now_ms), keys[0])


def _still_valid(keys: tuple[Key, ...], now_ms: int) -> tuple[Key, ...]:
    replaced = [index for index, key in enumerate(keys) if key.active_ms <= now_ms - KEY_OVERLAP_MS]
    return keys[replaced[-1] :] if replaced else keys
