"""Edges on several machines exchange their keys through Redis, so that each can open what another
one sealed: tickets, and stored secrets.

Every machine keeps its own key files and reads them as always (`keys.ticket_keys`,
`keys.sealed_secrets`); this brings the files to the same content. A ticket key that was just made
seals only 15 s later, and every machine has it by then. None is made while keys cannot be
exchanged, and a key that a machine made by itself stops sealing for 15 s when the others hear of
it. Nothing is lost with Redis: every machine that has a key brings it back.
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
"""How long another machine's first key is waited for, and how often it is looked for."""


class KeyExchange:
    def __init__(self, client: Client, data: Path) -> None:
        self._client = client
        self._data = data

    async def begin(self, now_ms: int) -> None:
        """Call it before the key ring is read. Of machines without any key one makes it, and the
        others wait a moment. Raises as `run`.
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
        """One exchange; every other second is enough. Raises StorageFailed or InvalidConfig; our
        own keys stay in use.
        """
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
        """Brings the hash at `place` and the file behind `exchanged` to the same rows."""
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
