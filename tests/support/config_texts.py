"""Small configuration files as text, and what is wrong with them."""

from pathlib import Path

import pytest

from greenroom.config_file.load import read_config
from greenroom.errors import InvalidConfig

GOOD = """
origin = "http://127.0.0.1:3000"
[[rooms]]
name = "shop"
host = "shop.example.com"
total_active_users = 200
new_users_per_minute = 100
"""


def problems(text: str, path: Path | None = None) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        read_config(text, path)
    return [str(problem) for problem in caught.value.problems]


def only_problem(text: str) -> str:
    (problem,) = problems(text)
    return problem


def with_room(lines: str) -> str:
    return GOOD + lines
