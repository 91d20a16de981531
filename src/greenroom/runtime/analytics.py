import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import msgspec
import structlog

from greenroom.analytics.collector.decisions import recording
from greenroom.analytics.collector.sampler import Rooms, sample
from greenroom.analytics.collector.shared import StreamCollector, send
from greenroom.analytics.collector.writer import STOP_S, Writer
from greenroom.analytics.graphql.datasets import DatasetAnswer
from greenroom.analytics.question import AnalyticsAnswer, AnalyticsStore, Question, QuestionRefused
from greenroom.analytics.recorder import Recorder
from greenroom.analytics.rollup import SLOT_MS
from greenroom.analytics.store.engine import Engine
from greenroom.analytics.store.keeper import Keeper, Retention, RoomPlace
from greenroom.config_file.addresses import ANALYTICS_OFF, store_shown
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.shared import SharedLedgers
from greenroom.configuration.state import AnalyticsState
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.observer import Observer
from greenroom.errors import StorageFailed
from greenroom.model.clock import Clock
from greenroom.notifier import ended
from greenroom.settings.process import AnalyticsRetention
from greenroom.web.stores import ConfigStore

FILE = "analytics.duckdb"
DAY_S = 86_400
BREATH_S = 0.002

log = structlog.get_logger(__name__)


def retention_of(kept: AnalyticsRetention) -> Retention:
    return Retention(kept.minutes_days * DAY_S, kept.hours_days * DAY_S, kept.days_days * DAY_S)


def open_keeper(
    where: str, data: Path, kept: AnalyticsRetention, place_of: Callable[[str], RoomPlace]
) -> Keeper:
    """Raises StorageFailed."""
    return Keeper(
        _engine(where, data), place_of, retention_of(kept), breathe=lambda: time.sleep(BREATH_S)
    )


def open_analytics_file(path: Path) -> Keeper:
    """Raises StorageFailed."""
    from greenroom.analytics.store.duck import DuckEngine

    return Keeper(DuckEngine(path))


def _engine(where: str, data: Path) -> Engine:
    # The libraries are large: import only the one that is needed, when it is.
    if where:
        from greenroom.analytics.store.click import ClickEngine

        return ClickEngine(where, store_shown(where))
    from greenroom.analytics.store.duck import DuckEngine

    return DuckEngine(data / FILE)


def places_of(config: ConfigStore) -> Callable[[str], RoomPlace]:
    def place_of(room_id: str) -> RoomPlace:
        try:
            entry = config.read().rooms.get(room_id)
        except StorageFailed:
            return RoomPlace()
        return RoomPlace(entry.parent, entry.record.name) if entry else RoomPlace()

    return place_of


class NoAnalytics:
    def observer(self, counts: DecisionCounts) -> Observer:
        return counts.observe

    def answers(self) -> Mapping[str, DatasetAnswer]:
        return {}

    def store(self) -> AnalyticsStore | None:
        """None: nothing is recorded."""
        return None

    def state(self) -> AnalyticsState | None:
        """None: nothing is recorded."""
        return None

    async def run(self, rooms: Rooms) -> None:  # noqa: ARG002
        await asyncio.Event().wait()

    async def close(self, rooms: Rooms) -> None: ...


def analytics_of(
    config: ProcessConfig, data: Path, clock: Clock, known: ConfigStore
) -> NoAnalytics:
    if config.analytics == ANALYTICS_OFF:
        return NoAnalytics()
    if config.shared is not None:
        return SharedAnalytics(config, config.shared, data, clock, known)
    return Analytics(config, data, clock, known)


class _Recording(NoAnalytics):
    """A recorder that is sampled at the end of each slot."""

    def __init__(self, data_center: str, clock: Clock, known: ConfigStore) -> None:
        self._now_ms = clock.now_ms
        self._clock = clock
        self._known = known
        self._recorder = Recorder(secrets.token_hex(8), data_center, clock.now_ms())

    def observer(self, counts: DecisionCounts) -> Observer:
        return recording(self._recorder, counts)

    async def _slot(self, rooms: Rooms) -> None:
        await asyncio.sleep((SLOT_MS - self._now_ms() % SLOT_MS) / 1_000)
        now_ms = self._now_ms()
        self._recorder.close(now_ms)
        sample(self._recorder, rooms.looks(now_ms), now_ms)

    def _finish(self, rooms: Rooms) -> None:
        now_ms = self._now_ms()
        sample(self._recorder, rooms.looks(now_ms), now_ms)
        self._recorder.finish()

    def _state(self, found: AnalyticsState) -> AnalyticsState:
        dropped = found.dropped_minutes + self._recorder.dropped_minutes
        return msgspec.structs.replace(found, dropped_minutes=dropped)


