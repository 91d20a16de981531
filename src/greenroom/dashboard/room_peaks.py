"""Peaks of the last day of every room, one query a minute."""

import contextlib
import threading
from typing import NamedTuple

from greenroom.analytics.question import (
    AnalyticsStore,
    Question,
    QuestionRefused,
    SlowAnswer,
    Wanted,
)
from greenroom.errors import StorageFailed
from greenroom.web.time_format import milliseconds

FRESH_MS = 60_000
HOUR_S, DAY_S = 3_600, 86_400
STEP_S = 300
PATIENCE_S = 2.0
WAIT_S = 0.02
"""A later refresh of the table shows what is missing."""

ROWS_MAX = 10_000
LINE_WIDE, LINE_HIGH = 60, 18


class RoomPeaks(NamedTuple):
    active: int
    waiting: int
    points: str
    generated: bool


class PeakCache:
    """Reads in a thread: a day of a thousand rooms takes the store some time."""

    def __init__(self) -> None:
        self._found: dict[str, RoomPeaks] = {}
        self._asked_ms = 0
        self._guard = threading.Lock()
        self._asking: threading.Thread | None = None

    def of_all(
        self, store: AnalyticsStore | None, room_ids: frozenset[str], now_ms: int
    ) -> dict[str, RoomPeaks]:
        """Never raises, and never waits longer than WAIT_S."""
        if store is None or not room_ids:
            return {}
        with self._guard:
            asking = self._asking
            if now_ms - self._asked_ms >= FRESH_MS and not (asking and asking.is_alive()):
                self._asked_ms = now_ms
                asking = self._asking = threading.Thread(
                    target=self._ask, args=(store, room_ids, now_ms // 1000), daemon=True
                )
                asking.start()
        if asking:
            asking.join(WAIT_S)
        return self._found

    def settle(self) -> None:
        if self._asking:
            self._asking.join()

    def _ask(self, store: AnalyticsStore, room_ids: frozenset[str], now_s: int) -> None:
        with contextlib.suppress(
            QuestionRefused, SlowAnswer, StorageFailed
        ):  # the table goes without
            self._found = _asked(store, room_ids, now_s)


def _asked(store: AnalyticsStore, room_ids: frozenset[str], now_s: int) -> dict[str, RoomPeaks]:
    wanted = (
        Wanted("max", "totalActiveUsers"),
        Wanted("max", "totalQueuedUsers"),
        Wanted("sum", "minutesGenerated"),
    )
    end_s = now_s // STEP_S * STEP_S + STEP_S
    day = store.answer(
        Question(end_s - DAY_S, end_s, room_ids, ("waitingRoomId",), wanted, limit=ROWS_MAX),
        PATIENCE_S,
    )
    steps = Question(
        end_s - HOUR_S,
        end_s,
        room_ids,
        ("waitingRoomId", "datetimeFiveMinutes"),
        wanted[:1],
        limit=ROWS_MAX,
    )
    fits = (
        len(room_ids) * HOUR_S // STEP_S <= ROWS_MAX
    )  # an answer that was cut would draw lines that are not true
    lines: dict[str, dict[int, int]] = {}
    for row in store.answer(steps, PATIENCE_S).rows if fits else ():
        step = (
            (milliseconds(row["", "datetimeFiveMinutes"]) or 0) // 1000 - (end_s - HOUR_S)
        ) // STEP_S
        lines.setdefault(str(row["", "waitingRoomId"]), {})[step] = int(
            row.get(("max", "totalActiveUsers")) or 0
        )
    return {
        str(row["", "waitingRoomId"]): RoomPeaks(
            int(row.get(("max", "totalActiveUsers")) or 0),
            int(row.get(("max", "totalQueuedUsers")) or 0),
            _points(lines.get(str(row["", "waitingRoomId"]), {})),
            bool(row.get(("sum", "minutesGenerated"))),
        )
        for row in day.rows
    }


def _points(steps: dict[int, int]) -> str:
    # Steps without a minute are 0: nothing was recorded because no visitor came.
    if not steps:
        return ""
    count, top = HOUR_S // STEP_S, max(max(steps.values()), 1)
    return " ".join(
        f"{LINE_WIDE * step / (count - 1):.0f},{LINE_HIGH - (LINE_HIGH - 2) * steps.get(step, 0) / top:.0f}"
        for step in range(count)
    )
