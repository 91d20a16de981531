"""The configuration store. Every write first moves the revision row from the revision it was
decided on to the next, in one transaction: of two writers one waits and then gets RevisionConflict.
A reader reads only the entries that the log says are newer.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import URL, ColumnElement, Connection, delete, func, insert, select, tuple_, update

from greenroom.configuration.stored_records import (
    SealedFields,
    unreadable,
    unsealed,
    with_rows,
)
from greenroom.database.engine import (
    connect,
    forget_old_pages,
    read_url,
    shown,
    transaction,
)
from greenroom.database.migrate import VERSIONS, bring_forward, version_of
from greenroom.database.sessions import SqlSessions
from greenroom.database.tables import audit, entries, state
from greenroom.errors import InvalidConfig, Problem, RevisionConflict
from greenroom.model.change import AUTHOR_MAX, AuditEntry, AuditFilter, Change, Step, applied, told
from greenroom.model.configuration import SEALED_KINDS, Configuration, Entry
from greenroom.notifier import ChangeNotifier

AUDIT_KEPT = 1_000_000
"""About 300 MB."""

KEYS_AT_ONCE = 400
"""SQLite takes no more than 999 values in older builds."""

AUDIT_PAGE_MAX = 1_000


def default_url(data: Path) -> str:
    return URL.create("sqlite", database=str(data.absolute() / "config.db")).render_as_string()


def shown_url(url: str) -> str:
    """Without the password. Raises InvalidConfig."""
    return shown(read_url(url))


def store_exists(url: str) -> bool:
    """Of any version; makes nothing. Raises InvalidConfig or StorageFailed."""
    address = read_url(url)
    if address.get_backend_name() == "sqlite" and not Path(address.database or "").exists():
        return False
    engine = connect(address)
    try:
        with transaction(engine, writes=False) as connection:
            return bool(version_of(connection))
    finally:
        engine.dispose()


class SqlStore:
    def __init__(self, url: str, seals: SealedFields | None = None) -> None:
        """Does not connect yet. Raises InvalidConfig for an invalid address, StorageFailed when its
        driver is missing.
        """
        address = read_url(url)
        self.name = shown(address)
        self._engine = connect(address)
        self._guard = threading.RLock()
        self._prepared = False
        self._known = self._all_open = Configuration()
        self._seals = seals or SealedFields()
        self.changes = ChangeNotifier()
        self.sessions = SqlSessions(self.transaction)

    def prepare(self) -> None:
        """Once; every other method does so first. Raises StorageFailed, or TooNew."""
        with self._guard:
            if self._prepared:
                return
            with transaction(self._engine, writes=False) as connection:
                current = version_of(connection) == VERSIONS[-1]
            if not current:
                with transaction(self._engine, writes=True) as connection:
                    bring_forward(connection)
            self._prepared = True

    def revision(self) -> int:
        with self.transaction() as connection:
            return int(connection.execute(select(state.c.revision)).scalar_one())

    def read(self) -> Configuration:
        with self._guard:
            with self.transaction() as connection:
                self._known = self.read_within(connection)
            return self._known

    def judge(self, changes: Sequence[Change], *, expected: int, now_ms: int) -> list[Problem]:
        """Names alone: the store does not know the configuration file."""
        known = self.read()
        if known.revision != expected:
            return []
        try:
            applied(known, changes, now_ms)
        except InvalidConfig as error:
            return list(error.problems)
        return []

    def write(
        self, changes: Sequence[Change], *, expected: int, author: str, now_ms: int
    ) -> Configuration:
        with self._guard:
            with self.transaction(writes=True) as connection:
                moved = connection.execute(
                    update(state).where(state.c.revision == expected).values(revision=expected + 1)
                )
                if moved.rowcount != 1:
                    raise RevisionConflict(
                        expected, int(connection.execute(select(state.c.revision)).scalar_one())
                    )
                before = self.read_within(connection, expected)
                after, steps = applied(before, changes, now_ms)
                if steps:
                    _persist(connection, steps, after.revision, author, now_ms, self._seals)
                else:
                    connection.execute(update(state).values(revision=expected))
            self._known = after
        if steps:
            self.changes.notify()
        return after

    def seal_stored(self, *, again: bool = False) -> tuple[int, int]:
        """Seals what an older greenroom left unsealed; `again`: everything, with the newest key.
        (records sealed, records unreadable here). The revision stays. Raises StorageFailed; then
        nothing has changed.
        """
        with self.transaction() as connection:
            found = _sealed_entries(connection)
        unread = sum(
            unreadable(kind, self._seals.opened(kind, entry.record)) for kind, entry in found
        )
        if not again and not any(unsealed(kind, entry.record) for kind, entry in found):
            return 0, unread
        count = 0
        with self.transaction(writes=True) as connection:
            connection.execute(select(state.c.revision).with_for_update())
            for kind, entry in _sealed_entries(connection):
                record = self._seals.sealed(
                    kind, self._seals.opened(kind, entry.record) if again else entry.record
                )
                if record != entry.record:
                    body = msgspec.json.encode(record).decode()
                    connection.execute(
                        update(entries)
                        .where(entries.c.kind == kind, entries.c.id == entry.id)
                        .values(body=body)
                    )
                    count += 1
        forget_old_pages(self._engine)
        return count, unread

    def note(
        self, kind: str, id: str, *, author: str, now_ms: int, after: Mapping[str, Any]
    ) -> None:
        told = {
            "at_ms": now_ms,
            "author": _plain(author)[:AUTHOR_MAX],
            "action": "created",
            "kind": kind,
            "id": id,
            "parent": "",
            "name": id,
        }
        with self.transaction(writes=True) as connection:
            revision = connection.execute(select(state.c.revision)).scalar_one()
            connection.execute(
                insert(audit).values(
                    {**told, "revision": revision, "after": msgspec.json.encode(after).decode()}
                )
            )

    def audit(
        self,
        limit: int,
        before: int | None = None,
        *,
        removed_from: str = "",
        about: tuple[str, str] | None = None,
        where: AuditFilter | None = None,
    ) -> list[AuditEntry]:
        wanted = select(audit).order_by(audit.c.number.desc()).limit(min(limit, AUDIT_PAGE_MAX))
        if before is not None:
            wanted = wanted.where(audit.c.number < before)
        if removed_from:
            wanted = wanted.where(audit.c.parent == removed_from, audit.c.action == "removed")
        if about is not None:
            wanted = wanted.where(audit.c.kind == about[0], audit.c.id == about[1])
        if where is not None:
            wanted = wanted.where(*_conditions(where))
        with self.transaction() as connection:
            rows = connection.execute(wanted).mappings().all()
        return [
            AuditEntry(
                **{**row, "before": _decoded(row["before"]), "after": _decoded(row["after"])}
            )
            for row in rows
        ]

    def close(self) -> None:
        self._engine.dispose()

    def transaction(self, *, writes: bool = False) -> AbstractContextManager[Connection]:
        self.prepare()
        return transaction(self._engine, writes=writes)

    def read_within(self, connection: Connection, at: int | None = None) -> Configuration:
        """Retries missing keys: another machine may have sent one."""
        known = self._fetch(connection, at)
        if known is self._all_open:
            return known
        late = [
            (kind, entry)
            for kind in SEALED_KINDS
            for entry in known.index_of(kind).values()
            if unreadable(kind, entry.record)
        ]
        tried = [
            replace(entry, record=self._seals.opened(kind, entry.record)) for kind, entry in late
        ]
        opened = [
            now for now, (_, before) in zip(tried, late, strict=True) if now.record != before.record
        ]
        known = known.changed(known.revision, opened) if opened else known
        if not any(
            unreadable(kind, now.record) for now, (kind, _) in zip(tried, late, strict=True)
        ):
            self._all_open = known
        return known

    def _fetch(self, connection: Connection, at: int | None = None) -> Configuration:
        """`at`: the revision, when this transaction has moved on."""
        newest, forgotten = connection.execute(select(state.c.revision, state.c.forgotten)).one()
        newest = newest if at is None else at
        known = self._known
        if known.revision == newest:
            return known
        if known.revision < max(forgotten, 1) or known.revision > newest:
            rows = connection.execute(select(entries).order_by(entries.c.number)).mappings()
            return with_rows(Configuration(), newest, rows)
        return _caught_up(connection, known, newest)


def _caught_up(connection: Connection, known: Configuration, newest: int) -> Configuration:
    """Re-created entries go to the end."""
    touched = connection.execute(
        select(audit.c.kind, audit.c.id, audit.c.action).where(audit.c.revision > known.revision)
    ).all()
    keys = list(dict.fromkeys((row.kind, row.id) for row in touched))
    removed = dict.fromkeys((row.kind, row.id) for row in touched if row.action == "removed")
    found: list[Any] = []
    for begin in range(0, len(keys), KEYS_AT_ONCE):
        some = tuple_(entries.c.kind, entries.c.id).in_(keys[begin : begin + KEYS_AT_ONCE])
        found += connection.execute(select(entries).where(some)).mappings().all()
    found.sort(key=lambda row: row["number"])
    return with_rows(known, newest, found, removed)


def _sealed_entries(connection: Connection) -> list[tuple[str, Entry[Any]]]:
    rows = connection.execute(select(entries).where(entries.c.kind.in_(SEALED_KINDS))).mappings()
    found = with_rows(Configuration(), 1, rows)  # one that cannot be read stays as it is
    return [(kind, entry) for kind in SEALED_KINDS for entry in found.index_of(kind).values()]


def _persist(
    connection: Connection,
    steps: Sequence[Step],
    revision: int,
    author: str,
    now_ms: int,
    seals: SealedFields,
) -> None:
    made = [_row(step, seals) for step in steps if step.before is None]
    for step in steps:
        if step.before is not None and step.after is None:
            connection.execute(
                delete(entries).where(entries.c.kind == step.kind, entries.c.id == step.entry.id)
            )
        elif step.before is not None:
            replaced = connection.execute(
                update(entries)
                .where(entries.c.kind == step.kind, entries.c.id == step.entry.id)
                .values(_row(step, seals))
            )
            if not replaced.rowcount:  # a zone that was gone, and whose rooms were not
                made.append(_row(step, seals))
    if made:
        connection.execute(insert(entries), made)
    connection.execute(insert(audit), [_logged(step, revision, author, now_ms) for step in steps])
    last = connection.execute(select(func.max(audit.c.number))).scalar_one()
    if last > AUDIT_KEPT:
        old = audit.c.number <= last - AUDIT_KEPT
        forgotten = connection.execute(select(func.max(audit.c.revision)).where(old)).scalar()
        if forgotten is not None:
            connection.execute(update(state).values(forgotten=forgotten))
            connection.execute(delete(audit).where(old))


def _row(step: Step, seals: SealedFields) -> dict[str, Any]:
    entry = step.entry
    return {
        "kind": step.kind,
        "id": entry.id,
        "parent": entry.parent,
        "created_ms": entry.created_ms,
        "modified_ms": entry.modified_ms,
        "revision": entry.revision,
        "body": msgspec.json.encode(seals.sealed(step.kind, entry.record)).decode(),
    }


def _logged(step: Step, revision: int, author: str, now_ms: int) -> dict[str, Any]:
    before, after = told(step)
    return {
        "revision": revision,
        "at_ms": now_ms,
        "author": _plain(author)[:AUTHOR_MAX],
        "action": step.action,
        "kind": step.kind,
        "id": step.entry.id,
        "parent": step.entry.parent,
        "name": _plain(step.name),
        "before": None if before is None else msgspec.json.encode(before).decode(),
        "after": None if after is None else msgspec.json.encode(after).decode(),
    }


def _plain(text: str) -> str:
    return text.replace("\0", "")


def _decoded(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def _conditions(where: AuditFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if where.author:
        found.append(audit.c.author.icontains(where.author, autoescape=True))
    if where.kind:
        found.append(audit.c.kind == where.kind)
    if where.subjects is not None:
        subjects = audit.c.id.in_(where.subjects) | audit.c.parent.in_(where.subjects)
        found.append(subjects | (audit.c.name == where.name))
    if where.from_ms is not None:
        found.append(audit.c.at_ms >= where.from_ms)
    if where.to_ms is not None:
        found.append(audit.c.at_ms <= where.to_ms)
    return found
