"""Runs the missing migrations with alembic, on the given connection and inside its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
