"""A data center is stopped in order, for real: its last process says the farewell, and others have its units one session later.

Without the farewell the units are free after the fence: 180 s, and one session more.
"""

import asyncio
import http.client
import time
from pathlib import Path

from many_data_centers import Edge, World

ROOM = 'name = "shop"\nhost = "*"\nsession_duration = 1\ntotal_active_users = 1\nnew_users_per_minute = 60\n'
SESSION_S = 60.0
FREE_S = 66.0
"""From the farewell: the session, a second by which a renewal may be older than the last request, and five seconds to be safe."""
LATE_S = 80.0
"""Of processes on a machine that runs other tests too: where it makes the coordinator move meanwhile, the new one waits for what the data
center that has gone may still hold. FREE_S and this are much less than the fence and a session: 246 s."""


def ask(world: World, edge: Edge, number: int, cookie: str) -> tuple[bool, str]:
    """Whether the origin answered, and the cookie from now on."""
    world.origin.sent[number] = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=20)
    connection.request("GET", "/", headers={"X-Visitor": str(number), "Accept": "text/html"} | ({"Cookie": cookie} if cookie else {}))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.headers.get("X-From-Origin") is not None, (answer.headers.get("Set-Cookie") or cookie).partition(";")[0]


async def enters(world: World, edge: Edge, number: int, within_s: float) -> float:
    """When this visitor was let in."""
    cookie, end = "", time.monotonic() + within_s
    while True:
        sent = time.monotonic()
        inside, cookie = await asyncio.to_thread(ask, world, edge, number, cookie)
        if inside:
            return time.monotonic()
        assert sent < end, f"visitor {number} was not let in within {within_s:.0f} s"
        await asyncio.sleep(1.0)  # as the page would


async def story(world: World) -> None:
    (first, last), (there, _) = world.of("dc0"), world.of("dc1")
    entered = await enters(world, first, 1, 60)
    await asyncio.to_thread(first.stop)
    waiting = asyncio.create_task(enters(world, there, 2, FREE_S + LATE_S))
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
    async def run() -> None:
        world = World(tmp_path, data_centers=2, edges=2, room=ROOM)
        try:
            await world.start()
            await story(world)
        finally:
            await world.close()

    asyncio.run(run())
