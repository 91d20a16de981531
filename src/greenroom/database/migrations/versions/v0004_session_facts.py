"""What a session keeps of an OpenID Connect person."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("facts", sa.Text, nullable=False, server_default=""))
