"""What benches, examples and scripts import from greenroom is there: nothing else notices when a
name moves, because no test runs them.
"""

import ast
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path
    for folder in ("bench", "examples", "scripts", "docs")
    for path in (ROOT / folder).rglob("*.py")
)


def imports(text: str) -> list[tuple[str, str]]:
    """(module, name) of each name that is imported from greenroom."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return [
        (str(node.module), one.name)
        for node in found
        if str(node.module).partition(".")[0] == "greenroom"
        for one in node.names
    ]


def missing(module: str, name: str) -> bool:
    try:
        if hasattr(import_module(module), name):
            return False
        import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return True
    return False


def test_every_name_is_there() -> None:
    assert [
        f"{path}: {module}.{name}"
        for path in FILES
        for module, name in imports(path.read_text())
        if missing(module, name)
    ] == []


def test_a_name_that_moved_would_be_found() -> None:
    assert imports("from greenroom.health.network import ProbeGuard") == [
        ("greenroom.health.network", "ProbeGuard")
    ]
    assert missing("greenroom.health.network", "ProbeGuard")
    assert missing("greenroom.nowhere", "x")
    assert not missing("greenroom.health", "network")
