"""What a session keeps of a person whom an OpenID Connect provider knows."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Sessions that are there have none."""
    op.add_column("sessions", sa.Column("facts", sa.Text, nullable=False, server_default=""))
