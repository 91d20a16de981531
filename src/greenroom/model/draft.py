"""A configuration being changed in place, at a cost per change that does not depend on its size."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from greenroom.model.configuration import (
    KIND_OF,
    KINDS,
    Configuration,
    Entry,
    EntryIndex,
    R,
    Record,
)


class GrowingIndex(EntryIndex[R]):
    __slots__ = ("_entries", "_groups")

    def __init__(self, entries: dict[str, Entry[R]]) -> None:
        super().__init__(entries)
        self._entries = entries
        self._groups: dict[str, dict[str, Entry[R]]] | None = None

    def of(self, parent: str) -> list[Entry[R]]:
        """One that came from another parent is last."""
        return list(self._grouped().get(parent, {}).values())

    def put(self, entry: Entry[R]) -> None:
        old = self._entries.get(entry.id)
        self._entries[entry.id] = entry
        if self._groups is not None:
            if old is not None and old.parent != entry.parent:
                self._groups[old.parent].pop(entry.id)
            self._groups.setdefault(entry.parent, {})[entry.id] = entry

    def pop(self, id: str) -> Entry[R] | None:
        old = self._entries.pop(id, None)
        if old is not None and self._groups is not None:
            self._groups[old.parent].pop(id)
        return old

    def settled(self, before: EntryIndex[R]) -> dict[str, Entry[R]]:
        """In the order of `before`, also for what was removed and made again."""
        return {key: self._entries[key] for key in before if key in self._entries} | self._entries

    def _grouped(self) -> dict[str, dict[str, Entry[R]]]:
        if self._groups is None:
            self._groups = {}
            for entry in self._entries.values():
                self._groups.setdefault(entry.parent, {})[entry.id] = entry
        return self._groups


class Draft:
    def __init__(self, old: Configuration) -> None:
        self._old = old
        self._indexes: dict[str, GrowingIndex[Any]] = {}
        self._touched: dict[tuple[str, str], None] = {}

    def live(self) -> Configuration:
        """Only for use between two changes."""
        return self._old.with_indexes(
            self._old.revision + 1, {kind: self._opened(kind) for kind in KINDS}
        )

    def put(self, record: Record, parent: str, now_ms: int) -> None:
        """Raises KeyError when the parent is not there."""
        kind = KIND_OF[type(record)]
        above = KINDS[kind].parent
        if above and parent not in self._opened(above):
            raise KeyError(f"{above} {parent}")
        index_of = self._opened(kind)
        old = index_of.get(record.id)
        same = old and old.record == record and old.parent == parent
        if same and (kind, record.id) not in self._old.unusable:
            return
        index_of.put(
            Entry(record, parent, old.created_ms if old else now_ms, now_ms, self._old.revision + 1)
        )
        self._touched[kind, record.id] = None

    def remove(self, kind: str, id: str) -> None:
        """With everything that belongs to it. Raises KeyError."""
        gone = self._opened(kind).pop(id) if kind in KINDS else None
        if gone is None and (kind, id) not in self._old.unusable:
            raise KeyError(f"{kind} {id}")
        self._touched[kind, id] = None
        for name, described in KINDS.items():
            if described.parent == kind:
                for child in self._opened(name).of(id):
                    self.remove(name, child.id)
        for (name, child_id), child in self._old.unusable.items():
            above = KINDS[name].parent if name in KINDS else ""
            if above == kind and child.parent == id and (name, child_id) not in self._touched:
                self.remove(name, child_id)

    def differences(self) -> Iterator[tuple[str, Entry[Any] | None, Entry[Any] | None]]:
        for kind, key in self._touched:
            before = after = None
            if kind in KINDS:
                before, after = self._old.index_of(kind).get(key), self._indexes[kind].get(key)
            before = before or self._old.unusable.get((kind, key))
            if before is not after:
                yield kind, before, after

    def finished(self) -> Configuration:
        """The draft must not be used any more."""
        settled = {
            kind: self._indexes[kind].settled(self._old.index_of(kind))
            for kind in {kind for kind, _ in self._touched if kind in KINDS}
        }
        finished = self._old.with_indexes(self._old.revision + 1, settled)
        if not self._old.unusable:
            return finished
        lost = {key: e for key, e in self._old.unusable.items() if key not in self._touched}
        return replace(finished, unusable=lost)

    def _opened(self, kind: str) -> GrowingIndex[Any]:
        if kind not in self._indexes:
            self._indexes[kind] = GrowingIndex(dict(self._old.index_of(kind)))
        return self._indexes[kind]
