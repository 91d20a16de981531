"""A thousand moves to other devices over two data centers for real, under load, while processes die.

    python bench/moves.py                                # 1,000 moves
    python bench/moves.py --moves 40 --people 20 --every 8
    python bench/moves.py --worlds 10                    # simulated, about 1,500 moves in each

Starts two data centers (a Redis and two processes each), a global Redis and an origin on this
machine. Everybody asks all the time and wherever it comes, makes links and presses them on new
devices, a third of them in both data centers at once, and every fourth link once more. Meanwhile a
process, the coordinator (kill -9) or the link of a data center to the other one fails. Exits 1 if a link moved
a place twice, an old device reached the origin, a limit was passed, or a place is with no device.
"""

import argparse
import asyncio
import http.client
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from admission_world import small_room
from many_data_centers import Edge, World
from place_trials import PlaceTrial, PureCenter
from two_data_centers import SESSION_S, Visitor

ROOM = (
    'name = "shop"\nhost = "*"\nsession_duration = 1\nstrong_sessions = true\nprovisional_sessions = false\ntotal_active_users ='
    " {total}\nnew_users_per_minute = {rate}\n"
)
PAUSE_S = 1.5
FAILED_S = 3.0
LEAST_S, MOST_S = 2.0, 240.0
"""From a move: what the old device may still have under way, and when its ticket is no place any
more, so that it is a new visitor.
"""


class Person:
    def __init__(self, world: World, number: int) -> None:
        self.device, self.number = Visitor(world, number), number
        self.old: list[tuple[Visitor, float]] = []
        self.links: list[str] = []
        self.inside = False


class Run:
    def __init__(self, world: World, moves: int) -> None:
        self.world, self.left, self.random = world, moves, random.Random(1)
        self.moved = self.refused = self.back = self.replayed = 0
        self.faults: list[str] = []
        self.wrong: list[str] = []

    def edge(self) -> Edge:
        living = [edge for edge in self.world.edges if edge.alive()]
        return self.random.choice(living)

    async def lives(self, person: Person, until: float) -> None:
        """Until all moves are made, and a while longer."""
        while self.left > 0 or time.monotonic() < until:
            try:
                await self.step(person)
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                await asyncio.sleep(FAILED_S)  # its process has died
            await asyncio.sleep(PAUSE_S * self.random.random())

    async def step(self, person: Person) -> None:
        person.inside = await person.device.asks(self.edge())
        if person.old and self.random.random() < 0.5:
            device, moved = self.random.choice(person.old[-3:])
            age_s = time.monotonic() - moved
            if LEAST_S < age_s < MOST_S and await device.asks(self.edge()):
                self.wrong.append(f"an old device of visitor {person.number} reached the origin")
        if self.left > 0:
            await self.moves(person)

    async def moves(self, person: Person) -> None:
        if person.links and self.random.random() < 0.25:
            self.replayed += 1
            phone = Visitor(self.world, person.number)
            if await phone.presses(self.edge(), self.random.choice(person.links)):
                self.wrong.append(f"a link of visitor {person.number} was used twice")
        try:
            query = await person.device.link(self.edge())
        except KeyError:  # nobody received the answer to a press
            await self.takes_back(person)
            return
        edges = [self.edge()]
        if self.random.random() < 0.33:
            edges.append(self.edge())
        phones = [Visitor(self.world, person.number) for _ in edges]
        pressed = await asyncio.gather(
            *(phone.presses(edge, query) for phone, edge in zip(phones, edges, strict=True)),
            return_exceptions=True,
        )
        done = [one is True for one in pressed]
        if sum(done) > 1:
            self.wrong.append(f"a link of visitor {person.number} moved twice at once")
        if any(done):
            self.left -= 1
            self.moved += 1
            person.old.append((person.device, time.monotonic()))
            person.links.append(query)
            person.device = phones[done.index(True)]
            person.inside = await person.device.asks(edges[done.index(True)])
        else:
            self.refused += 1
            await self.takes_back(person)

    async def takes_back(self, person: Person) -> None:
        """A process may have died behind the press, before its answer."""
        edge = self.edge()
        if await person.device.is_told(edge, within_s=5.0) and await person.device.presses(
            edge, "greenroom=move"
        ):
            self.back += 1

    async def fails(self, every_s: float) -> None:
        while self.left > 0:
            await asyncio.sleep(every_s)
            leads = self.world.holder()
            kind = self.random.choice(("process", "coordinator", "link"))
            if kind == "link":
                name = self.random.choice(self.world.names)
                self.world.links[name].cut()
                await asyncio.sleep(every_s / 2)
                self.world.links[name].mend()
            else:
                others = [edge for edge in self.world.edges if edge is not leads]
                edge = leads if kind == "coordinator" and leads else self.random.choice(others)
                edge.kill()
                await asyncio.sleep(every_s / 2)
                edge.start()
                await self.world.until(edge.ready, "the process that was killed", 120)
            self.faults.append(kind)


