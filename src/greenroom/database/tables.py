"""The tables after the newest migration. A record is one row of readable JSON that `model`
validates, so a new field needs no migration and a new kind no table.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

AutoNumber = BigInteger().with_variant(Integer, "sqlite")
"""SQLite generates numbers only in a plain INTEGER primary key."""

state = Table(
    "state",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("forgotten", BigInteger, nullable=False),
)
"""Every write changes it first, so that writers queue. `forgotten`: the newest revision whose audit
entries are gone.
"""

entries = Table(
    "entries",
    metadata,
    Column("number", AutoNumber, Identity(), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("modified_ms", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    UniqueConstraint("kind", "id", name="entries_kind_id"),
)

audit = Table(
    "audit",
    metadata,
    Column("number", AutoNumber, Identity(), primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("author", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("before", Text),
    Column("after", Text),
    Index("audit_revision", "revision"),
)
"""Readers find what is new since their last look."""

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
"""`at_ms`, the time of sending, may lie ahead."""

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
"""A destination's messages go out by number, postponed ones apart."""

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

destination_state = Table(
    "destination_state",
    metadata,
    Column("destination", Text, primary_key=True),
    Column("last_success_ms", BigInteger),
    Column("last_failure_ms", BigInteger),
)

sender = Table(
    "sender",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True),
    Column("holder", Text, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("active", Boolean, nullable=False),
)
"""The sender's lease ends at `beat`, in ms."""

sessions = Table(
    "sessions",
    metadata,
    Column("secret_sha256", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("address", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("facts", Text, nullable=False, server_default=""),
    Index("sessions_kind", "kind", "seen_ms"),
)
