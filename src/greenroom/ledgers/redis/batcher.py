"""Batches the questions of one event-loop iteration; meanwhile the next batch collects. When Redis
does not answer, all who wait are held.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from greenroom.ledgers.redis.wire import Command, Unreachable, Wire

TRIP_MAX = 1_024
"""About 10 ms of work there and 5 ms here."""

GATHERED_MAX = 20_000
"""About 10 MB; more are answered at once as if Redis did not."""


class BatchSource(Protocol):
    def commands(self, limit: int) -> list[tuple[Command, Callable[[Any], None]]]:
        """Each with who takes the reply (a value or an exception)."""

    @property
    def idle(self) -> bool: ...

    def give_up(self, error: Exception) -> None: ...


class RequestBatcher:
    def __init__(
        self,
        wire: Wire,
        on_trip: Callable[[float], None],
        on_failure: Callable[[Exception | None], None],
    ) -> None:
        """`on_trip`: seconds of each round trip. `on_failure`: every failure, and None when it is
        over.
        """
        self._wire = wire
        self._on_trip = on_trip
        self._on_failure = on_failure
        self.questions = self.trips = self.failed = 0
        self.seconds = 0.0
        self._sources: dict[BatchSource, None] = {}
        self._trip: asyncio.Task[None] | None = None
        self._well = True

    def call(self, source: BatchSource) -> None:
        self._sources[source] = None
        if self._trip is None:
            self._trip = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Everybody is answered."""
        if self._trip:
            self._trip.cancel()
            await asyncio.gather(self._trip, return_exceptions=True)
        self._give_up(Unreachable("closed"))
        await self._wire.close()

    async def _work(self) -> None:
        try:
            while self._sources:
                await self._travel()
        finally:
            self._trip = None

    async def _travel(self) -> None:
        sent: list[tuple[Command, Callable[[Any], None]]] = []
        for source in list(self._sources):
            sent += source.commands(TRIP_MAX)
            if source.idle:
                del self._sources[source]
            if len(sent) >= TRIP_MAX:
                break
        if not sent:
            return
        self.trips += 1
        began_s = time.monotonic()
        try:
            replies: Iterable[Any] = await self._wire.exchange([command for command, _ in sent])
        except BaseException as error:
            reason = error if isinstance(error, Unreachable) else Unreachable(repr(error))
            self.failed += 1
            self._say(reason)
            for _, taken in sent:
                taken(reason)
            self._give_up(
                reason
            )  # they came while there was no answer: another try would only make them wait as long again
            if not isinstance(error, Unreachable):
                raise
            return
        took_s = time.monotonic() - began_s
        self.seconds += took_s
        failure: Exception | None = None
        for (_, taken), reply in zip(sent, replies, strict=True):
            if isinstance(reply, Exception):
                failure = reply
            try:
                taken(reply)
            except (
                Exception
            ) as error:  # one failing callback must not prevent the answers of the others
                failure = error
        self._on_trip(took_s)
        self._say(failure)

    def _say(self, failure: Exception | None) -> None:
        if failure is not None or not self._well:
            self._on_failure(failure)
        self._well = failure is None

    def _give_up(self, error: Exception) -> None:
        sources, self._sources = list(self._sources), {}
        for source in sources:
            source.give_up(error)
