"""Figures about origins that a Prometheus has."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from greenroom.capacity.exported import (
    BODY_MAX,
    Exported,
    FiguresRefused,
    of_prometheus_answer,
    report_of,
)
from greenroom.capacity.measurement import ProcessReport
from greenroom.capacity.sources import FORGOTTEN_MS, PROMETHEUS
from greenroom.capacity.window import WINDOW_MS
from greenroom.config_file.sections import prometheus_base, prometheus_target
from greenroom.model.room import Room
from greenroom.outbound import (
    Guard,
    OutboundFailed,
    OutboundRefused,
    Request,
    RequestLimits,
    exchange,
)

ASKED_AT_ONCE = 8
LIMITS = RequestLimits(total_s=4.0, connect_s=2.0, body_max=4 * BODY_MAX)


class PrometheusFigures:
    """Asks from the process that leads only: its answers are nobody else's reports."""

    def __init__(self, guard: Guard, now_ms: Callable[[], int]) -> None:
        self.guard = guard
        self.logins: Mapping[str, str] = {}
        """Values of `Authorization`, by the URL before the query."""
        self._now_ms = now_ms
        self._found: dict[str, dict[str, ProcessReport]] = {}
        self.reasons: dict[str, str] = {}
        self.rooms: Mapping[str, Room] = {}

    def reports(self) -> dict[str, ProcessReport]:
        return {name: one for room in self._found.values() for name, one in room.items()}

    async def run(self) -> None:
        while True:
            rooms = dict(self.rooms)
            for kept in (self._found, self.reasons):
                for room_id in kept.keys() - rooms.keys():
                    kept.pop(room_id)
            await self.ask(rooms.values())
            await asyncio.sleep(WINDOW_MS / 1000)

    async def ask(self, rooms: Iterable[Room]) -> None:
        free = asyncio.Semaphore(ASKED_AT_ONCE)

        async def about(room: Room) -> None:
            async with free:
                try:
                    found = await self._answer(room.capacity_metrics)
                    newest_ms = max(one.at_ms for one in found.values())
                    age_ms = self._now_ms() - newest_ms
                    if age_ms >= FORGOTTEN_MS:
                        raise FiguresRefused(f"the newest sample is {age_ms // 1000} s old")
                except (FiguresRefused, OutboundRefused, OutboundFailed) as error:
                    self.reasons[room.id] = str(error)
                else:
                    self.reasons.pop(room.id, None)
                    self._found[room.id] = {
                        f"{PROMETHEUS.name}:{room.id}:{instance}": report_of(
                            room.id, one, PROMETHEUS.name, self._now_ms()
                        )
                        for instance, one in found.items()
                    }

        await asyncio.gather(*map(about, rooms))

    async def _answer(self, written: str) -> dict[str, Exported]:
        url = prometheus_target(written).url
        login = self.logins.get(prometheus_base(written))
        headers = (("Authorization", login),) if login else ()
        # Redirects are not followed: what the secret is for ends with this URL.
        answer = await exchange(self.guard, Request("GET", url, headers), LIMITS)
        if answer.truncated:
            raise FiguresRefused(f"Prometheus answered with more than {LIMITS.body_max} bytes")
        if answer.status not in (200, 400, 422):
            raise FiguresRefused(f"Prometheus answered with status {answer.status}")
        return await asyncio.to_thread(of_prometheus_answer, answer.body)
