"""Carries many commands to Redis in one round trip. A late reply raises Unreachable: the commands
may or may not have run. Only a call of a missing function, which did not run, is repeated.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from hiredis import pack_command
from redis.asyncio import RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    MovedError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
)

from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.library import Library

Command = tuple[bytes | str | int, ...]
"""The key is the fourth."""

_MISSING = "Function not found"
_ELSEWHERE = ("READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "MISCONF")
"""Another server may be the right one: reconnect."""


IDLE_S = 0.2


LOOK_S = 0.5

Connect = Callable[[], Awaitable[AbstractConnection]]


class Unreachable(Exception): ...


class ServerWire:
    def __init__(self, connect: Connect, library: Library, timeout_s: float) -> None:
        self._make = connect
        self._library = library
        self._timeout_s = timeout_s
        self._connection: AbstractConnection | None = None
        self._used_s = 0.0

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = await self._at_hand()
                replies = await _pipelined(connection, commands)
                missing = [place for place, reply in enumerate(replies) if _is_missing(reply)]
                if missing:
                    again = [commands[place] for place in missing]
                    loaded, *found = await _pipelined(
                        connection, [("FUNCTION", "LOAD", self._library.source), *again]
                    )
                    _refused(loaded)
                    for place, reply in zip(missing, found, strict=True):
                        replies[place] = reply
            if any(_is_elsewhere(reply) for reply in replies):
                await self.close()
        except (RedisError, OSError, TimeoutError) as error:
            await self.close()
            raise Unreachable(str(error) or "no answer in time") from error
        except asyncio.CancelledError:
            await self.close()
            raise
        return replies

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            await connection.disconnect(nowait=True)

    async def _at_hand(self) -> AbstractConnection:
        """The server may have ended an idle connection."""
        now_s = time.monotonic()
        idle_s, self._used_s = now_s - self._used_s, now_s
        if self._connection and idle_s > IDLE_S:
            look: Callable[[], Awaitable[bool]] = self._connection.can_read
            try:
                ended = await look()
            except (RedisError, OSError):
                ended = True
            if ended:
                await self.close()
        return self._connection or await self._connect()

    async def _connect(self) -> AbstractConnection:
        self._connection = await self._make()
        return self._connection


class ClusterWire:
    """A failing shard does not affect the others."""

    def __init__(self, client: RedisCluster, library: Library, timeout_s: float) -> None:
        self._client = client
        self._library = library
        self._timeout_s = timeout_s
        self._shards: dict[str, ServerWire] = {}
        self._known = False
        self._looked_s = float("-inf")

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        # A shard that cannot be reached is an error in its places.
        if not self._known and time.monotonic() - self._looked_s > LOOK_S:
            await self._look()
        replies = await self._spread(commands)
        moved = [
            place for place, reply in enumerate(replies) if isinstance(reply, MovedError)
        ]  # these did not run
        if moved:
            await self._look()
            for place, reply in zip(
                moved, await self._spread([commands[place] for place in moved]), strict=True
            ):
                replies[place] = reply
        return replies

    async def close(self) -> None:
        for shard in self._shards.values():
            await shard.close()
        self._shards.clear()

    async def _spread(self, commands: Sequence[Command]) -> list[Any]:
        replies: list[Any] = [Unreachable("no shard has this key")] * len(commands)
        places: dict[ServerWire, list[int]] = {}
        for place, command in enumerate(commands):
            shard = self._shard_of(command)
            if shard:
                places.setdefault(shard, []).append(place)
        await asyncio.gather(
            *(self._travel(shard, found, commands, replies) for shard, found in places.items())
        )
        return replies

    async def _travel(
        self, shard: ServerWire, places: list[int], commands: Sequence[Command], replies: list[Any]
    ) -> None:
        try:
            found = await shard.exchange([commands[place] for place in places])
        except Unreachable as error:
            self._known = False  # another server may have its slots by now
            found = [error] * len(places)
        for place, reply in zip(places, found, strict=True):
            replies[place] = reply

    def _shard_of(self, command: Command) -> ServerWire | None:
        try:
            node = self._client.get_node_from_key(_text(command[3]))
        except (RedisError, RedisClusterException):
            return None
        if node is None:
            return None
        if node.name not in self._shards:
            self._shards[node.name] = ServerWire(
                _connecting(partial(_of, node)), self._library, self._timeout_s
            )
        return self._shards[node.name]

    async def _look(self) -> None:
        """Without an answer, the last known map is used."""
        self._looked_s = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._client.nodes_manager.initialize()
            self._known = True
        except (RedisError, RedisClusterException, OSError, TimeoutError):
            self._known = False


Wire = ServerWire | ClusterWire


def wire(client: Client, library: Library, timeout_s: float) -> Wire:
    if isinstance(client, RedisCluster):
        return ClusterWire(client, library, timeout_s)
    pool: Any = client.connection_pool
    return ServerWire(_connecting(pool.make_connection), library, timeout_s)


def _of(node: ClusterNode) -> Any:
    return node.connection_class(**node.connection_kwargs)


def _connecting(make: Callable[[], Any]) -> Connect:
    async def connect() -> AbstractConnection:
        connection = make()
        await connection.connect()
        # there is one for the whole exchange: another one for each reply would cost more than the
        # reply
        connection.socket_timeout = None
        return cast(AbstractConnection, connection)

    return connect


async def _pipelined(connection: AbstractConnection, commands: Sequence[Command]) -> list[Any]:
    pack = cast(Callable[[Command], bytes], pack_command)
    await connection.send_packed_command(b"".join(map(pack, commands)), check_health=False)
    read: Callable[..., Awaitable[Any]] = connection.read_response
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(await read(disable_decoding=True))
        except ResponseError as error:
            replies.append(error)
    return replies


def _is_missing(reply: Any) -> bool:
    return isinstance(reply, ResponseError) and _MISSING in str(reply)


def _is_elsewhere(reply: Any) -> bool:
    return isinstance(reply, RedisError) and (
        isinstance(reply, ReadOnlyError) or str(reply).startswith(_ELSEWHERE)
    )


def _refused(loaded: Any) -> None:
    """Unless another process loaded it first."""
    if isinstance(loaded, ResponseError) and "already exists" not in str(loaded):
        raise loaded


def _text(key: bytes | str | int) -> str:
    return key.decode() if isinstance(key, bytes) else str(key)
