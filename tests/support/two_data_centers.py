"""Visitors of a room for one with a session of one minute, in two data centers that really run."""

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from many_data_centers import Edge, World

SESSION_S = 60.0
ROOM = 'name = "shop"\nhost = "*"\nsession_duration = 1\ntotal_active_users = 1\nnew_users_per_minute = 60\n'


class Visitor:
    """Keeps its cookie."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number, self.cookie = world, number, ""

    async def asks(self, edge: Edge) -> bool:
        """Whether the origin answered."""
        self.world.origin.sent[self.number] = time.monotonic()
        return await asyncio.to_thread(self._ask, edge)

    def _ask(self, edge: Edge) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=60)
        headers = {"X-Visitor": str(self.number), "Accept": "text/html"} | (
            {"Cookie": self.cookie} if self.cookie else {}
        )
        connection.request("GET", "/", headers=headers)
        answer = connection.getresponse()
        answer.read()
        self.cookie = (answer.headers.get("Set-Cookie") or self.cookie).partition(";")[0]
        connection.close()
        return answer.headers.get("X-From-Origin") is not None

    async def link(self, edge: Edge) -> str:
        """A link with which the place or session continues on another device: its query."""
        _, body = await asyncio.to_thread(
            self._visit, edge, "GET", "/?greenroom=move", {"Accept": "application/json"}
        )
        found = json.loads(body)["greenroom"]["move"]["url"]
        return str(found).partition("?")[2]

    async def presses(self, edge: Edge, query: str) -> bool:
        """Whether it has the place or session now."""
        headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
        status, _ = await asyncio.to_thread(self._visit, edge, "POST", f"/?{query}", headers)
        return status == 303

    async def is_told(self, edge: Edge, within_s: float = 20.0) -> bool:
        """Whether another device has what this one had; until all know, it is held."""
        headers, end = {"Accept": "application/json"}, time.monotonic() + within_s
        while time.monotonic() < end:
            _, body = await asyncio.to_thread(self._visit, edge, "GET", "/", headers)
            if b'"moved":true' in body.replace(b" ", b""):
                return True
            await asyncio.sleep(0.5)  # as the page would
        return False

    def _visit(
        self, edge: Edge, method: str, target: str, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=60)
        sent = headers | {"X-Visitor": str(self.number), "Cookie": self.cookie}
        connection.request(method, target, headers=sent)
        answer = connection.getresponse()
        body = answer.read()
        self.cookie = (answer.headers.get("Set-Cookie") or self.cookie).partition(";")[0]
        connection.close()
        return answer.status, body

    async def enters(self, edge: Edge, within_s: float = 40.0) -> float:
        """When it was let in."""
        end = time.monotonic() + within_s
        while not await self.asks(edge):
            assert time.monotonic() < end, (
                f"visitor {self.number} was not let in within {within_s:.0f} s"
            )
            await asyncio.sleep(0.5)  # as the page would
        return time.monotonic()


def play(
    folder: Path, story: Callable[[World], Awaitable[None]], *, edges: int, room: str = ROOM
) -> None:
    """With so many processes in each of the two."""

    async def run() -> None:
        world = World(folder, data_centers=2, edges=edges, room=room)
        try:
            await world.start()
            await story(world)
        finally:
            await world.close()

    asyncio.run(run())
