"""The configuration store in a SQL database: SQLite in the data directory by default, PostgreSQL by URL."""

from greenroom.stores.sql.store import SqlStore, default_url, shown_url, store_exists

__all__ = ["SqlStore", "default_url", "shown_url", "store_exists"]
