"""The SQL database: SQLite in the data directory by default, PostgreSQL by URL."""
