"""The keys that seal tickets, in one file that several processes may share.

A key is made, written down, and used for sealing only ACTIVATION_DELAY_MS later, when every process that shares the file
has read it. It seals until a newer one takes over, and opens for KEY_OVERLAP_MS after that: by then every living ticket has
been sealed again. The file is created with mode 600, replaced as a whole, and never repaired by guessing: a file that cannot
be read as keys stops the start, because new keys in its place would throw every visitor out of the line.

Nonces are random, so a key may seal 2**32 tickets (NIST SP 800-38D, 8.3). Each process counts its own and asks for a new key
at SEALS_MAX, which leaves room for sixteen processes on one file.
"""

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from greenroom.errors import InvalidConfig, Problem, StorageFailed
from greenroom.model.room import SESSION_LONGEST
from greenroom.model.ticket_key import TicketKey
from greenroom.model.visit import PLACE_KEPT_MS

KEY_FILE = "keys.json"
KEY_ID_BYTES = 6
SECRET_BYTES = 32
FORMAT = 1

KEY_AGE_MAX_MS = 24 * 3_600_000
"""A key seals for a day at most, so that a stolen old copy of the file is soon worth nothing."""

SEALS_MAX = 1 << 28
"""Seals by one process before it asks for a new key: a sixteenth of what one key bears."""

ACTIVATION_DELAY_MS = 15_000
"""From writing a key down to sealing with it: fifteen times the second in which every process looks at the file."""

KEY_OVERLAP_MS = SESSION_LONGEST * 60_000 + PLACE_KEPT_MS + 60_000
"""How long a replaced key still opens: the longest session, the time a place is kept, and a minute for slow clocks."""

KEYS_MAX = 64
"""Keys in one file; more means that something rotates in a loop."""

RETRY_MS = 60_000
"""Between two tries to write the file when the disk refuses."""

FILE_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `active_ms` is when it begins to seal; the secret shows in no repr."""

    id: bytes
    secret: bytes = field(repr=False)
    created_ms: int
    active_ms: int
    cipher: AESGCM = field(repr=False, compare=False)


class KeyRing:
    """The current key and the older ones that still open.

    Call `tend` about once a second; the rest never touches the disk. `current` seals; `opening` maps the id of every key that
    still opens to its cipher. Both are replaced, never changed.
    """

    def __init__(self, data: Path, now_ms: int, entropy: Callable[[int], bytes] = os.urandom) -> None:
        """Reads `<data>/keys.json`, or makes it with a first key that is valid at once.

        Raises InvalidConfig when the file is not keys or others can read it, StorageFailed when the disk refuses.
        """
        self._path = data / KEY_FILE
        self._entropy = entropy
        self.seals = 0
        self._retry_ms = 0
        self._listed: tuple[Key, ...] = ()
        self.opening: dict[bytes, AESGCM] = {}
        if not os.path.lexists(self._path):
            self._publish(now_ms, 0, lambda keys: not keys, wait=True)
        self._listed, self._stamp = _read(self._path)
        self.current = _sealing(self._listed, now_ms)
        self._settle(now_ms)

    def __repr__(self) -> str:
        return f"KeyRing({self._path}, current={self.current.id.hex()}, keys={len(self.opening)})"

    def tend(self, now_ms: int) -> bool:
        """Reads the file again when another process changed it, activates, rotates and drops keys; True when `current` changed.

        Raises InvalidConfig or StorageFailed when the file is unusable or cannot be written; the keys at hand stay in use, and
        writing is tried again after RETRY_MS.
        """
        before = self.current.id
        self.reload(now_ms)
        outdated = len(self._listed) > len(self.opening) or self._wants_rotation(self._listed, now_ms)
        if outdated and now_ms >= self._retry_ms:
            self._retry_ms = now_ms + RETRY_MS
            self._publish(now_ms, ACTIVATION_DELAY_MS, lambda keys: self._wants_rotation(keys, now_ms))
            self._retry_ms = 0
            self.reload(now_ms)
        return self.current.id != before

    def rotate(self, now_ms: int) -> None:
        """Publishes a new key now; it takes over after ACTIVATION_DELAY_MS. Raises StorageFailed when it cannot be written."""
        self._publish(now_ms, ACTIVATION_DELAY_MS, lambda _: True)
        self.reload(now_ms)

    def reload(self, now_ms: int) -> None:
        """Takes up what the file says, if it changed, and what the time says. On an error the keys at hand stay in use."""
        try:
            if _stamp(self._path) != self._stamp:
                self._listed, self._stamp = _read(self._path)
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
        newest = keys[-1]
        if newest.id == self.current.id and self.seals >= SEALS_MAX:
            return True
        return now_ms - newest.active_ms >= KEY_AGE_MAX_MS

    def _publish(self, now_ms: int, delay_ms: int, wanted: Callable[[tuple[Key, ...]], bool], wait: bool = False) -> None:
        with _disk(self._path), _alone(self._path, wait):
            keys = _read(self._path)[0] if os.path.lexists(self._path) else self._listed
            kept = _still_valid(keys, now_ms)
            if wanted(keys):
                if len(kept) >= KEYS_MAX:
                    raise StorageFailed(f"{self._path}: holds {KEYS_MAX} keys that still open tickets; rotate later")
                secret = self._entropy(SECRET_BYTES)
                kept = (*kept, Key(self._entropy(KEY_ID_BYTES), secret, now_ms, now_ms + delay_ms, AESGCM(secret)))
            if kept != keys:
                _write(self._path, kept)


def ticket_keys(data: Path, now_ms: int) -> list[TicketKey]:
    """The keys of a data directory that open tickets, newest first. Raises InvalidConfig or StorageFailed."""
    path = data / KEY_FILE
    with _disk(path):
        keys = _still_valid(_read(path)[0], now_ms)
    until = [key.active_ms + KEY_OVERLAP_MS for key in keys[1:]]
    sealing = _sealing(keys, now_ms)
    told = zip(keys, [*until, None], strict=True)
    return [TicketKey(key.id.hex(), key.created_ms, key.active_ms, end, key.id == sealing.id) for key, end in told][::-1]


def exchange(data: Path, theirs: Iterable[Any], now_ms: int) -> list[dict[str, Any]]:
    """Adds rows of the key files of other machines; returns all rows that still open tickets, from this and other machines.

    What is no row is ignored. Raises InvalidConfig or StorageFailed, as KeyRing does.
    """
    path = data / KEY_FILE
    found = {key.id: key for key in map(_key, theirs) if key is not None}
    with _disk(path), _alone(path, wait=True):
        own = _read(path)[0] if os.path.lexists(path) else ()
        found |= {key.id: key for key in own}
        every = tuple(sorted(found.values(), key=lambda key: (key.active_ms, key.id)))
        kept = _still_valid(every, now_ms)[-KEYS_MAX:]
        if kept != own:
            _write(path, kept)
    return [_row(key) for key in kept]


def _row(key: Key) -> dict[str, Any]:
    return {"id": key.id.hex(), "secret": key.secret.hex(), "created_ms": key.created_ms, "active_ms": key.active_ms}


def _sealing(keys: tuple[Key, ...], now_ms: int) -> Key:
    """The newest key whose time has come; the oldest one when the clock was set back before all of them."""
    return next((key for key in reversed(keys) if key.active_ms <= now_ms), keys[0])


def _still_valid(keys: tuple[Key, ...], now_ms: int) -> tuple[Key, ...]:
    """Without the keys whose successor took over longer ago than the overlap."""
    replaced = [index for index, key in enumerate(keys) if key.active_ms <= now_ms - KEY_OVERLAP_MS]
    return keys[replaced[-1] :] if replaced else keys


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{path}: cannot write the ticket keys: {error.strerror}") from error


@contextlib.contextmanager
def _alone(path: Path, wait: bool) -> Iterator[None]:
    """One process at a time reads, changes and replaces the file; only a start waits for its turn."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


