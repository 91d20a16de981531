"""Edges exchange keys of tickets and of stored secrets through Redis, so that their key files have
the same content. A ticket key that the others do not know does not seal for 15 s. A key that Redis
lost is written back by every machine that has it.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from redis.exceptions import RedisError

from greenroom.errors import StorageFailed
from greenroom.keys.sealed_secrets import exchange_secret_keys
from greenroom.keys.ticket_keys import KEY_FILE, KeyRing, exchange
from greenroom.ledgers.redis.connect import Client

PLACE = "greenroom:{keys}"
SECRETS_PLACE = PLACE + ":secrets"

FIRST_MS, LOOK_MS = 2_000, 50


class KeyExchange:
    def __init__(self, client: Client, data: Path) -> None:
        self._client = client
        self._data = data

    async def begin(self, now_ms: int) -> None:
        """Call it before the key ring is read. Of machines without keys one makes one, and the others
        wait. Raises as `run`.
        """
        await self.run(now_ms)
        if (self._data / KEY_FILE).exists():
            return
        try:
            ours = await self._client.set(PLACE + ":first", "", nx=True, px=FIRST_MS)
        except (RedisError, OSError) as error:
            raise _no_exchange(error) from None
        if ours:
            KeyRing(self._data, now_ms)
            await self.run(now_ms)
            return
        for _ in range(FIRST_MS // LOOK_MS):
            await asyncio.sleep(LOOK_MS / 1000)
            await self.run(now_ms)
            if (self._data / KEY_FILE).exists():
                return

    async def run(self, now_ms: int) -> None:
        """Call it every other second. Raises StorageFailed or InvalidConfig; own keys stay in use."""
        try:
            await self._agree(PLACE, lambda theirs: exchange(self._data, theirs, now_ms))
            await self._agree(
                SECRETS_PLACE, lambda theirs: exchange_secret_keys(self._data, theirs)
            )
        except (RedisError, OSError) as error:
            raise _no_exchange(error) from None

    async def _agree(
        self, place: str, exchanged: Callable[[Iterable[Any]], list[dict[str, Any]]]
    ) -> None:
        theirs = cast(dict[bytes, bytes], await self._client.hgetall(place))
        kept = {row["id"].encode(): row for row in exchanged(map(_row, theirs.values()))}
        missing = {key_id: json.dumps(row) for key_id, row in kept.items() if key_id not in theirs}
        if missing:
            await self._client.hset(place, mapping=missing)
        outdated = theirs.keys() - kept.keys()
        if outdated:
            await self._client.hdel(place, *outdated)


def _no_exchange(error: Exception) -> StorageFailed:
    return StorageFailed(f"the keys of tickets cannot be exchanged: {type(error).__name__}")


def _row(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
