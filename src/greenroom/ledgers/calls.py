"""The store of visitors who want to be called: one sealed row for each place, in a file that
overwrites what it deletes and exists from the first row on.
"""

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

from greenroom.errors import StorageFailed
from greenroom.model.clock import Clock

CALLS_FILE = "calls.db"

T = TypeVar("T")


class CallStore(Protocol):
    """Methods raise StorageFailed. The key of a row is room and ticket id."""

    async def put(self, room: str, ticket_id: bytes, sealed: bytes, was: bytes | None) -> bool:
        """Replaces `was` (None: no row). False, and nothing changes, if the row is another one."""

    async def get(self, room: str, ticket_id: bytes) -> bytes | None: ...

    async def drop(self, room: str, ticket_id: bytes) -> None: ...

    async def move(self, room: str, old: bytes, new: bytes) -> None:
        """Unless `new` has a row already."""

    async def ids(self) -> list[tuple[str, bytes]]: ...

    async def take(self, name: str, limit: int, lasts_ms: int) -> bool:
        """Counts one use of `name`. False: above `limit` in `lasts_ms` from the first."""

    async def block(self, name: str, lasts_ms: int) -> None:
        """Makes `take` fail for `lasts_ms`."""


async def bring(former: CallStore, store: CallStore) -> None:
    """Moves rows from the Redis of a data center that was the only one; it may be the same Redis."""
    probe = f"bring:{secrets.token_hex(8)}"
    await former.take(probe, 1, _PROBE_MS)
    if not await store.take(probe, 1, _PROBE_MS):
        return  # the same Redis
    for row in await former.ids():
        sealed = await former.get(*row)
        if sealed is not None:  # `store` may have it from a process that was killed in between
            await store.put(*row, sealed, None)
            await former.drop(*row)


_BLOCKED = 1 << 30
_PROBE_MS = 10_000
_AGAIN_MS = 60_000
"""A block that this would lengthen by less is not written."""

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
  room TEXT, ticket BLOB, sealed BLOB NOT NULL, PRIMARY KEY (room, ticket)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS taken (
  name TEXT PRIMARY KEY, count INTEGER NOT NULL, until_ms INTEGER NOT NULL
) WITHOUT ROWID;
"""


class CallFile:
    """For one process. Has a thread of its own: each change waits for the disk, and must not take up
    the threads that look up names.
    """

    def __init__(self, data: Path, clock: Clock) -> None:
        self._path = data / CALLS_FILE
        self._now_ms = clock.now_ms
        self._thread = ThreadPoolExecutor(1, "calls")
        self._opened: sqlite3.Connection | None = None

    async def put(self, room: str, ticket_id: bytes, sealed: bytes, was: bytes | None) -> bool:
        if was is None:
            change = "INSERT OR IGNORE INTO calls (sealed, room, ticket) VALUES (?, ?, ?)"
            return await self._write(change, sealed, room, ticket_id) == 1
        change = "UPDATE calls SET sealed = ? WHERE room = ? AND ticket = ? AND sealed = ?"
        return await self._write(change, sealed, room, ticket_id, was) == 1

    async def get(self, room: str, ticket_id: bytes) -> bytes | None:
        found = await self._read(
            "SELECT sealed FROM calls WHERE room = ? AND ticket = ?", room, ticket_id
        )
        return found[0][0] if found else None

    async def drop(self, room: str, ticket_id: bytes) -> None:
        if self._path.exists():
            await self._write("DELETE FROM calls WHERE room = ? AND ticket = ?", room, ticket_id)

    async def move(self, room: str, old: bytes, new: bytes) -> None:
        if self._path.exists():
            change = "UPDATE OR IGNORE calls SET ticket = ? WHERE room = ? AND ticket = ?"
            if not await self._write(change, new, room, old):
                await self.drop(room, old)

    async def ids(self) -> list[tuple[str, bytes]]:
        rows = await self._read("SELECT room, ticket FROM calls")
        return [(room, ticket_id) for room, ticket_id in rows]

    async def take(self, name: str, limit: int, lasts_ms: int) -> bool:
        now_ms = self._now_ms()

        def counted(file: sqlite3.Connection) -> int:
            with file:
                file.execute("BEGIN IMMEDIATE")
                file.execute("DELETE FROM taken WHERE until_ms <= ?", (now_ms,))
                known = file.execute("SELECT count FROM taken WHERE name = ?", (name,)).fetchone()
                if known and known[0] > limit:
                    return int(known[0])  # or one client would keep the disk busy
                file.execute(
                    "INSERT INTO taken VALUES (?, 1, ?)"
                    " ON CONFLICT (name) DO UPDATE SET count = min(count + 1, ?)",
                    (name, now_ms + lasts_ms, _BLOCKED),
                )
                found = file.execute("SELECT count FROM taken WHERE name = ?", (name,))
                return int(found.fetchone()[0])

        return await self._disk(counted) <= limit

    async def block(self, name: str, lasts_ms: int) -> None:
        until_ms = self._now_ms() + lasts_ms
        await self._write(
            "INSERT INTO taken VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
            " SET count = excluded.count, until_ms = excluded.until_ms"
            " WHERE count < excluded.count OR until_ms < excluded.until_ms - ?",
            name, _BLOCKED, until_ms, _AGAIN_MS,
        )  # fmt: skip

    async def close(self) -> None:
        if self._opened is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._opened.close)
            self._opened = None

    # -- inside ------------------------------------------------------------------------------------

    async def _read(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        if self._opened is None and not self._path.exists():
            return []
        return await self._disk(lambda file: file.execute(query, values).fetchall())

    async def _write(self, change: str, *values: object) -> int:
        return await self._disk(lambda file: file.execute(change, values).rowcount)

    async def _disk(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def there() -> T:
            if self._opened is None:
                self._opened = self._open()
            return work(self._opened)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, there)
        except (sqlite3.Error, OSError) as error:
            raise StorageFailed(f"cannot use {self._path}: {error}") from error

    def _open(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        file = sqlite3.connect(
            self._path, timeout=1.0, isolation_level=None, check_same_thread=False
        )
        try:
            # zeroes take the place of what is deleted, in the file and in its rollback journal
            file.execute("PRAGMA secure_delete = ON")
            file.execute("PRAGMA synchronous = FULL")
            file.executescript(_TABLES)
        except sqlite3.Error:
            file.close()
            raise
        return file
