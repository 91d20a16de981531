"""The example of how to drive the core from outside works as it is written."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "howto" / "drive-the-core.md"


def test_the_pieces_of_the_page_make_one_program_that_works() -> None:
    pieces = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(pieces) >= 3
    exec(compile("\n".join(pieces), str(PAGE), "exec"), {"__name__": "example"})


def test_the_simulation_of_the_page_works() -> None:
    runpy.run_path(str(ROOT / "examples" / "core" / "simulation.py"))
