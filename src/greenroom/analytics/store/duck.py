"""DuckDB in one file, opened by one process. A change is flushed to the write-ahead log before it
counts. After a disk error DuckDB refuses everything until the file is opened again, which the next
statement does.
"""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenroom.analytics.question import SlowAnswer
from greenroom.analytics.store.engine import MINUTES, TABLES, Table, Values
from greenroom.errors import StorageFailed

if TYPE_CHECKING:
    import duckdb

MEMORY = "512MB"

THREADS = 2

IN_MEMORY = ":memory:"

TYPES = {"integer": "BIGINT", "text": "VARCHAR", "bytes": "BLOB"}

SORTED, RECENT = "sorted_minutes", "recent_minutes"
"""Minutes in arrival order, and those that `settle` sorted by room; `minutes` is a view of both."""


class DuckEngine:
    def __init__(self, path: Path | None) -> None:
        """`path` None: in memory. Raises StorageFailed."""
        self.name = str(path or IN_MEMORY)
        self._path = path
        self._guard = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._open()

    def create(self) -> None:
        with self.change():
            for table in TABLES:
                for name in _names(table):
                    columns = ", ".join(
                        f"{column.name} {TYPES[column.kind]}" for column in table.columns
                    )
                    self._run(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")

    def add_columns(self, table: Table, names: Sequence[str]) -> None:
        for column in (column for column in table.columns if column.name in names):
            for name in _names(table):
                default = {
                    "integer": "NULL" if column.nullable else "0",
                    "text": "''",
                    "bytes": "''::BLOB",
                }[column.kind]
                self._run(
                    f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS {column.name} "
                    f"{TYPES[column.kind]} DEFAULT {default}"
                )

    def ready(self) -> None:
        names = ", ".join(MINUTES.names)
        parts = " UNION ALL ".join(f"SELECT {names} FROM {name}" for name in _names(MINUTES))  # noqa: S608 - names from tables
        self._run(f"CREATE OR REPLACE VIEW minutes AS {parts}")

    def read(self, sql: str) -> list[Values]:
        with self._translated():
            return self._opened().execute(sql).fetchall()

    def select(self, sql: str, timeout_s: float | None = None) -> list[Values]:
        with self._translated():
            cursor = self._cursor()
            timer = threading.Timer(timeout_s, cursor.interrupt) if timeout_s else None
            if timer:
                timer.start()
            try:
                return cursor.execute(sql).fetchall()
            finally:
                if timer:
                    timer.cancel()
                cursor.close()

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        with self._translated():
            connection = self._opened()
            connection.begin()
            try:
                yield
                connection.commit()
            except BaseException:
                with contextlib.suppress(Exception):
                    connection.rollback()
                raise

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        # A column is one argument; row by row a minute of 1,000 rooms would take 36 times as long.
        if not rows:
            return
        name = RECENT if table is MINUTES else table.name
        columns = [
            _bound(column.kind, values)
            for column, values in zip(table.columns, zip(*rows, strict=True), strict=True)
        ]
        shown = ", ".join(
            f"unnest(${number}::{TYPES[column.kind]}[])"
            for number, column in enumerate(table.columns, 1)
        )
        self._run(f"INSERT INTO {name} ({', '.join(table.names)}) SELECT {shown}", columns)

    def replace(self, table: Table, rows: Sequence[Values], where: str) -> None:
        self.delete(table, where)
        self.insert(table, rows)

    def delete(self, table: Table, where: str) -> None:
        for name in _names(table):
            self._run(f"DELETE FROM {name} WHERE {where}")  # noqa: S608 - names and numbers

    def settle(self, before_s: int) -> None:
        with self.change():
            names = ", ".join(MINUTES.names)
            self._run(
                f"INSERT INTO {SORTED} ({names}) SELECT {names} FROM {RECENT} "  # noqa: S608
                f"WHERE t < {before_s} ORDER BY room, t"
            )
            self._run(f"DELETE FROM {RECENT} WHERE t < {before_s}")  # noqa: S608

    def close(self) -> None:
        with self._guard:
            connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    # -- inside ------------------------------------------------------------------------------------

    def _open(self) -> None:
        import duckdb

        options: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY,
            "threads": THREADS,
            "temp_directory": "",
        }
        with self._translated():
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                if not self._path.exists():
                    _create(self._path)
            self._connection = duckdb.connect(self.name, config=options)
            if self._path is not None:
                self._path.chmod(0o600)

    def _opened(self) -> "duckdb.DuckDBPyConnection":
        with self._guard:
            if self._connection is None:
                self._open()
            found = self._connection
        if found is None:
            raise StorageFailed(f"{self.name}: is closed")
        return found

    def _cursor(self) -> "duckdb.DuckDBPyConnection":
        return self._opened().cursor()

    def _run(self, sql: str, values: Sequence[object] = ()) -> None:
        with self._translated():
            connection = self._opened()
            if self._path is not None:  # DuckDB would open its log to others after each checkpoint
                os.close(os.open(f"{self._path}.wal", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection.execute(sql, values or None)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.InterruptException:
            raise SlowAnswer from None
        except (duckdb.Error, OSError) as error:
            if isinstance(
                error, (duckdb.FatalException, duckdb.IOException, duckdb.InternalException)
            ):
                self.close()  # it is opened again when it is used
            raise StorageFailed(f"{self.name}: {str(error).splitlines()[0]}") from None


def _create(path: Path) -> None:
    """Closed to others from the first moment on: DuckDB takes neither a mode nor an empty file."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix=path.name, dir=path.parent) as private:
        made = Path(private) / path.name
        duckdb.connect(str(made)).close()
        made.chmod(0o600)
        with contextlib.suppress(OSError):  # another process was faster, or no links here
            path.hardlink_to(made)


def _names(table: Table) -> tuple[str, ...]:
    return (SORTED, RECENT) if table is MINUTES else (table.name,)


def _bound(kind: str, values: Sequence[int | str | bytes | None]) -> object:
    """Numbers as one text: a list takes half as long again."""
    return str(list(values)).replace("None", "NULL") if kind == "integer" else list(values)


def write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Raises StorageFailed."""
    import duckdb

    try:
        with duckdb.connect() as connection:
            if not rows:
                connection.execute("CREATE TABLE rows (datetime TIMESTAMP)")
            else:
                names = list(rows[0])
                shown = ", ".join(
                    f'unnest(${number}::{_parquet_type(rows[0][name])}[]) AS "{name}"'
                    for number, name in enumerate(names, 1)
                )
                connection.execute(
                    f"CREATE TABLE rows AS SELECT {shown}",
                    [[row[name] for row in rows] for name in names],
                )
            connection.table("rows").write_parquet(str(path))
    except (duckdb.Error, OSError) as error:
        raise StorageFailed(f"{path}: {str(error).splitlines()[0]}") from None


def _parquet_type(value: Any) -> str:
    if isinstance(value, str):
        return "TIMESTAMP" if "T" in value else "DATE"
    return "DOUBLE" if isinstance(value, float) else "BIGINT"
