"""The function library of the ledgers: joined from its parts, and named by its content.

Versions have different names, so two can work on one Redis during an upgrade; they share the
ledgers as long as the state's format is the same.
"""

from hashlib import sha256
from pathlib import Path

PARTS = ("clock", "ledger_state", "people", "lease", "newcomers", "ledger", "moves", "functions")
"""In the order in which they need each other."""

_FOLDER = Path(__file__).with_name("functions")


class Library:
    """Tests add parts of their own."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        """`parts` are sources in order."""
        body = "\n".join(parts)
        self.name = f"greenroom_{sha256(body.encode()).hexdigest()[:10]}"
        self.source = f"#!lua name={self.name}\nlocal LIBRARY = '{self.name}'\n{body}"

    def function(self, name: str) -> bytes:
        """The name for FCALL."""
        return f"{self.name}_{name}".encode()


def part(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text()


LEDGER_LIBRARY = Library(tuple(part(name) for name in PARTS))

LEADER_LIBRARY = Library((part("leader"),))
