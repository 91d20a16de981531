"""The tables of notifications, in the database of the configuration."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from greenroom.database.tables import AutoNumber, metadata

alerts = Table(
    "alerts",
    metadata,
    Column("number", AutoNumber, Identity(), primary_key=True),
    Column("type", Text, nullable=False),
    Column("correlation_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    UniqueConstraint("type", "correlation_id", "state", name="alerts_identity"),
    Index("alerts_at", "at_ms"),
)
"""Alerts as readable JSON."""

told = Table(
    "told",
    metadata,
    Column("policy_id", Text, primary_key=True),
    Column("type", Text, primary_key=True),
    Column("correlation_id", Text, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("fate", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("told_subject", "policy_id", "type", "subject", "at_ms"),
)
"""Each policy's reaction to the start of each incident; `at_ms`, when it is sent, may lie ahead
(postponed).
"""

outbox = Table(
    "outbox",
    metadata,
    Column("number", AutoNumber, Identity(), primary_key=True),
    Column("alert", BigInteger, nullable=False),
    Column("policy_id", Text, nullable=False),
    Column("policy_name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("not_before_ms", BigInteger, nullable=False),
    Column("retry_ms", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Index("outbox_destination", "destination", "number"),
)
"""Undelivered messages. Those of one destination go out in order of their numbers, postponed ones
apart.
"""

history = Table(
    "history",
    metadata,
    Column("number", AutoNumber, Identity(), primary_key=True),
    Column("id", Text, nullable=False),
    Column("policy_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("alert_type", Text, nullable=False),
    Column("alert_body", Text, nullable=False),
    Column("mechanism_type", Text, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("correlation_id", Text, nullable=False),
    Column("sent_ms", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("problem", Text, nullable=False),
    Index("history_sent", "sent_ms"),
)
"""Delivered and given up."""

destination_state = Table(
    "destination_state",
    metadata,
    Column("destination", Text, primary_key=True),
    Column("last_success_ms", BigInteger),
    Column("last_failure_ms", BigInteger),
)
"""Last success and failure of each destination."""

sender = Table(
    "sender",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True),
    Column("holder", Text, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("active", Boolean, nullable=False),
)
"""One row: which process sends. `beat` grows while it lives, so that others need no clock to see
that it died.
"""
