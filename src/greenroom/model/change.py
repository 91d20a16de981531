"""Changes of the configuration: what is written, its effect, and its audit entry."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.configuration import KIND_WORDS, KINDS, Configuration, Entry, Record
from greenroom.model.draft import Draft
from greenroom.model.fields import Unique

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
    """`number` only grows, and pages the log. `before` and `after` hold the fields that differ,
    without secrets; a value too long to keep is replaced by its length and hash.
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


def name_of(kind: str, record: Record) -> str:
    return str(getattr(record, NAMED_BY.get(kind, "name"), "") or record.id)


def applied(
    configuration: Configuration, changes: Sequence[Change], now_ms: int
) -> tuple[Configuration, list[Step]]:
    """`configuration` itself when nothing differs. Raises KeyError when a parent or what is to be
    removed is not there, and InvalidConfig when a name is taken twice.
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
