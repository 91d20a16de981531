"""A key file shared by processes: mode 600, replaced as a whole, never repaired."""

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from greenroom.errors import InvalidConfig, Problem, StorageFailed

KEY_ID_BYTES = 6
SECRET_BYTES = 32
FORMAT = 1

KEYS_MAX = 64
"""More are the work of a loop."""

FILE_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Key:
    """`active_ms`: when it begins to seal; the secret shows in no repr."""

    id: bytes
    secret: bytes = field(repr=False)
    created_ms: int
    active_ms: int
    cipher: AESGCM = field(repr=False, compare=False)


KeyFileStamp = tuple[int, int, int]


class KeysOnDisk:
    """Methods raise StorageFailed on disk errors, InvalidConfig for an unusable file."""

    def __init__(self, path: Path, what: str, loss: str) -> None:
        """For messages: `what` the keys seal, and the `loss` without the file."""
        self.path = path
        self._what = what
        self._loss = loss

    @property
    def exists(self) -> bool:
        """Includes a dangling link."""
        return os.path.lexists(self.path)

    def stamp(self) -> KeyFileStamp:
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise self._unreadable(error) from error
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self) -> tuple[tuple[Key, ...], KeyFileStamp]:
        """Keys by time of activation."""
        stamp = self.stamp()
        try:
            with open(self.path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read(FILE_MAX_BYTES + 1)
        except OSError as error:
            raise self._unreadable(error) from error
        if not stat.S_ISREG(mode):
            raise InvalidConfig([Problem(str(self.path), "must be a regular file")])
        if mode & 0o077:
            shown = f"{stat.S_IMODE(mode):04o}"
            reason = (
                f"holds secrets and must not be open to others: its mode is {shown}, do chmod 600"
            )
            raise InvalidConfig([Problem(str(self.path), reason)])
        keys, reason = _parse(text)
        if reason:
            raise InvalidConfig(
                [
                    Problem(
                        str(self.path),
                        f"{reason}; restore it, or remove it to begin with new keys ({self._loss})",
                    )
                ]
            )
        return keys, stamp

    @contextlib.contextmanager
    def alone(self, *, wait: bool) -> Iterator[None]:
        """Locks the file. Without `wait`, raises StorageFailed when another process holds the
        lock.
        """
        with self.disk():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(
                self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            try:
                fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
            finally:
                os.close(lock)

    @contextlib.contextmanager
    def disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageFailed(
                f"{self.path}: cannot write the {self._what} keys: {error.strerror}"
            ) from error

    def write(self, keys: Iterable[Key]) -> None:
        """Inside `alone`. Raises OSError."""
        text = (
            json.dumps(
                {"format": FORMAT, "keys": [key_row(key) for key in keys]}, indent=1
            ).encode()
            + b"\n"
        )
        beside = self.path.with_suffix(".new")
        with contextlib.suppress(FileNotFoundError):
            # left by a process that died here; the lock proves that no other process uses it
            beside.unlink()
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "wb") as out:
                out.write(text)
                out.flush()
                _give_to_owner_of(
                    self.path if self.path.exists() else self.path.parent, out.fileno()
                )
                os.fsync(out.fileno())
            os.replace(beside, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _unreadable(self, error: OSError) -> StorageFailed:
        return StorageFailed(f"{self.path}: cannot read the {self._what} keys: {error.strerror}")


def key_row(key: Key) -> dict[str, Any]:
    return {
        "id": key.id.hex(),
        "secret": key.secret.hex(),
        "created_ms": key.created_ms,
        "active_ms": key.active_ms,
    }


def key_of(row: Any) -> Key | None:
    if not isinstance(row, dict):
        return None
    key_id, secret, created_ms, active_ms = (
        row.get(name) for name in ("id", "secret", "created_ms", "active_ms")
    )
    if (
        type(created_ms) is not int
        or type(active_ms) is not int
        or not 0 <= created_ms <= active_ms
    ):
        return None
    if not isinstance(key_id, str) or not isinstance(secret, str):
        return None
    try:
        raw_id, raw_secret = bytes.fromhex(key_id), bytes.fromhex(secret)
    except ValueError:
        return None
    if len(raw_id) != KEY_ID_BYTES or len(raw_secret) != SECRET_BYTES:
        return None
    return Key(raw_id, raw_secret, created_ms, active_ms, AESGCM(raw_secret))


def by_activation(keys: Iterable[Key]) -> tuple[Key, ...]:
    return tuple(sorted(keys, key=lambda key: (key.active_ms, key.id)))


def _give_to_owner_of(path: Path, file: int) -> None:
    """A command run by root must leave the file readable for the service's user."""
    owner = os.stat(path)
    if owner.st_uid != os.geteuid():
        os.fchown(file, owner.st_uid, owner.st_gid)


def _parse(text: bytes) -> tuple[tuple[Key, ...], str]:
    """The reason never quotes the file: it holds secrets."""
    if len(text) > FILE_MAX_BYTES:
        return (), f"is larger than {FILE_MAX_BYTES} bytes"
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return (), "is not valid JSON"
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        return (), f"is not a key file of format {FORMAT}"
    rows = whole.get("keys")
    if not isinstance(rows, list) or not 1 <= len(rows) <= KEYS_MAX:
        return (), f"must hold 1 to {KEYS_MAX} keys"
    keys = [key_of(row) for row in rows]
    wrong = [index for index, key in enumerate(keys) if key is None]
    if wrong:
        return (), f"has a malformed key at keys[{wrong[0]}]"
    found = by_activation(key for key in keys if key is not None)
    if len({key.id for key in found}) < len(found):
        return (), "has two keys of one id"
    return found, ""
