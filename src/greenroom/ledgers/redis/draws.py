"""Draws of several machines: through the Redis that all share they agree on one secret and one
result, and publish it in their data directories. Each data center lists its own line; the draw is
held when all have, or a missing one counts as dead.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import cast

import msgspec
from redis.exceptions import RedisError

from greenroom.admission.draw import Draw
from greenroom.errors import StorageFailed
from greenroom.ledgers.draws import DrawFiles
from greenroom.ledgers.redis.connect import Client

PLACE = "greenroom:{draws}:"
ABSENT_S = 10.0
"""As long as the coordinator waits for a data center."""

LOOK_S = 0.2
ENTRY_BYTES = 32
KEPT_MS = 30 * 86_400_000


class RedisDraws:
    """Make it inside the event loop."""

    def __init__(
        self,
        client: Client,
        files: DrawFiles,
        data_center: str,
        data_centers: Callable[[], Collection[str]],
        absent_s: float = ABSENT_S,
    ) -> None:
        """`data_centers` includes this one."""
        self._client = client
        self._data_center = data_center
        self._data_centers = data_centers
        self._absent_s = absent_s
        self._files = files
        self._tasks: set[asyncio.Task[None]] = set()

    async def agree(self) -> None:
        """Call it once, before any seed. Raises StorageFailed."""
        try:
            ours = self._files.secret()
            await self._client.set(PLACE + "secret", ours.hex(), nx=True)
            found = await self._client.get(PLACE + "secret")
            self._files.adopt(
                bytes.fromhex(found.decode() if isinstance(found, bytes) else found or "")
            )
        except (RedisError, OSError, ValueError) as error:
            raise StorageFailed(
                f"the machines cannot agree on the secret of draws: {type(error).__name__}"
            ) from None

    def seed(self, draw_id: str) -> bytes:
        return self._files.seed(draw_id)

    def settle(
        self,
        draw_id: str,
        here: Sequence[str],
        hold: Callable[[Collection[str]], Draw],
        then: Callable[[Draw | StorageFailed], None],
    ) -> None:

        async def ask() -> None:
            try:
                answer: Draw | StorageFailed = self._files.keep(
                    await self._agreed(draw_id, here, hold)
                )
            except StorageFailed as error:
                answer = error
            except (RedisError, OSError, msgspec.DecodeError) as error:
                answer = StorageFailed(
                    f"the machines cannot agree on a draw: {type(error).__name__}"
                )
            then(answer)

        task = asyncio.get_running_loop().create_task(ask())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        await self._client.aclose()

    async def _agreed(
        self, draw_id: str, here: Sequence[str], hold: Callable[[Collection[str]], Draw]
    ) -> Draw:
        found = await self._client.get(PLACE + draw_id)
        if found is None:
            draw = self._files.held(draw_id) or hold(
                await self._everybody(f"{PLACE}{draw_id}:lines", here)
            )
            await self._client.set(PLACE + draw_id, msgspec.json.encode(draw), nx=True, px=KEPT_MS)
            found = await self._client.get(PLACE + draw_id)
        return msgspec.json.decode(found or b"", type=Draw)

    async def _everybody(self, place: str, here: Sequence[str]) -> list[str]:
        """Lists this data center's line, unless another process has; returns all lines."""
        await self._client.hsetnx(place, self._data_center, bytes.fromhex("".join(here)))
        await self._client.pexpire(place, KEPT_MS)
        given_up_s = time.monotonic() + self._absent_s
        while not {name.encode() for name in self._data_centers()} <= set(
            await self._client.hkeys(place)
        ):
            if time.monotonic() > given_up_s:
                break
            await asyncio.sleep(LOOK_S)
        lines: list[bytes] = [
            *(await cast(Awaitable[dict[bytes, bytes]], self._client.hgetall(place))).values()
        ]
        return sorted(
            {
                line[at : at + ENTRY_BYTES].hex()
                for line in lines
                for at in range(0, len(line), ENTRY_BYTES)
            }
        )
