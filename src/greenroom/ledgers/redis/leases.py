"""Leases in Redis: the leader lease, reports and answers in the global one; the sync lock of a data
center in its own; plain leases in either.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from redis.exceptions import RedisError, ResponseError

from greenroom.errors import StorageFailed
from greenroom.ledgers.coordination import (
    LOCK_MS,
    PERMIT_REQUESTS_MAX,
    TERM_MS,
    LeaseTerm,
    PermitRequest,
    SavedState,
    Submission,
)
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.library import LEADER_LIBRARY, call_function, pop

TIMEOUT_S = 2.0
"""Four times the longest wait, and half of CUT_OFF_MS."""


class RedisLeaderLease:
    def __init__(self, client: Client) -> None:
        """`client` must not decode answers; its socket timeout is TIMEOUT_S."""
        self._client = client
        place = "greenroom:{leader}:"  # one hash tag: one shard
        self._lease, self._reports, self._signal, self._saved = (
            place + name for name in ("lease", "reports", "signal", "saved")
        )
        self._answers = place + "answers:"

    # -- for a data center -------------------------------------------------------------------------

    async def submit(self, data_center: str, report: bytes, candidate: str) -> Submission:
        keys = (self._lease, self._reports, self._signal)
        number, now_ms, holder = await self._call(
            "submit", keys, (data_center, report, candidate, TERM_MS)
        )
        return Submission(LeaseTerm(candidate, number) if number else None, now_ms, holder.decode())

    async def next_answer(self, data_center: str, wait_s: float) -> bytes | None:
        return await pop(self._client, self._answers + data_center, wait_s)

    # -- for the leader ----------------------------------------------------------------------------

    async def load(self, term: LeaseTerm) -> SavedState | None:
        found = await self._as_leader("load", (self._lease, self._saved), term, ())
        if found is None:
            return None
        rows = {field.decode(): row for field, row in zip(found[2::2], found[3::2], strict=True)}
        return SavedState(found[0], found[1].decode(), rows)

    async def collect(self, term: LeaseTerm, wait_s: float) -> list[tuple[str, bytes]] | None:
        if wait_s > 0:
            await pop(self._client, self._signal, wait_s)
        found = await self._as_leader(
            "collect", (self._lease, self._reports, self._signal), term, ()
        )
        return (
            None
            if found is None
            else [
                (name.decode(), report)
                for name, report in zip(found[::2], found[1::2], strict=True)
            ]
        )

    async def commit(
        self,
        term: LeaseTerm,
        rows: Mapping[str, bytes],
        forgotten: Sequence[str] = (),
        answers: Iterable[tuple[str, bytes]] = (),
    ) -> bool:
        keys, sealed = [self._lease, self._saved], []
        for data_center, answer in answers:
            keys.append(self._answers + data_center)
            sealed.append(answer)
        written = [part for row in rows.items() for part in row]
        arguments = (TERM_MS, len(written), *written, len(forgotten), *forgotten, *sealed)
        return await self._as_leader("commit", keys, term, arguments) is not None

    async def release(self, term: LeaseTerm) -> None:
        await self._call("release", (self._lease,), (term.holder, term.number))

    # -- inside ------------------------------------------------------------------------------------

    async def _as_leader(
        self, function: str, keys: Sequence[str], term: LeaseTerm, arguments: tuple[Any, ...]
    ) -> Any:
        try:
            return await self._call(function, keys, (term.holder, term.number, *arguments))
        except StorageFailed as failed:
            if isinstance(failed.__cause__, ResponseError) and str(failed.__cause__).startswith(
                "NOTLEADER"
            ):
                return None
            raise

    async def _call(self, function: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        return await call_function(self._client, LEADER_LIBRARY, function, keys, arguments)


ACKNOWLEDGEMENT_MS = 2_000

_request = msgspec.msgpack.Decoder(PermitRequest)


class RedisLease:
    """Held by one process at a time. Methods raise StorageFailed."""

    def __init__(self, client: Client, keys: Sequence[str], process: str, term_ms: int) -> None:
        """`keys`: of the lease, and if its candidates are to be counted, of their list."""
        self._client = client
        self._keys = tuple(keys)
        self._process = process
        self._term_ms = term_ms

    async def acquire(self) -> bool:
        """Takes or renews it. False while another process holds it."""
        return bool(await self.call("lock", self._term_ms))

    async def release(self) -> None:
        await self.call("lock", 0)

    async def call(self, function: str, *more: int) -> Any:
        arguments = (self._process, *more)
        return await call_function(self._client, LEADER_LIBRARY, function, self._keys, arguments)


class RedisSyncLock:
    def __init__(self, client: Client, process: str, data_center: str) -> None:
        self._client = client
        self._process = process
        place = f"greenroom:{{sync.{data_center}}}:"
        self._requests, self._acknowledged = place + "permit_requests", place + "acknowledged:"
        keys = place + "lock", place + "present"
        self._lease = RedisLease(client, keys, process, LOCK_MS)
        self.acquire = self._lease.acquire

    async def leave(self) -> bool:
        return not await self._lease.call("leave")

    async def request_permits(self, room_id: str, want: int, wait_s: float) -> None:
        try:
            await self._client.rpush(
                self._requests, msgspec.msgpack.encode(PermitRequest(self._process, room_id, want))
            )
            await self._client.ltrim(self._requests, -PERMIT_REQUESTS_MAX, -1)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error
        await pop(self._client, self._acknowledged + self._process, wait_s)

    async def permit_requests(self, wait_s: float) -> list[PermitRequest]:
        first = await pop(self._client, self._requests, wait_s)
        if first is None:
            return []
        try:
            more = await self._client.lpop(self._requests, PERMIT_REQUESTS_MAX)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error
        return [_request.decode(one) for one in (first, *(more or ()))]

    async def acknowledge(self, processes: Collection[str]) -> None:
        try:
            for process in processes:
                key = self._acknowledged + process
                await self._client.rpush(key, b"1")
                await self._client.ltrim(key, -1, -1)
                await self._client.pexpire(key, ACKNOWLEDGEMENT_MS)
        except (RedisError, OSError) as error:
            raise StorageFailed(f"Redis: {error}") from error