def most_active(world: World) -> int:
    """Visitors whose last request was less than a session ago, at any moment."""
    events = []
    for seen in world.origin.seen.values():
        begun = last = seen[0].seen
        for request in seen[1:]:
            if request.sent > last + SESSION_S:
                events += [(begun, 1), (last + SESSION_S, -1)]
                begun = request.seen
            last = max(last, request.sent)
        events += [(begun, 1), (last + SESSION_S, -1)]
    most = active = 0
    for _, change in sorted(events):
        active += change
        most = max(most, active)
    return most


async def run(arguments: argparse.Namespace) -> int:
    room = ROOM.format(total=arguments.total, rate=arguments.rate)
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), data_centers=2, edges=2, room=room)
        try:
            await world.start()
            asyncio.get_running_loop().set_default_executor(
                ThreadPoolExecutor(arguments.people * 2)
            )
            found, began = Run(world, arguments.moves), time.monotonic()
            people = [Person(world, number) for number in range(1, arguments.people + 1)]
            until = began + 3 * PAUSE_S
            faults = asyncio.create_task(found.fails(arguments.every))
            await asyncio.wait_for(
                asyncio.gather(*(found.lives(person, until) for person in people)),
                arguments.seconds,
            )
            await faults
            took_s = time.monotonic() - began
            lost = 0
            for person in people:  # everything is mended
                edge = world.edges[0]
                if await person.device.is_told(edge, within_s=0.1):
                    lost += not await person.device.presses(edge, "greenroom=move")
            active = most_active(world)
            print(
                f"{found.moved} moves in {took_s:.0f} s, {found.refused} refused or used,"
                f" {found.back} taken back, {found.replayed} links replayed; faults:"
                f" {len(found.faults)} ({', '.join(sorted(set(found.faults)))})"
            )
            print(f"most active {active} of {arguments.total}; places with no device: {lost}")
            for one in found.wrong:
                print("WRONG:", one)
            return int(bool(found.wrong) or lost > 0 or active > arguments.total)
        finally:
            await world.close()


def simulate(worlds: int) -> int:
    """Five minutes each, with two or three data centers; judged by the laws of the tests."""
    room = small_room(total_active_users=40, new_users_per_minute=60, session_duration=1)
    moved = refused = kills = wrong = 0
    for seed in range(worlds):
        names = [f"dc{number}" for number in range(2 + seed % 2)]
        trial = PlaceTrial(room, [PureCenter(room, name) for name in names], seed, 10_000)
        trial.run(1_200)
        moved, refused, kills = moved + trial.moved, refused + trial.refused, kills + trial.kills
        wrong += len(trial.found)
        for one in trial.found:
            print("WRONG:", one)
    print(f"{worlds} worlds: {moved} moves, {refused} refused, coordinator killed {kills} times")
    return int(wrong > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--moves", type=int, default=1_000)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--total", type=int, default=30)
    parser.add_argument("--rate", type=int, default=60)
    parser.add_argument("--every", type=float, default=8.0, help="seconds from fault to fault")
    parser.add_argument("--seconds", type=float, default=3_600.0)
    parser.add_argument("--worlds", type=int, default=0, help="simulate so many instead")
    arguments = parser.parse_args()
    return simulate(arguments.worlds) if arguments.worlds else asyncio.run(run(arguments))


if __name__ == "__main__":
    sys.exit(main())
