"""Two data centers that really run: a visitor who is inside goes from one to the other, links are
cut, one data center is stopped, and both show the figures of the whole room.

Every story has a world of its own, and all are played at once: they wait most of the time, the
longest one for more than a minute.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import whole_room
from many_data_centers import World
from two_data_centers import SESSION_S, Visitor, play

FREE_S = 66.0
"""From the farewell: the session, a second by which a renewal may be older than the last request,
and five seconds to be safe.
"""
LATE_S = 80.0
"""Of processes on a machine that runs other tests too: where it makes the coordinator move
meanwhile, the new one waits for what the data center that has gone may still hold. FREE_S and this
are much less than the fence and a session: 246 s."""

Story = Callable[[World], Awaitable[None]]


async def stopped_in_order(world: World) -> None:
    """The last process of a data center says the farewell, and others have its units one session
    later.

    Without the farewell the units are free after the fence: 600 s, and one session more.
    """
    (first, last), (there, _) = world.of("dc0"), world.of("dc1")
    entered = await Visitor(world, 1).enters(first, 60)
    await asyncio.to_thread(first.stop)
    waiting = asyncio.create_task(Visitor(world, 2).enters(there, FREE_S + LATE_S))
    await asyncio.sleep(
        5
    )  # the room is full, and the data center goes on: another process is there
    assert not waiting.done()
    stopping = time.monotonic()
    await asyncio.to_thread(last.stop)
    stopped = time.monotonic()
    inside = await waiting
    assert inside - entered > SESSION_S, "the visitor inside could have come back until then"
    assert inside - stopping > SESSION_S, "a process may have renewed the session until it stopped"
    assert inside - stopped < FREE_S + LATE_S, (
        "the unit was not free one session after the farewell"
    )


async def followed(world: World) -> None:
    """Served in the other data center at once, and counted once."""
    here, there = world.edges
    moving, other = Visitor(world, 1), Visitor(world, 2)
    await moving.enters(here)
    await world.until_tickets_open_everywhere()
    assert not await other.asks(there)
    first_home = moving.cookie
    for number in range(120):  # back and forth, and the room is full all the time
        assert await moving.asks(there)
        assert not await other.asks(there)
        await asyncio.sleep(0.5)  # two syncs
        if number >= 12 and moving.cookie != first_home:
            break
    assert moving.cookie != first_home, "the session has not followed within a minute"
    assert await moving.asks(here)
    assert not await other.asks(here)
    await asyncio.sleep(6)  # it follows again
    assert await moving.asks(here)
    assert not await other.asks(there)
    await continued_on_another_device(world, moving, other)


async def continued_on_another_device(world: World, first: Visitor, other: Visitor) -> None:
    """Pressed in both data centers at once: a session, then a place in line."""
    here, there = world.edges
    for visitor, inside in ((first, True), (other, False)):
        query = await visitor.link(here)
        for _ in range(5):  # both may be told to try again
            phones = [Visitor(world, number) for number in (3, 4)]
            moved = await asyncio.gather(
                phones[0].presses(here, query), phones[1].presses(there, query)
            )
            if any(moved):
                break
        assert sum(moved) == 1
        has, edge = phones[moved.index(True)], world.edges[moved.index(True)]
        assert await has.asks(edge) is inside  # where the answer to the press leads
        assert await has.asks(there) is inside
        assert await visitor.is_told(here)
        assert await visitor.is_told(there)
        assert not await phones[0].presses(there, query)


async def cut_off(world: World) -> None:
    """A visitor who is inside stays inside when the data center of the session is out of reach."""
    here, there = world.edges
    moving, other = Visitor(world, 1), Visitor(world, 2)
    await moving.enters(here)
    await world.until_tickets_open_everywhere()
    world.links["dc0"].cut()
    await world.until_silent(there, "dc0")
    await asyncio.sleep(1)  # a sync
    for _ in range(10):
        assert await moving.asks(there)
        assert not await other.asks(there)
        await asyncio.sleep(0.5)  # two syncs
    world.links["dc0"].mend()
    await world.until_silent(there, "dc0", False)
    await asyncio.sleep(6)  # the other one is heard again, and gives the session
    assert await moving.asks(there)
    assert not await other.asks(here)


EDGES: dict[Story, int] = {stopped_in_order: 2, followed: 1, cut_off: 1}
"""The stories, and how many processes each of the two data centers has."""


@pytest.fixture(scope="module")
def ended(
    tmp_path_factory: pytest.TempPathFactory, visitor_class: type[Any]
) -> Iterator[Callable[[object], None]]:
    """Waits for the end of a story, and raises what it raised."""
    with ThreadPoolExecutor(len(EDGES) + 1) as pool:
        running: dict[object, Future[None]] = {
            story: pool.submit(play, tmp_path_factory.mktemp(story.__name__), story, edges=edges)  # type: ignore[attr-defined]
            for story, edges in EDGES.items()
        }
        whole = partial(whole_room.whole_room, visitor_class=visitor_class)
        folder = tmp_path_factory.mktemp("whole_room")
        running[whole_room] = pool.submit(play, folder, whole, edges=1, room=whole_room.ROOM)
        yield lambda story: running[story].result()


def test_a_session_follows_its_visitor_and_is_counted_once(ended: Callable[[object], None]) -> None:
    ended(followed)


def test_inside_stays_inside_when_the_other_data_center_is_out_of_reach(
    ended: Callable[[object], None],
) -> None:
    ended(cut_off)


def test_the_last_process_of_a_data_center_frees_its_units_before_the_fence(
    ended: Callable[[object], None],
) -> None:
    ended(stopped_in_order)


def test_figures_and_places_are_those_of_the_whole_room_and_analytics_agree(
    ended: Callable[[object], None],
) -> None:
    ended(whole_room)
