from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Agenda:
    """Actions of the same millisecond run in the order added."""

    __slots__ = ("_events", "_number", "now_ms")

    def __init__(self, start_ms: int) -> None:
        self.now_ms = start_ms
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    def at(self, when_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        self._number += 1
        heappush(self._events, (when_ms, self._number, action, arguments))

    def after(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        self.at(self.now_ms + delay_ms, action, *arguments)

    def run(self, until_ms: int) -> None:
        events = self._events
        while events and events[0][0] <= until_ms:
            when_ms, _, action, arguments = heappop(events)
            if when_ms > self.now_ms:
                self.now_ms = when_ms
            action(*arguments)
        self.now_ms = max(self.now_ms, until_ms)
