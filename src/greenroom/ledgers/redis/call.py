"""Calls functions of a library in Redis, loading the library where it is missing."""

from collections.abc import Sequence
from typing import Any, cast

from redis.exceptions import RedisError, ResponseError

from greenroom.errors import StorageFailed
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.library import Library


async def call_function(
    client: Client, library: Library, name: str, keys: Sequence[str], arguments: Sequence[Any]
) -> Any:
    """Repeats the call after loading the library when the server lacks it."""
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
