"""Carries many commands to Redis in one round trip, and loads the library where it is missing.

A reply that does not come in time, or a server that cannot serve, is the exception Unreachable: what became of the commands is then not
known. A single command that was refused is an error in its place. Nothing is repeated, but for a function that was not there: it
did not run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

from hiredis import pack_command
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ReadOnlyError, RedisError, ResponseError

from greenroom.stores.redis.library import Library
from greenroom.stores.redis.link import Client

Command = tuple[bytes | str | int, ...]
"""FCALL, function, 1, key, arguments: the key is the fourth."""

_MISSING = "Function not found"
_ELSEWHERE = ("READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "MISCONF")
"""Refusals after which another server may be the right one: the connection is made anew."""


IDLE_S = 0.2


class Unreachable(Exception):
    """No answer, and no telling what happened."""


class Wire(Protocol):
    """One at a time may use it."""

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Replies, or ResponseErrors, in order. Raises Unreachable."""

    async def close(self) -> None:
        """Ends the connection."""


class ServerWire:
    """To one server, or to the master that Sentinels name: one connection that is kept."""

    def __init__(self, client: Redis, library: Library, timeout_s: float) -> None:
        self._pool = client.connection_pool
        self._library = library
        self._timeout_s = timeout_s
        self._connection: AbstractConnection | None = None
        self._used_s = 0.0

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """See `Wire`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = await self._at_hand()
                replies = await _pipelined(connection, commands)
                missing = [place for place, reply in enumerate(replies) if _is_missing(reply)]
                if missing:
                    again = [commands[place] for place in missing]
                    (loaded, *found) = await _pipelined(connection, [("FUNCTION", "LOAD", self._library.source), *again])
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
        """See `Wire`."""
        connection, self._connection = self._connection, None
        if connection:
            await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    async def _at_hand(self) -> AbstractConnection:
        """The connection; one that was idle is looked at first, because the server may have ended it meanwhile."""
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
        get: Callable[[], Awaitable[AbstractConnection]] = self._pool.get_connection
        self._connection = await get()
        return self._connection


class ClusterWire:
    """To a cluster: every command goes to the shard that has its key, all at once."""

    def __init__(self, client: RedisCluster, library: Library, timeout_s: float) -> None:
        self._client = client
        self._library = library
        self._timeout_s = timeout_s

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """See `Wire`. One shard that cannot be reached is an error in its places."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return list(await asyncio.gather(*(self._send(command) for command in commands)))
        except TimeoutError as error:
            raise Unreachable("no answer in time") from error

    async def close(self) -> None:
        """See `Wire`; connections belong to the client."""

    async def _send(self, command: Command) -> Any:
        try:
            return await self._client.execute_command(*command)
        except ResponseError as error:
            if not _is_missing(error):
                return error
        except (RedisError, OSError) as error:
            return error
        try:
            node = self._client.get_node_from_key(_text(command[3]))
            if node:
                await self._client.execute_command("FUNCTION LOAD", self._library.source, target_nodes=node)
        except ResponseError as error:
            if "already exists" not in str(error):
                return error
        except (RedisError, OSError) as error:
            return error
        try:
            return await self._client.execute_command(*command)
        except (RedisError, OSError) as error:
            return error


def wire(client: Client, library: Library, timeout_s: float) -> Wire:
    """The wire for this kind of client."""
    return ClusterWire(client, library, timeout_s) if isinstance(client, RedisCluster) else ServerWire(client, library, timeout_s)


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
    return isinstance(reply, RedisError) and (isinstance(reply, ReadOnlyError) or str(reply).startswith(_ELSEWHERE))


def _refused(loaded: Any) -> None:
    """Raises when the library was refused; that somebody else was quicker is no refusal."""
    if isinstance(loaded, ResponseError) and "already exists" not in str(loaded):
        raise loaded


def _text(key: bytes | str | int) -> str:
    return key.decode() if isinstance(key, bytes) else str(key)
