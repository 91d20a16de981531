"""Plans a change on the newest configuration and writes it only at that revision, so a name found
free is still free. A conflict repeats the plan.
"""

import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from greenroom.errors import RevisionConflict
from greenroom.model.change import Change
from greenroom.model.clock import Clock
from greenroom.model.configuration import Configuration, Entry, EntryIndex, Record
from greenroom.web.api_shapes import Json
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    not_found,
    problem_text,
    refuse_if,
)
from greenroom.web.stores import ConfigStore

ATTEMPTS = 5

T = TypeVar("T")
R = TypeVar("R", bound=Record)


class ChangeContext(NamedTuple):
    now_ms: int
    new_id: Callable[[], str]


class PlannedChange(NamedTuple):
    changes: list[Change]
    answer: Callable[[Configuration], Any]


ConfigChange = Callable[[Configuration, ChangeContext], PlannedChange]
"""Raises Refused with every fault."""


class SectionEntry(NamedTuple):
    """`id` is the one that the entry keeps or gets; `before` is the whole configuration so far."""

    before: Configuration
    parent: str
    id: str
    document: Any


def _name_in(document: Mapping[str, Any]) -> Any:
    return document.get("name")


class DocumentSection(NamedTuple):
    """How the document of a whole configuration holds the entries of one kind, at most `most`.

    `identity`: what an entry without a known id is recognized by, from its document.
    """

    name: str
    kind: str
    most: int
    show: Callable[[Entry[Any]], Json]
    plan: Callable[[SectionEntry], ConfigChange]
    identity: Callable[[Mapping[str, Any]], Any] = _name_in


def opaque_id() -> str:
    """As published."""
    return secrets.token_hex(16)


class ConfigService:
    """Blocks. Every method may raise Refused and StorageFailed."""

    def __init__(self, store: ConfigStore, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self._turn = threading.RLock()
        """Serialises changes of this process; conflicts come from others."""

    def look(self, ask: Callable[[Configuration], T]) -> T:
        return ask(self.store.read())

    def trial(self, plan: ConfigChange) -> Any:
        """The plan's answer without writing. Raises Refused as `change` does."""
        known = self.store.read()
        moment = ChangeContext(self.clock.now_ms(), opaque_id)
        planned = plan(known, moment)
        self._judge(planned, known.revision, moment.now_ms)
        return planned.answer(known)

    def change(self, author: str, plan: ConfigChange) -> Any:
        with self._turn:
            return self._change(author, plan)

    def _change(self, author: str, plan: ConfigChange) -> Any:
        for _ in range(ATTEMPTS):
            known = self.store.read()
            moment = ChangeContext(self.clock.now_ms(), opaque_id)
            planned = plan(known, moment)
            self._judge(planned, known.revision, moment.now_ms)
            try:
                after = self.store.write(
                    planned.changes, expected=known.revision, author=author, now_ms=moment.now_ms
                )
            except RevisionConflict:
                continue
            return planned.answer(after)
        raise Refused(
            ApiFault(Code.CHANGED_MEANWHILE, "concurrent changes; nothing was changed, try again")
        )

    def _judge(self, planned: PlannedChange, expected: int, now_ms: int) -> None:
        problems = self.store.judge(planned.changes, expected=expected, now_ms=now_ms)
        refuse_if(ApiFault(Code.UNUSABLE, problem_text(problem)) for problem in problems)


def entry_of(index: EntryIndex[R], what: str, id: str, parent: str | None = None) -> Entry[R]:
    """Of `parent` if given. Raises Refused, with `what` as its name for people."""
    entry = index.get(id)
    if entry is None or parent not in (None, entry.parent):
        raise not_found(what, id)
    return entry


def refuse_read_only(entry: Entry[Any], what: str) -> None:
    """Entries of a file are changed in the file."""
    if entry.read_only:
        raise Refused(
            ApiFault(
                Code.READ_ONLY,
                f"this {what} comes from the configuration file and can only be changed there",
            )
        )
