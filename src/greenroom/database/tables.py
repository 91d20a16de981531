"""The tables after the newest migration.

An operator's record is one row of readable JSON, and `model` validates it when it is read. So a new
field needs no migration (it gets its default), and a new kind of record no table.
"""

from sqlalchemy import (
    BigInteger,
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
"""One row. Every write changes it first, so writers queue up here. `forgotten`: the newest revision
of which audit entries are gone.
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
"""In order of writing."""

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
"""Every change of an entry; tells readers what is new since they last looked."""
