"""The outbox of notifications. An alert and its messages are one transaction; a message leaves in
the transaction that writes its history row, so a crash sends it again, with the same correlation
id. Only the oldest message of a destination is handed out. Every write first changes the sender's
row, so writers queue there.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import structlog
from sqlalchemy import Connection, Select, and_, delete, func, insert, or_, select, update

from greenroom.alerts.rules.matching import (
    Destination,
    Fate,
    PolicyVerdict,
    Told,
    destinations,
    verdicts,
)
from greenroom.alerts.rules.outbox import (
    HISTORY_KEPT_MS,
    WAITING_MAX,
    Dispatch,
    Due,
)
from greenroom.configuration.store import SqlStore
from greenroom.database.lease import SqlLease
from greenroom.database.tables import (
    alerts,
    destination_state,
    history,
    outbox,
    sender,
    told,
)
from greenroom.errors import StorageFailed
from greenroom.model.alert import INCIDENTS_KEPT_MS, Alert, Incident
from greenroom.model.configuration import Configuration
from greenroom.model.notification import AlertPolicy
from greenroom.notifier import ChangeNotifier

# Logs a store outage once, and again for a new reason.

log = structlog.get_logger(__name__)


class StoreOutage:
    """`waiting` and `resumed` are event names."""

    def __init__(self, waiting: str, resumed: str) -> None:
        self._waiting = waiting
        self._resumed = resumed
        self._reason = ""

    def failed(self, error: StorageFailed) -> None:
        reason = str(error)
        if reason != self._reason:
            log.warning(self._waiting, reason=reason)
        self._reason = reason

    def answered(self) -> None:
        if self._reason:
            log.info(self._resumed)
        self._reason = ""


AT_ONCE = 64

PROBLEM_MAX = 500

TERM_MS = 3_000
LEASE = SqlLease(sender, sender.c.beat)


class SqlOutbox:
    """Methods block, and raise StorageFailed."""

    def __init__(self, store: SqlStore) -> None:
        self._transaction = store.transaction
        self._stored = store.read_within
        self.layer: Callable[[Configuration], Configuration] = lambda stored: stored
        self.changes = ChangeNotifier()

    def put(self, found: Sequence[Alert], now_ms: int) -> int:
        with self._transaction(writes=True) as connection:
            new = keep(connection, self.layer(self._stored(connection)), found, now_ms)
        self.changes.notify()
        return new

    def put_test(self, policy: AlertPolicy, alert: Alert, now_ms: int) -> None:
        with self._transaction(writes=True) as connection:
            number = connection.execute(insert(alerts).values(_row(alert))).inserted_primary_key[0]  # type: ignore[index]
            _write_messages(
                connection,
                PolicyVerdict(policy, "send", now_ms, destinations(policy)),
                alert,
                number,
                now_ms,
            )
        self.changes.notify()

    def test_problems(self, correlation_id: str) -> list[tuple[str, str]] | None:
        """None until every destination was tried."""
        waiting = (
            select(outbox.c.destination, outbox.c.attempts)
            .join(alerts, alerts.c.number == outbox.c.alert)
            .where(alerts.c.correlation_id == correlation_id)
        )
        given_up = select(history.c.mechanism, history.c.problem).where(
            history.c.correlation_id == correlation_id, history.c.problem != ""
        )
        with self._transaction() as connection:
            left = connection.execute(waiting).all()
            found = [(row.mechanism, row.problem) for row in connection.execute(given_up)]
        if not all(row.attempts for row in left):
            return None
        again = "it did not take the message, and greenroom tries again; the log says why"
        return found + [(Destination.of(row.destination).id, again) for row in left]

    def due(self, now_ms: int) -> list[Due]:
        heads = (
            select(func.min(outbox.c.number))
            .where(outbox.c.not_before_ms <= now_ms)
            .group_by(outbox.c.destination)
        )
        wanted = (
            select(outbox, alerts.c.body)
            .join(alerts, alerts.c.number == outbox.c.alert)
            .where(outbox.c.number.in_(heads), outbox.c.retry_ms <= now_ms)
            .order_by(outbox.c.retry_ms)
            .limit(AT_ONCE)
        )
        with self._transaction() as connection:
            rows = connection.execute(wanted).mappings().all()
        return [
            Due(
                row["number"],
                _decoded(row["body"]),
                row["policy_id"],
                row["policy_name"],
                row["description"],
                row["destination"],
                row["created_ms"],
                row["attempts"],
            )
            for row in rows
        ]

    def waiting(self) -> int:
        return self.backlog(0)[0]

    def backlog(self, now_ms: int) -> tuple[int, int]:
        """Returns (undelivered messages, age of the oldest due one in ms or 0)."""
        oldest = func.min(outbox.c.created_ms).filter(outbox.c.not_before_ms <= now_ms)
        with self._transaction() as connection:
            count, since_ms = connection.execute(
                select(func.count(), oldest).select_from(outbox)
            ).one()
        return int(count), 0 if since_ms is None else max(0, now_ms - int(since_ms))

    def acquire(self, holder: str) -> bool:
        """Takes or renews the sender's lease. False while another process sends."""
        with self._transaction(writes=True) as connection:
            return _acquire(connection, holder)

    def release(self, holder: str) -> None:
        with self._transaction(writes=True) as connection:
            LEASE.release(connection, holder)

    def finish(self, holder: str, due: Due, now_ms: int, problem: str = "") -> bool:
        """Returns False when another process sends now."""
        destination = Destination.of(due.destination)
        entry = _history(due, destination, now_ms, problem) | {"attempts": due.attempts + 1}
        with self._transaction(writes=True) as connection:
            if not _acquire(connection, holder):
                return False
            if connection.execute(delete(outbox).where(outbox.c.number == due.number)).rowcount:
                connection.execute(insert(history).values(entry))
                _note(connection, due.destination, now_ms, delivered=not problem)
        return True

    def postpone(self, holder: str, due: Due, now_ms: int, retry_ms: int) -> bool:
        """Returns False when another process sends now."""
        with self._transaction(writes=True) as connection:
            if not _acquire(connection, holder):
                return False
            again = (
                update(outbox)
                .where(outbox.c.number == due.number)
                .values(retry_ms=retry_ms, attempts=due.attempts + 1)
            )
            if connection.execute(again).rowcount:
                _note(connection, due.destination, now_ms, delivered=False)
        return True

    def note(self, destination: str, now_ms: int, *, delivered: bool) -> None:
        with self._transaction(writes=True) as connection:
            _note(connection, destination, now_ms, delivered=delivered)

    def states(self) -> dict[str, tuple[int | None, int | None]]:
        with self._transaction() as connection:
            rows = connection.execute(select(destination_state)).all()
        return {row.destination: (row.last_success_ms, row.last_failure_ms) for row in rows}

    def history(
        self, since_ms: int, before_ms: int | None, skip: int, count: int, subject: str = ""
    ) -> tuple[list[Dispatch], int]:
        """Returns `count` rows after `skip`, newest first, and the total, of [since_ms, before_ms).
        `subject`: only about this check or room, as `zone id/its id`.
        """
        within = history.c.sent_ms >= since_ms
        if subject:
            about = select(alerts.c.correlation_id).where(alerts.c.subject == subject)
            within = and_(within, history.c.correlation_id.in_(about))
        within = within if before_ms is None else and_(within, history.c.sent_ms < before_ms)
        rows_wanted = (
            select(history)
            .where(within)
            .order_by(history.c.number.desc())
            .offset(skip)
            .limit(count)
        )
        with self._transaction() as connection:
            total = connection.execute(
                select(func.count()).select_from(history).where(within)
            ).scalar_one()
            rows = connection.execute(rows_wanted).mappings().all()
        return [
            Dispatch(**{name: value for name, value in row.items() if name != "number"})
            for row in rows
        ], int(total)

    def incidents(self, since_ms: int) -> list[Incident]:
        end = alerts.alias("ends")
        same = and_(
            end.c.type == alerts.c.type,
            end.c.correlation_id == alerts.c.correlation_id,
            end.c.state == "end",
        )
        wanted: Select[Any] = (
            select(alerts.c.body, end.c.body.label("end_body"))
            .outerjoin(end, same)
            .where(
                alerts.c.state == "start", or_(alerts.c.at_ms >= since_ms, end.c.number.is_(None))
            )
            .order_by(alerts.c.at_ms.desc(), alerts.c.number.desc())
        )
        with self._transaction() as connection:
            rows = connection.execute(wanted).all()
        return [
            Incident(_decoded(row.body), None if row.end_body is None else _decoded(row.end_body))
            for row in rows
        ]

    def open_incidents(self) -> list[Alert]:
        return [found.start for found in self.incidents(1 << 62)]

    def forget(self, now_ms: int) -> None:
        """Open incidents and unsent messages stay."""
        over = alerts.alias("over")
        ended = (
            select(over.c.correlation_id)
            .where(over.c.type == alerts.c.type, over.c.state == "end")
            .correlate(alerts)
        )
        old = alerts.c.at_ms < now_ms - INCIDENTS_KEPT_MS
        waits = alerts.c.number.in_(select(outbox.c.alert))
        with self._transaction(writes=True) as connection:
            connection.execute(delete(history).where(history.c.sent_ms < now_ms - HISTORY_KEPT_MS))
            connection.execute(delete(told).where(told.c.at_ms < now_ms - INCIDENTS_KEPT_MS))
            gone = or_(alerts.c.state == "none", alerts.c.correlation_id.in_(ended))
            connection.execute(delete(alerts).where(old, ~waits, gone))


