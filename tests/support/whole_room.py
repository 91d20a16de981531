"""A story of two data centers: every figure of a room is that of both, places are those of the
whole line, one that is cut off is shown as it was last heard, and analytics agree with what was
shown live.
"""

import asyncio
import calendar
import json
import time
from collections.abc import Callable
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
LEAVERS = 3
SYNC_S = 5.0
"""Of two data centers on a busy machine: twice a second, and what a process remembers for a second."""
WRITTEN_S = 90.0
"""From the end of a minute to its answer: two steps of five seconds, on a busy machine."""
QUERY = """query($zone: string!, $from: Time!) { viewer { zones(filter: {zoneTag: $zone}) {
  minutes: waitingRoomAnalyticsAdaptiveGroups(limit: 100, filter: {datetime_geq: $from},
      orderBy: [datetimeMinute_ASC]) {
    dimensions { datetimeMinute }
    max { totalActiveUsers totalQueuedUsers } min { totalActiveUsers totalQueuedUsers }
    sum { newUsersPerMinute usersLeft } } } } }"""


class Story:
    def __init__(self, world: World, visitor_class: type[Any]) -> None:
        self.world, self.visitor_class = world, visitor_class
        self.waiting: list[Any] = []
        self.told: dict[int, dict[str, Any]] = {}
        self.inside: list[Any] = []
        self.going_on: list[asyncio.Task[None]] = []
        self.pause_s = 0.7
        self.shown: list[tuple[float, dict[str, Any]]] = []  # Unix seconds, and the room as shown

    async def until(self, happened: Callable[[], object], what: str, seconds: float = 90) -> None:
        def happened_to_all() -> object:
            for task in self.going_on:
                if task.done():
                    task.result()  # raises what ended it
            return happened()

        try:
            await self.world.until(happened_to_all, what, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; told last: {self.told}") from error

    def comes(self, edge: Edge, number: int) -> None:
        visitor = self.visitor_class(("127.0.0.1", edge.port))
        self.world.origin.sent[number] = 0.0
        self.asks(number, visitor)

    def asks(self, number: int, visitor: Any) -> None:
        answer = visitor.get(headers={"Accept": "application/json", "X-Visitor": str(number)})
        if answer.headers.get("X-From-Origin"):
            if (number, visitor) in self.waiting:
                self.waiting.remove((number, visitor))
            self.inside.append(visitor)
            self.told.pop(number, None)
            return
        if (number, visitor) not in self.waiting:
            self.waiting.append((number, visitor))
        told = json.loads(answer.body)["greenroom"]
        before = self.told.get(number)
        if before and before["position"] and not before["placeIsAbout"]:
            assert told["position"] <= before["position"], "a place ran backwards"
        self.told[number] = told

    async def come_back(self) -> None:
        """Everybody, until cancelled; who is too early is told the place and tries nothing."""
        while True:
            await asyncio.gather(*[asyncio.to_thread(self.asks, *one) for one in self.waiting])
            await asyncio.sleep(self.pause_s)  # as a page asks again

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(1)  # as a live page that is open in both

    def look(self) -> list[dict[str, Any]]:
        rooms = self.rooms()
        self.shown += [(time.time(), room) for room in rooms]
        return rooms

    def shown_in(self, begin_s: float, end_s: float) -> list[dict[str, Any]]:
        return [room for at_s, room in self.shown if begin_s <= at_s <= end_s]

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


def apis(world: World) -> list[Api]:
    scopes = ("--scope", "read", "--scope", "analytics")
    return [
        Api(
            ("127.0.0.1", edge.control),
            create_token(world.folder / f"data-{edge.data_center}-0", "rig", *scopes),
        )
        for edge in world.edges
    ]


async def whole_room(world: World, visitor_class: type[Any]) -> None:
    story = Story(world, visitor_class)
    came_s = time.time()
    story.going_on = [asyncio.create_task(one()) for one in (story.come_back, story.watch)]
    try:
        # Who came first comes back while others still come: a place is known to the other data
        # center by the time that its key promises, however slow this machine is.
        for number in range(2 * COMERS):
            await asyncio.to_thread(story.comes, world.edges[number % 2], number)
        asked = await asyncio.to_thread(apis, world)
        await look_around(story, asked, 2 * COMERS - 10)
        await one_is_cut_off_and_back(story, 2 * COMERS - 10)
        await analytics_agree(story, asked, came_s)
        assert not any(one.done() for one in story.going_on), "nobody was told a place further back"
    finally:
        for one in story.going_on:
            one.cancel()


async def look_around(story: Story, asked: list[Api], left: int) -> None:
    def in_line() -> bool:
        counts = {told["peopleWaiting"] for told in list(story.told.values())}
        return story.places() == list(range(1, left + 1)) and counts == {left}

    await story.until(lambda: in_line() and not any(story.about()), "places of one line")

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
    for api in asked:
        zone = api.ask("GET", "/zones").result[0]["id"]
        status = api.ask("GET", f"/zones/{zone}/waiting_rooms/shop/status").result
        assert (status["status"], status["estimated_queued_users"]) == ("queueing", left)
        assert status["estimated_total_active_users"] == 10
        assert [one["silent"] for one in status["data_centers"]] == [False, False]


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

    await story.until(lambda: all(story.about()), "places are about so")
    world.links["dc1"].mend()

    def exact() -> bool:
        return not any(story.about()) and story.places() == list(range(1, len(story.told) + 1))

    await story.until(exact, "places of one line again")
    await story.until(
        lambda: not any(one["silent"] for room in story.rooms() for one in room["data_centers"]),
        "both are heard",
    )


async def analytics_agree(story: Story, asked: list[Api], came_s: float) -> None:
    """Some leave and others enter; then every minute that is over is compared with what was shown
    in it.
    """
    story.pause_s = 3  # those who wait have nothing more to show
    for number in range(LEAVERS):
        visitor = story.inside[number]
        leave = {"X-Visitor": "0", "Sec-Fetch-Site": "same-origin"}
        await asyncio.to_thread(visitor.get, "/?greenroom=leave", "POST", leave)
    left = 2 * COMERS - 10 - LEAVERS

    def replaced() -> bool:  # looks more often than `watch`: fewer are inside for a moment only
        return all([room[one] for one in FIGURES[:2]] == [10, left] for room in story.look())

    await story.until(replaced, "others are let in for those who left")
    last = int(time.time() + SYNC_S) // 60
    found: dict[int, Any] = {}

    def written() -> bool:
        time.sleep(1)  # questions are counted
        if time.time() < last * 60 + 60:
            return False
        found.update(minutes_of(asked, came_s))
        # each process writes its own part of a minute
        return last in found and sums() == (10 + LEAVERS, LEAVERS) and not differences()

    def sums() -> tuple[int, int]:
        rows = [one["sum"] for one in found.values()]
        return sum(one["newUsersPerMinute"] for one in rows), sum(one["usersLeft"] for one in rows)

    def differences() -> list[Any]:
        return [
            (minute, metric, analytics, live)
            for minute, analytics in found.items()
            for figure, metric in zip(
                FIGURES, ("totalActiveUsers", "totalQueuedUsers"), strict=False
            )
            for live in [[room[figure] for room in story.shown_in(*about(minute))]]
            if not min(live) <= analytics["min"][metric] <= analytics["max"][metric] <= max(live)
        ]

    def about(minute: int) -> tuple[float, float]:
        return minute * 60 - SYNC_S, minute * 60 + 60 + SYNC_S

    await story.until(written, "all minutes in analytics, as they were shown", 60 + WRITTEN_S)
    assert len(found) >= 2, "the minute in which they came, and others"


def minutes_of(asked: list[Api], since_s: float) -> dict[int, Any]:
    """By minute since 1970, from the process that collects."""
    begin = time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(since_s))
    for api in asked:
        zone = api.ask("GET", "/zones").result[0]["id"]
        question = {"query": QUERY, "variables": {"zone": zone, "from": begin}}
        answer = api.ask("POST", "/graphql", question).body
        if answer["errors"]:
            assert "another process" in answer["errors"][0]["message"], answer
        else:
            return {
                calendar.timegm(
                    time.strptime(row["dimensions"]["datetimeMinute"], "%Y-%m-%dT%H:%M:%SZ")
                )
                // 60: row
                for row in answer["data"]["viewer"]["zones"][0]["minutes"]
            }
    return {}
