"""What a start does not import: libraries for what is switched off or comes later would make every
start a third slower.
"""

import subprocess
import sys

import pytest

LATER = {
    "psycopg": "a store in PostgreSQL",
    "redis": "a Redis",
    "graphql": "a query",
    "ariadne": "a query",
    "duckdb": "a store",
    "clickhouse_connect": "a store",
}
LOADED = "import sys, greenroom.cli, greenroom.runtime.process; print(*{name.partition('.')[0] for name in sys.modules})"


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return set(
        subprocess.run(
            [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
        ).stdout.split()
    )


@pytest.mark.parametrize("library", LATER)
def test_a_library_is_imported_when_it_is_needed(library: str, loaded: set[str]) -> None:
    assert "starlette" in loaded
    assert library not in loaded, f"only {LATER[library]} needs it"
