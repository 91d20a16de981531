"""Analytics of processes that share their ledgers: each sends its minutes to a stream, and one
writes them to the store. A message stays in the stream until it is written. A process that falls
silent without a last message was killed: the minute after its last one is marked incomplete.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from greenroom.analytics.collector.writer import Writer
from greenroom.analytics.recorder import ClosedMinute, Recorder
from greenroom.analytics.rollup import Part, Rollup
from greenroom.errors import StorageFailed

if TYPE_CHECKING:
    from greenroom.ledgers.redis.analytics_stream import RedisAnalyticsStream

PARTS_MAX = 200
"""About 100 KB."""

READ_AT_ONCE = 50
SILENT_MINUTES = 3

SOURCES_MAX = 10_000

WRITTEN_WITHIN_S = 60.0


class StreamMessage(msgspec.Struct, frozen=True):
    """`last`: the process then ended in order."""

    source: str
    minute: int
    parts: list[Part]
    last: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StreamMessage).decode


async def send(recorder: Recorder, stream: "RedisAnalyticsStream", last: bool = False) -> None:
    """Unsent minutes return to the recorder. Raises StorageFailed."""
    minutes = recorder.fetch()
    for place, minute in enumerate(minutes):
        try:
            for message in _messages(recorder.source, minute, last and place == len(minutes) - 1):
                await stream.add(recorder.data_center, message)
        except (StorageFailed, asyncio.CancelledError):
            # what was sent of this one is sent again, and known
            recorder.give_back(minutes[place:])
            raise


def _messages(source: str, minute: ClosedMinute, last: bool) -> Iterable[bytes]:
    parts = list(minute.parts())
    for begin in range(0, len(parts), PARTS_MAX):
        some = parts[begin : begin + PARTS_MAX]
        yield _encode(
            StreamMessage(source, minute.minute, some, last and begin + PARTS_MAX >= len(parts))
        )


class SourceWatch:
    def __init__(self) -> None:
        self._heard: dict[str, tuple[int, frozenset[str]]] = {}
        self._ended: set[str] = set()

    def hear(self, message: StreamMessage) -> None:
        minute, rooms = self._heard.get(message.source, (0, frozenset[str]()))
        if message.last:
            self._heard.pop(message.source, None)
            if len(self._ended) >= SOURCES_MAX:
                self._ended.clear()
            self._ended.add(message.source)
        elif message.source in self._ended:
            return  # a message of it that came twice
        elif message.minute >= minute and (
            message.source in self._heard or len(self._heard) < SOURCES_MAX
        ):
            found = frozenset(part.room for part in message.parts)
            self._heard[message.source] = (
                message.minute,
                found if message.minute > minute else rooms | found,
            )

    def killed(self, now_minute: int) -> list[Part]:
        silent = [
            source
            for source, (minute, _) in self._heard.items()
            if now_minute - minute > SILENT_MINUTES
        ]
        marks = []
        for source in silent:
            minute, rooms = self._heard.pop(source)
            marks += [
                Part(f"{source}-killed", minute + 1, room, Rollup(incomplete=True))
                for room in sorted(rooms)
            ]
        return marks


class StreamBatch:
    def __init__(self, minute: int, parts: list[Part], loop: asyncio.AbstractEventLoop) -> None:
        self.minute = minute
        self.done = asyncio.Event()
        self._parts = parts
        self._loop = loop

    def parts(self) -> list[Part]:
        return self._parts

    def written(self) -> None:
        self._loop.call_soon_threadsafe(self.done.set)


class StreamCollector:
    def __init__(
        self,
        stream: "RedisAnalyticsStream",
        data_centers: Callable[[], Sequence[str]],
        make_writer: Callable[[], Writer],
        now_ms: Callable[[], int],
    ) -> None:
        """`make_writer` is called whenever this process becomes the collector."""
        self._stream = stream
        self._data_centers = data_centers
        self._make_writer = make_writer
        self._now_ms = now_ms
        self._watch = SourceWatch()
        self.writer: Writer | None = None

    async def step(self) -> None:
        """Raises StorageFailed."""
        if not await self._stream.collector.acquire():
            await self.stand_back()
            return
        if self.writer is None:
            self.writer = self._make_writer()
            self.writer.start()
        for data_center in self._data_centers():
            while await self._take(self.writer, data_center):
                if not await self._stream.collector.acquire():
                    await self.stand_back()
                    return
        marks = self._watch.killed(self._now_ms() // 60_000)
        if marks:
            self.writer.offer([StreamBatch(marks[0].minute, marks, asyncio.get_running_loop())])

    async def _take(self, writer: Writer, data_center: str) -> bool:
        found = await self._stream.oldest(data_center, READ_AT_ONCE)
        messages = [message for _, data in found if (message := _read(data)) is not None]
        parts = [part for message in messages for part in message.parts]
        if parts:
            batch = StreamBatch(messages[0].minute, parts, asyncio.get_running_loop())
            writer.offer([batch])
            try:
                async with asyncio.timeout(WRITTEN_WITHIN_S):
                    await batch.done.wait()
            except TimeoutError:
                # the store is in trouble, which the writer has said; the messages stay where they
                # are
                return False
        for message in messages:
            self._watch.hear(message)
        if found:
            await self._stream.remove(data_center, [number for number, _ in found])
        return len(found) == READ_AT_ONCE

    async def stand_back(self) -> None:
        writer, self.writer = self.writer, None
        self._watch = SourceWatch()
        if writer is not None:
            await asyncio.to_thread(writer.stop)


def _read(data: bytes) -> StreamMessage | None:
    """Returns None for an unknown entry, and removes it."""
    try:
        return _decode(data)
    except msgspec.MsgspecError:
        return None
