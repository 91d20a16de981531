"""Dashboard sessions in the configuration store's database."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, and_, delete, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from greenroom.database.tables import sessions
from greenroom.model.account import SESSION, SessionRow

_COLUMNS = [sessions.c[name] for name in SessionRow.__struct_fields__]


class SqlSessions:
    def __init__(self, transaction: Callable[..., AbstractContextManager[Connection]]) -> None:
        self._transaction = transaction

    def add(self, row: SessionRow, most: int) -> None:
        with self._transaction(writes=True) as connection:
            _add(connection, row, most)

    def add_once(self, row: SessionRow, most: int) -> bool:
        with self._transaction(writes=True) as connection:
            if (
                connection.execute(
                    select(sessions.c.kind).where(sessions.c.secret_sha256 == row.secret_sha256)
                ).first()
                is not None
            ):
                return False
            _add(connection, row, most)
            return True

    def count(self, row: SessionRow, most: int, limit: int) -> bool:
        with self._transaction(writes=True) as connection:
            fresh = msgspec.structs.asdict(row) | {"facts": "0"}
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            made = connection.execute(
                dialect.insert(sessions).values(fresh).on_conflict_do_nothing()
            )
            found = _locked(connection, row.kind, row.secret_sha256)
            if found is None:  # forgotten by another process just now
                return False
            over = found.expires_ms <= row.created_ms
            count = 0 if over else int(found.facts)
            if count >= limit:
                return False
            values = fresh if over else {"seen_ms": row.seen_ms}
            connection.execute(
                update(sessions)
                .where(sessions.c.secret_sha256 == row.secret_sha256)
                .values(values | {"facts": str(count + 1)})
            )
            if made.rowcount == 1:
                _forget_beyond(connection, row, most)
            return True

    def uncount(self, kind: str, secret_sha256: str, since_ms: int) -> None:
        with self._transaction(writes=True) as connection:
            found = _locked(connection, kind, secret_sha256)
            if found is None or found.created_ms > since_ms:
                return
            this = sessions.c.secret_sha256 == secret_sha256
            count = int(found.facts) - 1
            connection.execute(
                update(sessions).where(this).values(facts=str(count))
                if count > 0
                else delete(sessions).where(this)
            )

    def get(self, kind: str, secret_sha256: str) -> SessionRow | None:
        with self._transaction() as connection:
            return _first(connection, _with(kind, secret_sha256))

    def seen(self, secret_sha256: str, now_ms: int) -> None:
        with self._transaction(writes=True) as connection:
            connection.execute(
                update(sessions)
                .where(sessions.c.secret_sha256 == secret_sha256)
                .values(seen_ms=now_ms)
            )

    def take(self, kind: str, secret_sha256: str) -> SessionRow | None:
        with self._transaction(writes=True) as connection:
            found = _first(connection, _with(kind, secret_sha256))
            taken = connection.execute(
                delete(sessions).where(
                    sessions.c.kind == kind, sessions.c.secret_sha256 == secret_sha256
                )
            )
            return found if taken.rowcount == 1 else None

    def rows(self, kind: str) -> list[SessionRow]:
        wanted = (
            select(*_COLUMNS).where(sessions.c.kind == kind).order_by(sessions.c.created_ms.desc())
        )
        with self._transaction() as connection:
            return [SessionRow(**row) for row in connection.execute(wanted).mappings()]

    def remove(self, kind: str, id: str) -> None:
        which = and_(sessions.c.kind == kind, sessions.c.id == id)
        with self._transaction(writes=True) as connection:
            connection.execute(delete(sessions).where(which))

    def forget(self, now_ms: int, idle_ms: int) -> None:
        idle = and_(sessions.c.kind == SESSION, sessions.c.seen_ms <= now_ms - idle_ms)
        with self._transaction(writes=True) as connection:
            connection.execute(delete(sessions).where(or_(sessions.c.expires_ms <= now_ms, idle)))


def _add(connection: Connection, row: SessionRow, most: int) -> None:
    connection.execute(insert(sessions).values(msgspec.structs.asdict(row)))
    _forget_beyond(connection, row, most)


def _forget_beyond(connection: Connection, row: SessionRow, most: int) -> None:
    count = connection.execute(select(func.count()).where(sessions.c.kind == row.kind)).scalar_one()
    if count > most:
        oldest = select(sessions.c.secret_sha256).where(
            sessions.c.kind == row.kind, sessions.c.secret_sha256 != row.secret_sha256
        )
        gone = (
            connection.execute(oldest.order_by(sessions.c.seen_ms).limit(count - most))
            .scalars()
            .all()
        )
        connection.execute(delete(sessions).where(sessions.c.secret_sha256.in_(gone)))


def _with(kind: str, secret_sha256: str) -> Select[Any]:
    return select(*_COLUMNS).where(
        sessions.c.kind == kind, sessions.c.secret_sha256 == secret_sha256
    )


def _locked(connection: Connection, kind: str, secret_sha256: str) -> SessionRow | None:
    """Locks until the transaction ends."""
    return _first(connection, _with(kind, secret_sha256).with_for_update())


def _first(connection: Connection, wanted: Select[Any]) -> SessionRow | None:
    row = connection.execute(wanted).mappings().first()
    return None if row is None else SessionRow(**row)
