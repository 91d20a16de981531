import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from greenroom.calls.desk import Desk, SealedCalls
from greenroom.calls.rules import LOOK_MS
from greenroom.calls.sender import CallSender
from greenroom.config.shared import Shared
from greenroom.decision.service import DecisionService
from greenroom.keys.sealed_secrets import SealedSecrets
from greenroom.ledgers.calls import CallFile
from greenroom.model.clock import Clock
from greenroom.runtime.loops import OnError
from greenroom.runtime.notifications import Notifications

if TYPE_CHECKING:
    from greenroom.ledgers.redis.calls import RedisCalls

IDLE_S = 60.0
"""Where no room calls anybody: rows of a room that has stopped it have to end."""


class ProcessCalls:
    def __init__(
        self,
        shared: Shared | None,
        data: Path,
        clock: Clock,
        decision: DecisionService,
        notifications: Notifications,
        on_error: OnError,
    ) -> None:
        self._store: CallFile | RedisCalls
        if shared is None:
            self._store, lease = CallFile(data, clock), None
        else:
            self._store = _in_redis(shared)
            lease = self._store.lease
        calls = SealedCalls(self._store, SealedSecrets(data, clock.now_ms))
        self._decision = decision
        decision.calling.desk = Desk(
            calls, lambda: notifications.guard, lambda: notifications.mail_ready, on_error
        )
        self._sender = CallSender(
            calls,
            decision.calling,
            lambda: decision.table.rooms,
            lambda: notifications.guard,
            lambda: notifications.mail_server,
            clock.now_ms,
            lease,
        )

    async def run(self) -> None:
        await self._sender.run(self._rest_s)

    async def close(self) -> None:
        await self._store.close()

    def _rest_s(self) -> float:
        calls = any(room.now.calls for room in self._decision.table.rooms.values())
        return LOOK_MS / 1000 if calls else IDLE_S


def _in_redis(shared: Shared) -> "RedisCalls":
    from greenroom.ledgers.redis.calls import RedisCalls
    from greenroom.ledgers.redis.leases import TIMEOUT_S

    process = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    return RedisCalls(shared.redis.client(TIMEOUT_S), process)
