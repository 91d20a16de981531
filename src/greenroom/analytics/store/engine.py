"""What the keeper needs of DuckDB or ClickHouse."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from greenroom.analytics.columns import (
    KEPT,
    MINUTE_COLUMNS,
    TARGET_MINUTES,
    TARGETED,
    TARGETS,
    TIMES,
    targets_kept,
)
from greenroom.analytics.outcomes import OUTCOMES, TARGETS_SINCE

# The tables of both engines, and the upgrades between versions. `parts` has every message for as
# long as it may come again. Times are Unix seconds of the begin; rooms are numbers from `rooms`.


class Column(NamedTuple):
    name: str
    kind: str = "integer"
    nullable: bool = False


class Table(NamedTuple):
    """A row replaces the one with the same `key`."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


_TIME_AND_ROOM = (Column("t"), Column("room"))
_HISTOGRAMS = tuple(Column(name, "bytes") for name in TIMES)
_KEPT = tuple(Column(column.name, nullable=column.nullable) for column in KEPT.values())

MINUTES = Table(
    "minutes", (*_TIME_AND_ROOM, *map(Column, MINUTE_COLUMNS), *_HISTOGRAMS), ("room", "t")
)
HOURS = Table("hours", (*_TIME_AND_ROOM, *_KEPT, *_HISTOGRAMS), ("room", "t"))
DAYS = Table("days", HOURS.columns, ("room", "t"))
PARTS = Table(
    "parts",
    (*_TIME_AND_ROOM, Column("source", "text"), Column("payload", "bytes")),
    ("t", "room", "source"),
)
ROOMS = Table(
    "rooms",
    (Column("number"), Column("id", "text"), Column("zone", "text"), Column("name", "text")),
    ("number",),
)
FACTS = Table("facts", (Column("name", "text"), Column("value")), ("name",))

TABLES = (PARTS, MINUTES, HOURS, DAYS, ROOMS, FACTS)

VERSION = max(TARGETS_SINCE, *(row.since for row in OUTCOMES.values()))


def _new_columns(version: int) -> dict[str, tuple[str, ...]]:
    outcomes = [row.column for row in OUTCOMES.values() if row.since == version]
    minutes, kept = outcomes, [f"{column}_sum" for column in outcomes]
    if version == TARGETS_SINCE:
        minutes = [*minutes, TARGETED, *TARGETS, *TARGET_MINUTES]
        kept += [column.name for column in targets_kept()]
    return {"minutes": tuple(minutes), "hours": tuple(kept), "days": tuple(kept)}


NEW_COLUMNS = {version: _new_columns(version) for version in range(2, VERSION + 1)}


Values = tuple[Any, ...]


class Engine(Protocol):
    """Writing is for one thread; `select` may be called from several. All raise StorageFailed."""

    name: str

    def select(self, sql: str, timeout_s: float | None = None) -> list[Values]:
        """Raises SlowAnswer after `timeout_s`."""

    def read(self, sql: str) -> list[Values]:
        """Sees the uncommitted writes of `change`; for the writing thread."""

    def change(self) -> AbstractContextManager[None]:
        """Atomic; without transactions, ordered so that it can be repeated."""

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
