"""Seals secrets of the configuration store with a key in `secrets.json`, so that a copy of the
database reveals none. The newest key seals, any opens.
"""

import base64
import hmac
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from greenroom.errors import StorageFailed
from greenroom.keys.key_file import (
    KEY_ID_BYTES,
    KEYS_MAX,
    SECRET_BYTES,
    Key,
    KeyFileStamp,
    KeysOnDisk,
    by_activation,
    key_of,
    key_row,
)
from greenroom.model.fields import is_sealed, key_of_sealed

SECRETS_FILE = "secrets.json"
NONCE_BYTES = 12


class SealedSecrets:
    def __init__(self, data: Path, now_ms: Callable[[], int]) -> None:
        self._file = _file(data)
        self._now_ms = now_ms
        self._read: tuple[tuple[Key, ...], KeyFileStamp] | None = None

    def seal(self, secret: str, of: str) -> str:
        """Raises StorageFailed or InvalidConfig without a key, if none can be made."""
        key, nonce = self._sealing(), os.urandom(NONCE_BYTES)
        box = key.cipher.encrypt(nonce, secret.encode(), of.encode())
        return f"sealed:{key.id.hex()}:{base64.urlsafe_b64encode(nonce + box).decode().rstrip('=')}"

    def open(self, sealed: str, of: str) -> str:
        if not is_sealed(sealed):
            return sealed
        key_id, text = key_of_sealed(sealed), sealed.rpartition(":")[2]
        key = next((key for key in self._keys() if key.id.hex() == key_id), None)
        if key is None:
            raise StorageFailed(
                f"it was sealed with the key {key_id}, which is not in {self._file.path}"
            )
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            return key.cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], of.encode()).decode()
        except (InvalidTag, ValueError):
            raise StorageFailed("it is damaged, or belongs to another record") from None

    def derived(self, purpose: str, key_id: str = "") -> tuple[str, bytes]:
        """The key's id and 32 bytes derived from it; without `key_id` from the oldest key, which a
        rotation keeps. Raises StorageFailed for an unknown key.
        """
        keys = self._keys() or (self._sealing(),)
        key = next((key for key in keys if key.id.hex() == key_id), None) if key_id else keys[0]
        if key is None:
            raise StorageFailed(f"the key {key_id} is not in {self._file.path}")
        made = hmac.digest(key.secret, b"greenroom " + purpose.encode(), "sha256")
        return key.id.hex(), made

    def rotate(self) -> str:
        """Returns the new key's id. Raises StorageFailed or InvalidConfig."""
        with self._file.alone(wait=True):
            return self._add(self._keys()).id.hex()

    def _keys(self) -> tuple[Key, ...]:
        if not self._file.exists:
            return ()
        if self._read is None or self._read[1] != self._file.stamp():
            self._read = self._file.read()
        return self._read[0]

    def _sealing(self) -> Key:
        found = self._keys()
        if found:
            return found[-1]
        with self._file.alone(wait=True):
            found = self._keys()
            return found[-1] if found else self._add(())

    def _add(self, known: tuple[Key, ...]) -> Key:
        secret, now_ms = os.urandom(SECRET_BYTES), self._now_ms()
        active_ms = max(now_ms, known[-1].active_ms + 1) if known else now_ms
        made = Key(os.urandom(KEY_ID_BYTES), secret, now_ms, active_ms, AESGCM(secret))
        with self._file.disk():
            self._file.write(_kept((*known, made)))
        return made


def exchange_secret_keys(data: Path, theirs: Iterable[Any]) -> list[dict[str, Any]]:
    """Returns all rows, without invalid ones. Of too many keys all machines keep the same. Raises
    InvalidConfig or StorageFailed.
    """
    file = _file(data)
    found = {key.id: key for key in map(key_of, theirs) if key is not None}
    if not found and not file.exists:
        return []
    with file.alone(wait=True):
        own = file.read()[0] if file.exists else ()
        kept = _kept(by_activation((found | {key.id: key for key in own}).values()))
        if kept != own:
            file.write(kept)
    return [key_row(key) for key in kept]


def _kept(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """The newest, and the oldest one: names and push keys are derived from it."""
    return (*keys[:1], *keys[1:][1 - KEYS_MAX :])


def _file(data: Path) -> KeysOnDisk:
    loss = (
        "two-step sign-in has then to be reset, and webhooks and PagerDuty services have to be"
        " entered again"
    )
    return KeysOnDisk(data / SECRETS_FILE, "secret", loss)
