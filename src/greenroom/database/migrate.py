"""Migrates a database to the tables of this version; refuses one of a newer version."""

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, text

from greenroom.database.tables import metadata, sender, state
from greenroom.errors import TooNew

VERSIONS = ("0001", "0002", "0003", "0004")

NEWEST = VERSIONS[-1]

_ADVISORY_LOCK = 0x67726D5F

_FOLDER = Path(__file__).parent / "migrations"


def version_of(connection: Connection) -> str:
    """Empty without tables. Raises TooNew."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or ""
    if found and found not in VERSIONS:
        raise TooNew(
            f"the configuration was written by a newer greenroom (tables of version {found}; this"
            f" one knows up to {VERSIONS[-1]}): run that one, or go back to a copy from before the"
            " upgrade"
        )
    return str(found)


def bring_forward(connection: Connection) -> None:
    """Runs all missing steps or none, in this connection's transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"))
    found = version_of(connection)
    if not found:
        _make_new(connection)
    elif found != NEWEST:
        run_steps(connection, NEWEST)


def run_steps(connection: Connection, target: str) -> None:
    # takes longer to import than everything here takes to do, and is needed once for each upgrade
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _make_new(connection: Connection) -> None:
    """Tests check that the steps lead to the same tables."""
    metadata.create_all(connection)
    connection.execute(insert(state).values(id=1, revision=0, forgotten=0))
    connection.execute(insert(sender).values(id=1, holder="", beat=0, active=False))
    version = Table(
        "alembic_version", MetaData(), Column("version_num", String(32), primary_key=True)
    )
    version.create(connection)
    connection.execute(insert(version).values(version_num=NEWEST))
