"""Where analytics are kept: one set of tables and one SQL text for DuckDB (in the data directory)
and ClickHouse.
"""
