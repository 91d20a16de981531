"""Draws of several machines: they agree on one secret and one result for each draw through the Redis that all of them share.

Each machine keeps what was agreed in its own data directory too (`stores.draws`), and publishes it there. Whoever is first decides: a
secret or a draw that is in Redis already is the one that counts.
"""

import asyncio
from collections.abc import Callable

import msgspec
from redis.exceptions import RedisError

from greenroom.core.draw import Draw
from greenroom.errors import StorageFailed
from greenroom.stores.draws import DrawFiles
from greenroom.stores.redis.link import Client

PLACE = "greenroom:{draws}:"
KEPT_MS = 30 * 86_400_000
"""A draw is long over when Redis forgets it; the files stay."""


class RedisDraws:
    """See `ports.Draws`. Make it inside the event loop."""

    def __init__(self, client: Client, files: DrawFiles) -> None:
        self._client = client
        self._files = files
        self._tasks: set[asyncio.Task[None]] = set()

    async def agree(self) -> None:
        """On the secret; once, before any seed is asked for. Raises StorageFailed when that cannot be done and never was."""
        try:
            ours = self._files.secret()
            await self._client.set(PLACE + "secret", ours.hex(), nx=True)
            found = await self._client.get(PLACE + "secret")
            self._files.adopt(bytes.fromhex(found.decode() if isinstance(found, bytes) else found or ""))
        except (RedisError, OSError, ValueError) as error:
            raise StorageFailed(f"the machines cannot agree on the secret of draws: {type(error).__name__}") from None

    def seed(self, draw_id: str) -> bytes:
        """See `ports.Draws`."""
        return self._files.seed(draw_id)

    def settle(self, draw_id: str, hold: Callable[[], Draw], then: Callable[[Draw | StorageFailed], None]) -> None:
        """See `ports.Draws`."""

        async def ask() -> None:
            try:
                answer: Draw | StorageFailed = self._files.keep(await self._agreed(draw_id, hold))
            except StorageFailed as error:
                answer = error
            except (RedisError, OSError, msgspec.DecodeError) as error:
                answer = StorageFailed(f"the machines cannot agree on a draw: {type(error).__name__}")
            then(answer)

        task = asyncio.get_running_loop().create_task(ask())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Ends the connections."""
        await self._client.aclose()

    async def _agreed(self, draw_id: str, hold: Callable[[], Draw]) -> Draw:
        found = await self._client.get(PLACE + draw_id)
        if found is None:
            await self._client.set(PLACE + draw_id, msgspec.json.encode(hold()), nx=True, px=KEPT_MS)
            found = await self._client.get(PLACE + draw_id)
        return msgspec.json.decode(found or b"", type=Draw)
