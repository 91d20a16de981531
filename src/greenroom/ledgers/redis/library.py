"""Function libraries in Redis, named by their content: two versions can work on one Redis during an
upgrade, as long as the state's format is the same.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from redis.exceptions import RedisError, ResponseError

from greenroom.errors import StorageFailed
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.constants import with_constants

PARTS = (
    "clock",
    "ledger_state",
    "failures",
    "people",
    "turns",
    "lease",
    "newcomers",
    "ledger",
    "moves",
    "places",
    "functions",
)

_FOLDER = Path(__file__).with_name("functions")


class Library:
    def __init__(self, parts: tuple[str, ...]) -> None:
        text = "\n".join(parts)
        self.name = f"greenroom_{sha256(with_constants(text).encode()).hexdigest()[:10]}"
        self.text = f"#!lua name={self.name}\nlocal LIBRARY = '{self.name}'\n{text}"
        """With names of constants."""
        self.source = with_constants(self.text)

    def function(self, name: str) -> bytes:
        return f"{self.name}_{name}".encode()


def part(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text()


LEDGER_LIBRARY = Library(tuple(map(part, PARTS)))

LEADER_LIBRARY = Library((part("leader"),))


async def call_function(
    client: Client, library: Library, name: str, keys: Sequence[str], arguments: Sequence[Any]
) -> Any:
    """Loads the library where it is missing."""
    function = library.function(name).decode()
    try:
        try:
            return await client.fcall(function, len(keys), *keys, *arguments)
        except ResponseError as error:
            if "unction not found" not in str(error):
                raise
            await client.function_load(library.source, replace=True)
            return await client.fcall(function, len(keys), *keys, *arguments)
    except (RedisError, OSError) as error:
        raise StorageFailed(f"Redis: {error}") from error


async def pop(client: Client, key: str, wait_s: float) -> bytes | None:
    """None after `wait_s` (at least 10 ms)."""
    try:
        found = await client.blpop([key], timeout=max(0.01, wait_s))
    except (RedisError, OSError) as error:
        raise StorageFailed(f"Redis: {error}") from error
    return cast(bytes, found[1]) if found else None
