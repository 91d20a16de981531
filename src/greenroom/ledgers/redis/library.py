"""The function library that keeps the ledgers: put together from its parts, and named by its
content.

A library of another greenroom has another name, so two versions can work on one Redis while one
replaces the other; they share the ledgers as long as the format of the state is the same.
"""

from hashlib import sha256
from pathlib import Path

PARTS = ("clock", "ledger_state", "people", "lease", "newcomers", "ledger", "moves", "functions")
"""In the order in which they need each other."""

_FOLDER = Path(__file__).with_name("functions")


class Library:
    """Source and names of one library. Tests add parts of their own."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        """`parts` are sources in order."""
        body = "\n".join(parts)
        self.name = f"greenroom_{sha256(body.encode()).hexdigest()[:10]}"
        self.source = f"#!lua name={self.name}\nlocal LIBRARY = '{self.name}'\n{body}"

    def function(self, name: str) -> bytes:
        """What FCALL calls it."""
        return f"{self.name}_{name}".encode()


def part(name: str) -> str:
    """The source of one part."""
    return (_FOLDER / f"{name}.lua").read_text()


LEDGER_LIBRARY = Library(tuple(part(name) for name in PARTS))

LEADER_LIBRARY = Library((part("leader"),))
