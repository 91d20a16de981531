"""The reference is written from the tables in the source and is never older than they are."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import generate  # noqa: E402


@pytest.mark.parametrize("name", generate.PAGES)
def test_the_reference_says_what_the_source_says(name: str) -> None:
    assert (DOCS / "reference" / name).read_text() == generate.PAGES[name](), (
        "run .venv/bin/python docs/generate.py"
    )


BY_HAND = {
    "README.md": "the list of pages",
    "proxies.md": "compared with real servers by tests/integration/test_conformance.py",
}


def test_no_page_of_the_reference_is_left_over() -> None:
    assert {path.name for path in (DOCS / "reference").iterdir()} == {*generate.PAGES, *BY_HAND}
