"""The configuration store in a SQL database: SQLite in the data directory by default, PostgreSQL by URL."""

from greenroom.stores.sql.store import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]
