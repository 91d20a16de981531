"""Brings a database forward to the tables this greenroom knows, and refuses one that is further on already."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from greenroom.errors import TooNew

VERSIONS = ("0001",)
"""Every version of the tables, oldest first; each but the first is a step from the one before (migrations/versions)."""

_ADVISORY_LOCK = 0x67726D5F

_FOLDER = Path(__file__).parent / "migrations"


def version_of(connection: Connection) -> str:
    """The version of the tables in this database; empty when there are none. Raises TooNew when we do not know it."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or ""
    if found and found not in VERSIONS:
        raise TooNew(
            f"the configuration was written by a newer greenroom (tables of version {found}; this one knows up to {VERSIONS[-1]}): "
            "run that one, or go back to a copy from before the upgrade"
        )
    return str(found)


def bring_forward(connection: Connection, target: str = VERSIONS[-1]) -> None:
    """Runs the missing steps inside the transaction of this connection: all of them, or none when anything fails.

    Whoever comes second waits and finds nothing left to do.
    """
    from alembic import command  # half a second to import, and needed once in the life of a database
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"))
    if version_of(connection) != target:
        config = Config()
        config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, target)
