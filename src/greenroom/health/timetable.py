"""Which check is due when."""

import heapq
from collections.abc import Mapping
from typing import NamedTuple

from greenroom.health.rules.schedule import next_due_ms
from greenroom.model.health_check import HealthCheck

SOON_MAX = 100

SOON_STEP_MS = 20


class DueCheck(NamedTuple):
    check: HealthCheck
    due_ms: int


class Timetable:
    """A check that is still being probed is not due again: its turn is skipped and counted."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._checks: dict[str, HealthCheck] = {}
        self._generation: dict[str, int] = {}
        self._heap: list[tuple[int, str, int]] = []
        self._running: set[str] = set()
        self._count = 0
        self.skipped = 0

    @property
    def running(self) -> int:
        return len(self._running)

    def __len__(self) -> int:
        return len(self._checks)

    def plan(self, checks: Mapping[str, HealthCheck], now_ms: int) -> None:
        """An unchanged check keeps its place."""
        wanted = {key: check for key, check in checks.items() if not check.suspended}
        fresh = [key for key, check in wanted.items() if self._checks.get(key) != check]
        for key in self._checks.keys() - wanted.keys():
            self._generation.pop(key, None)
        self._checks = wanted
        for number, key in enumerate(fresh):
            self._count += 1
            self._generation[key] = self._count
            place_ms = next_due_ms(key, self._agent, wanted[key].interval * 1000, now_ms)
            soon_ms = now_ms + number * SOON_STEP_MS
            heapq.heappush(
                self._heap,
                (min(soon_ms, place_ms) if len(fresh) <= SOON_MAX else place_ms, key, self._count),
            )

    def next_ms(self) -> int | None:
        while self._heap and self._generation.get(self._heap[0][1]) != self._heap[0][2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now_ms: int, most: int) -> list[DueCheck]:
        """Due checks, in order; they count as running from here on."""
        found: list[DueCheck] = []
        while len(found) < most and (due_ms := self.next_ms()) is not None and due_ms <= now_ms:
            _, key, generation = heapq.heappop(self._heap)
            check = self._checks[key]
            heapq.heappush(
                self._heap,
                (
                    self._following(check, max(due_ms, now_ms - check.interval * 1000)),
                    key,
                    generation,
                ),
            )
            if key in self._running:
                self.skipped += 1
                continue
            self._running.add(key)
            found.append(DueCheck(check, due_ms))
        return found

    def ended(self, check_id: str) -> None:
        self._running.discard(check_id)

    def _following(self, check: HealthCheck, after_ms: int) -> int:
        """At least half an interval after a probe out of turn."""
        interval_ms = check.interval * 1000
        due_ms = next_due_ms(check.id, self._agent, interval_ms, after_ms)
        return (
            due_ms
            if due_ms - after_ms >= interval_ms // 2
            else next_due_ms(check.id, self._agent, interval_ms, due_ms)
        )
