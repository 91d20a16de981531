"""A lease in a table with one row, by the database's clock, so machines need not agree on the time."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, literal_column, or_, update

_NOW_MS = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
}


@dataclass(frozen=True)
class SqlLease:
    """The row has the `id` 1, a `holder`, and in `until` when the lease ends, in ms."""

    table: Table
    until: Column[Any]

    def acquire(self, connection: Connection, holder: str, term_ms: int) -> bool:
        """Returns False while another process holds it. All holders use the same term."""
        now_ms: ColumnElement[int] = literal_column(_NOW_MS[connection.dialect.name])
        # No term ends later than that: the clock was set back, and the holder may be gone.
        free = or_(self.until <= now_ms, self.until > now_ms + term_ms)
        return self._write(connection, holder, now_ms + term_ms, free)

    def release(self, connection: Connection, holder: str) -> bool:
        """Returns False when another process holds it."""
        return self._write(connection, holder, literal_column("0"))

    def _write(
        self,
        connection: Connection,
        holder: str,
        until: ColumnElement[int],
        *free: ColumnElement[bool],
    ) -> bool:
        row = self.table.c
        changed = (
            update(self.table)
            .where(row.id == 1, or_(row.holder == holder, *free))
            .values({row.holder: holder, self.until: until})
        )
        return connection.execute(changed).rowcount == 1
