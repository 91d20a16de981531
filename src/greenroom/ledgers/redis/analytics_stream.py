"""Analytics of many processes in the global Redis: a stream per data center, and the lease of their
reader.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

from redis.exceptions import RedisError

from greenroom.errors import StorageFailed
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.leases import RedisLease

STREAM_MAX = 20_000
"""Six hours of fifty processes. The oldest are dropped."""

LEASE_MS = 15_000


class RedisAnalyticsStream:
    """The client must not decode answers."""

    def __init__(self, client: Client, process: str) -> None:
        """`process` is unique among all."""
        self._client = client
        self._place = "greenroom:{analytics}:"
        self.collector = RedisLease(client, [self._place + "collector"], process, LEASE_MS)

    async def add(self, data_center: str, message: bytes) -> None:
        try:
            await self._client.xadd(
                self._place + data_center, {"m": message}, maxlen=STREAM_MAX, approximate=True
            )
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error

    async def oldest(self, data_center: str, count: int) -> list[tuple[bytes, bytes]]:
        try:
            found: Any = await self._client.xrange(self._place + data_center, count=count)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error
        return [(number, fields.get(b"m", b"")) for number, fields in found]

    async def remove(self, data_center: str, numbers: Sequence[bytes]) -> None:
        try:
            await self._client.xdel(self._place + data_center, *numbers)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error

    async def close(self) -> None:
        with contextlib.suppress(RedisError, OSError):
            await self._client.aclose()
