"""INSERT that updates the row of the same primary key, in both databases."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import sqlite


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[dict[str, Any]],
    replaced: Collection[str],
    added: Collection[str] = (),
) -> None:
    """`replaced` columns take the new value, `added` ones the sum of both."""
    if not rows:
        return
    statement = _insert_of(connection.dialect.name)(table)
    changes = {name: statement.excluded[name] for name in replaced} | {
        name: table.c[name] + statement.excluded[name] for name in added
    }
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=list(table.primary_key.columns), set_=changes
        ),
        list(rows),
    )


def _insert_of(dialect: str) -> Callable[[Table], Any]:
    """PostgreSQL's dialect is slow to import."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert

        return insert
    return sqlite.insert
