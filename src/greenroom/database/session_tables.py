"""The table of dashboard sessions, in the database of the configuration."""

from sqlalchemy import BigInteger, Column, Index, Table, Text

from greenroom.database.tables import metadata

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
"""Signed-in browsers, one-time links, known devices and used codes, each under the hash of its
secret.
"""
