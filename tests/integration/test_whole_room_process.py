"""Two data centers with a Redis each: every figure of a room is that of both, places are those of
the whole line, and one that is cut off is shown as it was last heard.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from api_rig import Api, create_token
from many_data_centers import Edge, World

ROOM = """
id = "shop"
name = "shop"
host = "*"
total_active_users = 10
new_users_per_minute = 10
confirm_newcomers = false
json_response_enabled = true
pace_admissions = false
"""
COMERS = 11
"""In each of two data centers, for ten places."""
FIGURES = ("active_users", "waiting_users", "admitted_last_minute")


def url_of(edge: Edge) -> str:
    return f"http://127.0.0.1:{edge.control}"


class Story:
    def __init__(self, world: World, visitor_class: type[Any]) -> None:
        self.world, self.visitor_class = world, visitor_class
        self.waiting: list[Any] = []
        self.told: dict[int, dict[str, Any]] = {}

    async def until(self, happened: Callable[[], object], what: str, seconds: float = 20) -> None:
        await self.world.until(happened, what, seconds)

    def comes(self, edge: Edge, number: int) -> None:
        visitor = self.visitor_class(("127.0.0.1", edge.port))
        self.world.origin.sent[number] = 0.0
        self.waiting.append((number, visitor))
        self.asks(number, visitor)

    def asks(self, number: int, visitor: Any) -> None:
        answer = visitor.get(headers={"Accept": "application/json", "X-Visitor": str(number)})
        if answer.headers.get("X-From-Origin"):
            if (number, visitor) in self.waiting:
                self.waiting.remove((number, visitor))
            self.told.pop(number, None)
            return
        told = json.loads(answer.body)["greenroom"]
        before = self.told.get(number)
        if before and before["position"] and not before["placeIsAbout"]:
            assert told["position"] <= before["position"], "a place ran backwards"
        self.told[number] = told

    async def come_back(self) -> None:
        """Everybody, until cancelled; who is too early is told the place and tries nothing."""
        while True:
            await asyncio.gather(*[asyncio.to_thread(self.asks, *one) for one in self.waiting])
            await asyncio.sleep(0.7)  # people who reload again and again

    def places(self) -> list[int]:
        return sorted(told["position"] for told in list(self.told.values()))

    def about(self) -> list[bool]:
        return [told["placeIsAbout"] for told in list(self.told.values())]

    def rooms(self) -> list[dict[str, Any]]:
        return [json.loads(self._get(edge, "/status"))["rooms"][0] for edge in self.world.edges]

    def metric(self, name: str) -> float:
        line = f'greenroom_room_{name}{{room="shop"}} '
        texts = [self._get(edge, "/metrics") for edge in self.world.edges]
        return sum(float(text.partition(line)[2].partition("\n")[0]) for text in texts)

    def _get(self, edge: Edge, path: str) -> str:
        return str(self.visitor_class(("127.0.0.1", edge.control), "127.0.0.1").get(path).text)


def apis(world: World, folder: Path) -> list[Api]:
    return [
        Api(
            ("127.0.0.1", edge.control),
            create_token(folder / f"data-{edge.data_center}-0", "rig", "--scope", "read"),
        )
        for edge in world.edges
    ]


async def both_tell_the_whole_room(world: World, folder: Path, visitor_class: type[Any]) -> None:
    story = Story(world, visitor_class)
    for number in range(2 * COMERS):
        await asyncio.to_thread(story.comes, world.edges[number % 2], number)
    coming_back = asyncio.create_task(story.come_back())
    try:
        await look_around(story, folder, 2 * COMERS - 10)
        assert not coming_back.done(), "nobody was told a place further back"
    finally:
        coming_back.cancel()


async def look_around(story: Story, folder: Path, left: int) -> None:
    def in_line() -> bool:
        counts = {told["peopleWaiting"] for told in list(story.told.values())}
        return story.places() == list(range(1, left + 1)) and counts == {left}

    await story.until(lambda: in_line() and not any(story.about()), "places of one line", 60)

    def agree() -> bool:
        rooms = story.rooms()
        return all(
            [room[figure] for figure in FIGURES] == [10, left, 10]
            and [sum(one[figure] for one in room["data_centers"]) for figure in FIGURES]
            == [10, left, 10]
            for room in rooms
        )

    await story.until(agree, "figures of the whole room in both")
    names = [[one["name"] for one in room["data_centers"]] for room in story.rooms()]
    assert names == [["dc0", "dc1"], ["dc1", "dc0"]]
    await story.until(
        lambda: (story.metric("active_users"), story.metric("waiting_users")) == (10, left),
        "metrics that add up",
    )
    for api in await asyncio.to_thread(apis, story.world, folder):
        zone = api.ask("GET", "/zones").result[0]["id"]
        status = api.ask("GET", f"/zones/{zone}/waiting_rooms/shop/status").result
        assert (status["status"], status["estimated_queued_users"]) == ("queueing", left)
        assert status["estimated_total_active_users"] == 10
        assert [one["silent"] for one in status["data_centers"]] == [False, False]
    await one_is_cut_off_and_back(story, left)


async def one_is_cut_off_and_back(story: Story, left: int) -> None:
    world = story.world
    before = next(one for one in story.rooms()[0]["data_centers"] if one["name"] == "dc1")
    world.links["dc1"].cut()

    def silent() -> dict[str, Any] | None:
        row = story.rooms()[0]["data_centers"][1]
        return row if row["silent"] else None

    await story.until(silent, "dc1 is silent")
    row = silent()
    assert row is not None
    assert row["age_seconds"] > 3, "four, by clocks of two processes"
    assert row["waiting_users"] == before["waiting_users"]
    assert story.rooms()[0]["waiting_users"] == left
    await story.until(lambda: story.rooms()[1]["data_centers"][1]["silent"], "dc1 knows it")

    await story.until(lambda: all(story.about()), "places are about so", 30)
    world.links["dc1"].mend()

    def exact() -> bool:
        return not any(story.about()) and story.places() == list(range(1, len(story.told) + 1))

    await story.until(exact, "places of one line again", 40)
    await story.until(
        lambda: not any(one["silent"] for room in story.rooms() for one in room["data_centers"]),
        "both are heard",
    )


def test_two_data_centers_tell_the_figures_and_places_of_the_whole_room(
    tmp_path: Path, visitor_class: type[Any]
) -> None:
    async def run() -> None:
        world = World(tmp_path, data_centers=2, edges=1, room=ROOM)
        try:
            await world.start()
            await both_tell_the_whole_room(world, tmp_path, visitor_class)
        finally:
            await world.close()

    asyncio.run(run())