def keep(
    connection: Connection, configuration: Configuration, found: Sequence[Alert], now_ms: int
) -> int:
    """Stores new alerts and their messages on an open connection; returns their number."""
    if not found:
        return 0
    # Writers queue up here. Older releases take a lease that is not `active`.
    connection.execute(update(sender).values(active=True))
    policies = [entry.record for entry in configuration.alert_policies.values()]
    silences = [entry.record for entry in configuration.silences.values()]
    new = 0
    for alert in found:
        known = select(alerts.c.number).where(
            alerts.c.type == alert.type,
            alerts.c.correlation_id == alert.correlation_id,
            alerts.c.state == alert.state,
        )
        if connection.execute(known).first() is not None:
            continue
        new += 1
        number = connection.execute(insert(alerts).values(_row(alert))).inserted_primary_key[0]  # type: ignore[index]
        for verdict in verdicts(
            alert,
            policies,
            silences,
            lambda policy, of=alert: _told(connection, policy, of, now_ms),  # type: ignore[misc]
            now_ms,
        ):
            _carry_out(connection, verdict, alert, number, now_ms)
    return new


def _carry_out(
    connection: Connection, verdict: PolicyVerdict, alert: Alert, number: int, now_ms: int
) -> None:
    policy = verdict.policy
    if verdict.action == "cancel":
        started = select(alerts.c.number).where(
            alerts.c.type == alert.type,
            alerts.c.correlation_id == alert.correlation_id,
            alerts.c.state == "start",
        )
        connection.execute(
            delete(outbox).where(outbox.c.policy_id == policy.id, outbox.c.alert.in_(started))
        )
        connection.execute(delete(told).where(*_incident(policy, alert)))
        return
    if alert.state != "end":
        fate: Fate = "silenced" if verdict.action == "silence" else "told"
        row = {
            "policy_id": policy.id,
            "type": alert.type,
            "correlation_id": alert.correlation_id,
            "subject": _subject(alert),
        }
        connection.execute(
            insert(told).values(row | {"fate": fate, "at_ms": max(now_ms, verdict.not_before_ms)})
        )
    _write_messages(connection, verdict, alert, number, now_ms)


