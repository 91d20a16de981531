"""Several machines hold one draw: the secret and the result of the first one count for all, through
a real Redis.
"""

import asyncio
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from random import Random

import pytest
from redis_world import RedisServer

from greenroom.admission.draw import (
    Draw,
    Drawn,
    ScheduledDraw,
    entries,
    hold,
)
from greenroom.cli import verify_draw
from greenroom.errors import StorageFailed
from greenroom.ledgers.draws import DrawFiles
from greenroom.ledgers.redis.draws import RedisDraws
from greenroom.ledgers.redis.link import Link

APPOINTMENT = ScheduledDraw("room", "sale", 1_790_000_000_000 - 3_600_000, 1_790_000_000_000)
DRAW = APPOINTMENT.draw_id
ABSENT_S = 1.0


class Machine:
    """One with a data directory of its own, in a data center with people in line that the others do
    not know.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        people: range,
        data_center: str = "here",
        others: Sequence[str] = (),
        absent_s: float = ABSENT_S,
    ) -> None:
        folder.mkdir()
        self.folder = folder
        self.files = DrawFiles(folder)
        self.draws = RedisDraws(
            Link(url).client(30.0),
            self.files,
            data_center,
            lambda: (data_center, *others),
            absent_s,
        )
        self.people = [Random(number).randbytes(12) for number in people]

    def hold(self, taking_part: Collection[str]) -> Draw:
        return hold(APPOINTMENT, self.draws.seed(DRAW), taking_part, "shop", "sale")

    async def settled(self) -> Draw | StorageFailed:
        answer: asyncio.Future[Draw | StorageFailed] = asyncio.get_running_loop().create_future()
        self.draws.settle(DRAW, entries(DRAW, self.people), self.hold, answer.set_result)
        return await answer


async def test_machines_agree_on_the_seed_and_on_the_draw_of_the_one_who_is_first(
    server: RedisServer, tmp_path: Path
) -> None:
    machines = [
        Machine(server.url, tmp_path / str(number), range(10 + number)) for number in range(3)
    ]
    for machine in machines:
        await machine.draws.agree()
    assert len({machine.draws.seed(DRAW) for machine in machines}) == 1
    settled = await asyncio.gather(*(machine.settled() for machine in machines))
    assert settled[0] == settled[1] == settled[2]
    assert isinstance(settled[0], Draw)
    for machine in machines:
        published = json.loads((machine.folder / "draws" / f"{DRAW}.json").read_bytes())
        assert list(verify_draw.problems(published)) == []
        await machine.draws.close()


async def test_everyone_takes_part_whichever_data_center_they_wait_in(
    server: RedisServer, tmp_path: Path
) -> None:
    """Two edges here and one there, which is later; a visitor who went from one to the other waits
    in both.
    """
    here = [
        Machine(server.url, tmp_path / f"here{number}", range(40), "here", ["there"], 60)
        for number in range(2)
    ]
    there = Machine(server.url, tmp_path / "there", range(39, 100), "there", ["here"], 60)
    for machine in (*here, there):
        await machine.draws.agree()
    waiting = [asyncio.create_task(machine.settled()) for machine in here]
    await asyncio.sleep(0.25)  # the other data center is late: real clocks and a real Redis
    assert not any(one.done() for one in waiting)
    draws = [await there.settled(), *[await one for one in waiting]]
    assert draws[0] == draws[1] == draws[2]
    assert isinstance(draws[0], Draw)
    drawn = Drawn(draws[0])
    assert sorted(drawn.place(Random(number).randbytes(12)) for number in range(100)) == list(
        range(1, 101)
    )
    for machine in (*here, there):
        await machine.draws.close()


async def test_a_data_center_that_stays_away_does_not_keep_the_others_from_their_draw(
    server: RedisServer, tmp_path: Path
) -> None:
    here = Machine(server.url, tmp_path / "here", range(5), "here", ["there"])
    there = Machine(server.url, tmp_path / "there", range(5, 10), "there", ["here"])
    for machine in (here, there):
        await machine.draws.agree()
    draw = await here.settled()
    assert isinstance(draw, Draw)
    assert len(draw.receipts) == 5
    assert await there.settled() == draw, "who comes too late was not there"
    server.client().flushall()
    assert await here.settled() == draw, "a draw that was held is never held again"
    for machine in (here, there):
        await machine.draws.close()


async def test_what_was_agreed_on_once_counts_without_redis_and_a_draw_without_it_fails_instead_of_differing(
    server: RedisServer, tmp_path: Path
) -> None:
    one, two = (
        Machine(server.url, tmp_path / "one", range(3)),
        Machine(server.url, tmp_path / "two", range(3)),
    )
    await one.draws.agree()
    await two.draws.agree()
    server.kill()
    again = DrawFiles(tmp_path / "two")
    assert again.seed(DRAW) == one.draws.seed(DRAW)
    with pytest.raises(StorageFailed):
        await one.draws.agree()
    assert isinstance(await one.settled(), StorageFailed)
    assert not (tmp_path / "one" / "draws").exists()
    server.start()
    assert isinstance(await one.settled(), Draw)
    for machine in (one, two):
        await machine.draws.close()


def test_the_secret_is_private_and_a_broken_one_is_never_replaced(tmp_path: Path) -> None:
    files = DrawFiles(tmp_path)
    files.seed(DRAW)
    assert (tmp_path / "draw.secret").stat().st_mode & 0o777 == 0o600
    assert DrawFiles(tmp_path).seed(DRAW) == files.seed(DRAW)
    (tmp_path / "draw.secret").write_text("not a secret")
    with pytest.raises(StorageFailed):
        DrawFiles(tmp_path).seed(DRAW)
    assert (tmp_path / "draw.secret").read_text() == "not a secret"


def test_a_draw_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    files = DrawFiles(tmp_path)
    first = hold(
        APPOINTMENT, files.seed(DRAW), entries(DRAW, [b"a" * 12, b"b" * 12]), "shop", "sale"
    )
    assert files.keep(first) == first
    assert (
        DrawFiles(tmp_path).keep(
            hold(APPOINTMENT, files.seed(DRAW), entries(DRAW, [b"c" * 12]), "shop", "sale")
        )
        == first
    )
    assert files.listed() == [DRAW]
    assert files.file("../draw.secret") is None
