"""The copy of the last good configuration, for starts without the configuration store."""

import contextlib
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec

from greenroom.configuration.sealed_fields import FieldSeals, NoSeals
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.model.configuration import KINDS, SEALED_KINDS, Configuration, Entry

VERSION = 1
"""Of the file format. Other versions are ignored: the store has everything."""


class ConfigCopy:
    """One file: the SHA-256 of the rest on a line, then JSON. Replaced atomically."""

    def __init__(self, path: Path, seals: FieldSeals | None = None) -> None:
        """`seals` keep secrets sealed in the file; None writes them as they are."""
        self.path = path
        self._seals = seals or NoSeals()

    def save(self, configuration: Configuration) -> None:
        """Returns when it is on disk. Raises StorageFailed and keeps the old copy."""
        kept = {
            kind: [self._sealed(kind, entry) for entry in configuration.index_of(kind).values()]
            for kind in KINDS
        }
        body = msgspec.json.encode(
            {"version": VERSION, "revision": configuration.revision, "entries": kept}
        )
        # processes may share the directory
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "wb") as writing:
                writing.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
                writing.flush()
                os.fsync(writing.fileno())
            os.replace(beside, self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise StorageFailed(
                f"{self.path}: cannot be written: {error.strerror or error}"
            ) from error

    def load(self) -> Configuration | None:
        """None without a usable copy."""
        try:
            digest, _, body = self.path.read_bytes().partition(b"\n")
        except OSError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        try:
            found = msgspec.json.decode(body, type=_Kept)
            if found.version != VERSION:
                return None
            entries = [
                replace(entry, record=self._seals.opened(kind, entry.record))
                if kind in SEALED_KINDS
                else entry
                for kind, described in KINDS.items()
                for entry in msgspec.json.decode(
                    found.entries.get(kind, _NONE),
                    type=cast(Any, list)[cast(Any, Entry)[described.record]],
                )
            ]
        except (msgspec.MsgspecError, InvalidConfig):
            return None
        return Configuration().changed(found.revision, entries)

    def _sealed(self, kind: str, entry: Entry[Any]) -> Entry[Any]:
        return (
            replace(entry, record=self._seals.sealed(kind, entry.record))
            if kind in SEALED_KINDS
            else entry
        )


class _Kept(msgspec.Struct):
    version: int
    revision: int
    entries: dict[str, msgspec.Raw]


_NONE = msgspec.Raw(b"[]")
