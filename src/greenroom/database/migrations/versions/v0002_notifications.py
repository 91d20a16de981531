"""The tables of notifications: alerts, told, outbox, history, destination_state, sender."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _number(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _counted() -> "sa.Column[int]":
    return sa.Column("number", _NUMBER, sa.Identity(), primary_key=True)


def upgrade() -> None:
    # As first made; `tables` describes the newest version.
    op.create_table(
        "alerts",
        _counted(),
        *_text("type", "correlation_id", "state", "subject"),
        *_number("at_ms"),
        *_text("body"),
        sa.UniqueConstraint("type", "correlation_id", "state", name="alerts_identity"),
    )
    op.create_index("alerts_at", "alerts", ["at_ms"])
    op.create_table(
        "told",
        *(
            sa.Column(name, sa.Text, primary_key=True)
            for name in ("policy_id", "type", "correlation_id")
        ),
        *_text("subject", "fate"),
        *_number("at_ms"),
    )
    op.create_index("told_subject", "told", ["policy_id", "type", "subject", "at_ms"])
    op.create_table(
        "outbox",
        _counted(),
        *_number("alert"),
        *_text("policy_id", "policy_name", "description", "destination"),
        *_number("created_ms", "not_before_ms", "retry_ms"),
        sa.Column("attempts", sa.Integer, nullable=False),
    )
    op.create_index("outbox_destination", "outbox", ["destination", "number"])
    op.create_table(
        "history",
        _counted(),
        *_text(
            "id",
            "policy_id",
            "name",
            "description",
            "alert_type",
            "alert_body",
            "mechanism_type",
            "mechanism",
            "correlation_id",
        ),
        *_number("sent_ms"),
        sa.Column("attempts", sa.Integer, nullable=False),
        *_text("problem"),
    )
    op.create_index("history_sent", "history", ["sent_ms"])
    op.create_table(
        "destination_state",
        sa.Column("destination", sa.Text, primary_key=True),
        sa.Column("last_success_ms", sa.BigInteger),
        sa.Column("last_failure_ms", sa.BigInteger),
    )
    op.create_table(
        "sender",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True),
        *_text("holder"),
        *_number("beat"),
        sa.Column("active", sa.Boolean, nullable=False),
    )
    op.execute(sa.text("INSERT INTO sender (id, holder, beat, active) VALUES (1, '', 0, false)"))
