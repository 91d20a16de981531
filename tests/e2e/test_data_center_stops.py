"""A data center is stopped in order, for real: its last process says the farewell, and others have its units one session later.

Without the farewell the units are free after the fence: 180 s, and one session more.
"""

import asyncio
import time
from pathlib import Path

from many_data_centers import World
from two_data_centers import SESSION_S, Visitor, play

FREE_S = 66.0
"""From the farewell: the session, a second by which a renewal may be older than the last request, and five seconds to be safe."""
LATE_S = 80.0
"""Of processes on a machine that runs other tests too: where it makes the coordinator move meanwhile, the new one waits for what the data
center that has gone may still hold. FREE_S and this are much less than the fence and a session: 246 s."""


async def story(world: World) -> None:
    (first, last), (there, _) = world.of("dc0"), world.of("dc1")
    entered = await Visitor(world, 1).enters(first, 60)
    await asyncio.to_thread(first.stop)
    waiting = asyncio.create_task(Visitor(world, 2).enters(there, FREE_S + LATE_S))
    await asyncio.sleep(5)  # the room is full, and the data center goes on: another process is there
    assert not waiting.done()
    stopping = time.monotonic()
    await asyncio.to_thread(last.stop)
    stopped = time.monotonic()
    inside = await waiting
    assert inside - entered > SESSION_S, "the visitor inside could have come back until then"
    assert inside - stopping > SESSION_S, "a process may have renewed the session until it stopped"
    assert inside - stopped < FREE_S + LATE_S, "the unit was not free one session after the farewell"


def test_the_last_process_of_a_data_center_frees_its_units_before_the_fence(tmp_path: Path) -> None:
    play(tmp_path, story, edges=2)
