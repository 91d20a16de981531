"""Every line of the log begins with the name of an event, which can be searched for; its facts are
fields.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "greenroom"
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


def said(text: str) -> Iterator[tuple[int, str]]:
    """What a module that logs with structlog says, with the line; "" for what is put together while
    it runs.
    """
    tree = ast.parse(text)
    if not any(
        isinstance(node, ast.Import) and any(name.name == "structlog" for name in node.names)
        for node in ast.walk(tree)
    ):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Name(id="log") | ast.Attribute(attr="_log"), attr=level
                ),
                args=[event, *_],
            ) if level in LEVELS:
                yield node.lineno, event.value if isinstance(event, ast.Constant) else ""


def test_log_messages_are_names_of_events() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{line}": event
        for path in SOURCE.rglob("*.py")
        for line, event in said(path.read_text())
    }
    assert len(found) > 40, "the log is found"
    assert not {
        place: event for place, event in found.items() if event and not NAME.fullmatch(event)
    }


def test_a_sentence_is_found() -> None:
    lines = dict(
        said(
            'import structlog\nlog = structlog.get_logger()\nlog.warning("the disk is full", free=0)\nlog.error(f"{name}")\n'
        )
    )
    assert lines == {3: "the disk is full", 4: ""}
