"""The network between data centers and their coordinator."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from greenroom.simulator.chance import Streams, between
from greenroom.simulator.scenario import NetworkProfile


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


DOUBLE_LATE_MS = 10_000


class Links:
    def __init__(
        self, network: NetworkProfile, centers: int, agenda: Agenda, streams: Streams
    ) -> None:
        self._network = network
        self._agenda = agenda
        self._draw = streams("network")
        self._distance = [
            between(self._draw, network.least_ms, network.most_ms) for _ in range(centers)
        ]
        self._cut = [0] * centers
        self.loss = network.loss

    def cut(self, center: int, change: int) -> None:
        self._cut[center] += change

    def is_cut(self, center: int) -> bool:
        return self._cut[center] > 0

    def send(self, center: int, receive: Callable[..., None], *message: Any) -> None:
        """Later, perhaps twice, perhaps never."""
        if self._cut[center]:
            return
        draw, network = self._draw, self._network
        if self.loss and draw.random() < self.loss:
            return
        delay_ms = int(self._distance[center] * (1 + network.jitter * draw.random()))
        self._agenda.after(delay_ms, self._arrives, center, receive, message)
        if network.twice and draw.random() < network.twice:
            self._agenda.after(
                delay_ms + between(draw, 0, DOUBLE_LATE_MS), self._arrives, center, receive, message
            )

    def _arrives(self, center: int, receive: Callable[..., None], message: tuple[Any, ...]) -> None:
        if not self._cut[center]:
            receive(*message)
