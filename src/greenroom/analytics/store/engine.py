"""What the keeper needs of DuckDB and ClickHouse."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from greenroom.analytics.store.tables import Table

Values = tuple[Any, ...]


class Engine(Protocol):
    """Writing is for one thread; `select` may be called from several. All raise StorageFailed."""

    name: str

    def select(self, sql: str, timeout_s: float | None = None) -> list[Values]:
        """Raises SlowAnswer after `timeout_s`."""

    def read(self, sql: str) -> list[Values]:
        """With what the open change has written; for the writing thread."""

    def change(self) -> AbstractContextManager[None]:
        """All or none; without transactions, in an order that can be repeated."""

    def insert(self, table: Table, rows: Sequence[Values]) -> None: ...

    def replace(self, table: Table, rows: Sequence[Values], where: str) -> None:
        """`where` (SQL) covers the rows with these keys and no others."""

    def delete(self, table: Table, where: str) -> None: ...

    def settle(self, before_s: int) -> None:
        """Reorders older minutes for fast answers."""

    def create(self) -> None: ...

    def add_columns(self, table: Table, names: Sequence[str]) -> None:
        """Existing rows get zero, empty or null."""

    def ready(self) -> None: ...

    def close(self) -> None: ...
