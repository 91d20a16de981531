"""Failures of Redis: visitors are held and never let in beyond what is there, and service resumes
by itself.
"""

import asyncio
import os
import time
from pathlib import Path

import pytest
from admission_world import small_room
from redis_people import LONG_S, House, in_house
from redis_world import RedisServer

from greenroom.model.visit import Outcome, Standing

NOBODY = bytes(12)
INSIDE = 3


def admitted(found: dict[bytes, Outcome]) -> list[bytes]:
    return [one for one, outcome in found.items() if outcome.standing is Standing.ADMITTED]


async def full(house: House) -> list[bytes]:
    """As many as fit are inside; their ids."""
    await house.until_synced()
    found, counts = await house.crowd(INSIDE + 2)
    assert counts == {"ADMITTED": INSIDE, "WAITING": 2}
    return admitted(found)


def is_held(outcome: Outcome) -> bool:
    return (
        outcome.standing is Standing.WAITING
        and outcome.storage_failed
        and outcome.estimate is None
        and outcome.refresh_ms > 0
    )


def test_while_redis_is_dead_everybody_is_held_and_a_new_one_lets_in_no_more_than_fit(
    server: RedisServer,
) -> None:
    async def story(house: House) -> None:
        inside = await full(house)
        server.kill()
        began = time.monotonic()
        answers = [
            await house.arrive(os.urandom(12)),
            await house.poll(os.urandom(12)),
            await house.ask("view", inside[0]),
        ]
        assert all(map(is_held, answers))
        assert time.monotonic() - began < LONG_S, (
            "three answers, and none waited for the time that Redis has"
        )
        assert isinstance(house.troubles[-1], Exception)
        server.start()
        await house.until_answered(NOBODY)
        assert house.troubles[-1] is None
        await house.until_synced()
        _, counts = await house.crowd(5)
        assert counts == {"WAITING": 5}, (
            "units of those who were inside are not free before their sessions have ended"
        )

    in_house(server.url, story, timeout_s=LONG_S)


def test_a_redis_that_remembers_keeps_sessions_and_places_and_voids_unused_permits(
    tmp_path: Path,
) -> None:
    server = RedisServer(tmp_path / "redis", "--appendonly", "yes", "--appendfsync", "always")

    async def story(house: House) -> None:
        await house.until_synced()
        found, _ = await house.crowd(2)
        inside = admitted(found)
        assert len(inside) == 2
        before = await house.epoch()
        server.kill()
        server.start()
        await house.until_answered(NOBODY)
        assert [(await house.ask("view", one)).standing for one in inside] == [Standing.ACTIVE] * 2
        assert await house.epoch() > before
        (state,) = (await house.ledgers.states()).values()
        assert (state["permits"], state["inside"], state["granted_seen"]) == (0, 2, 2)
        assert (await house.arrive(os.urandom(12))).standing is Standing.WAITING
        await house.until_synced()
        _, counts = await house.crowd(3)
        assert counts["ADMITTED"] <= 1

    in_house(server.url, story)
    server.kill()


def test_an_old_snapshot_brought_back_is_a_new_epoch_too(server: RedisServer) -> None:
    async def story(house: House) -> None:
        await house.until_synced()
        client = server.client()
        (key,) = client.keys("greenroom:*:state")
        old = client.get(key)
        before = await house.epoch()
        await house.crowd(3)
        client.set(key, old)
        assert (await house.arrive(os.urandom(12))).standing is Standing.WAITING
        assert await house.epoch() > before

    in_house(server.url, story)


def test_a_ledger_under_the_key_of_an_earlier_version_is_taken_over(server: RedisServer) -> None:
    async def story(house: House) -> None:
        inside = await full(house)
        client = server.client()
        (key,) = client.keys("greenroom:*:state")
        old_key = key.removesuffix(b"state") + b"books"
        client.rename(key, old_key)
        assert [(await house.ask("view", one)).standing for one in inside] == [
            Standing.ACTIVE
        ] * INSIDE
        assert client.exists(key)
        assert not client.exists(old_key)
        _, counts = await house.crowd(2)
        assert counts == {"WAITING": 2}

    in_house(server.url, story)


def test_an_emptied_redis_begins_again_without_letting_in_beyond_the_limit(
    server: RedisServer,
) -> None:
    async def story(house: House) -> None:
        inside = await full(house)
        server.client().flushall()
        server.client().function_flush()
        assert (await house.ask("view", inside[0])).standing is Standing.GONE
        await house.until_synced()
        _, counts = await house.crowd(5)
        assert counts == {"WAITING": 5}

    in_house(server.url, story)


