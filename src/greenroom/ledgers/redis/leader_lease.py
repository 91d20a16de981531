"""The leader lease in the global Redis: reports are submitted there, one leader answers, and its
state outlives it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from redis.exceptions import ResponseError

from greenroom.errors import StorageFailed
from greenroom.ledgers.coordination import TERM_MS, LeaseTerm, SavedState, Submission
from greenroom.ledgers.redis.call import call_function, pop
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.library import LEADER_LIBRARY

TIMEOUT_S = 2.0
"""Four times the longest wait, and half of what makes a link cut off."""


class RedisLeaderLease:
    """The client must give up after a few seconds: a cut link says nothing."""

    def __init__(self, client: Client, prefix: str = "greenroom") -> None:
        """`client` must not decode answers; its socket timeout is TIMEOUT_S."""
        self._client = client
        place = f"{prefix}:{{leader}}:"  # one hash tag: one shard
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
