"""Layers the configuration file's entries, read-only, over the store's."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.change import Change, Put, applied, name_of
from greenroom.model.configuration import (
    KIND_OF,
    KIND_WORDS,
    KINDS,
    Configuration,
    Entry,
    Record,
    Unusable,
)
from greenroom.web.stores import ConfigStore


class UnitFault(NamedTuple):
    """Why one room, zone, list, check or page cannot be used; everything else can.

    `reason` may name things of other zones; `told` is for the editors of `zone_id` alone.
    """

    unit: str
    reason: str
    zone_id: str = ""
    told: str = ""

    @property
    def problem(self) -> Problem:
        """For operators of the whole installation."""
        return Problem(self.unit, self.reason)


NewFaults = Callable[[Configuration, Configuration], list[UnitFault]]
"""(stored, wanted) -> what of `wanted` processes cannot use, and can use of `stored`."""


def layered(
    file: Configuration,
    stored: Configuration,
    seen: Callable[[Entry[Any]], Entry[Any]] = lambda entry: entry,
) -> Configuration:
    """The store's configuration with the file's entries, dated by `seen`. Stored entries with the
    id of one of these become `unusable`, with everything below them.
    """
    entries = [seen(entry) for entry in _placed(file, stored)]
    lost: dict[tuple[str, str], Entry[Any]] = {}
    gone: list[tuple[str, str]] = []
    for kind, new in ((KIND_OF[type(entry.record)], entry) for entry in entries):
        old = stored.index_of(kind).get(new.id)
        if old is not None:
            reason = f"has the id of a {KIND_WORDS[kind]} in the configuration file"
            unusable = Unusable(old.id, name_of(kind, old.record), reason)
            lost[kind, old.id] = replace(old, record=unusable)
            gone += [(kind, old.id), *stored.below(kind, old.id)]
    return stored.changed(stored.revision, entries, gone, lost) if entries else stored


def _placed(file: Configuration, stored: Configuration) -> list[Entry[Any]]:
    """Places the file's rooms and checks in the store's zone of their host, else in the file's."""
    hosts = {entry.id: entry.record.host for entry in file.rooms.values()}
    hosts |= {entry.id: entry.record.served_host for entry in file.health_checks.values()}
    placed = [
        replace(entry, parent=_home(hosts[entry.id], stored) or entry.parent)
        if KINDS[kind].parent == "zone"
        else entry
        for kind, entry in file.entries()
    ]
    used = {entry.parent for entry in placed}
    return [entry for entry in placed if entry.id not in file.zones or entry.id in used]


def _home(host: str, stored: Configuration) -> str:
    covering = [entry for entry in stored.zones.values() if entry.record.covers(host)]
    return max(covering, key=lambda entry: len(entry.record.name)).id if covering else ""


class LayeredStore:
    """A store whose readers also see the file's records, marked read-only."""

    def __init__(
        self,
        store: ConfigStore,
        file: Callable[[], Configuration],
        now_ms: Callable[[], int],
        new_faults: NewFaults,
    ) -> None:
        """`file` and `new_faults` are called in any thread; `file` returns the file's current
        documents.
        """
        self._store = store
        # as they are: what stands in the file has no revision and no audit entries
        self.revision, self.note, self.audit = store.revision, store.note, store.audit
        self.changes, self.close = store.changes, store.close
        self._new_faults = new_faults
        self._file = file
        self._now_ms = now_ms
        self._known: tuple[Configuration, Configuration, Configuration] | None = None
        self._first_seen_ms: dict[tuple[type, str], tuple[Record, int, int]] = {}

    def read(self) -> Configuration:
        return self.over(self._store.read())

    def judge(self, changes: Sequence[Change], *, expected: int, now_ms: int) -> list[Problem]:
        # By the functions with which processes compile a configuration.
        touched = {
            KIND_OF[type(change.record)] if isinstance(change, Put) else change.kind
            for change in changes
        }
        if not any(kind in KINDS and KINDS[kind].compiled for kind in touched):
            return []
        stored = self._store.read()
        if stored.revision != expected:
            return []
        try:
            after, steps = applied(stored, changes, now_ms)
        except InvalidConfig as error:
            return list(error.problems)
        own = {"", *(step.entry.id for step in steps), *(step.entry.parent for step in steps)}
        own |= {after.rooms[one].parent for one in own if one in after.rooms}
        return [
            (
                Problem(fault.unit, fault.told or fault.reason)
                if fault.zone_id in own
                else Problem(
                    "a waiting room of another zone", "could not be used after this change"
                )
            )
            for fault in self._new_faults(stored, after)
        ]

    def write(
        self, changes: Sequence[Change], *, expected: int, author: str, now_ms: int
    ) -> Configuration:
        return self.over(
            self._store.write(changes, expected=expected, author=author, now_ms=now_ms)
        )

    def over(self, stored: Configuration) -> Configuration:
        file, known = self._file(), self._known
        if known and known[0] is stored and known[1] is file:
            return known[2]
        both = layered(file, stored, self._dated)
        self._known = stored, file, both
        return both

    def _dated(self, entry: Entry[Any]) -> Entry[Any]:
        """Created when this process first saw the record, modified when it first saw it differ."""
        record, key = entry.record, (type(entry.record), entry.id)
        before, created_ms, modified_ms = self._first_seen_ms.get(key) or (
            record,
            now := self._now_ms(),
            now,
        )
        if before != record:
            modified_ms = self._now_ms()
        self._first_seen_ms[key] = record, created_ms, modified_ms
        return replace(entry, created_ms=created_ms, modified_ms=modified_ms)
