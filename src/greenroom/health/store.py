"""Stores health checks in a database: conditions, events, daily sums, and alerts to hand on. Apart
from the configuration, because it is written every second; with PostgreSQL they share a database.
"""

import datetime
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Float,
    Identity,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    case,
    delete,
    func,
    insert,
    inspect,
    literal_column,
    select,
    text,
)

from greenroom.database.engine import (
    connect,
    read_url,
    shown,
    transaction,
    upsert,
)
from greenroom.database.lease import SqlLease
from greenroom.health import hour_store
from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import (
    HOUR_MS,
    TIMES,
    EventQuestion,
    HealthBatch,
    HealthMemory,
    HourQuestion,
    HourSum,
    KeptEvent,
    StepCount,
    Timing,
    Uptime,
)
from greenroom.health.rules.roster import Agent
from greenroom.model.alert import Alert
from greenroom.model.probe import CheckEvent, ProbeResult

EVENTS_KEPT = 3_000_000
"""About 600 MB."""

EVENTS_MS = 31 * 86_400_000
DAYS_KEPT = 400
DAY_MS = 86_400_000

PRUNE_EVERY = 60

PAGE_MAX = 60_000

OLDER_AT_ONCE = 2_000
"""Events of an older version that each write adds to the hourly sums: three million in an hour."""

metadata = MetaData(schema=None)
_Number = BigInteger().with_variant(Integer, "sqlite")

conditions = Table(
    "health_conditions",
    metadata,
    Column("check_id", Text, primary_key=True),
    Column("body", Text, nullable=False),
)
agents = Table(
    "health_agents",
    metadata,
    Column("name", Text, primary_key=True),
    Column("region", Text, nullable=False),
    Column("heard_ms", BigInteger, nullable=False),
    Column("report_every_ms", Integer, nullable=False),
)
_TEXTS = (
    "check_id",
    "zone_id",
    "name",
    "fqdn",
    "region",
    "scope",
    "expected",
    "agent",
    "reason",
    "address",
)
_FLOATS = ("tcp_ms", "tls_ms", "ttfb_ms", "rtt_ms")
_LATER_FLOATS = ("dns_ms", "request_ms")
"""Columns that are added to tables of older versions."""

