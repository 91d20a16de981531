"""ClickHouse has no transactions over several tables: the keeper writes what follows from parts
before the parts, so an interrupted write is repeated; the newest version of a key counts (`final`).
"""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from greenroom.analytics.question import SlowAnswer
from greenroom.analytics.store.engine import TABLES, Table, Values
from greenroom.errors import StorageFailed

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

TYPES = {"integer": "Int64", "text": "String", "bytes": "String"}
PARTITION_S = 7 * 86_400
TIMEOUT_EXCEEDED = 159
BYTES = frozenset(
    column.name for table in TABLES for column in table.columns if column.kind == "bytes"
)


class ClickEngine:
    def __init__(self, url: str, name: str) -> None:
        """Raises StorageFailed."""
        self.name = name
        self._url = url
        self._version = 0
        self._guard = threading.Lock()
        self._client: Client | None = None
        self._connected()

    def create(self) -> None:
        for table in TABLES:
            columns = ", ".join(
                f"{column.name} {_type(column.kind, column.nullable)}" for column in table.columns
            )
            partition = f" PARTITION BY intDiv(t, {PARTITION_S})" if "t" in table.names else ""
            self._command(
                f"CREATE TABLE IF NOT EXISTS {table.name} ({columns}, version Int64) "
                f"ENGINE = ReplacingMergeTree(version) ORDER BY ({', '.join(table.key)}){partition}"
            )

    def add_columns(self, table: Table, names: Sequence[str]) -> None:
        for column in (column for column in table.columns if column.name in names):
            kind = _type(column.kind, column.nullable)
            self._command(f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS {column.name} {kind}")

    def ready(self) -> None: ...

    def read(self, sql: str) -> list[Values]:
        return self.select(sql)

    def select(self, sql: str, timeout_s: float | None = None) -> list[Values]:
        settings: dict[str, Any] = {"final": 1}
        if timeout_s is not None:
            settings["max_execution_time"] = max(0.05, timeout_s)
        with self._translated() as client:
            found = client.query(sql, settings=settings, query_formats={"String": "bytes"})
            binary = [name in BYTES for name in found.column_names]
            return [tuple(map(_value, row, binary)) for row in found.result_rows]

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        yield

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        if not rows:
            return
        self._version = max(self._version + 1, time.time_ns() // 1_000)
        with self._translated() as client:
            client.insert(
                table.name,
                [(*row, self._version) for row in rows],
                column_names=[*table.names, "version"],
            )

    def replace(self, table: Table, rows: Sequence[Values], where: str) -> None:  # noqa: ARG002 - the key says which rows
        self.insert(table, rows)

    def delete(self, table: Table, where: str) -> None:
        self._command(f"DELETE FROM {table.name} WHERE {where}")  # noqa: S608 - names and numbers

    def settle(self, before_s: int) -> None:
        # Rows are sorted as they are merged.
        ...

    def close(self) -> None:
        with self._guard:
            client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close()

    # -- inside ------------------------------------------------------------------------------------

    def _command(self, text: str) -> None:
        with self._translated() as client:
            client.command(text)

    def _connected(self) -> "Client":
        with self._guard:
            if self._client is None:
                try:
                    import clickhouse_connect
                except ImportError:
                    raise StorageFailed(
                        "ClickHouse needs clickhouse-connect: "
                        "install greenroom's wheel with [clickhouse]"
                    ) from None
                try:
                    self._client = clickhouse_connect.get_client(dsn=self._url)
                except Exception as error:
                    raise StorageFailed(f"{self.name}: {_first_line(error)}") from None
            return self._client

    @contextlib.contextmanager
    def _translated(self) -> Iterator["Client"]:
        client = self._connected()
        try:
            yield client
        except Exception as error:
            if f"code {TIMEOUT_EXCEEDED}" in str(
                error
            ).lower() or f"Code: {TIMEOUT_EXCEEDED}" in str(error):
                raise SlowAnswer from None
            raise StorageFailed(f"{self.name}: {_first_line(error)}") from None


def _type(kind: str, nullable: bool) -> str:
    return f"Nullable({TYPES[kind]})" if nullable else TYPES[kind]


def _value(value: Any, binary: bool) -> Any:
    return value.decode() if isinstance(value, bytes) and not binary else value


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:300]
