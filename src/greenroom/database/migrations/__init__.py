"""Steps of the database from one version of its tables to the next; alembic runs them, forward
only.
"""
