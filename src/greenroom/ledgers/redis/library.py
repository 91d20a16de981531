"""The function library of the ledgers, named by its content: two versions can work on one Redis
during an upgrade, as long as the state's format is the same.
"""

from hashlib import sha256
from pathlib import Path

from greenroom.ledgers.redis.constants import lua_constants

PARTS = (
    "constants",
    "clock",
    "ledger_state",
    "people",
    "lease",
    "newcomers",
    "ledger",
    "moves",
    "functions",
)

_FOLDER = Path(__file__).with_name("functions")


class Library:
    def __init__(self, parts: tuple[str, ...]) -> None:
        body = "\n".join(parts)
        self.name = f"greenroom_{sha256(body.encode()).hexdigest()[:10]}"
        self.source = f"#!lua name={self.name}\nlocal LIBRARY = '{self.name}'\n{body}"

    def function(self, name: str) -> bytes:
        return f"{self.name}_{name}".encode()


def part(name: str) -> str:
    return lua_constants() if name == "constants" else (_FOLDER / f"{name}.lua").read_text()


LEDGER_LIBRARY = Library(tuple(map(part, PARTS)))

LEADER_LIBRARY = Library((part("leader"),))
