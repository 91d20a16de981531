"""Stores analytics in DuckDB (in the data directory) or ClickHouse, with the same tables."""
