"""What alembic runs: every step that is missing, on the connection it was handed, inside that connection's transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
