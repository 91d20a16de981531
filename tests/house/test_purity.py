"""The lower floors and the simulator touch neither clock, chance, disk, network, threads, logs nor
environment.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "greenroom"
PURE_ROOMS = (
    "errors",
    "model",
    "settings",
    "request",
    "rules",
    "admission",
    "capacity",
    "alerts.rules",
    "calls.rules",
    "health.rules",
    "simulator",
)
PURE_MODULES = ("analytics",)
"""Packages of which the modules at the top are pure, and those below are not."""

# What may be imported is written down, so that nothing impure gets in by not being thought of.
STANDARD = frozenset(
    "__future__ abc array base64 binascii bisect collections collections.abc copy dataclasses datetime difflib enum fractions "
    "functools hashlib heapq hmac html ipaddress itertools json math operator re statistics string struct types typing unicodedata "
    "urllib.parse zlib".split()
)
THIRD_PARTY = frozenset({"msgspec", "lark", "re2"})
READS_A_CLOCK = frozenset({"now", "utcnow", "today"})
TOUCHES_THE_WORLD = frozenset(
    {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}
)


def pure_files() -> list[Path]:
    files = [path for room in PURE_MODULES for path in sorted((SOURCE / room).glob("*.py"))]
    for room in PURE_ROOMS:
        place = SOURCE.joinpath(*room.split("."))
        files += sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return files


PURE_NAMES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in pure_files()
}


def impurities(source: str) -> list[str]:
    """Everything in a module that could make the same call give another answer, as `line: what`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            ours = name in PURE_NAMES
            if not ours and name not in STANDARD and name.split(".")[0] not in THIRD_PARTY:
                found.append(f"{node.lineno}: imports {name}")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in READS_A_CLOCK
        ):
            found.append(f"{node.lineno}: calls .{node.func.attr}()")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in TOUCHES_THE_WORLD
        ):
            found.append(f"{node.lineno}: calls {node.func.id}()")
    return found


def test_a_pure_room_depends_on_its_arguments_alone() -> None:
    found = {path: impurities(path.read_text()) for path in pure_files()}
    assert len(found) > 50, "the rooms are found"
    assert {path: some for path, some in found.items() if some} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "from random import random",
        "import os.path",
        "import asyncio",
        "from threading import Lock",
        "import logging",
        "import secrets",
        "import socket",
        "from greenroom.ledgers import memory",
        "from . import neighbour",
        "from datetime import datetime; datetime.now()",
        "open('x')",
        "def later():\n    import time",
    ],
)
def test_the_check_catches(line: str) -> None:
    assert impurities(line)
