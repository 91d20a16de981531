"""Edges on several machines exchange the keys of their tickets through Redis, so that each can open what another one sealed.

Every machine keeps its own key file and reads it as always (`stores.keys`); this brings the files to the same content. A key that was
just made seals only 15 s later, and everybody has it by then. Nothing is lost with Redis: whoever has a key brings it back.
"""

import json
from pathlib import Path
from typing import Any, cast

from redis.exceptions import RedisError

from greenroom.errors import StorageFailed
from greenroom.stores.keys import exchange
from greenroom.stores.redis.link import Client

PLACE = "greenroom:{keys}"


class KeyExchange:
    """The key file of one data directory, and those of the others."""

    def __init__(self, client: Client, data: Path) -> None:
        self._client = client
        self._data = data

    async def run(self, now_ms: int) -> None:
        """Once; often enough is every other second. Raises StorageFailed or InvalidConfig; our own keys stay in use."""
        try:
            theirs = cast(dict[bytes, bytes], await self._client.hgetall(PLACE))
            kept = {row["id"].encode(): row for row in exchange(self._data, map(_row, theirs.values()), now_ms)}
            missing = {key_id: json.dumps(row) for key_id, row in kept.items() if key_id not in theirs}
            if missing:
                await self._client.hset(PLACE, mapping=missing)
            outdated = theirs.keys() - kept.keys()
            if outdated:
                await self._client.hdel(PLACE, *outdated)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"the keys of tickets cannot be exchanged: {type(error).__name__}") from None


def _row(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
