"""Who wants to be called, in the Redis that all data centers share."""

import contextlib
from typing import Any

from redis.exceptions import RedisError

from greenroom.errors import StorageFailed
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.leases import RedisLease
from greenroom.ledgers.redis.library import Library, call_function, part

CALL_LIBRARY = Library((part("calls"),))

LEASE_MS = 15_000
_BLOCKED = 1 << 30


class RedisCalls:
    """The client must not decode answers."""

    def __init__(self, client: Client, process: str) -> None:
        """`process` is unique among all."""
        self._client = client
        self._process = process
        self._place = "greenroom:{calls}:"  # one hash tag: one shard
        self._rows = self._place + "rows"

    def lease_of(self, data_center: str) -> RedisLease:
        key = f"{self._place}sender:{data_center}"
        return RedisLease(self._client, [key], self._process, LEASE_MS)

    async def put(self, room: str, ticket_id: bytes, sealed: bytes, was: bytes | None) -> bool:
        arguments = (_row(room, ticket_id), sealed, was or b"")
        return bool(await self._call("put", self._rows, *arguments))

    async def get(self, room: str, ticket_id: bytes) -> bytes | None:
        found: bytes | None = await self._ask("hget", _row(room, ticket_id))
        return found

    async def drop(self, room: str, ticket_id: bytes) -> None:
        await self._ask("hdel", _row(room, ticket_id))

    async def move(self, room: str, old: bytes, new: bytes) -> None:
        await self._call("move", self._rows, _row(room, old), _row(room, new))

    async def ids(self) -> list[tuple[str, bytes]]:
        rows = [row.decode().rpartition(" ") for row in await self._ask("hkeys")]
        return [(room, bytes.fromhex(ticket_id)) for room, _, ticket_id in rows]

    async def take(self, name: str, limit: int, lasts_ms: int) -> bool:
        return bool(await self._call("take", self._place + name, lasts_ms, 1) <= limit)

    async def block(self, name: str, lasts_ms: int) -> None:
        await self._call("take", self._place + name, lasts_ms, _BLOCKED)

    async def close(self) -> None:
        with contextlib.suppress(RedisError, OSError):
            await self._client.aclose()

    async def _ask(self, command: str, *arguments: Any) -> Any:
        try:
            return await getattr(self._client, command)(self._rows, *arguments)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error

    async def _call(self, function: str, key: str, *arguments: Any) -> Any:
        return await call_function(self._client, CALL_LIBRARY, function, (key,), arguments)


def _row(room: str, ticket_id: bytes) -> str:
    return f"{room} {ticket_id.hex()}"
