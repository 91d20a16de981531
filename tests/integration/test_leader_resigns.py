"""A leader that stops in order: what it has taken of the reports is answered, and the next one
leads at once.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from redis_world import RedisServer

from greenroom.ledgers.coordination import LeaseTerm
from greenroom.ledgers.redis import leases
from greenroom.ledgers.redis.leases import RedisLeaderLease
from greenroom.ledgers.redis.link import Link
from greenroom.ledgers.sync.batch import ReportBatch, answer_of, encode
from greenroom.ledgers.sync.leader_loop import LeaderLoop

SLOW_S = 0.3


class SlowToWrite(RedisLeaderLease):
    """Tells when reports have been taken, and needs a moment to write down what follows from them."""

    taken = False

    async def commit(
        self,
        term: LeaseTerm,
        rows: Mapping[str, bytes],
        forgotten: Sequence[str] = (),
        answers: Iterable[tuple[str, bytes]] = (),
    ) -> bool:
        answers = list(answers)
        if answers:
            self.taken = True
            await asyncio.sleep(SLOW_S)  # a busy machine, or a Redis far away
        return await super().commit(term, rows, forgotten, answers)


async def story(leader_lease: SlowToWrite) -> None:
    def trouble(error: BaseException) -> None:
        raise error

    loop = LeaderLoop(leader_lease, lambda: (), lambda: ("fra",), lambda bits: 0, trouble)
    term = (await leader_lease.submit("fra", encode(ReportBatch(7, {})), "one")).term
    assert term is not None
    loop.begin(term)
    while not leader_lease.taken:
        await asyncio.sleep(0.01)  # the loop is another task
    await loop.resign()
    encoded = await leader_lease.next_answer("fra", 0.05)
    assert encoded is not None, "the report was taken away, so nobody else can answer it"
    assert answer_of(encoded).number == 7
    assert (await leader_lease.submit("fra", b"", "two")).term is not None, (
        "nobody waits for the end of the term"
    )


def test_a_leader_answers_the_reports_that_it_has_taken_before_it_resigns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "TERM_MS", 30_000)  # a machine may stand still for seconds

    async def run() -> None:
        client = Link(server.url).client(30.0)
        try:
            await asyncio.wait_for(story(SlowToWrite(client)), 60)
        finally:
            await client.aclose()

    server = RedisServer(tmp_path / "redis")
    try:
        asyncio.run(run())
    finally:
        server.kill()
