"""What the keeper asks of a database: the same few statements for DuckDB and ClickHouse."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from greenroom.analytics.store.tables import Table

Values = tuple[Any, ...]


class Engine(Protocol):
    """Writing is for one thread; `select` may be called from several. All raise StorageFailed."""

    name: str

    def select(self, sql: str, timeout_s: float | None = None) -> list[Values]:
        """The rows. Raises SlowAnswer when it takes longer than `timeout_s`."""

    def read(self, sql: str) -> list[Values]:
        """The rows, with everything in them that the change under way has written; for the thread
        that writes.
        """

    def change(self) -> AbstractContextManager[None]:
        """All of the changes inside, or none, where the database has transactions; else in an order
        that can be repeated.
        """

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        """Rows that are new."""

    def replace(self, table: Table, rows: Sequence[Values], where: str) -> None:
        """Rows instead of those with the same key. `where` (a condition of SQL) covers all of these
        keys, and no other row.
        """

    def delete(self, table: Table, where: str) -> None:
        """Rows that match a condition of SQL."""

    def settle(self, before_s: int) -> None:
        """Minutes before this moment hardly change any more: puts them in the order that answers
        fastest.
        """

    def create(self) -> None:
        """The tables, where they are missing."""

    def add_columns(self, table: Table, names: Sequence[str]) -> None:
        """Columns that a table of an older version does not have; their value in its rows is zero,
        empty or null.
        """

    def ready(self) -> None:
        """The tables have all their columns now."""

    def close(self) -> None:
        """Gives everything back; nothing may be called after it."""
