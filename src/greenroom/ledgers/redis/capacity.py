"""Capacity in the global Redis: every process reports on origins, and the coordinator's process
publishes the targets.
"""

from collections.abc import Mapping

import msgspec
from redis.exceptions import RedisError

from greenroom.capacity.measurement import ProcessReport
from greenroom.capacity.room_capacity import CapacityState
from greenroom.errors import StorageFailed
from greenroom.ledgers.redis.connect import Client

KEPT_MS = 3_600_000
"""Long after the last process has stopped."""

_STATES = msgspec.json.Decoder(dict[str, CapacityState])
_REPORT = msgspec.json.Decoder(ProcessReport)


class RedisCapacity:
    """Raises StorageFailed."""

    def __init__(self, client: Client, process: str) -> None:
        """The client must give up after a few seconds."""
        self._client = client
        self._process = process
        self._reports = "greenroom:{capacity}:reports"
        self._states = "greenroom:{capacity}:states"

    async def report(self, report: ProcessReport, name: str = "") -> None:
        """`name`: of a source other than this process."""
        try:
            await self._client.hset(
                self._reports, name or self._process, msgspec.json.encode(report)
            )
            await self._client.pexpire(self._reports, KEPT_MS)
        except (RedisError, OSError) as error:
            raise _failed(error) from error

    async def withdraw(self, process: str = "") -> None:
        """Forgets this process, or another that has been silent for long."""
        try:
            await self._client.hdel(self._reports, process or self._process)
        except (RedisError, OSError) as error:
            raise _failed(error) from error

    async def reports(self) -> dict[str, ProcessReport]:
        try:
            found = await self._client.hgetall(self._reports)
        except (RedisError, OSError) as error:
            raise _failed(error) from error
        return {
            bytes(name).decode(): _REPORT.decode(written)  # type: ignore[arg-type]
            for name, written in found.items()
        }

    async def publish(self, states: Mapping[str, CapacityState]) -> None:
        try:
            await self._client.set(self._states, msgspec.json.encode(states), px=KEPT_MS)
        except (RedisError, OSError) as error:
            raise _failed(error) from error

    async def states(self) -> dict[str, CapacityState]:
        try:
            written = await self._client.get(self._states)
        except (RedisError, OSError) as error:
            raise _failed(error) from error
        return _STATES.decode(written) if written else {}

    async def close(self) -> None:
        await self._client.aclose()


def _failed(error: Exception) -> StorageFailed:
    return StorageFailed(f"the global Redis did not answer: {error}")
