"""Machines that share a Redis open each other's tickets from the first one on."""

import asyncio
from pathlib import Path

import pytest
from redis_world import RedisServer

from greenroom.errors import StorageFailed
from greenroom.keys.sealed_secrets import SealedSecrets
from greenroom.keys.ticket_keys import ACTIVATION_DELAY_MS, KeyRing
from greenroom.ledgers.redis.key_exchange import KeyExchange
from greenroom.ledgers.redis.link import Link

NOW = 1_790_000_000_000


def machines(url: str, folder: Path, count: int) -> list[tuple[KeyExchange, Path]]:
    folders = [folder / str(number) for number in range(count)]
    for one in folders:
        one.mkdir()
    return [(KeyExchange(Link(url).client(30.0), one), one) for one in folders]


async def test_machines_that_begin_at_once_without_any_key_have_one_and_the_same(
    server: RedisServer, tmp_path: Path
) -> None:
    found = machines(server.url, tmp_path, 5)
    await asyncio.gather(*(exchange.begin(NOW) for exchange, _ in found))
    rings = [KeyRing(folder, NOW) for _, folder in found]
    assert len({ring.current.id for ring in rings}) == 1
    assert all(len(ring.opening) == 1 for ring in rings)


async def test_machines_that_have_keys_learn_each_others(
    server: RedisServer, tmp_path: Path
) -> None:
    found = machines(server.url, tmp_path, 2)
    own = [KeyRing(folder, NOW).current.id for _, folder in found]
    for exchange, _ in (*found, *found):
        await exchange.begin(NOW)
    assert all(KeyRing(folder, NOW).opening.keys() == set(own) for _, folder in found)


async def test_a_key_made_while_the_others_could_not_hear_of_it_seals_only_when_all_can_open(
    server: RedisServer, tmp_path: Path
) -> None:
    (first, shared), (late, alone) = machines(server.url, tmp_path, 2)
    await first.begin(NOW)
    common = KeyRing(shared, NOW).current.id
    ring = KeyRing(alone, NOW + 1_000)  # it started while Redis did not answer
    assert ring.current.id != common
    await late.run(NOW + 5_000)
    ring.tend(NOW + 5_000)
    assert ring.current.id == common, "until the others have read its key"
    await first.run(NOW + 7_000)
    for folder in (shared, alone):
        assert KeyRing(folder, NOW + 7_000).current.id == common
        assert len(KeyRing(folder, NOW + 7_000).opening) == 2, (
            "what it has sealed meanwhile opens everywhere"
        )
        assert KeyRing(folder, NOW + 5_000 + ACTIVATION_DELAY_MS).current.id != common


async def test_a_secret_that_one_machine_sealed_is_opened_by_all(
    server: RedisServer, tmp_path: Path
) -> None:
    found = machines(server.url, tmp_path, 3)
    for exchange, _ in found:
        await exchange.begin(NOW)
    sealed = SealedSecrets(found[1][1], lambda: NOW).seal("MZXW6YTB", "ada")
    for exchange, _ in (*found, *found):
        await exchange.run(NOW)
    assert [SealedSecrets(folder, lambda: NOW).open(sealed, "ada") for _, folder in found] == [
        "MZXW6YTB"
    ] * 3


async def test_without_redis_everybody_begins_with_a_key_of_their_own(
    server: RedisServer, tmp_path: Path
) -> None:
    ((exchange, folder),) = machines(server.url, tmp_path, 1)
    server.kill()
    with pytest.raises(StorageFailed):
        await exchange.begin(NOW)
    assert KeyRing(folder, NOW).current
