"""Processes that share their ledgers: minutes go through a stream, one collector writes them, and
nothing is lost or counted twice.
"""

import asyncio
import random
import signal
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from redis_world import RedisServer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from analytics_material import ALL_WANTED, BEGIN_S, oracle, parts_of

from greenroom.analytics.collector.shared import (
    SILENT_MINUTES,
    SourceWatch,
    StreamCollector,
    StreamMessage,
    _encode,
    send,
)
from greenroom.analytics.collector.writer import Writer
from greenroom.analytics.question import Question, Wanted
from greenroom.analytics.recorder import Recorder
from greenroom.analytics.rollup import Part
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper
from greenroom.errors import StorageFailed
from greenroom.ledgers.redis.analytics_stream import RedisAnalyticsStream

FIRST = BEGIN_S // 60
EVERYTHING = Question(0, 1 << 32, metrics=tuple(Wanted(*wanted) for wanted in ALL_WANTED))


def client(server: RedisServer) -> Any:
    from greenroom.ledgers.redis.link import Link

    return Link(server.url, "redis").client(2.0)


class Fleet:
    """Collectors on one stream and one store, which may be killed."""

    def __init__(self, server: RedisServer, folder: Path) -> None:
        self.folder = folder
        self.client = client(server)
        self.streams = [
            RedisAnalyticsStream(self.client, f"process-{number}") for number in range(2)
        ]
        self.collectors = [self._collector(stream) for stream in self.streams]

    def _collector(self, stream: Any) -> StreamCollector:
        def open_store() -> Keeper:
            return Keeper(DuckEngine(self.folder / "analytics.duckdb"))

        now_ms = (FIRST + 1) * 60_000
        return StreamCollector(
            stream,
            lambda: ("oslo", "lima"),
            lambda: Writer(open_store, lambda: now_ms, records_here=False),
            lambda: now_ms,
        )

    async def close(self) -> None:
        for collector in self.collectors:
            await collector.stand_back()
        await self.client.aclose()

    def answer(self) -> Any:
        keeper = Keeper(DuckEngine(self.folder / "analytics.duckdb"))
        (row,) = keeper.answer(EVERYTHING).rows
        keeper.close()
        return {tuple(key): row[key] for key in row}


def messages_of(parts: list[Part]) -> list[tuple[str, bytes]]:
    """(data center, message), each process in one of the two."""
    by_minute: dict[tuple[str, int], list[Part]] = {}
    for part in parts:
        by_minute.setdefault((part.source, part.minute), []).append(part)
    return [
        (
            "oslo" if source in ("a", "b") else "lima",
            _encode(StreamMessage(source, minute, found, minute == FIRST + 19)),
        )
        for (source, minute), found in by_minute.items()
    ]


def test_messages_of_two_data_centers_come_once_each_regardless_of_who_collects_them(
    server: RedisServer, tmp_path: Path
) -> None:
    async def scenario() -> None:
        rng = random.Random(4)
        parts = parts_of(rng, range(FIRST, FIRST + 20), ("r1", "r2"), ("a", "b", "c"))
        fleet = Fleet(server, tmp_path)
        messages = messages_of(parts)
        messages += rng.sample(messages, 15)
        rng.shuffle(messages)
        one, other = fleet.collectors
        for place, (data_center, message) in enumerate(messages):
            await fleet.streams[0].add(data_center, message)
            if place == 20:
                await one.step()
                await other.step()
                assert one.writer is not None
                assert other.writer is None, "one collects"
                remove = fleet.streams[0].remove
                fleet.streams[0].remove = cut_off  # type: ignore[method-assign]
            if place == 40:
                with pytest.raises(StorageFailed):
                    await one.step()  # written, and then it dies before it can say so
                fleet.streams[0].remove = remove  # type: ignore[method-assign]
                await one.stand_back()
                await fleet.streams[0].collector.release()
                await other.step()
                assert other.writer is not None
        await other.step()
        assert await fleet.streams[0].oldest("oslo", 10) == []
        await fleet.close()
        assert fleet.answer() == oracle(parts, EVERYTHING)[0]

    asyncio.run(scenario())


async def cut_off(*_: object) -> None:
    raise StorageFailed("cut off")


def test_a_process_that_falls_silent_without_a_farewell_leaves_a_mark(
    server: RedisServer, tmp_path: Path
) -> None:
    watch = SourceWatch()
    parts = parts_of(random.Random(1), [FIRST], ("r1", "r2"), ("a",))
    watch.hear(StreamMessage("a", FIRST, parts))
    watch.hear(StreamMessage("b", FIRST, parts, last=True))
    assert watch.killed(FIRST + SILENT_MINUTES) == []
    marks = watch.killed(FIRST + SILENT_MINUTES + 1)
    assert {(mark.minute, mark.room, mark.rollup.incomplete) for mark in marks} == {
        (FIRST + 1, part.room, True) for part in parts
    }
    assert watch.killed(FIRST + 60) == [], "once"


def test_what_cannot_be_sent_waits_in_the_process(server: RedisServer) -> None:
    async def scenario() -> None:
        recorder = Recorder("a", "oslo", FIRST * 60_000)
        recorder.decided("r", "held", FIRST * 60_000)
        recorder.finish()
        stream = RedisAnalyticsStream(client(server), "a")
        add, stream.add = stream.add, cut_off  # type: ignore[method-assign, assignment]
        with pytest.raises(StorageFailed):
            await send(recorder, stream)
        stream.add = add  # type: ignore[method-assign]
        await send(recorder, stream, last=True)
        await send(recorder, stream)
        assert len(await stream.oldest("oslo", 10)) == 1
        await stream._client.aclose()

    asyncio.run(scenario())


def test_two_edges_count_every_visitor_once(
    greenroom: Any, origin: Any, server: RedisServer
) -> None:
    text = (
        f'origin = "{origin.url}"\n[[rooms]]\nname = "main"\nhost = "*"\n'
        "total_active_users = 50\nnew_users_per_minute = 1000\n"
    )
    one, other = (
        greenroom.edge(server.url, text, name).wait_until_ready() for name in ("one", "other")
    )
    visitors = [running.visitor() for running in (one, other, one, other, other)]
    for visitor in visitors:
        visitor.wait_until_in()
    for visitor in visitors[:2]:
        visitor.get("/?greenroom=leave", "POST", {"Sec-Fetch-Site": "same-origin"})
    redis = server.client()
    greenroom.eventually(lambda: not redis.keys("*:tally"), "what the ledgers counted is taken")
    greenroom.eventually(
        lambda: sum(running.status()["analytics"]["collector"] for running in (one, other)) == 1,
        "one collects",
    )
    collector, plain = (one, other) if one.status()["analytics"]["collector"] else (other, one)
    plain.send(signal.SIGTERM)
    assert plain.end() == 0
    assert collector.stop() == 0
    found = ended = 0
    for name in ("one", "other"):
        path = greenroom.folder / name / "analytics.duckdb"
        if path.exists():
            with duckdb.connect(str(path), read_only=True) as connection:
                row = connection.execute(
                    "SELECT coalesce(sum(admitted), 0), coalesce(sum(origin_count), 0) FROM minutes"
                ).fetchall()[0]
                found, ended = found + row[0], ended + row[1]
    assert (found, ended) == (5, 2), (
        "each admission once, and the sessions that ended, in whichever process"
    )
