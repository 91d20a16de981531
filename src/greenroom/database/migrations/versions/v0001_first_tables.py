"""The first tables: state, entries, audit."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    # Not taken from `tables`: those describe the newest version, this one must stay as it was.
    op.create_table(
        "state",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("forgotten", sa.BigInteger, nullable=False),
    )
    op.execute("INSERT INTO state (id, revision, forgotten) VALUES (1, 0, 0)")
    op.create_table(
        "entries",
        sa.Column("number", _NUMBER, sa.Identity(), primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("parent", sa.Text, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("modified_ms", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("kind", "id", name="entries_kind_id"),
    )
    op.create_table(
        "audit",
        sa.Column("number", _NUMBER, sa.Identity(), primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("parent", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text),
    )
    op.create_index("audit_revision", "audit", ["revision"])