events = Table(
    "health_events",
    metadata,
    Column("number", _Number, Identity(), primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    *(Column(name, Text, nullable=False) for name in _TEXTS),
    *(Column(name, Integer, nullable=False) for name in ("healthy", "changed", "code", "tries")),
    *(Column(name, Float, nullable=False) for name in _FLOATS),
    *(Column(name, Float, nullable=False, server_default="0") for name in _LATER_FLOATS),
    Index("health_events_at", "at_ms"),
    Index("health_events_check", "check_id", "at_ms"),
)
_LATER_INDEXES = [
    Index(
        name,
        events.c.check_id,
        events.c.at_ms,
        sqlite_where=where,
        postgresql_where=where,
    )
    for name, where in (
        ("health_events_failed", events.c.healthy == literal_column("0")),
        ("health_events_changed", events.c.changed == literal_column("1")),
    )
]
"""Partial indexes for the filters of the log."""
days = Table(
    "health_days",
    metadata,
    Column("check_id", Text, primary_key=True),
    Column("day", Text, primary_key=True),
    Column("good", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("rtt_sum", Float, nullable=False),
)
alerts = Table(
    "health_alerts",
    metadata,
    Column("number", _Number, Identity(), primary_key=True),
    Column("body", Text, nullable=False),
)
rollup = Table(
    "health_rollup",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("below", BigInteger, nullable=False),
)
"""Events below this number are older than the hourly sums, and are still to be added to them."""
lease = Table(
    "health_lease",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)
LEASE = SqlLease(lease, lease.c.until_ms)


def default_url(data: Path) -> str:
    return URL.create("sqlite", database=str(data.absolute() / "health.db")).render_as_string()


class HealthStore:
    """Several processes may share it; one leads. All methods block and raise StorageFailed."""

    def __init__(self, url: str) -> None:
        """Does not connect yet. Raises InvalidConfig, or StorageFailed without a driver."""
        address = read_url(url)
        self.name = shown(address)
        self._engine = connect(address)
        self._guard = threading.Lock()
        self._prepared = self._rolled_up = False
        self._writes = 0

    def load(self) -> HealthMemory:
        self._prepare()
        with transaction(self._engine, writes=False) as connection:
            found = {
                row.check_id: msgspec.json.decode(row.body, type=Condition)
                for row in connection.execute(select(conditions))
            }
            known = [
                Agent(row.name, row.region, row.heard_ms, row.report_every_ms)
                for row in connection.execute(select(agents))
            ]
        return HealthMemory(found, known)

    def save(self, batch: HealthBatch, now_ms: int) -> None:
        self._prepare()
        with transaction(self._engine, writes=True) as connection:
            self._save_conditions(connection, batch)
            if batch.agents is not None:
                connection.execute(delete(agents))
                if batch.agents:
                    connection.execute(
                        insert(agents), [msgspec.structs.asdict(agent) for agent in batch.agents]
                    )
            if batch.events:
                connection.execute(insert(events), [_row(event) for event in batch.events])
                self._add_up(connection, batch.events)
                hour_store.add(connection, batch.events)
            if batch.alerts:
                connection.execute(
                    insert(alerts),
                    [{"body": msgspec.json.encode(alert).decode()} for alert in batch.alerts],
                )
            self._writes += 1
            self._add_older(connection)
            if self._writes % PRUNE_EVERY == 1:
                self._prune(connection, now_ms)

    def alerts(self) -> list[tuple[int, Alert]]:
        self._prepare()
        with transaction(self._engine, writes=False) as connection:
            rows = connection.execute(select(alerts).order_by(alerts.c.number).limit(1_000)).all()
        return [(row.number, msgspec.json.decode(row.body, type=Alert)) for row in rows]

    def handed_on(self, numbers: Sequence[int]) -> None:
        with transaction(self._engine, writes=True) as connection:
            connection.execute(delete(alerts).where(alerts.c.number.in_(numbers)))

    def events(self, question: EventQuestion) -> list[CheckEvent]:
        return [kept.event for kept in self.log(question)]

    def log(self, question: EventQuestion) -> list[KeptEvent]:
        wanted = (
            _wanted(select(events), question)
            .order_by(events.c.at_ms.desc(), events.c.number.desc())
            .limit(min(question.limit, PAGE_MAX))
            .offset(question.offset)
        )
        return [KeptEvent(row.number, _event(row._mapping)) for row in self._read(wanted)]

    def event(self, number: int) -> CheckEvent | None:
        found = self._read(select(events).where(events.c.number == number))
        return _event(found[0]._mapping) if found else None

    def count(self, question: EventQuestion, most: int) -> int:
        some = _wanted(select(events.c.number), question).limit(most).subquery()
        return int(self._read(select(func.count()).select_from(some))[0][0])

    def oldest_ms(self) -> int | None:
        found = self._read(select(func.min(events.c.at_ms)))[0][0]
        return None if found is None else int(found)

    def hours(self, question: HourQuestion) -> list[HourSum]:
        self._prepare()
        with transaction(self._engine, writes=False) as connection:
            return hour_store.read(connection, question)

    def hour_counts(self, question: HourQuestion) -> list[StepCount]:
        self._prepare()
        with transaction(self._engine, writes=False) as connection:
            return hour_store.counts(connection, question)

    def hour_timings(self, question: HourQuestion) -> list[Timing]:
        self._prepare()
        with transaction(self._engine, writes=False) as connection:
            return hour_store.timings(connection, question)

    def timings(self, question: EventQuestion) -> list[Timing]:
        of = (events.c.region, events.c.at_ms, events.c.healthy, *(events.c[one] for one in TIMES))
        wanted = _wanted(select(*of), question).limit(PAGE_MAX)
        return [Timing(row[0], row[1], bool(row[2]), 1, row[3:]) for row in self._read(wanted)]

    def availability(self, since_ms: int, until_ms: int) -> Mapping[str, tuple[int, int]]:
        """Check -> (healthy verdicts, verdicts) of whole hours, of all checks. Whole days are from the
        sums of days: there are few.
        """
        self._prepare()
        first, last = -(-since_ms // DAY_MS) * DAY_MS, until_ms // DAY_MS * DAY_MS
        edges = [(since_ms, first), (last, until_ms)] if first < last else [(since_ms, until_ms)]
        sums: dict[str, tuple[int, int]] = {}
        with transaction(self._engine, writes=False) as connection:
            parts = [
                hour_store.availability(connection, *edge) for edge in edges if edge[0] < edge[1]
            ]
            if first < last:
                whole = (
                    select(days.c.check_id, func.sum(days.c.good), func.sum(days.c.total))
                    .where(days.c.day >= _day(first), days.c.day < _day(last))
                    .group_by(days.c.check_id)
                )
                found = connection.execute(whole)
                parts.append({row[0]: (int(row[1]), int(row[2])) for row in found})
        for part in parts:
            for key, (good, total) in part.items():
                before = sums.get(key, (0, 0))
                sums[key] = before[0] + good, before[1] + total
        return sums

    def step_counts(self, question: EventQuestion, step_ms: int) -> list[StepCount]:
        at = events.c.at_ms - events.c.at_ms % step_ms
        of = (events.c.check_id, at, case((events.c.healthy == 1, ""), else_=events.c.reason))
        wanted = _wanted(select(*of, func.count()), question).group_by(*of)
        return [StepCount(row[0], int(row[1]), row[2], int(row[3])) for row in self._read(wanted)]

    def counts(
        self, check_id: str, since_ms: int, until_ms: int
    ) -> list[tuple[str, str, str, int]]:
        """(region, scope, reason or empty, number of events)."""
        of = (events.c.region, events.c.scope, events.c.reason)
        wanted = select(*of, func.count()).where(
            events.c.check_id == check_id, events.c.at_ms >= since_ms, events.c.at_ms < until_ms
        )
        return [tuple(row) for row in self._read(wanted.group_by(*of).order_by(*of))]

    def uptimes(self, check_ids: Collection[str], since_day: str) -> list[Uptime]:
        wanted = (
            select(days)
            .where(days.c.check_id.in_(check_ids), days.c.day >= since_day)
            .order_by(days.c.check_id, days.c.day)
        )
        rows = self._read(wanted)
        return [
            Uptime(
                row.check_id,
                row.day,
                row.good,
                row.total,
                round(row.rtt_sum / row.good, 2) if row.good else 0.0,
            )
            for row in rows
        ]

    def acquire(self, holder: str, term_ms: int) -> bool:
        self._prepare()
        with transaction(self._engine, writes=True) as connection:
            return LEASE.acquire(connection, holder, term_ms)

    def release(self, holder: str) -> None:
        self._prepare()
        with transaction(self._engine, writes=True) as connection:
            LEASE.release(connection, holder)

    def close(self) -> None:
        self._engine.dispose()

    def _read(self, wanted: Select[Any]) -> Sequence[Any]:
        self._prepare()
        with transaction(self._engine, writes=False) as connection:
            return connection.execute(wanted).all()

    def _prepare(self) -> None:
        with self._guard:
            if not self._prepared:
                with transaction(self._engine, writes=True) as connection:
                    if connection.dialect.name == "postgresql":
                        connection.execute(text("SELECT pg_advisory_xact_lock(1735550323)"))
                    _make_tables(connection)
                self._prepared = True

    def _add_older(self, connection: Connection) -> None:
        if self._rolled_up:
            return
        below = connection.execute(select(rollup.c.below)).scalar() or 0
        older = connection.execute(
            select(events)
            .where(events.c.number < below)
            .order_by(events.c.number.desc())
            .limit(OLDER_AT_ONCE)
        ).all()
        hour_store.add(connection, [_event(row._mapping) for row in older])
        self._rolled_up = not older
        if below:
            least = older[-1].number if older else 0
            upsert(connection, rollup, [{"id": 1, "below": least}], {"below"})

    def _save_conditions(self, connection: Connection, batch: HealthBatch) -> None:
        gone = [key for key, found in batch.conditions.items() if found is None]
        if gone:
            connection.execute(delete(conditions).where(conditions.c.check_id.in_(gone)))
        kept = [
            {"check_id": key, "body": msgspec.json.encode(found).decode()}
            for key, found in batch.conditions.items()
            if found
        ]
        upsert(connection, conditions, kept, {"body"})

    def _add_up(self, connection: Connection, found: Sequence[CheckEvent]) -> None:
        sums: dict[tuple[str, str], list[float]] = {}
        for event in found:
            if event.scope == "overall":
                entry = sums.setdefault((event.check_id, _day(event.at_ms)), [0, 0, 0.0])
                entry[0] += event.healthy
                entry[1] += 1
                entry[2] += event.result.rtt_ms or event.result.tcp_ms if event.healthy else 0.0
        rows = [
            {"check_id": key, "day": day, "good": good, "total": all_, "rtt_sum": rtt}
            for (key, day), (good, all_, rtt) in sums.items()
        ]
        upsert(connection, days, rows, set(), {"good", "total", "rtt_sum"})

    def _prune(self, connection: Connection, now_ms: int) -> None:
        newest = connection.execute(select(func.max(events.c.number))).scalar() or 0
        connection.execute(delete(events).where(events.c.number <= newest - EVENTS_KEPT))
        connection.execute(delete(events).where(events.c.at_ms < now_ms - EVENTS_MS))
        oldest = datetime.datetime.fromtimestamp(now_ms // 1000, datetime.UTC) - datetime.timedelta(
            days=DAYS_KEPT
        )
        connection.execute(delete(days).where(days.c.day < f"{oldest:%Y-%m-%d}"))
        known = connection.execute(select(days.c.check_id).distinct()).scalars().all()
        hour_store.prune(connection, now_ms - EVENTS_MS - HOUR_MS, known)


def _day(at_ms: int) -> str:
    return f"{datetime.datetime.fromtimestamp(at_ms // 1000, datetime.UTC):%Y-%m-%d}"


def _make_tables(connection: Connection) -> None:
    known = inspect(connection)
    older = known.has_table("health_events") and not known.has_table("health_hours")
    metadata.create_all(connection)
    hour_store.metadata.create_all(connection)
    there = {column["name"] for column in known.get_columns("health_events")}
    for name in _LATER_FLOATS:
        if name not in there:
            connection.execute(
                text(f"ALTER TABLE health_events ADD COLUMN {name} FLOAT NOT NULL DEFAULT 0")
            )
    for index in _LATER_INDEXES:
        index.create(connection, checkfirst=True)
    if connection.execute(select(lease.c.id)).first() is None:
        connection.execute(insert(lease).values(id=1, holder="", until_ms=0))
    if older:
        newest = connection.execute(select(func.max(events.c.number))).scalar() or 0
        upsert(connection, rollup, [{"id": 1, "below": newest + 1}], {"below"})


def _wanted(wanted: Select[Any], question: EventQuestion) -> Select[Any]:
    wanted = wanted.where(events.c.at_ms >= question.since_ms, events.c.at_ms < question.until_ms)
    if question.check_ids:
        wanted = wanted.where(events.c.check_id.in_(question.check_ids))
    for name in ("zone_id", "region", "scope", "reason"):
        if getattr(question, name):
            wanted = wanted.where(events.c[name] == getattr(question, name))
    if question.only_changes:
        wanted = wanted.where(events.c.changed == literal_column("1"))
    if question.healthy is not None:
        # written out, so that the index of the rows that are not is found
        wanted = wanted.where(events.c.healthy == literal_column(str(int(question.healthy))))
    if question.probes is not None:
        wanted = wanted.where(events.c.agent != "" if question.probes else events.c.agent == "")
    if question.before:
        at_ms, number = question.before
        wanted = wanted.where(
            (events.c.at_ms < at_ms) | ((events.c.at_ms == at_ms) & (events.c.number < number))
        )
    return wanted


def _row(event: CheckEvent) -> dict[str, Any]:
    row = msgspec.structs.asdict(event)
    result = row.pop("result")
    return {
        **row,
        **msgspec.structs.asdict(result),
        "healthy": int(event.healthy),
        "changed": int(event.changed),
    }


def _event(row: Any) -> CheckEvent:
    result = ProbeResult(**{name: row[name] for name in ProbeResult.__struct_fields__})
    own = {name: row[name] for name in CheckEvent.__struct_fields__ if name != "result"}
    return CheckEvent(
        **{
            **own,
            "healthy": bool(row["healthy"]),
            "changed": bool(row["changed"]),
            "result": result,
        }
    )
