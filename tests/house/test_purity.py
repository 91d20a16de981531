"""The lower floors and the simulator touch neither clock, chance, disk, network, threads, logs nor environment."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "greenroom"
PURE_ROOMS = ("errors", "model", "core", "admission", "alerting", "analytics", "simulator")

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
    files = []
    for room in PURE_ROOMS:
        single = SOURCE / f"{room}.py"
        files += [single] if single.exists() else sorted((SOURCE / room).rglob("*.py"))
    return files


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
            ours = (
                name.split(".")[0] == "greenroom"
                and name.split(".")[1:2]
                and name.split(".")[1] in PURE_ROOMS
            )
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


@pytest.mark.parametrize("path", pure_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_pure_room_depends_on_its_arguments_alone(path: Path) -> None:
    assert impurities(path.read_text()) == []


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
        "from greenroom.stores import memory",
        "from . import neighbour",
        "from datetime import datetime; datetime.now()",
        "open('x')",
        "def later():\n    import time",
    ],
)
def test_the_check_catches(line: str) -> None:
    assert impurities(line)