def _write_messages(
    connection: Connection, verdict: PolicyVerdict, alert: Alert, number: int, now_ms: int
) -> None:
    policy = verdict.policy
    for destination in verdict.destinations:
        waits = (
            select(func.count()).select_from(outbox).where(outbox.c.destination == destination.key)
        )
        due = Due(0, alert, policy.id, policy.name, policy.description, destination.key, now_ms, 0)
        if connection.execute(waits).scalar_one() >= WAITING_MAX:
            problem = f"{WAITING_MAX} messages wait for this destination already"
            connection.execute(insert(history).values(_history(due, destination, now_ms, problem)))
            continue
        row = {
            "policy_id": policy.id,
            "policy_name": policy.name,
            "description": policy.description,
            "destination": destination.key,
        }
        times = {
            "created_ms": verdict.not_before_ms,
            "not_before_ms": verdict.not_before_ms,
            "retry_ms": 0,
            "attempts": 0,
        }
        connection.execute(insert(outbox).values(alert=number, **row, **times))


def _told(connection: Connection, policy: AlertPolicy, alert: Alert, now_ms: int) -> Told:
    this = connection.execute(
        select(told.c.fate, told.c.at_ms).where(*_incident(policy, alert))
    ).first()
    same = (
        told.c.policy_id == policy.id,
        told.c.type == alert.type,
        told.c.subject == _subject(alert),
        told.c.fate == "told",
    )
    last = connection.execute(select(func.max(told.c.at_ms)).where(*same)).scalar()
    return Told(
        this.fate if this else None,
        bool(this and this.fate == "told" and this.at_ms > now_ms),
        last,
    )


