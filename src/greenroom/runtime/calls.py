import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from greenroom.alerts.service import Notifications
from greenroom.calls.desk import Desk, SealedCalls
from greenroom.calls.rules import LOOK_MS
from greenroom.calls.sender import CallSender
from greenroom.config_file.shared import SharedLedgers, process_name
from greenroom.decision.service import DecisionService
from greenroom.errors import StorageFailed
from greenroom.keys.sealed_secrets import SealedSecrets
from greenroom.ledgers.calls import CallFile, bring
from greenroom.model.clock import Clock
from greenroom.runtime.loops import OnError

if TYPE_CHECKING:
    from greenroom.ledgers.redis.calls import RedisCalls
    from greenroom.ledgers.redis.link import Link

IDLE_S = 60.0
"""Where no room calls anybody: rows of a room that has stopped it have to end."""


class ProcessCalls:
    def __init__(
        self,
        shared: SharedLedgers | None,
        data: Path,
        clock: Clock,
        decision: DecisionService,
        notifications: Notifications,
        on_error: OnError,
    ) -> None:
        self._store: CallFile | RedisCalls
        if shared is None:
            self._store, center, lease_of = CallFile(data, clock), "", None
        else:
            self._store, center = _in_redis(shared.global_redis), shared.data_center
            lease_of = self._store.lease_of
        before = None if shared is None or shared.global_redis is shared.redis else shared.redis
        self._before = before
        calls = SealedCalls(self._store, SealedSecrets(data, clock.now_ms))
        self._decision = decision
        guard = lambda: notifications.guard.for_visitors()  # noqa: E731
        decision.calling.desk = Desk(
            calls, guard, lambda: notifications.mail_ready, on_error, center
        )
        self._sender = CallSender(
            calls,
            decision.calling,
            lambda: decision.table.rooms,
            guard,
            lambda: notifications.mail_server,
            clock.now_ms,
            center,
            lease_of,
        )

    async def run(self) -> None:
        if self._before is not None:
            former = _in_redis(self._before)
            with contextlib.suppress(StorageFailed):
                await bring(former, self._store)
            await former.close()
        await self._sender.run(self._rest_s)

    async def close(self) -> None:
        await self._store.close()

    def _rest_s(self) -> float:
        calls = any(room.now.calls for room in self._decision.table.rooms.values())
        return LOOK_MS / 1000 if calls else IDLE_S


def _in_redis(link: "Link") -> "RedisCalls":
    from greenroom.ledgers.redis.calls import RedisCalls
    from greenroom.ledgers.redis.leases import TIMEOUT_S

    return RedisCalls(link.client(TIMEOUT_S), process_name())
