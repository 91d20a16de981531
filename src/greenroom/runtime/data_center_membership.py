import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence

from greenroom.admission.lease import CUT_OFF_MS
from greenroom.config_file.shared import SharedLedgers, process_name
from greenroom.configuration.state import LostState, SyncState
from greenroom.ledgers.coordination import LedgerStore
from greenroom.ledgers.redis.connect import Client
from greenroom.ledgers.redis.leases import TIMEOUT_S, RedisLeaderLease, RedisSyncLock
from greenroom.ledgers.sync.data_center import DataCenterSync
from greenroom.ledgers.sync.leader_loop import LeaderLoop
from greenroom.model.room import Room


class DataCenterMembership:
    """Make it inside the event loop; `close` when done."""

    def __init__(
        self,
        shared: SharedLedgers,
        ledgers: LedgerStore,
        rooms: Callable[[], Sequence[Room]],
        data_centers: Callable[[], Sequence[str]],
        on_error: Callable[[BaseException], None],
    ) -> None:
        """`rooms` and `data_centers` return the same object as long as nothing changed."""
        self._rooms, self._data_centers = rooms, data_centers
        self._seen: Sequence[Room] | None = None
        self._by_id: Mapping[str, Room] = {}
        self._clients = [shared.global_redis.client(TIMEOUT_S), shared.redis.client(TIMEOUT_S)]
        leader_lease = RedisLeaderLease(self._clients[0])
        leader_loop = self._leader_loop = LeaderLoop(
            leader_lease, rooms, data_centers, secrets.randbits, on_error, shared.fence_s * 1000
        )
        process = process_name()
        lock = RedisSyncLock(self._clients[1], process, shared.data_center)
        self._sync = DataCenterSync(
            shared.data_center,
            process,
            ledgers,
            self._rooms_by_id,
            leader_lease,
            lock,
            leader_loop,
            on_error,
        )

    async def run(self) -> None:
        await self._sync.run()

    async def borrow(self, room_id: str, want: int) -> None:
        await self._sync.borrow(room_id, want)

    async def give_up(self, data_center: str) -> None:
        await self._sync.give_up(data_center)

    def state(self) -> SyncState:
        contact = self._sync.contact()
        answered_s = None if contact.answered_age_ms is None else contact.answered_age_ms / 1000
        return SyncState(
            data_center=contact.data_center,
            syncing=contact.syncing,
            leader=contact.leader,
            holder=contact.holder,
            answered_s=answered_s,
            cut_off=answered_s is None or answered_s * 1000 >= CUT_OFF_MS,
            batches=contact.batches,
            unanswered=contact.unanswered,
            answers=self._leader_loop.answers,
            silent_s=self._leader_loop.silent_s(),
            data_centers=tuple(self._data_centers()),
            lost={
                name: LostState(units.held, units.returning, units.free_ms / 1000)
                for name, units in self._leader_loop.lost().items()
            },
        )

    async def close(self) -> None:
        await asyncio.gather(*map(_closed, self._clients), return_exceptions=True)

    def _rooms_by_id(self) -> Mapping[str, Room]:
        rooms = self._rooms()
        if rooms is not self._seen:
            self._seen, self._by_id = rooms, {room.id: room for room in rooms}
        return self._by_id


def _closed(client: Client) -> Awaitable[None]:
    return client.aclose()
