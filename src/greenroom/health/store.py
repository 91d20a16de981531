"""Stores health checks in a database: conditions, events, daily sums, and alerts to hand on. Apart
from the configuration, because it is written every second; with PostgreSQL they share a database.
"""

import datetime
import threading
from collections.abc import Callable, Collection, Sequence
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
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.dialects import sqlite

from greenroom.database.engine import (
    connect,
    read_url,
    shown,
    transaction,
)
from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import (
    EventQuestion,
    HealthBatch,
    HealthMemory,
    Uptime,
)
from greenroom.health.rules.roster import Agent
from greenroom.model.alert import Alert
from greenroom.model.probe import CheckEvent, ProbeResult

EVENTS_KEPT = 3_000_000
"""About 600 MB."""

EVENTS_MS = 31 * 86_400_000
DAYS_KEPT = 400

PRUNE_EVERY = 60

PAGE_MAX = 50_000

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
events = Table(
    "health_events",
    metadata,
    Column("number", _Number, Identity(), primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    *(Column(name, Text, nullable=False) for name in _TEXTS),
    *(Column(name, Integer, nullable=False) for name in ("healthy", "changed", "code", "tries")),
    *(Column(name, Float, nullable=False) for name in _FLOATS),
    Index("health_events_at", "at_ms"),
    Index("health_events_check", "check_id", "at_ms"),
)
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
lease = Table(
    "health_lease",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)

_NOW_MS = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
}
"""The database's clock: machines need not agree."""


def default_url(data: Path) -> str:
    return URL.create("sqlite", database=str(data.absolute() / "health.db")).render_as_string()


class SqlHealthStore:
    def __init__(self, url: str) -> None:
        """Does not connect yet. Raises InvalidConfig, or StorageFailed without a driver."""
        address = read_url(url)
        self.name = shown(address)
        self._engine = connect(address)
        self._guard = threading.Lock()
        self._prepared = False
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
            if batch.alerts:
                connection.execute(
                    insert(alerts),
                    [{"body": msgspec.json.encode(alert).decode()} for alert in batch.alerts],
                )
            self._writes += 1
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
        self._prepare()
        wanted = select(events).where(
            events.c.at_ms >= question.since_ms, events.c.at_ms < question.until_ms
        )
        if question.check_ids:
            wanted = wanted.where(events.c.check_id.in_(question.check_ids))
        for name in ("zone_id", "region", "scope"):
            if getattr(question, name):
                wanted = wanted.where(events.c[name] == getattr(question, name))
        if question.only_changes:
            wanted = wanted.where(events.c.changed == 1)
        wanted = wanted.order_by(events.c.at_ms.desc(), events.c.number.desc()).limit(
            min(question.limit, PAGE_MAX)
        )
        with transaction(self._engine, writes=False) as connection:
            return [_event(row._mapping) for row in connection.execute(wanted)]

    def counts(
        self, check_id: str, since_ms: int, until_ms: int
    ) -> list[tuple[str, str, str, int]]:
        self._prepare()
        of = (events.c.region, events.c.scope, events.c.reason)
        wanted = select(*of, func.count()).where(
            events.c.check_id == check_id, events.c.at_ms >= since_ms, events.c.at_ms < until_ms
        )
        with transaction(self._engine, writes=False) as connection:
            return [tuple(row) for row in connection.execute(wanted.group_by(*of).order_by(*of))]

    def uptimes(self, check_ids: Collection[str], since_day: str) -> list[Uptime]:
        self._prepare()
        wanted = (
            select(days)
            .where(days.c.check_id.in_(check_ids), days.c.day >= since_day)
            .order_by(days.c.check_id, days.c.day)
        )
        with transaction(self._engine, writes=False) as connection:
            rows = connection.execute(wanted).all()
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

    def lead(self, holder: str, term_ms: int) -> bool:
        self._prepare()
        with transaction(self._engine, writes=True) as connection:
            now_ms = int(
                connection.execute(
                    text(f"SELECT {_NOW_MS[self._engine.dialect.name]}")
                ).scalar_one()
            )
            row = connection.execute(select(lease).where(lease.c.id == 1).with_for_update()).first()
            if row and row.holder != holder and row.until_ms > now_ms:
                return False
            self._upsert(
                connection,
                lease,
                [{"id": 1, "holder": holder, "until_ms": now_ms + term_ms}],
                {"holder", "until_ms"},
            )
        return True

    def close(self) -> None:
        self._engine.dispose()

    def _prepare(self) -> None:
        with self._guard:
            if not self._prepared:
                with transaction(self._engine, writes=True) as connection:
                    if connection.dialect.name == "postgresql":
                        connection.execute(text("SELECT pg_advisory_xact_lock(1735550323)"))
                    metadata.create_all(connection)
                self._prepared = True

    def _save_conditions(self, connection: Connection, batch: HealthBatch) -> None:
        gone = [key for key, found in batch.conditions.items() if found is None]
        if gone:
            connection.execute(delete(conditions).where(conditions.c.check_id.in_(gone)))
        kept = [
            {"check_id": key, "body": msgspec.json.encode(found).decode()}
            for key, found in batch.conditions.items()
            if found
        ]
        self._upsert(connection, conditions, kept, {"body"})

    def _add_up(self, connection: Connection, found: Sequence[CheckEvent]) -> None:
        sums: dict[tuple[str, str], list[float]] = {}
        for event in found:
            if event.scope == "overall":
                day = (
                    f"{datetime.datetime.fromtimestamp(event.at_ms // 1000, datetime.UTC):%Y-%m-%d}"
                )
                entry = sums.setdefault((event.check_id, day), [0, 0, 0.0])
                entry[0] += event.healthy
                entry[1] += 1
                entry[2] += event.result.rtt_ms or event.result.tcp_ms if event.healthy else 0.0
        rows = [
            {"check_id": key, "day": day, "good": good, "total": all_, "rtt_sum": rtt}
            for (key, day), (good, all_, rtt) in sums.items()
        ]
        self._upsert(connection, days, rows, set(), {"good", "total", "rtt_sum"})

    def _upsert(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[dict[str, Any]],
        replaced: set[str],
        added: Collection[str] = (),
    ) -> None:
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

    def _prune(self, connection: Connection, now_ms: int) -> None:
        newest = connection.execute(select(func.max(events.c.number))).scalar() or 0
        connection.execute(delete(events).where(events.c.number <= newest - EVENTS_KEPT))
        connection.execute(delete(events).where(events.c.at_ms < now_ms - EVENTS_MS))
        oldest = datetime.datetime.fromtimestamp(now_ms // 1000, datetime.UTC) - datetime.timedelta(
            days=DAYS_KEPT
        )
        connection.execute(delete(days).where(days.c.day < f"{oldest:%Y-%m-%d}"))


def _insert_of(dialect: str) -> Callable[[Table], Any]:
    """PostgreSQL's dialect is slow to import."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as insert_or_update

        return insert_or_update
    return sqlite.insert


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
