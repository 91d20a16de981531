"""The feed of the live pages: one poller for the whole process. Once a second it reads the state,
makes one message for each watched room, and wakes the watchers. A slow watcher misses messages and
delays no other. It keeps an hour of samples for browsers that reconnect, and ends without watchers.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec
import structlog

from greenroom.accounts.sign_in import SignIn
from greenroom.admission.schedule import Phase
from greenroom.analytics.dashboard.parts import ANALYTICS_STORE
from greenroom.configuration.dashboard.parts import LiveState
from greenroom.configuration.state import RoomState
from greenroom.dashboard.live_words import capacity_words, limit_words
from greenroom.dashboard.room_live import no_estimate, room_live
from greenroom.dashboard.room_minutes import LiveMinute, last_hour
from greenroom.decision.room_view import CenterView, RoomView
from greenroom.errors import StorageFailed
from greenroom.model.clock import LastMinute
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.room import Room
from greenroom.web.config_service import ConfigService
from greenroom.web.pages.rendering import duration
from greenroom.web.pages.request import PagePart, PageParts

TICK_S = 1.0
KEPT_EVERY_MS = 5_000
KEPT = 720

ROOMS_KEPT = 500
"""The room watched longest ago is dropped first."""

WATCHERS_MAX = 2_000

SESSIONS_EVERY = 5

MINUTES_EVERY_MS = 30_000
IDLE_TICKS = 30
MINUTE_MS = RECENT_MS = 60_000

log = structlog.get_logger("greenroom.dashboard")


AT_LIMIT = ("active", "rate", "both")


class LiveFrame(msgspec.Struct, frozen=True):
    """Times are Unix milliseconds; None means unknown."""

    at_ms: int
    word: str
    label: str
    tone: str
    active: int
    active_limit: int
    minute: int
    minute_limit: int
    waiting: int
    wait_s: float | None
    title: str
    text: str
    arrivals: int | None = None
    abandoned: int | None = None
    waited_p50_s: float | None = None
    waited_p95_s: float | None = None
    origin: str = ""
    origin_errors: int | None = None
    origin_mean_s: float | None = None
    event: str = ""
    event_words: str = ""
    wait_words: str = ""
    wait_note: str = ""
    centers: tuple[CenterView, ...] = ()
    capacity: str = ""
    capacity_reason: str = ""


ERRORS = ("origin_5xx", "origin_connect_failures")

ANSWERS = tuple(f"origin_{digit}xx" for digit in range(1, 6))


class OriginLastMinute(NamedTuple):
    """For the origins of all rooms of this process; None until known."""

    errors: int | None = None
    mean_s: float | None = None


class OriginTrail:
    def __init__(self) -> None:
        self._minute = LastMinute()

    def add(self, now_ms: int, gateway: Iterable[tuple[str, float]]) -> None:
        counts = dict(gateway)
        errors, answers = (
            sum(counts.get(name, 0) for name in names) for names in (ERRORS, ANSWERS)
        )
        self._minute.add(now_ms, errors, answers, counts.get("origin_wait_seconds", 0.0))

    def last_minute(self) -> OriginLastMinute:
        if self._minute.span_ms < RECENT_MS // 2:
            return OriginLastMinute()
        errors, answers, waited_s = self._minute.growth()
        return OriginLastMinute(int(errors), waited_s / answers if answers else None)


UNSEEN = OriginLastMinute()


class RoomTrail:
    def __init__(self) -> None:
        self.samples: deque[tuple[int, ...]] = deque(maxlen=KEPT)
        self.minutes: list[LiveMinute] = []
        self.minutes_ms = -MINUTES_EVERY_MS
        self._waiting: deque[tuple[int, int]] = deque()

    def add(self, frame: LiveFrame) -> None:
        self._waiting.append((frame.at_ms, frame.waiting))
        while self._waiting[0][0] < frame.at_ms - RECENT_MS:
            self._waiting.popleft()
        if not self.samples or frame.at_ms - self.samples[-1][0] >= KEPT_EVERY_MS:
            wait = -1 if frame.wait_s is None else round(frame.wait_s)
            self.samples.append(
                (
                    frame.at_ms,
                    frame.active,
                    frame.active_limit,
                    frame.minute,
                    frame.minute_limit,
                    frame.waiting,
                    wait,
                )
            )

    def arrivals(self, minute: int, waiting: int, now_ms: int) -> int | None:
        """An estimate: visitors admitted, those who gave up, and the growth of the line. None
        before a minute was seen.
        """
        if not self._waiting or now_ms - self._waiting[0][0] < RECENT_MS - 5_000:
            return self.minutes[-1].arrivals if self.minutes else None
        gone = self.minutes[-1].abandoned if self.minutes else 0
        return max(0, minute + gone + waiting - self._waiting[0][1])

    def history(self) -> list[tuple[int, ...]]:
        """Uses analytics for minutes that no one watched."""
        seen = {sample[0] // MINUTE_MS for sample in self.samples}
        unseen = [
            (
                one.start_s * 1000 + MINUTE_MS // 2,
                one.active,
                one.active_limit,
                one.admitted,
                one.admitted_limit,
                one.waiting,
                -1,
            )
            for one in self.minutes
            if one.start_s * 1000 // MINUTE_MS not in seen
        ]
        found = sorted([*unseen, *self.samples])
        return [point for point in found if point[0] > found[-1][0] - 60 * MINUTE_MS]


def live_frame(
    live: RoomView,
    state: RoomState | None,
    now_ms: int,
    trail: RoomTrail,
    origin: OriginLastMinute = UNSEEN,
) -> LiveFrame:
    figures, room, event = live.figures, live.now.room, live.now.event
    tone = live.state.tone
    said, last = limit_words(live), trail.minutes[-1] if trail.minutes else None
    waited = next(
        (one for one in reversed(trail.minutes[-5:]) if one.waited_p50_s is not None), None
    )
    estimate = figures.estimate if figures.waiting else None
    most_s = estimate.most_s if estimate else None
    capacity = state.capacity if state else None
    return LiveFrame(
        at_ms=now_ms,
        word=live.word,
        label=live.state.label,
        tone="yellow" if said.binds in AT_LIMIT and tone == "green" else tone,
        active=figures.active,
        active_limit=live.now.active_limit,
        minute=figures.last_minute,
        minute_limit=room.new_users_per_minute,
        waiting=figures.waiting,
        wait_s=_finite(estimate.p50_s) if estimate else None,
        title=said.title,
        text=said.text,
        arrivals=trail.arrivals(figures.last_minute, figures.waiting, now_ms),
        abandoned=last.abandoned if last else None,
        waited_p50_s=waited.waited_p50_s if waited else None,
        waited_p95_s=waited.waited_p95_s if waited else None,
        origin=state.origin if state else "",
        origin_errors=origin.errors,
        origin_mean_s=origin.mean_s,
        event=event.name if event else "",
        event_words=_event_words(live, now_ms),
        wait_words=_wait(live),
        wait_note=no_estimate(live) or (f"p95 {duration(most_s)}" if most_s else ""),
        centers=figures.centers,
        capacity=capacity_words(capacity, now_ms) if capacity else "",
        capacity_reason=capacity.reason if capacity else "",
    )


def _event_words(live: RoomView, now_ms: int) -> str:
    until_ms = live.now.phase_ends_ms
    if not live.event_name or until_ms is None:
        return ""
    does = "starts" if live.now.phase is Phase.PREQUEUE else "ends"
    return f"Event {live.event_name} {does} in {duration(max(0, until_ms - now_ms) / 1000)}"


def _wait(live: RoomView) -> str:
    if no_estimate(live):
        return "unknown"
    return duration(live.wait_s) if live.figures.waiting else "none"


def _event(frame: LiveFrame) -> bytes:
    return b"data: " + msgspec.json.encode(frame) + b"\n\n"


def _finite(seconds: float) -> float | None:
    return round(seconds, 1) if 0 <= seconds < 1e9 else None


class LiveWatcher:
    def __init__(self, room_id: str, zone_id: str, secret: str, *, sees_all: bool = False) -> None:
        """`sees_all`: also gets figures over the rooms of all zones."""
        self.sees_all = sees_all
        self.room_id = room_id
        self.zone_id = zone_id
        self.secret = secret
        self.over = False


class LiveFeed:
    """Serves all watchers of this process, in its event loop."""

    def __init__(
        self, config: ConfigService, parts: PageParts, live: LiveState, sign_in: SignIn
    ) -> None:
        self._config = config
        self._parts = parts
        self._live = live
        self._sign_in = sign_in
        self._watchers: set[LiveWatcher] = set()
        self._trails: dict[str, RoomTrail] = {}
        self._messages: dict[str, tuple[bytes, bytes]] = {}
        """(for people of single zones, for people who see all)."""
        self._histories: dict[str, bytes] = {}
        self.origin = OriginTrail()
        self._ticked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    @property
    def is_full(self) -> bool:
        return len(self._watchers) >= WATCHERS_MAX

    def trail(self, room_id: str) -> RoomTrail:
        trail = self._trails.pop(room_id, None) or RoomTrail()
        self._trails[room_id] = trail
        while len(self._trails) > ROOMS_KEPT:
            del self._trails[next(iter(self._trails))]
        return trail

    def trail_of(self, room_id: str) -> RoomTrail:
        """Safe in a thread."""
        return self._trails.get(room_id) or RoomTrail()

    async def watch(self, watcher: LiveWatcher) -> AsyncIterator[bytes]:
        """Ends with the browser's connection, its session, or greenroom."""
        trail = self.trail(watcher.room_id)
        self._watchers.add(watcher)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            yield b"retry: 2000\n\n"
            await self._read_minutes(watcher.room_id, trail)
            yield self._history(watcher.room_id, trail)
            while not watcher.over:
                await self._ticked.wait()
                message = self._messages.get(watcher.room_id)
                if message is not None:
                    yield message[watcher.sees_all]
            yield b"event: over\ndata: {}\n\n"
        finally:
            self._watchers.discard(watcher)

    def _history(self, room_id: str, trail: RoomTrail) -> bytes:
        made = self._histories.get(room_id)
        if made is None:
            made = self._histories[room_id] = (
                b"event: history\ndata: " + msgspec.json.encode(trail.history()) + b"\n\n"
            )
        return made

    async def _run(self) -> None:
        idle, ticks, known = 0, 0, Configuration()
        while idle < IDLE_TICKS or self._watchers:  # one may have come during the last pause
            begun = asyncio.get_running_loop().time()
            try:
                known = await asyncio.to_thread(self._config.store.read)
            except StorageFailed as error:
                log.warning("live_feed_configuration_unreadable", reason=str(error))
            try:
                if ticks % SESSIONS_EVERY == 0:
                    await self._end_sessions(known)
                await self._tick(known)
            except Exception as error:  # the streams stay open, and nothing but this loop would ever tell them anything
                log.error("live_feed_failed", reason=repr(error))
            ticks, idle = ticks + 1, 0 if self._watchers else idle + 1
            await asyncio.sleep(max(TICK_S / 5, begun + TICK_S - asyncio.get_running_loop().time()))

    async def _tick(self, known: Configuration) -> None:
        state, rooms = self._live.look()
        self.origin.add(state.now_ms, state.gateway)
        watched = {watcher.room_id for watcher in self._watchers}
        self._messages, self._histories = {}, {}
        for room_id in watched:
            entry = known.rooms.get(room_id)
            if entry is not None:
                self._messages[room_id] = self._message(known, entry, rooms, state.now_ms)
        for watcher in self._watchers:
            watcher.over = (
                watcher.over or state.phase == "draining" or watcher.room_id not in self._messages
            )
        ticked, self._ticked = self._ticked, asyncio.Event()
        ticked.set()
        for room_id in watched:
            await self._read_minutes(room_id, self.trail(room_id))

    def _message(
        self, known: Configuration, entry: Entry[Room], rooms: Mapping[str, RoomState], now_ms: int
    ) -> tuple[bytes, bytes]:
        trail, state = self.trail(entry.id), rooms.get(entry.id)
        frame = live_frame(room_live(known, entry, state, now_ms), state, now_ms, trail)
        trail.add(frame)
        origin = self.origin.last_minute()
        whole = msgspec.structs.replace(
            frame, origin_errors=origin.errors, origin_mean_s=origin.mean_s
        )
        return _event(frame), _event(whole)

    async def _read_minutes(self, room_id: str, trail: RoomTrail) -> None:
        now_ms = self._config.clock.now_ms()
        if now_ms - trail.minutes_ms < MINUTES_EVERY_MS:
            return
        trail.minutes_ms = now_ms
        trail.minutes = await asyncio.to_thread(
            last_hour, self._parts.find(ANALYTICS_STORE), room_id, now_ms
        )
        self._histories.pop(room_id, None)

    async def _end_sessions(self, known: Configuration) -> None:
        watchers = list(self._watchers)
        if watchers:
            try:
                ended = await asyncio.to_thread(self._ended, known, watchers)
            except StorageFailed:  # who may still watch cannot be told
                ended = watchers
            for watcher in ended:
                watcher.over = True

    def _ended(self, known: Configuration, watchers: Collection[LiveWatcher]) -> list[LiveWatcher]:
        living = self._sign_in.find_all(known, {watcher.secret for watcher in watchers})

        def may_watch(watcher: LiveWatcher) -> bool:
            session = living.get(watcher.secret)
            return session is not None and session.person.sees(watcher.zone_id)

        return [watcher for watcher in watchers if not may_watch(watcher)]


FEED = PagePart[LiveFeed]("live feed")
