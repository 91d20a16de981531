"""Seals the secret fields of records for storage. In memory secrets are plain; a field whose key is
missing on this machine stays sealed.
"""

from dataclasses import replace
from typing import Any, Protocol

from greenroom.errors import GreenroomError, InvalidConfig, StorageFailed
from greenroom.model.configuration import SEALED_KINDS
from greenroom.model.sealed import is_sealed


class SecretBox(Protocol):
    """Methods block on a disk."""

    def seal(self, secret: str, of: str) -> str:
        """Bound to the id of its owner. Raises StorageFailed or InvalidConfig."""

    def open(self, sealed: str, of: str) -> str:
        """Returns unsealed secrets as they are. Raises StorageFailed when the key is not here or is
        not the owner's; InvalidConfig when the keys are unusable.
        """


class FieldSeals(Protocol):
    def sealed(self, kind: str, record: Any) -> Any:
        """Raises StorageFailed without a key, if none can be made."""

    def opened(self, kind: str, record: Any) -> Any:
        """Fields that cannot be opened here stay sealed."""


class SealedFields:
    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def sealed(self, kind: str, record: Any) -> Any:
        """The record for storage. Raises StorageFailed without a key, if none can be made."""
        closed = {}
        try:
            for name, text in _secrets(kind, record):
                if not is_sealed(text):
                    closed[name] = self._box.seal(text, _owner(kind, record.id, name))
        except InvalidConfig as error:
            raise StorageFailed(f"secrets cannot be sealed: {error}") from None
        return replace(record, **closed) if closed else record

    def opened(self, kind: str, record: Any) -> Any:
        plain = {}
        for name, text in _secrets(kind, record):
            if is_sealed(text):
                try:
                    plain[name] = self._box.open(text, _owner(kind, record.id, name))
                except GreenroomError:
                    continue
        return replace(record, **plain) if plain else record


class NoSeals:
    def sealed(self, _kind: str, record: Any) -> Any:
        return record

    def opened(self, _kind: str, record: Any) -> Any:
        return record


def unreadable(kind: str, record: Any) -> bool:
    return any(is_sealed(text) for _, text in _secrets(kind, record))


def unsealed(kind: str, record: Any) -> bool:
    return any(not is_sealed(text) for _, text in _secrets(kind, record))


def _secrets(kind: str, record: Any) -> list[tuple[str, str]]:
    return [(name, text) for name in SEALED_KINDS.get(kind, ()) if (text := getattr(record, name))]


def _owner(kind: str, record_id: str, name: str) -> str:
    """Secrets of accounts were the first and are bound to the id alone."""
    return record_id if kind == "account" else f"{kind} {record_id} {name}"
