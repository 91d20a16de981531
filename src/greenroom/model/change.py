"""What is asked of the configuration store, and what it remembers about it afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greenroom.model.configuration import Record

AUTHOR_MAX = 200


@dataclass(frozen=True, slots=True)
class Put:
    """Makes this record, or replaces the one of the same kind and id. `parent` is the id of what it belongs to (see KINDS)."""

    record: Record
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Remove:
    """Takes a record away, and everything that belongs to it. An id that is not there is an error of the caller: KeyError."""

    kind: str
    id: str


Change = Put | Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One record changed by one write.

    `number` only grows and is where a page of the log goes on; entries of one write share a `revision`. `action` is created, changed
    or removed. `before` and `after` hold the fields that differ, all of them when the record was made or taken away (then one
    side is None); secrets are left out, and a value too long to keep twice is told by its length and hash.
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