@pytest.mark.parametrize("part", ["line", "due", "inside", "minute", "state"])
def test_evicted_keys_cost_places_but_let_no_visitor_in(server: RedisServer, part: str) -> None:
    async def story(house: House) -> None:
        await full(house)
        await house.poll(os.urandom(12))
        before = await house.epoch()
        (key,) = server.client().keys(f"greenroom:*:{part}")
        server.client().delete(key)
        await asyncio.sleep(0.3)  # rows are counted once in a quarter of a second of the server
        _, counts = await house.crowd(4)
        assert counts == {"WAITING": 4}
        assert await house.epoch() > before
        (state,) = (await house.ledgers.states()).values()
        assert state["empty_ms"] == state["born_ms"]  # what it admitted before may be forgotten
        await house.until_synced()
        _, counts = await house.crowd(4)
        assert counts == {"WAITING": 4}

    in_house(server.url, story)


def test_without_memory_left_no_visitor_is_let_in_and_with_it_everything_goes_on(
    server: RedisServer,
) -> None:
    async def story(house: House) -> None:
        await house.until_synced()
        found, _ = await house.crowd(1)
        server.client().config_set("maxmemory", 1)
        assert is_held(await house.arrive(os.urandom(12)))
        server.client().config_set("maxmemory", 0)
        assert (await house.ask("view", admitted(found)[0])).standing is Standing.ACTIVE
        await house.until_synced()
        _, counts = await house.crowd(5)
        assert counts["ADMITTED"] == 2

    in_house(server.url, story)


def test_a_slow_answer_is_not_waited_for_and_the_one_who_it_let_in_is_active_by_the_same_ticket(
    server: RedisServer,
) -> None:
    async def story(house: House) -> None:
        await house.until_synced()
        ids = [os.urandom(12) for _ in range(5)]
        with server.silenced():
            answers = await asyncio.gather(*(house.arrive(one) for one in ids))
        assert all(map(is_held, answers))
        await house.until_answered(NOBODY)
        found = [(await house.poll(one)).standing for one in ids]
        assert found.count(Standing.ACTIVE) + found.count(Standing.ADMITTED) == INSIDE
        (gauges,) = (await house.ledgers.gauges()).values()
        assert gauges.active == INSIDE

    in_house(server.url, story, timeout_s=5.0)


def test_functions_that_vanished_are_loaded_again_unnoticed(server: RedisServer) -> None:
    async def story(house: House) -> None:
        inside = await full(house)
        server.client().function_flush()
        assert (await house.ask("view", inside[0])).standing is Standing.ACTIVE
        assert house.troubles == []

    in_house(server.url, story)


def test_many_processes_share_one_room(server: RedisServer) -> None:
    async def story(house: House) -> None:
        other = House(server.url)
        try:
            await house.until_synced()
            (found, ours), (_, theirs) = await asyncio.gather(house.crowd(20), other.crowd(20))
            assert ours["ADMITTED"] + theirs["ADMITTED"] == INSIDE
            inside = admitted(found)
            if inside:
                assert (await other.ask("view", inside[0])).standing is Standing.ACTIVE
        finally:
            await other.ledgers.close()

    in_house(server.url, story)


def test_settings_that_could_not_be_said_are_said_when_redis_is_back(server: RedisServer) -> None:
    from dataclasses import replace

    async def story(house: House) -> None:
        await house.until_synced()
        server.kill()
        room = replace(house.rooms["r"], queue_all=True)
        house.ledgers.ledger(room).configure(room)
        assert is_held(await house.arrive(os.urandom(12)))
        server.start()
        await house.until_answered(NOBODY)
        await house.until_synced()
        assert (await house.arrive(os.urandom(12))).standing is Standing.WAITING

    in_house(server.url, story)


def test_a_line_of_thousands_is_named_and_given_other_keys(server: RedisServer) -> None:
    async def story(house: House) -> None:
        await house.until_synced()
        house.coordinators["r"].pool = 0
        ids = [os.urandom(12) for _ in range(2_500)]
        await asyncio.gather(
            *(house.ask("poll", one, 1_000_000 + number) for number, one in enumerate(ids))
        )
        found: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        ledger = house.ledgers.ledger(house.rooms["r"])
        ledger.before(1 << 53, found.set_result)
        listed = await found
        assert set(listed) <= set(ids)
        assert len(listed) >= 2_490
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        ledger.rekey({one: 5_000_000 - place for place, one in enumerate(listed)}, done.set_result)
        assert await done
        again: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        ledger.before(1 << 53, again.set_result)
        assert list(await again) == list(reversed(listed))

    in_house(server.url, story)


def test_an_answer_that_is_not_from_here_holds_who_asked_and_no_one_else(
    server: RedisServer,
) -> None:
    async def story(house: House) -> None:
        await full(house)
        other = House(
            server.url, [small_room(id="other", total_active_users=2, new_users_per_minute=100)]
        )
        await other.until_synced()
        await other.ledgers.close()
        house.rooms["other"] = other.rooms["other"]
        ledger = house.ledgers.ledger(house.rooms["r"])
        ledger.reader._wait_reader = None  # type: ignore[assignment]  # anything that goes wrong while it is read
        answers = await asyncio.gather(
            house.poll(os.urandom(12)), house.arrive(os.urandom(12), "other")
        )
        assert is_held(answers[0])
        assert answers[1].standing is Standing.ADMITTED

    in_house(server.url, story)
