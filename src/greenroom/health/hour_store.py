"""Hourly sums of health events in the database: 31 days of any check, where single events would be
too many to keep or to read. Written together with the events.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    case,
    delete,
    func,
    literal_column,
    select,
)

from greenroom.database.engine import upsert
from greenroom.health.rules.memory import (
    HOUR_KEY,
    HOUR_MS,
    HourQuestion,
    HourSum,
    StepCount,
    Timing,
    hour_sums,
)
from greenroom.health.rules.sketch import Sketch, SketchBytes
from greenroom.model.probe import CheckEvent

CHECKS_AT_ONCE = 500
"""Check ids in one statement."""

metadata = MetaData()

hours = Table(
    "health_hours",
    metadata,
    *(
        Column(
            name,
            BigInteger
            if name == "hour_ms"
            else Integer
            if name in ("probe", "healthy", "code", "changed")
            else Text,
            primary_key=True,
            autoincrement=False,
        )
        for name in HOUR_KEY
    ),
    *(Column(name, Text, nullable=False) for name in ("zone_id", "name", "fqdn", "expected")),
    Column("count", BigInteger, nullable=False),
    Column("times", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
Index(
    "health_hours_overall",
    hours.c.hour_ms,
    hours.c.check_id,
    hours.c.healthy,
    hours.c["count"],
    sqlite_where=hours.c.scope == "overall",
    postgresql_where=hours.c.scope == "overall",
)
Index(
    "health_hours_counts",
    *(
        hours.c[name]
        for name in ("check_id", "hour_ms", "scope", "probe", "healthy", "reason", "count")
    ),
)
"""Both let availability and failures be answered from the index alone."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[SketchBytes]).decode
_OWN = ("zone_id", "name", "fqdn", "expected")


def add(connection: Connection, events: Sequence[CheckEvent]) -> None:
    sums = hour_sums(events)
    begins = {key[1] for key in sums}
    for checks in _parts(sorted({key[0] for key in sums})):
        wanted = select(hours).where(hours.c.check_id.in_(checks), hours.c.hour_ms.in_(begins))
        for row in connection.execute(wanted):
            known = _sum(row)
            found = sums.get(tuple(getattr(known, name) for name in HOUR_KEY))
            if found:
                found.merge(known)
    rows = [_row(one) for one in sums.values()]
    upsert(connection, hours, rows, {*_OWN, "count", "times"})


def _parts(check_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(check_ids), CHECKS_AT_ONCE):
        yield check_ids[at : at + CHECKS_AT_ONCE]


def packed(times: Sequence[Sketch]) -> bytes:
    return _pack([sketch.kept() for sketch in times])


def _row(one: HourSum) -> dict[str, Any]:
    row = {name: getattr(one, name) for name in (*HOUR_KEY, *_OWN, "count")}
    return {**row, "times": packed(one.times)}


def _sum(row: Any) -> HourSum:
    return HourSum(**{**row._mapping, "times": [Sketch.opened(one) for one in _unpack(row.times)]})


def _where(wanted: Select[Any], question: HourQuestion) -> Select[Any]:
    wanted = wanted.where(
        hours.c.hour_ms >= question.since_ms // HOUR_MS * HOUR_MS,
        hours.c.hour_ms < question.until_ms,
    )
    if question.check_ids:
        wanted = wanted.where(hours.c.check_id.in_(question.check_ids))
    if question.probes is not None:
        wanted = wanted.where(hours.c.probe == int(question.probes))
    for name in ("zone_id", "region", "scope"):
        if getattr(question, name):
            wanted = wanted.where(hours.c[name] == getattr(question, name))
    return wanted


def read(connection: Connection, question: HourQuestion) -> list[HourSum]:
    found = connection.execute(_where(select(hours), question).limit(question.limit))
    return [_sum(row) for row in found]


def counts(connection: Connection, question: HourQuestion) -> list[StepCount]:
    reason = case((hours.c.healthy == 1, ""), else_=hours.c.reason)
    of = (hours.c.check_id, hours.c.hour_ms, reason)
    wanted = _where(select(*of, func.sum(hours.c["count"])), question).group_by(*of)
    return [StepCount(row[0], row[1], row[2], int(row[3])) for row in connection.execute(wanted)]


def timings(connection: Connection, question: HourQuestion) -> list[Timing]:
    of = ("region", "hour_ms", "healthy", "count", "times")
    found = connection.execute(_where(select(*(hours.c[name] for name in of)), question))
    return [
        Timing(
            row[0], row[1], bool(row[2]), row[3], [Sketch.opened(one) for one in _unpack(row[4])]
        )
        for row in found
    ]


def availability(
    connection: Connection, since_ms: int, until_ms: int
) -> Mapping[str, tuple[int, int]]:
    good = func.sum(hours.c.healthy * hours.c["count"])
    wanted = (
        select(hours.c.check_id, good, func.sum(hours.c["count"]))
        .where(
            hours.c.scope == literal_column("'overall'"),  # written out, for the index
            hours.c.hour_ms >= since_ms // HOUR_MS * HOUR_MS,
            hours.c.hour_ms < until_ms,
        )
        .group_by(hours.c.check_id)
    )
    return {row[0]: (int(row[1]), int(row[2])) for row in connection.execute(wanted)}


def prune(connection: Connection, oldest_ms: int, check_ids: Sequence[str]) -> None:
    """By check, as the table is ordered."""
    for some in _parts(check_ids):
        connection.execute(
            delete(hours).where(hours.c.check_id.in_(some), hours.c.hour_ms < oldest_ms)
        )
