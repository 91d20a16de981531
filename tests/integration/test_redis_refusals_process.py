"""A Redis that runs and refuses: visitors are held, none beyond the limit is let in, and the log
says once what is the matter.
"""

import shutil
from collections.abc import Callable

import pytest
import redis
from ports import free_port
from redis_world import RedisServer

ROOM = '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 2\nnew_users_per_minute = 1000\n'


def out_of_memory(client: redis.Redis) -> None:
    client.config_set("maxmemory", 1)


def a_replica(client: redis.Redis) -> None:
    client.execute_command("REPLICAOF", "127.0.0.1", free_port())


def not_saving(client: redis.Redis) -> None:
    """A disk that refuses: the folder of its data is gone."""
    shutil.rmtree(client.config_get("dir")["dir"])
    client.config_set("save", "3600 1")
    client.bgsave()


def a_password(client: redis.Redis) -> None:
    client.config_set("requirepass", "new")
    client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


REFUSALS: list[tuple[Callable[[redis.Redis], None], str]] = [
    (out_of_memory, "out of memory"),
    (a_replica, "read-only"),
    (not_saving, "not saving"),
    (a_password, "not signed in"),
]


@pytest.mark.parametrize(
    ("refuse", "cause"), REFUSALS, ids=[refuse.__name__ for refuse, _ in REFUSALS]
)
def test_visitors_are_held_and_the_log_names_the_redis_and_the_cause(
    greenroom, origin, server: RedisServer, refuse, cause
) -> None:
    running = greenroom.edge(server.url, f'origin = "{origin.url}"\n' + ROOM).wait_until_ready()
    running.visitor().wait_until_in()
    refuse(server.client())
    event = f"redis_failed [greenroom.runtime.shared_ledger_store] cause='{cause}"

    def told() -> bool:
        held = running.visitor().get()
        return event in running.output.replace('"', "'") and held.waiting

    greenroom.eventually(told, lambda: f"the cause is told:\n{running.output}")
    answers = [running.visitor().get() for _ in range(20)]
    assert all(answer.waiting for answer in answers)
    assert len(origin.requests) <= 2, "no more than the limit"
    assert server.url in running.output.split("redis_failed", 1)[1]
    assert running.output.count(cause) <= 6, (
        "a few loops may meet it, each tells it once; the stop of admissions says it too"
    )
    assert "Traceback" not in running.output
