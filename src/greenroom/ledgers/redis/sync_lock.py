"""The sync lock of one data center in its own Redis, with the permit requests of the other
processes.
"""

from collections.abc import Collection
from typing import Any

import msgspec
from redis.exceptions import RedisError

from greenroom.errors import StorageFailed
from greenroom.ledgers.coordination import LOCK_MS, PERMIT_REQUESTS_MAX, PermitRequest
from greenroom.ledgers.redis.call import call_function, pop
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.library import LEADER_LIBRARY

ACKNOWLEDGEMENT_MS = 2_000

_request = msgspec.msgpack.Decoder(PermitRequest)


class RedisSyncLock:
    def __init__(
        self, client: Client, process: str, data_center: str, prefix: str = "greenroom"
    ) -> None:
        self._client = client
        self._process = process
        place = f"{prefix}:{{sync.{data_center}}}:"
        self._lock, self._requests, self._acknowledged = (
            place + "lock",
            place + "permit_requests",
            place + "acknowledged:",
        )
        self._present = place + "present"

    async def acquire(self) -> bool:
        return bool(await self._call("lock", LOCK_MS))

    async def leave(self) -> bool:
        return not await self._call("leave")

    async def request_permits(self, room_id: str, want: int, wait_s: float) -> None:
        try:
            await self._client.rpush(
                self._requests, msgspec.msgpack.encode(PermitRequest(self._process, room_id, want))
            )
            await self._client.ltrim(self._requests, -PERMIT_REQUESTS_MAX, -1)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error
        await pop(self._client, self._acknowledged + self._process, wait_s)

    async def permit_requests(self, wait_s: float) -> list[PermitRequest]:
        first = await pop(self._client, self._requests, wait_s)
        if first is None:
            return []
        try:
            more = await self._client.lpop(self._requests, PERMIT_REQUESTS_MAX)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error
        return [_request.decode(one) for one in (first, *(more or ()))]

    async def acknowledge(self, processes: Collection[str]) -> None:
        try:
            for process in processes:
                key = self._acknowledged + process
                await self._client.rpush(key, b"1")
                await self._client.ltrim(key, -1, -1)
                await self._client.pexpire(key, ACKNOWLEDGEMENT_MS)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error

    async def _call(self, name: str, *more: int) -> Any:
        return await call_function(
            self._client, LEADER_LIBRARY, name, (self._lock, self._present), (self._process, *more)
        )
