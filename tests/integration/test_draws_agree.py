"""Several machines hold one draw: the secret and the result of whoever is first count for all, through a real Redis."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from redis_world import RedisServer

from greenroom.cli import verify_draw
from greenroom.core.draw import Appointment, Draw, hold
from greenroom.errors import StorageFailed
from greenroom.stores.draws import DrawFiles
from greenroom.stores.redis.draws import RedisDraws
from greenroom.stores.redis.link import Link

APPOINTMENT = Appointment("room", "sale", 1_790_000_000_000 - 3_600_000, 1_790_000_000_000)
DRAW = APPOINTMENT.draw_id


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    running = RedisServer(tmp_path / "redis")
    yield running
    running.stop()


class Machine:
    """One with a data directory of its own, and people in line that the others may not know."""

    def __init__(self, url: str, folder: Path, people: int) -> None:
        folder.mkdir()
        self.folder = folder
        self.files = DrawFiles(folder)
        self.draws = RedisDraws(Link(url).client(5.0), self.files)
        self.people = [Random(number).randbytes(12) for number in range(people)]

    def hold(self) -> Draw:
        return hold(APPOINTMENT, self.draws.seed(DRAW), self.people, "shop", "sale")

    async def settled(self) -> Draw | StorageFailed:
        answer: asyncio.Future[Draw | StorageFailed] = asyncio.get_running_loop().create_future()
        self.draws.settle(DRAW, self.hold, answer.set_result)
        return await answer


def test_machines_agree_on_the_seed_and_on_the_draw_of_whoever_is_first(server: RedisServer, tmp_path: Path) -> None:
    async def story() -> None:
        machines = [Machine(server.url, tmp_path / str(number), 10 + number) for number in range(3)]
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

    asyncio.run(story())


def test_what_was_agreed_on_once_counts_without_redis_and_a_draw_without_it_fails_instead_of_differing(
    server: RedisServer, tmp_path: Path
) -> None:
    async def story() -> None:
        one, two = Machine(server.url, tmp_path / "one", 3), Machine(server.url, tmp_path / "two", 3)
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

    asyncio.run(story())


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
    first = hold(APPOINTMENT, files.seed(DRAW), [b"a" * 12, b"b" * 12], "shop", "sale")
    assert files.keep(first) == first
    assert DrawFiles(tmp_path).keep(hold(APPOINTMENT, files.seed(DRAW), [b"c" * 12], "shop", "sale")) == first
    assert files.listed() == [DRAW]
    assert files.file("../draw.secret") is None
