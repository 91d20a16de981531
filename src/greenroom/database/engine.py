"""Connections to SQLite and PostgreSQL: durable commits, bounded waits."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from greenroom.errors import InvalidConfig, Problem, StorageFailed

# INSERT that updates the row of the same primary key, in both databases.


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[dict[str, Any]],
    replaced: Collection[str],
    added: Collection[str] = (),
) -> None:
    """`replaced` columns take the new value, `added` ones the sum of old and new."""
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


BUSY_S = 5
"""Writes take milliseconds."""

BUSY_RETRY_S = 0.01

CONNECT_S = 3

STATEMENT_MS = 15_000
"""Reading everything takes well under a second."""

SCHEMES = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}

_WRITES = "greenroom_writes"


def read_url(written: str) -> URL:
    """Raises InvalidConfig for an unsupported address."""
    try:
        url = make_url(written)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.drivername not in SCHEMES:
        raise InvalidConfig(
            [Problem("store", "must be sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE")]
        )
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidConfig(
            [
                Problem(
                    "store", "must name a file: sqlite:///relative/path or sqlite:////absolute/path"
                )
            ]
        )
    return url.set(drivername=SCHEMES[url.drivername])


def shown(url: URL) -> str:
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


def connect(url: URL) -> Engine:
    """Connects on first use. Raises StorageFailed when the driver is missing."""
    try:
        return _sqlite(url) if url.get_backend_name() == "sqlite" else _postgresql(url)
    except ModuleNotFoundError as error:
        raise StorageFailed(
            f"{shown(url)}: needs the package {error.name}: install greenroom's wheel with"
            " [postgresql]"
        ) from None


@contextlib.contextmanager
def transaction(engine: Engine, *, writes: bool) -> Iterator[Connection]:
    """Database errors become StorageFailed."""
    options: dict[str, Any] = {_WRITES: writes}
    if engine.dialect.name == "postgresql" and not writes:
        options["isolation_level"] = "REPEATABLE READ"
    try:
        with engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection
    except DBAPIError as error:
        raise StorageFailed(f"{shown(engine.url)}: {_reason(error)}") from error
    except PoolTimeout:
        raise StorageFailed(f"{shown(engine.url)}: every connection is in use") from None


def forget_old_pages(engine: Engine) -> None:
    """Truncates SQLite's write-ahead log, unless another process reads it."""
    if engine.dialect.name == "sqlite":
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()


def _reason(error: DBAPIError) -> str:
    return (
        str(error.orig).strip().splitlines()[0]
        if error.orig and str(error.orig).strip()
        else type(error.orig).__name__
    )


def _sqlite(url: URL) -> Engine:
    path = Path(url.database or "")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": BUSY_S, "check_same_thread": False})

    @event.listens_for(engine, "do_connect")
    def make(*_: Any) -> None:
        # Only a new file, and never opened again: closing any descriptor of a database drops all
        # locks that this process has on it, and then another process that closes the database takes
        # itself for the last one and removes the log that we go on reading.
        # SQLite tells; the files that it puts beside this one get the same mode
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # we say ourselves where a transaction begins
        _use_wal(connection)
        for pragma in (
            "synchronous = FULL",
            "foreign_keys = ON",
            "secure_delete = ON",
        ):  # nothing that was replaced stays in the file
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # a reader that turns into a writer could be refused half-way
        immediate = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _use_wal(connection: sqlite3.Connection) -> None:
    """Retries: the busy timeout does not cover changing a new file to WAL."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(BUSY_RETRY_S)


def _postgresql(url: URL) -> Engine:
    patience = {
        "connect_timeout": CONNECT_S,
        "tcp_user_timeout": CONNECT_S * 1000,
        "options": f"-c statement_timeout={STATEMENT_MS}",
    }
    return create_engine(
        url,
        pool_size=3,
        max_overflow=2,
        pool_timeout=CONNECT_S,
        pool_pre_ping=True,
        connect_args=patience,
    )
