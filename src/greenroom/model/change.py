"""Changes of the configuration: what is stored, its effect, and its audit entry."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.configuration import (
    KIND_OF,
    KIND_WORDS,
    KINDS,
    Configuration,
    Entry,
    EntryIndex,
    R,
    Record,
)
from greenroom.model.fields import Unique


class GrowingIndex(EntryIndex[R]):
    """Changed in place: the cost of a change does not depend on the size."""

    __slots__ = ("_entries", "_groups")

    def __init__(self, entries: dict[str, Entry[R]]) -> None:
        super().__init__(entries)
        self._entries = entries
        self._groups: dict[str, dict[str, Entry[R]]] | None = None

    def of(self, parent: str) -> list[Entry[R]]:
        """An entry that came from another parent is last."""
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
        """In the order of `before`, also for entries removed and created again."""
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
        """Valid until the next change."""
        return self._old.with_indexes(
            self._old.revision + 1, {kind: self._opened(kind) for kind in KINDS}
        )

    def put(self, record: Record, parent: str, now_ms: int) -> None:
        """Raises KeyError without the parent."""
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
        """Removes its children too. Raises KeyError."""
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


AUTHOR_MAX = 200

AUDIT_VALUE_MAX = 65_536

NAMED_BY = {"list_item": "value", "status_page": "title"}

UNIQUE = ("zone", "room", "event", "list", "list_item", "account")


@dataclass(frozen=True, slots=True)
class Put:
    record: Record
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Remove:
    """KeyError for an unknown id."""

    kind: str
    id: str


Change = Put | Remove


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    before: Entry[Any] | None
    after: Entry[Any] | None

    @property
    def entry(self) -> Entry[Any]:
        found = self.after or self.before
        if found is None:
            raise ValueError("a step without entry")
        return found

    @property
    def action(self) -> str:
        return "removed" if self.after is None else "created" if self.before is None else "changed"

    @property
    def name(self) -> str:
        return name_of(self.kind, self.entry.record)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """`number` only grows, and pages the log. `before` and `after`: the fields that differ, without
    secrets; long values are replaced by length and hash.
    """

    number: int
    revision: int
    at_ms: int
    author: str
    action: str
    kind: str
    id: str
    parent: str
    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


class AuditFilter(NamedTuple):
    """All given fields must match. `author`: part of a name; `subjects`: ids of what was changed or of
    its parents; times are inclusive.
    """

    author: str = ""
    kind: str = ""
    subjects: tuple[str, ...] | None = None
    name: str = ""
    from_ms: int | None = None
    to_ms: int | None = None


def name_of(kind: str, record: Record) -> str:
    return str(getattr(record, NAMED_BY.get(kind, "name"), "") or record.id)


def applied(
    configuration: Configuration, changes: Sequence[Change], now_ms: int
) -> tuple[Configuration, list[Step]]:
    """`configuration` itself if nothing differs. Raises KeyError for a missing parent or entry,
    InvalidConfig for a name that is taken twice.
    """
    draft = Draft(configuration)
    carry_out(changes, draft, now_ms)
    steps = [Step(*found) for found in draft.differences()]
    if not steps:
        return configuration, []
    new = draft.finished()
    problems = list(_names_twice(new, steps))
    if problems:
        raise InvalidConfig(problems)
    return new, steps


def carry_out(changes: Iterable[Change], draft: Draft, now_ms: int) -> None:
    """Does not check names. Raises KeyError as `applied` does."""
    for change in changes:
        if isinstance(change, Put):
            draft.put(change.record, change.parent, now_ms)
        else:
            draft.remove(change.kind, change.id)


def _names_twice(configuration: Configuration, steps: Iterable[Step]) -> Iterator[Problem]:
    for kind, parent in dict.fromkeys(
        (step.kind, step.entry.parent) for step in steps if step.after and step.kind in UNIQUE
    ):
        names, pointer = Unique(KIND_WORDS[kind]), f"{kind}.{NAMED_BY.get(kind, 'name')}"
        for entry in configuration.index_of(kind).of(parent):
            yield from names.problems(pointer, name_of(kind, entry.record))


def told(step: Step) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    before, after = (_fields(step.kind, entry) for entry in (step.before, step.after))
    if before is None or after is None:
        return before, after
    differing = [key for key in after if before.get(key) != after[key]]
    return {key: before.get(key) for key in differing}, {key: after[key] for key in differing}


def _fields(kind: str, entry: Entry[Any] | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    values: dict[str, Any] = msgspec.to_builtins(entry.record)
    secret = KINDS[kind].secret if kind in KINDS else ()
    return {key: _short(value) for key, value in values.items() if key not in secret}


def _short(value: Any) -> Any:
    if not isinstance(value, (str, list, dict)):
        return value
    written = msgspec.json.encode(value)
    return (
        value
        if len(written) <= AUDIT_VALUE_MAX
        else {"bytes": len(written), "sha256": hashlib.sha256(written).hexdigest()}
    )
