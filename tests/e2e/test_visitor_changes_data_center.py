"""A visitor who is inside goes to another data center, for real: served there at once, and counted once."""

import asyncio
import http.client
from collections.abc import Awaitable, Callable
from pathlib import Path

from many_data_centers import Edge, World

ROOM = 'name = "shop"\nhost = "*"\nsession_duration = 1\ntotal_active_users = 1\nnew_users_per_minute = 60\n'


class Visitor:
    def __init__(self, world: World, number: int) -> None:
        self.world, self.number, self.cookie = world, number, ""

    async def asks(self, edge: Edge) -> bool:
        """Whether the origin answered."""
        self.world.origin.sent[self.number] = 0.0
        return await asyncio.to_thread(self._ask, edge)

    def _ask(self, edge: Edge) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=20)
        headers = {"X-Visitor": str(self.number), "Accept": "text/html"} | ({"Cookie": self.cookie} if self.cookie else {})
        connection.request("GET", "/", headers=headers)
        answer = connection.getresponse()
        answer.read()
        self.cookie = (answer.headers.get("Set-Cookie") or self.cookie).partition(";")[0]
        connection.close()
        return answer.headers.get("X-From-Origin") is not None


async def comes_in(visitor: Visitor, edge: Edge) -> None:
    for _ in range(80):
        if await visitor.asks(edge):
            return
        await asyncio.sleep(0.5)  # as the page would
    raise AssertionError("never let in")


def play(folder: Path, story: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        world = World(folder, data_centers=2, edges=1, room=ROOM)
        try:
            await world.start()
            await story(world)
        finally:
            await world.close()

    asyncio.run(run())


def test_a_session_follows_its_visitor_and_is_counted_once(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        here, there = world.edges
        moving, other = Visitor(world, 1), Visitor(world, 2)
        await comes_in(moving, here)
        await asyncio.sleep(4)  # the keys of tickets reach the other data center
        assert not await other.asks(there)
        first_home = moving.cookie
        for _ in range(12):  # back and forth, and the room is full all the time
            assert await moving.asks(there)
            assert not await other.asks(there)
            await asyncio.sleep(0.5)  # two syncs
        assert moving.cookie != first_home, "the session has followed"
        assert await moving.asks(here)
        assert not await other.asks(here)
        await asyncio.sleep(6)  # it follows again
        assert await moving.asks(here)
        assert not await other.asks(there)

    play(tmp_path, story)


def test_inside_stays_inside_when_the_other_data_center_is_out_of_reach(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        here, there = world.edges
        moving, other = Visitor(world, 1), Visitor(world, 2)
        await comes_in(moving, here)
        await asyncio.sleep(4)  # the keys of tickets reach the other data center
        world.links["dc0"].cut()
        await asyncio.sleep(5)  # by now it counts as cut off
        for _ in range(10):
            assert await moving.asks(there)
            assert not await other.asks(there)
            await asyncio.sleep(0.5)  # two syncs
        world.links["dc0"].mend()
        await asyncio.sleep(8)  # the other one is heard again, and gives the session
        assert await moving.asks(there)
        assert not await other.asks(here)

    play(tmp_path, story)
