"""Analytics of one room by minute, for charts and table of the live page."""

from typing import NamedTuple

from greenroom.analytics.question import (
    AnalyticsStore,
    Order,
    Question,
    QuestionRefused,
    Row,
    SlowAnswer,
    Wanted,
)
from greenroom.errors import StorageFailed
from greenroom.web.time_format import milliseconds

MINUTE_S = 60
HOUR_MINUTES = 60
PATIENCE_S = 2.0
"""Live figures wait no longer for analytics."""


class LiveMinute(NamedTuple):
    """None when no visitor was admitted from the line. `arrivals` is an estimate, None for the
    first minute.
    """

    start_s: int
    active: int
    active_limit: int
    admitted: int
    admitted_limit: int
    waiting: int
    abandoned: int
    arrivals: int | None
    waited_p50_s: float | None
    waited_p95_s: float | None
    generated: bool


WANTED = (
    Wanted("max", "totalActiveUsers"),
    Wanted("max", "totalActiveUsersConfig"),
    Wanted("sum", "newUsersPerMinute"),
    Wanted("max", "newUsersPerMinuteConfig"),
    Wanted("max", "totalQueuedUsers"),
    Wanted("sum", "usersAbandoned"),
    Wanted("sum", "usersLeft"),
    Wanted("sum", "sessionsLeft"),
    Wanted("sum", "usersWaited"),
    Wanted("percentile", "totalTimeWaitedP50"),
    Wanted("percentile", "totalTimeWaitedP95"),
    Wanted("sum", "minutesGenerated"),
)


def last_hour(store: AnalyticsStore | None, room_id: str, now_ms: int) -> list[LiveMinute]:
    """Oldest first; empty when the store does not answer. Blocks."""
    if store is None:
        return []
    end_s = now_ms // 1000 // MINUTE_S * MINUTE_S + MINUTE_S
    asked = Question(
        end_s - (HOUR_MINUTES + 1) * MINUTE_S,
        end_s,
        frozenset({room_id}),
        ("datetimeMinute",),
        WANTED,
        order=(Order("", "datetimeMinute"),),
        limit=HOUR_MINUTES + 1,
    )
    try:
        rows = store.answer(asked, PATIENCE_S).rows
    except (QuestionRefused, SlowAnswer, StorageFailed):
        return []
    found: list[LiveMinute] = []
    for row in rows:
        found.append(_minute(row, found[-1] if found else None))
    return found


def _minute(row: Row, before: LiveMinute | None) -> LiveMinute:
    start_s = (milliseconds(row["", "datetimeMinute"]) or 0) // 1000
    admitted, gone = (
        _whole(row, "sum", "newUsersPerMinute"),
        _whole(row, "sum", "usersAbandoned")
        + _whole(row, "sum", "usersLeft")
        - _whole(row, "sum", "sessionsLeft"),
    )
    waiting = _whole(row, "max", "totalQueuedUsers")
    follows = before is not None and before.start_s + MINUTE_S == start_s
    arrivals = (
        max(0, admitted + gone + waiting - before.waiting)
        if before is not None and follows
        else None
    )
    waited = bool(_whole(row, "sum", "usersWaited"))
    return LiveMinute(
        start_s,
        _whole(row, "max", "totalActiveUsers"),
        _whole(row, "max", "totalActiveUsersConfig"),
        admitted,
        _whole(row, "max", "newUsersPerMinuteConfig"),
        waiting,
        gone,
        arrivals,
        float(row["percentile", "totalTimeWaitedP50"] or 0) if waited else None,
        float(row["percentile", "totalTimeWaitedP95"] or 0) if waited else None,
        bool(_whole(row, "sum", "minutesGenerated")),
    )


def _whole(row: Row, aggregate: str, metric: str) -> int:
    return int(row.get((aggregate, metric)) or 0)
