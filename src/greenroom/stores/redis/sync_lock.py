"""Which process syncs its data center, and how the others tell it that a lease ran dry; both through the data center's own Redis.

Two at once would do no harm, because reports and answers are absolute counters: one is only cheaper. So no fence is needed here.
"""

import msgspec
from redis.exceptions import RedisError

from greenroom.errors import StorageFailed
from greenroom.stores.redis.leader_lease import LEADER_LIBRARY, call_function, pop
from greenroom.stores.redis.link import Client

LOCK_MS = 2_000
"""A turn that is not taken again for so long is free: with the 4 s of a cut-off link there is time for another process to go on."""

PERMIT_REQUESTS_MAX = 1_000
"""Wishes kept while nobody syncs: more rooms than a process has."""

ACKNOWLEDGEMENT_MS = 2_000
"""After this nobody waits for a wish any more."""


class PermitRequest(msgspec.Struct, frozen=True, array_like=True):
    """Some process asks for permits for a room."""

    process: str
    room_id: str
    want: int


class RedisSyncLock:
    """The turn of one data center, as one process sees it. Every method raises StorageFailed when Redis cannot be reached."""

    def __init__(self, client: Client, process: str, data_center: str, prefix: str = "greenroom") -> None:
        """`process` names this process among all of the data center."""
        self._client = client
        self._process = process
        place = f"{prefix}:{{turn.{data_center}}}:"
        self._turn, self._wishes, self._thanks = place + "holder", place + "wishes", place + "thanks:"

    async def take(self) -> bool:
        """Whether it is this process's turn, from now for LOCK_MS."""
        return await self._hold(LOCK_MS)

    async def give_away(self) -> None:
        """Somebody else's turn, if it was ours."""
        await self._hold(0)

    async def wish(self, room_id: str, want: int, wait_s: float) -> None:
        """Tells whoever has the turn, and waits until the answer is on the books, or so long."""
        try:
            await self._client.rpush(self._wishes, msgspec.msgpack.encode(PermitRequest(self._process, room_id, want)))
            await self._client.ltrim(self._wishes, -PERMIT_REQUESTS_MAX, -1)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error
        await pop(self._client, self._thanks + self._process, wait_s)

    async def wishes(self, wait_s: float) -> list[PermitRequest]:
        """What other processes ask for, as soon as there is something, or nothing after so long."""
        first = await pop(self._client, self._wishes, wait_s)
        if first is None:
            return []
        try:
            more = await self._client.lpop(self._wishes, PERMIT_REQUESTS_MAX)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error
        return [msgspec.msgpack.decode(one, type=PermitRequest) for one in (first, *(more or ()))]

    async def fulfil(self, processes: set[str]) -> None:
        """Their wishes have been answered."""
        try:
            for process in processes:
                key = self._thanks + process
                await self._client.rpush(key, b"1")
                await self._client.ltrim(key, -1, -1)
                await self._client.pexpire(key, ACKNOWLEDGEMENT_MS)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error

    async def _hold(self, lasts_ms: int) -> bool:
        return bool(await call_function(self._client, LEADER_LIBRARY, "turn", (self._turn,), (self._process, lasts_ms)))
