"""A month of plausible history of one room, recorded by analytics and marked as generated. There is
no network, and the line moves every five seconds, so a month takes seconds.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from math import pi, sin

import msgspec

from greenroom.analytics.recorder import NOT_WAITED, Recorder
from greenroom.analytics.rollup import MINUTE_MS, SLOT_MS, Part, RoomLimits
from greenroom.model.room import Room
from greenroom.simulator.arrivals import arrivals, rush
from greenroom.simulator.chance import RandomDraw, Streams, exponential
from greenroom.simulator.sale import bottleneck
from greenroom.simulator.scenario import Behaviour

DAY_S = 86_400
SALES = ((4, 18), (11, 12), (18, 18), (25, 20))

SALE_S = 5_400
SALE_CROWD = 6.0

NOON, NIGHT, WEEKEND = 0.95, 0.12, 0.7

PAGE_S = 12.0
REFRESHES_A_SLOT = 0.25

SOURCE = "history"


def history(
    streams: Streams, room: Room, begin_ms: int, end_ms: int, habits: Behaviour | None = None
) -> Iterator[list[Part]]:
    """From a whole minute on, as many whole hours as fit between the two."""
    habits = habits or Behaviour(visit_s=45.0, patience_s=1_200.0)
    _, per_minute = bottleneck(room, habits)
    draw = streams("history")
    came = deque(
        at_ms
        for at_ms, _ in arrivals(
            draw,
            (end_ms - begin_ms) / 1000,
            lambda s: [_rate(begin_ms // 1000, s, per_minute)],
            60.0,
        )
    )
    line = _Line(room, habits, draw, Recorder(SOURCE, "here", begin_ms))
    for hour_ms in range(begin_ms, end_ms, 3_600_000):
        for now_ms in range(hour_ms + SLOT_MS, hour_ms + 3_600_000 + 1, SLOT_MS):
            while came and begin_ms + came[0] < now_ms:
                line.arrive(begin_ms + came.popleft())
            line.look(now_ms - 1, per_minute)
        yield line.minutes(hour_ms + 3_600_000)


def _rate(begin_s: int, second: float, per_minute: float) -> float:
    at_s = begin_s + second
    part = NIGHT + (NOON - NIGHT) * max(0.0, sin(pi * (at_s % DAY_S / DAY_S - 0.25) / 0.7))
    if int(at_s // DAY_S + 3) % 7 >= 5:  # 1970 began on a Thursday
        part *= WEEKEND
    for day, hour in SALES:
        since_s = second - day * DAY_S - (hour * 3_600 - begin_s % DAY_S) % DAY_S
        if 0 <= since_s < SALE_S:
            part += SALE_CROWD * rush(since_s / SALE_S)
    return part * per_minute / 60


class _Line:
    def __init__(self, room: Room, habits: Behaviour, draw: RandomDraw, recorder: Recorder) -> None:
        self._room = room
        self._habits = habits
        self._draw = draw
        self._recorder = recorder
        self._waiting: deque[int] = deque()
        self._ends: list[tuple[int, int]] = []
        self._minute: deque[int] = deque()

    def arrive(self, at_ms: int) -> None:
        self._pass_on(at_ms)
        if self._waiting or not self._has_room(at_ms):
            self._waiting.append(at_ms)
            self._recorder.decided(self._room.id, "held", at_ms)
        else:
            self._admit(at_ms, NOT_WAITED)

    def look(self, now_ms: int, per_minute: float) -> None:
        room, recorder = self._room, self._recorder
        self._pass_on(now_ms)
        refreshes = len(self._waiting) * REFRESHES_A_SLOT
        recorder.counted(
            room.id, "held", int(refreshes) + (self._draw.random() < refreshes % 1), now_ms
        )
        wait_s = round(len(self._waiting) * 60 / per_minute)
        recorder.looked(room.id, len(self._ends), len(self._waiting), wait_s, now_ms)
        recorder.limited(
            room.id,
            RoomLimits(
                now_ms, room.total_active_users, room.new_users_per_minute, room.session_duration
            ),
        )

    def minutes(self, now_ms: int) -> list[Part]:
        self._recorder.close(now_ms)
        parts = [part for minute in self._recorder.fetch() for part in minute.parts()]
        return [
            msgspec.structs.replace(
                part, rollup=msgspec.structs.replace(part.rollup, generated=True)
            )
            for part in parts
        ]

    def _pass_on(self, now_ms: int) -> None:
        while self._ends and self._ends[0][0] <= now_ms:
            _, stayed_ms = heapq.heappop(self._ends)
            self._recorder.stayed(self._room.id, (stayed_ms,), now_ms)
            self._recorder.counted(self._room.id, "passed", int(stayed_ms / 1000 / PAGE_S), now_ms)
        while self._waiting and self._has_room(now_ms):
            waited_ms = now_ms - self._waiting.popleft()
            if self._habits.patience_s and waited_ms > 1000 * exponential(
                self._draw, self._habits.patience_s
            ):
                self._recorder.counted(self._room.id, "abandoned", 1, now_ms)
            else:
                self._admit(now_ms, waited_ms)

    def _has_room(self, now_ms: int) -> bool:
        while self._minute and self._minute[0] <= now_ms - MINUTE_MS:
            self._minute.popleft()
        return (
            len(self._ends) < self._room.total_active_users
            and len(self._minute) < self._room.new_users_per_minute
        )

    def _admit(self, now_ms: int, waited_ms: int) -> None:
        self._minute.append(now_ms)
        stays_ms = int(1000 * exponential(self._draw, self._habits.visit_s))
        leaves = self._draw.random() < self._habits.leaving
        heapq.heappush(
            self._ends, (now_ms + stays_ms + (0 if leaves else self._room.session_ms), stays_ms)
        )
        self._recorder.decided(self._room.id, "admitted", now_ms, waited_ms)
