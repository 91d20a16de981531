"""A visitor who is inside goes to another data center, for real: served there at once, and counted once."""

import asyncio
from pathlib import Path

from many_data_centers import World
from two_data_centers import Visitor, play


def test_a_session_follows_its_visitor_and_is_counted_once(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        here, there = world.edges
        moving, other = Visitor(world, 1), Visitor(world, 2)
        await moving.enters(here)
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

    play(tmp_path, story, edges=1)


def test_inside_stays_inside_when_the_other_data_center_is_out_of_reach(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        here, there = world.edges
        moving, other = Visitor(world, 1), Visitor(world, 2)
        await moving.enters(here)
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

    play(tmp_path, story, edges=1)
