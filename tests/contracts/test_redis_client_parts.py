"""The parts of redis-py that ledgers/redis/wire.py uses are not documented: a version without them
fails here, by name, and not under load.
"""

import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hiredis import pack_command
from redis.asyncio import ConnectionPool, RedisCluster
from redis.asyncio.cluster import ClusterNode, NodesManager
from redis.asyncio.connection import AbstractConnection

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"

USED: tuple[tuple[Callable[..., Any], tuple[str, ...]], ...] = (
    (AbstractConnection.connect, ()),
    (AbstractConnection.can_read, ()),
    (AbstractConnection.disconnect, ("nowait",)),
    (AbstractConnection.send_packed_command, ("command", "check_health")),
    (AbstractConnection.read_response, ("disable_decoding",)),
    (NodesManager.initialize, ()),
)


def missing_parameters(function: Callable[..., Any], used: tuple[str, ...]) -> set[str]:
    """What wire.py passes and `function` does not take, or must be given and wire.py does not pass."""
    parameters = dict(list(inspect.signature(function).parameters.items())[1:])
    required = {
        name
        for name, one in parameters.items()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    }
    return (set(used) - parameters.keys()) | (required - set(used))


@pytest.mark.parametrize(
    ("function", "used"), USED, ids=lambda value: getattr(value, "__qualname__", "")
)
def test_a_method_that_the_wire_awaits_takes_what_it_is_given(
    function: Callable[..., Any], used: tuple[str, ...]
) -> None:
    assert inspect.iscoroutinefunction(inspect.unwrap(function))
    assert missing_parameters(function, used) == set()


def test_a_pool_and_a_cluster_node_say_how_a_connection_is_made() -> None:
    connection = ConnectionPool().make_connection()
    assert isinstance(connection, AbstractConnection)
    assert connection.socket_timeout is None or connection.socket_timeout > 0
    node = ClusterNode("127.0.0.1", 6379)
    made = node.connection_class(**node.connection_kwargs)
    assert (made.host, made.port, node.name) == ("127.0.0.1", 6379, "127.0.0.1:6379")
    assert missing_parameters(RedisCluster.get_node_from_key, ("key",)) == set()


def test_commands_are_packed_as_the_protocol_says() -> None:
    assert (
        pack_command(("FCALL", b"f", 1, "k"))
        == b"*4\r\n$5\r\nFCALL\r\n$1\r\nf\r\n$1\r\n1\r\n$1\r\nk\r\n"
    )


def test_versions_that_were_not_tried_are_not_installed() -> None:
    (line,) = [
        line
        for line in tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
        if line.startswith("redis")
    ]
    assert re.search(r"<\d+$", line), (
        f"{line}: needs an upper bound, because wire.py uses parts that are not documented"
    )


def test_the_check_catches_a_method_that_changed() -> None:
    def renamed(self: object, wait: bool = False) -> None: ...
    def wants_more(self: object, why: str, nowait: bool = False) -> None: ...

    assert missing_parameters(renamed, ("nowait",)) == {"nowait"}
    assert missing_parameters(wants_more, ("nowait",)) == {"why"}
