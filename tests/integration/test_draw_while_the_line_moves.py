"""A long line in Redis is listed for a draw page by page, while visitors leave it."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from redis_people import House, in_house
from redis_world import RedisServer

from greenroom.ledgers.redis.ledger_store import PAGE
from greenroom.ledgers.redis.wire import Command, Wire


class WithAPause:
    """The wire of a store that lets something happen after its first exchange."""

    def __init__(self, wire: Wire, meanwhile: Any) -> None:
        self._wire, self._meanwhile = wire, meanwhile

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        replies = await self._wire.exchange(commands)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile:
            await meanwhile()
        return replies

    async def close(self) -> None:
        await self._wire.close()


async def line_of(house: House, keys: Sequence[int]) -> list[bytes]:
    """Ids in line by these keys, in order; no visitor is let in."""
    await house.until_synced()
    house.coordinators["r"].pool = 0
    await house.crowd(3)
    ids = [os.urandom(12) for _ in keys]
    await asyncio.gather(*(house.ask("poll", one, key) for one, key in zip(ids, keys, strict=True)))
    return ids


async def listed(house: House) -> list[bytes]:
    found: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
    house.ledgers.ledger(house.rooms["r"]).before(1 << 53, found.set_result)
    return list(await asyncio.wait_for(found, 60))


def test_nobody_is_left_out_because_others_leave_the_line(server: RedisServer) -> None:
    async def story(house: House) -> None:
        ids = await line_of(house, range(1_000_000, 1_000_000 + 2 * PAGE + 500))
        ledger = house.ledgers.ledger(house.rooms["r"])

        async def hundred_leave() -> None:
            for one in ids[:100]:
                ledger.leave(one)
            await house.ask("view", os.urandom(12))

        house.ledgers._wire = WithAPause(house.ledgers._wire, hundred_leave)
        found = await listed(house)
        assert found[-1] == ids[-1]
        assert [one for one in found if one in set(ids[100:])] == ids[100:]

    in_house(server.url, story)


def test_a_line_of_equal_keys_longer_than_a_page_is_listed_once(server: RedisServer) -> None:
    async def story(house: House) -> None:
        ids = await line_of(house, [1_000_000] * (PAGE + 200) + [1_000_001] * 50)
        found = await listed(house)
        assert len(found) == len(ids)
        assert set(found) == set(ids)

    in_house(server.url, story)