class Analytics(_Recording):
    def __init__(self, config: ProcessConfig, data: Path, clock: Clock, known: ConfigStore) -> None:
        super().__init__("here", clock, known)
        place_of = places_of(known)
        self._writer = Writer(
            lambda: open_keeper(config.analytics, data, config.analytics_retention, place_of),
            clock.now_ms,
        )

    def answers(self) -> Mapping[str, DatasetAnswer]:
        from greenroom.analytics.graphql.datasets import room_answers

        return room_answers(self._writer, self._known, self._clock)

    def store(self) -> AnalyticsStore:
        return self._writer

    def state(self) -> AnalyticsState:
        return self._state(self._writer.state())

    async def run(self, rooms: Rooms) -> None:
        self._writer.start()
        while True:
            await self._slot(rooms)
            self._writer.offer(self._recorder.fetch())

    async def close(self, rooms: Rooms) -> None:
        self._finish(rooms)
        self._writer.offer(self._recorder.fetch())
        await asyncio.to_thread(self._writer.stop)


class SharedAnalytics(_Recording):
    def __init__(
        self,
        config: ProcessConfig,
        shared: SharedLedgers,
        data: Path,
        clock: Clock,
        known: ConfigStore,
    ) -> None:
        from greenroom.ledgers.redis.analytics_stream import RedisAnalyticsStream
        from greenroom.ledgers.redis.leases import TIMEOUT_S

        super().__init__(shared.data_center, clock, known)
        self._stream = RedisAnalyticsStream(
            shared.global_redis.client(TIMEOUT_S), self._recorder.source
        )
        place_of = places_of(known)

        def make_writer() -> Writer:
            return Writer(
                lambda: open_keeper(config.analytics, data, config.analytics_retention, place_of),
                clock.now_ms,
                records_here=False,
            )

        self._collector = StreamCollector(
            self._stream, lambda: shared.data_centers, make_writer, clock.now_ms
        )
        self._problem = ""
        self._failures = 0

    def answers(self) -> Mapping[str, DatasetAnswer]:
        from greenroom.analytics.graphql.datasets import room_answers

        return room_answers(self, self._known, self._clock)

    def store(self) -> AnalyticsStore:
        return self

    def answer(self, question: Question, timeout_s: float | None = None) -> AnalyticsAnswer:
        return self._opened().answer(question, timeout_s)

    def rooms_of(self, zone_id: str) -> Collection[str]:
        return self._opened().rooms_of(zone_id)

    def _opened(self) -> Writer:
        writer = self._collector.writer
        if writer is None:
            raise QuestionRefused(
                "another process keeps the analytics of this installation: ask the one whose /status says collector = true"
            )
        return writer

    def state(self) -> AnalyticsState:
        writer = self._collector.writer
        found = writer.state() if writer else AnalyticsState()
        return msgspec.structs.replace(
            self._state(found),
            failures=found.failures + self._failures,
            problem=found.problem or self._problem,
            collector=writer is not None,
        )

    async def run(self, rooms: Rooms) -> None:
        sending = asyncio.create_task(self._send())
        try:
            while True:
                await self._slot(rooms)
                if sending.done():  # a slow store delays no sample
                    sending.result()
                    sending = asyncio.create_task(self._send())
        finally:
            await ended([sending])

    async def _send(self) -> None:
        try:
            await send(self._recorder, self._stream)
            await self._collector.step()
        except StorageFailed as error:
            self._failed(str(error))
        else:
            self._failed("")

    async def close(self, rooms: Rooms) -> None:
        self._finish(rooms)
        try:
            async with asyncio.timeout(STOP_S):
                await send(self._recorder, self._stream, last=True)
                if self._collector.writer is not None:
                    await self._collector.step()
                    await self._stream.collector.release()
        except (StorageFailed, TimeoutError) as error:
            self._failed(str(error) or "the end of the process was not told in time")
        await self._collector.stand_back()
        await self._stream.close()

    def _failed(self, reason: str) -> None:
        if reason:
            self._failures += 1
        if reason and not self._problem:
            log.error("analytics_not_sent", reason=reason)
        elif self._problem and not reason:
            log.info("analytics_send_recovered")
        self._problem = reason
