"""Steps between versions of the tables; alembic runs them, forward only."""
