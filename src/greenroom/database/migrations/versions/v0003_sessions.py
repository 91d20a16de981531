"""The table of dashboard sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    # As first made; `tables` describes the newest version.
    op.create_table(
        "sessions",
        sa.Column("secret_sha256", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("kind", "id", "owner")),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("created_ms", "seen_ms", "expires_ms")
        ),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("address", "agent")),
    )
    op.create_index("sessions_kind", "sessions", ["kind", "seen_ms"])
