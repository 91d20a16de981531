"""Rows as a Parquet file, written by DuckDB in memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from greenroom.errors import StorageFailed


def write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """One column for each key of the first row. Raises StorageFailed."""
    import duckdb

    try:
        with duckdb.connect() as connection:
            if not rows:
                connection.execute("CREATE TABLE rows (datetime TIMESTAMP)")
            else:
                names = list(rows[0])
                shown = ", ".join(
                    f'unnest(${number}::{_type(rows[0][name])}[]) AS "{name}"'
                    for number, name in enumerate(names, 1)
                )
                connection.execute(
                    f"CREATE TABLE rows AS SELECT {shown}",
                    [[row[name] for row in rows] for name in names],
                )
            connection.table("rows").write_parquet(str(path))
    except (duckdb.Error, OSError) as error:
        raise StorageFailed(f"{path}: {str(error).splitlines()[0]}") from None


def _type(value: Any) -> str:
    if isinstance(value, str):
        return "TIMESTAMP" if "T" in value else "DATE"
    return "DOUBLE" if isinstance(value, float) else "BIGINT"