def _write(path: Path, keys: Iterable[Key]) -> None:
    text = json.dumps({"format": FORMAT, "keys": [_row(key) for key in keys]}, indent=1).encode() + b"\n"
    beside = path.with_suffix(".new")
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()  # left by a process that died here; the lock proves that no other process uses it
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(text)
            out.flush()
            with contextlib.suppress(FileNotFoundError):
                _give_to_owner_of(path, out.fileno())
            os.fsync(out.fileno())
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _give_to_owner_of(path: Path, file: int) -> None:
    """A rotation by root must leave the file readable for the service, which runs as another user."""
    owner = os.stat(path)
    if owner.st_uid != os.geteuid():
        os.fchown(file, owner.st_uid, owner.st_gid)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError as error:
        raise StorageFailed(f"{path}: cannot read the ticket keys: {error.strerror}") from error
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read(path: Path) -> tuple[tuple[Key, ...], tuple[int, int, int]]:
    """Keys by time of activation, and what identifies this version of the file."""
    stamp = _stamp(path)
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise StorageFailed(f"{path}: cannot read the ticket keys: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise InvalidConfig([Problem(str(path), "must be a regular file")])
    if mode & 0o077:
        shown = f"{stat.S_IMODE(mode):04o}"
        raise InvalidConfig([Problem(str(path), f"holds secrets and must not be open to others: its mode is {shown}, do chmod 600")])
    keys, reason = _parse(text)
    if reason:
        raise InvalidConfig(
            [Problem(str(path), f"{reason}; restore it, or remove it to begin with new keys (all visitors then start again)")]
        )
    return keys, stamp


def _parse(text: bytes) -> tuple[tuple[Key, ...], str]:
    """The keys, or why there are none. The reason never quotes the file: it holds secrets."""
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
    keys = [_key(row) for row in rows]
    wrong = [index for index, key in enumerate(keys) if key is None]
    if wrong:
        return (), f"has a malformed key at keys[{wrong[0]}]"
    found = sorted((key for key in keys if key is not None), key=lambda key: (key.active_ms, key.id))
    if len({key.id for key in found}) < len(found):
        return (), "has two keys of one id"
    return tuple(found), ""


def _key(row: Any) -> Key | None:
    if not isinstance(row, dict):
        return None
    key_id, secret, created_ms, active_ms = (row.get(name) for name in ("id", "secret", "created_ms", "active_ms"))
    if type(created_ms) is not int or type(active_ms) is not int or not 0 <= created_ms <= active_ms:
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
