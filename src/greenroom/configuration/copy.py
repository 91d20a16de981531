"""The copy of the last good configuration, for starts without the configuration store."""

import contextlib
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from greenroom.configuration.stored_records import SealedFields, with_rows
from greenroom.errors import StorageFailed
from greenroom.model.configuration import (
    KINDS,
    SEALED_KINDS,
    Configuration,
    Entry,
    Unusable,
)

VERSION = 1
"""The store has everything, so other versions are ignored."""


class ConfigCopy:
    """The SHA-256 of the rest on a line, then JSON. Replaced atomically."""

    def __init__(self, path: Path, seals: SealedFields | None = None) -> None:
        """`seals` None: secrets are written as they are."""
        self.path = path
        self._seals = seals or SealedFields()

    def save(self, configuration: Configuration) -> None:
        """Raises StorageFailed and keeps the old copy."""
        kept = {
            kind: [self._sealed(kind, entry) for entry in configuration.index_of(kind).values()]
            for kind in KINDS
        }
        lost = [[kind, entry] for (kind, _), entry in configuration.unusable.items()]
        body = msgspec.json.encode(
            {
                "version": VERSION,
                "revision": configuration.revision,
                "entries": kept,
                "unusable": lost,
            }
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
        try:
            digest, _, body = self.path.read_bytes().partition(b"\n")
        except OSError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        try:
            found = msgspec.json.decode(body, type=_Kept)
            ids = {
                kind: [_id_of(entry.record) for entry in kept]
                for kind, kept in found.entries.items()
            }
        except msgspec.MsgspecError:
            return None
        if found.version != VERSION:
            return None
        rows = [
            {**msgspec.structs.asdict(entry), "kind": kind, "id": found_id, "body": entry.record}
            for kind, kept in found.entries.items()
            for found_id, entry in zip(ids[kind], kept, strict=True)
        ]
        read = with_rows(Configuration(), found.revision, rows)
        opened = [
            replace(entry, record=self._seals.opened(kind, entry.record))
            for kind in SEALED_KINDS
            for entry in read.index_of(kind).values()
        ]
        lost = {(kind, entry.id): entry for kind, entry in found.unusable}
        return read.changed(found.revision, opened, (), {**read.unusable, **lost})

    def _sealed(self, kind: str, entry: Entry[Any]) -> Entry[Any]:
        return (
            replace(entry, record=self._seals.sealed(kind, entry.record))
            if kind in SEALED_KINDS
            else entry
        )


def _id_of(record: msgspec.Raw) -> str:
    return msgspec.json.decode(record, type=_WithId).id


class _WithId(msgspec.Struct):
    id: str


class _KeptEntry(msgspec.Struct):
    record: msgspec.Raw
    parent: str
    created_ms: int
    modified_ms: int
    revision: int


class _Kept(msgspec.Struct):
    version: int
    revision: int
    entries: dict[str, list[_KeptEntry]]
    unusable: list[tuple[str, Entry[Unusable]]] = []  # type: ignore[type-var]
