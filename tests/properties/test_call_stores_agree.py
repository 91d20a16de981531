"""Rows and counts of visitors who want to be called: in a file and in a real Redis they are the same
as in a dictionary, whatever happens in whatever order; and what is dropped is overwritten.
"""

import asyncio
from pathlib import Path

from admission_world import HandClock
from called_visitors import CallTable
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis_world import RedisServer

from greenroom.calls.desk import SealedCalls
from greenroom.keys.sealed_secrets import SealedSecrets
from greenroom.ledgers.calls import CALLS_FILE, CallFile, bring
from greenroom.ledgers.redis.calls import RedisCalls
from greenroom.ledgers.redis.leases import TIMEOUT_S
from greenroom.ledgers.redis.link import Link
from greenroom.model.call import VisitorCall

ROOMS, IDS, ROWS = ("r", "another room"), (b"a" * 12, b"b" * 12, b"c" * 12), (b"one", b"two")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.sampled_from(ROOMS),
            st.sampled_from(IDS),
            st.sampled_from(ROWS),
            st.sampled_from((None, *ROWS)),
        ),
        st.tuples(st.just("drop"), st.sampled_from(ROOMS), st.sampled_from(IDS)),
        st.tuples(
            st.just("move"), st.sampled_from(ROOMS), st.sampled_from(IDS), st.sampled_from(IDS)
        ),
        st.tuples(st.just("take"), st.sampled_from("xy"), st.integers(0, 3)),
        st.tuples(st.just("block"), st.sampled_from("xy")),
    ),
    max_size=30,
)

MOVED = "move", "r", IDS[0], IDS[1]
"""Which has a row."""


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
@example([("put", "r", one, row, None) for one, row in zip(IDS, ROWS, strict=False)] + [MOVED])
def test_file_and_redis_do_what_a_dictionary_does(
    server: RedisServer, tmp_path: Path, steps: list[tuple[object, ...]]
) -> None:
    async def play() -> None:
        client = Link(server.url).client(TIMEOUT_S)
        await client.flushall()
        (tmp_path / CALLS_FILE).unlink(missing_ok=True)
        model, file = CallTable(), CallFile(tmp_path, HandClock())
        redis = RedisCalls(client, "me")
        for name, *arguments in steps:
            more = (60_000,) if name in ("take", "block") else ()
            wanted = await getattr(model, str(name))(*arguments, *more)
            for store in (file, redis):
                found = await getattr(store, str(name))(*arguments, *more)
                assert found == wanted, (store, name, arguments)
            for store in (file, redis):
                assert set(await store.ids()) == set(model.rows)
                for (room, ticket_id), sealed in model.rows.items():
                    assert await store.get(room, ticket_id) == sealed
        await file.close()
        await redis.close()

    asyncio.run(play())


def test_counts_end_by_themselves(server: RedisServer, tmp_path: Path) -> None:
    async def play() -> None:
        clock = HandClock()
        file = CallFile(tmp_path, clock)
        await file.block("x", 1_000)
        assert not await file.take("x", 5, 1_000)
        clock.ms += 1_000
        assert await file.take("x", 5, 1_000)
        redis = RedisCalls(Link(server.url).client(TIMEOUT_S), "me")
        await redis.block("x", 60_000)
        assert not await redis.take("x", 5, 60_000)
        await redis.block("y", 50)
        await asyncio.sleep(0.1)  # Redis goes by its own clock
        assert await redis.take("y", 5, 50)
        await redis.close()
        await file.close()

    asyncio.run(play())


def test_who_asks_too_often_writes_nothing_more_to_the_disk(tmp_path: Path) -> None:
    def changes() -> bytes:
        return (tmp_path / CALLS_FILE).read_bytes()[24:28]  # the change counter of SQLite

    async def play() -> None:
        clock = HandClock()
        file = CallFile(tmp_path, clock)
        assert [await file.take("often", 2, 1_000) for _ in range(3)] == [True, True, False]
        await file.block("refused", 86_400_000)
        before = changes()
        assert not any([await file.take("often", 2, 1_000) for _ in range(5)])
        assert not await file.take("refused", 2, 1_000)
        clock.ms += 1  # or SQLite would find nothing to write
        await file.block("refused", 86_400_000)
        assert changes() == before
        await file.block("often", 86_400_000)
        assert changes() != before, "a refusal outlasts a count"
        await file.close()

    asyncio.run(play())


def test_rows_follow_to_the_redis_of_all_data_centers(server: RedisServer) -> None:
    async def play() -> None:
        link = Link(server.url)
        await link.client(TIMEOUT_S).flushall()
        own, shared = RedisCalls(link.client(TIMEOUT_S), "me"), CallTable()
        for number, one in enumerate(IDS):
            await own.put("r", one, ROWS[number % 2], None)
        await bring(own, RedisCalls(link.client(TIMEOUT_S), "me"))
        assert len(await own.ids()) == len(IDS), "it is the same Redis"
        await shared.put("r", IDS[0], b"brought before, by a process that was killed", None)
        await bring(own, shared)
        assert await own.ids() == []
        assert [await shared.get("r", one) for one in IDS[1:]] == [ROWS[1], ROWS[0]]
        assert await shared.get("r", IDS[0]) not in ROWS
        await own.close()

    asyncio.run(play())


def test_one_process_sends(server: RedisServer) -> None:
    async def play() -> None:
        one, other = (RedisCalls(Link(server.url).client(TIMEOUT_S), name) for name in "ab")
        ours, theirs = one.lease_of("fra"), other.lease_of("fra")
        assert await ours.acquire()
        assert not await theirs.acquire()
        assert await other.lease_of("iad").acquire(), "another data center"
        await ours.release()
        assert await theirs.acquire()
        await one.close()
        await other.close()

    asyncio.run(play())


def test_a_row_is_sealed_survives_a_restart_and_leaves_no_byte(tmp_path: Path) -> None:
    call = VisitorCall("email", "ann@mail.example", 7, 1, "en-US", "https://shop.example/", 600_000)

    async def play() -> None:
        store = CallFile(tmp_path, HandClock())
        secrets = SealedSecrets(tmp_path, HandClock().now_ms)
        assert await SealedCalls(store, secrets).put("r", IDS[0], call)
        await store.close()
        whole = (tmp_path / CALLS_FILE).read_bytes()
        assert b"ann@" not in whole
        assert (tmp_path / CALLS_FILE).stat().st_mode & 0o777 == 0o600
        store = CallFile(tmp_path, HandClock())
        calls = SealedCalls(store, SealedSecrets(tmp_path, HandClock().now_ms))
        found = await calls.get("r", IDS[0])
        assert found is not None
        assert found[0] == call
        assert found[1] in whole
        assert await calls.get("another room", IDS[0]) is None
        await store.drop("r", IDS[0])
        await store.close()
        left = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
        for at in range(0, len(found[1]) - 16, 16):
            assert not any(found[1][at : at + 16] in text for text in left), "zeroes instead"

    asyncio.run(play())
