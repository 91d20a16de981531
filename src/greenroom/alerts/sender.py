"""Delivers messages from the outbox, in one process at a time, each destination in order. Steps are
written only while the lease is held; what was delivered without being written is delivered again.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable

import structlog

from greenroom.alerts.delivery import DeliveryOutcome
from greenroom.alerts.rules.outbox import Due, next_try_ms
from greenroom.alerts.store import SqlOutbox, StoreOutage
from greenroom.errors import StorageFailed
from greenroom.model.configuration import Configuration
from greenroom.notifier import LAST_WORK_S, Wake, ended, in_loop

LOOK_S = 0.5

RENEW_S = 1.0

IDLE_S = 2.0
"""Consecutive alerts share one lease."""

FORGET_S = 600.0

log = structlog.get_logger(__name__)


Attempt = Callable[[Due, Configuration], Awaitable[DeliveryOutcome]]


class NotificationSender:
    def __init__(
        self,
        outbox: SqlOutbox,
        read: Callable[[], Configuration],
        attempt: Attempt,
        now_ms: Callable[[], int],
        random: Callable[[], float],
    ) -> None:
        """`read` blocks."""
        self.holder = secrets.token_hex(8)
        self._outbox = outbox
        self._read = read
        self._attempt = attempt
        self._now_ms = now_ms
        self._random = random
        self._wake = Wake()
        self._outage = StoreOutage("notifications_waiting", "notifications_resumed")
        self._mine = False
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._renewed_s = self._active_s = 0.0
        self._forgot_s = time.monotonic()

    async def run(self) -> None:
        unwatch = self._outbox.changes.watch(in_loop(self._wake.set))
        try:
            while True:
                try:
                    await self._turn()
                    self._outage.answered()
                except StorageFailed as error:
                    self._outage.failed(error)
                    self._lose()
                await self._wake.rest(LOOK_S)
        finally:
            unwatch()
            await self._stop()

    async def _turn(self) -> None:
        now_s = time.monotonic()
        # before it is read: a delivery that ends meanwhile has left a row that is read as still to be
        # sent
        busy = set(self._busy)
        found = await asyncio.to_thread(self._outbox.due, self._now_ms())
        found = [due for due in found if due.destination not in busy]
        if found and not self._mine:
            self._mine = await asyncio.to_thread(self._outbox.acquire, self.holder)
            if self._mine:
                self._renewed_s = now_s
                log.info("sender_lease_acquired")
        if self._mine:
            await self._keep(now_s, active=bool(found or self._busy))
        if self._mine and found:
            known = await asyncio.to_thread(self._read)
            for due in found:
                self._busy[due.destination] = asyncio.create_task(self._deliver(due, known))
        if now_s - self._forgot_s > FORGET_S:
            self._forgot_s = now_s
            await asyncio.to_thread(self._outbox.forget, self._now_ms())

    async def _keep(self, now_s: float, *, active: bool) -> None:
        self._active_s = now_s if active else self._active_s
        if not active and now_s - self._active_s > IDLE_S:
            await asyncio.to_thread(self._outbox.release, self.holder)
            self._mine = False
        elif now_s - self._renewed_s > RENEW_S:
            self._renewed_s = now_s
            if not await asyncio.to_thread(self._outbox.acquire, self.holder):
                self._lose()

    async def _deliver(self, due: Due, known: Configuration) -> None:
        try:
            outcome = await self._attempted(due, known)
            await self._write_down(due, outcome)
        except StorageFailed as error:
            log.warning("notification_not_recorded", reason=str(error))  # it is sent again
        finally:
            self._busy.pop(due.destination, None)
            self._wake.set()

    async def _attempted(self, due: Due, known: Configuration) -> DeliveryOutcome:
        # A fault of greenroom counts as a failed attempt, so that it cannot stop or spin.
        try:
            return await self._attempt(due, known)
        except Exception as error:
            log.exception(
                "notification_failed", alert_type=due.alert.type, destination=due.destination
            )
            return DeliveryOutcome(f"internal error: {type(error).__name__}")

    async def _write_down(self, due: Due, outcome: DeliveryOutcome) -> None:
        now_ms = self._now_ms()
        facts = {
            "alert_type": due.alert.type,
            "correlation_id": due.alert.correlation_id,
            "destination": due.destination,
        }
        again_ms = None
        if outcome.problem and not outcome.permanent:
            again_ms = next_try_ms(
                due.attempts + 1, due.created_ms, now_ms, self._random(), outcome.retry_after_ms
            )
        if again_ms is not None:
            log.warning(
                "notification_not_delivered",
                reason=outcome.problem,
                attempt=due.attempts + 1,
                again_ms=again_ms - now_ms,
                **facts,
            )
            mine = await asyncio.to_thread(
                self._outbox.postpone, self.holder, due, now_ms, again_ms
            )
        else:
            if outcome.problem:
                log.error(
                    "notification_given_up",
                    reason=outcome.problem,
                    attempt=due.attempts + 1,
                    **facts,
                )
            else:
                log.info("notification_delivered", attempt=due.attempts + 1, **facts)
            mine = await asyncio.to_thread(
                self._outbox.finish, self.holder, due, now_ms, outcome.problem
            )
        if not mine:
            self._lose()

    def _lose(self) -> None:
        self._mine = False
        current = asyncio.current_task()
        for task in self._busy.values():
            if task is not current:
                task.cancel()

    async def _stop(self) -> None:
        await ended(list(self._busy.values()), LAST_WORK_S)
        if self._mine:
            try:
                await asyncio.to_thread(self._outbox.release, self.holder)
            except StorageFailed as error:
                log.warning("sender_lease_not_released", reason=str(error))