def _incident(policy: AlertPolicy, alert: Alert) -> tuple[Any, ...]:
    return (
        told.c.policy_id == policy.id,
        told.c.type == alert.type,
        told.c.correlation_id == alert.correlation_id,
    )


def _acquire(connection: Connection, holder: str) -> bool:
    return LEASE.acquire(connection, holder, TERM_MS)


def _note(connection: Connection, destination: str, now_ms: int, *, delivered: bool) -> None:
    when = {"last_success_ms" if delivered else "last_failure_ms": now_ms}
    there = (
        update(destination_state).where(destination_state.c.destination == destination).values(when)
    )
    if connection.execute(there).rowcount == 0:
        connection.execute(insert(destination_state).values(destination=destination, **when))


def _history(due: Due, destination: Destination, now_ms: int, problem: str) -> dict[str, Any]:
    entry = {
        "id": secrets.token_hex(16),
        "policy_id": due.policy_id,
        "name": due.policy_name,
        "description": due.description,
        "alert_type": due.alert.type,
        "alert_body": due.alert.text,
        "mechanism_type": destination.mechanism,
        "mechanism": destination.id,
        "correlation_id": due.alert.correlation_id,
        "sent_ms": now_ms,
        "attempts": due.attempts,
        "problem": problem[:PROBLEM_MAX],
    }
    return {
        name: _plain(value) if isinstance(value, str) else value for name, value in entry.items()
    }


def _plain(text: str) -> str:
    """PostgreSQL keeps no NUL in a text."""
    return text.replace("\0", "")


def _row(alert: Alert) -> dict[str, Any]:
    return {
        "type": alert.type,
        "correlation_id": alert.correlation_id,
        "state": alert.state,
        "subject": _subject(alert),
        "at_ms": alert.time_ms,
        "body": msgspec.json.encode(alert).decode(),
    }


def _subject(alert: Alert) -> str:
    return _plain(f"{alert.zone_id}/{alert.subject_id or alert.subject_name}")


def _decoded(body: str) -> Alert:
    return msgspec.json.decode(body, type=Alert)
