"""Seals secrets that the configuration store keeps and greenroom has to read again, so that a copy of the database alone gives none away.

The key is `secrets.json` in the data directory: made when the first secret is sealed, never replaced, because what it sealed would be lost.
Machines that share a Redis exchange these keys (`stores.redis.key_exchange`), so a file may hold several: the oldest one seals, any opens.
"""

import base64
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from greenroom.errors import StorageFailed
from greenroom.model.account import SEALED
from greenroom.stores.key_file import KEY_ID_BYTES, KEYS_MAX, SECRET_BYTES, Key, KeysOnDisk, by_activation, key_of, key_row

SECRETS_FILE = "secrets.json"
NONCE_BYTES = 12


class SealedSecrets:
    """See `ports.SecretBox`. The key file is read with every use: people sign in rarely."""

    def __init__(self, data: Path, now_ms: Callable[[], int], entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._file = _file(data)
        self._now_ms = now_ms
        self._entropy = entropy

    def seal(self, secret: str, of: str) -> str:
        """See `ports.SecretBox`. Raises StorageFailed or InvalidConfig when there is no key and none can be made."""
        key, nonce = self._sealing(), self._entropy(NONCE_BYTES)
        box = key.cipher.encrypt(nonce, secret.encode(), of.encode())
        return f"sealed:{key.id.hex()}:{base64.urlsafe_b64encode(nonce + box).decode().rstrip('=')}"

    def open(self, sealed: str, of: str) -> str:
        """See `ports.SecretBox`."""
        if not re.fullmatch(SEALED, sealed):
            return sealed
        _, key_id, text = sealed.split(":")
        key = next((key for key in self._keys() if key.id.hex() == key_id), None)
        if key is None:
            raise StorageFailed(f"it was sealed with the key {key_id}, which is not in {self._file.path}")
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            return key.cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], of.encode()).decode()
        except (InvalidTag, ValueError):
            raise StorageFailed("it is damaged, or belongs to another account") from None

    def _keys(self) -> tuple[Key, ...]:
        return self._file.read()[0] if self._file.exists else ()

    def _sealing(self) -> Key:
        found = self._keys()
        if found:
            return found[0]
        with self._file.alone(wait=True):
            found = self._keys()
            if not found:
                secret, now_ms = self._entropy(SECRET_BYTES), self._now_ms()
                found = (Key(self._entropy(KEY_ID_BYTES), secret, now_ms, now_ms, AESGCM(secret)),)
                self._file.write(found)
            return found[0]


def exchange_secret_keys(data: Path, theirs: Iterable[Any]) -> list[dict[str, Any]]:
    """Adds rows of the key files of other machines; returns all rows. What is no row is ignored, and no key is ever forgotten.

    Raises InvalidConfig or StorageFailed.
    """
    file = _file(data)
    found = {key.id: key for key in map(key_of, theirs) if key is not None}
    if not found and not file.exists:
        return []
    with file.alone(wait=True):
        own = file.read()[0] if file.exists else ()
        more = by_activation(key for key in found.values() if key.id not in {one.id for one in own})
        kept = by_activation((*own, *more[: KEYS_MAX - len(own)]))
        if kept != own:
            file.write(kept)
    return [key_row(key) for key in kept]


def _file(data: Path) -> KeysOnDisk:
    return KeysOnDisk(data / SECRETS_FILE, "secret", "two-step sign-in has then to be reset for every account")
