"""The metrics and dimensions of analytics, one row each. Names and aggregates are those of
Cloudflare's `waitingRoomAnalyticsAdaptiveGroups`; greenroom's own say `extension`.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from greenroom.analytics.columns import KEPT, SAMPLES, TARGETED
from greenroom.analytics.outcomes import OUTCOMES
from greenroom.analytics.rollup import PERCENTS

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400

NEW_USERS = OUTCOMES["admitted"]


class Share(NamedTuple):
    column: str
    over: str = ""
    per: int = 1
    digits: int | None = None  # None: a whole number


class Metric(NamedTuple):
    name: str
    unit: str
    help: str
    raw: Share | None
    aggregates: Mapping[str, Share]
    extension: bool = False


FLOATS = frozenset({"avg", "avgWeighted", "percentile"})


def _gauge(name: str, column: str, unit: str, help: str) -> Metric:
    return Metric(
        name,
        unit,
        help,
        Share(f"{column}_max"),
        {
            "avg": Share(f"{column}_sum", SAMPLES[column], digits=4),
            "max": Share(f"{column}_max"),
            "min": Share(f"{column}_min"),
        },
    )


def _limit(name: str, column: str, unit: str, help: str, known: str = "limited") -> Metric:
    shares = {
        "avg": Share(f"{column}_sum", known, digits=4),
        "max": Share(f"{column}_max"),
        "min": Share(f"{column}_min"),
    }
    return Metric(name, unit, help, Share(column), shares, extension=known != "limited")


def _sum(name: str, column: str, unit: str, help: str, extension: bool = True) -> Metric:
    kept = column if column in KEPT else f"{column}_sum"
    return Metric(name, unit, help, Share(column), {"sum": Share(kept)}, extension)


def _outcomes(extension: bool) -> Iterator[Metric]:
    for row in OUTCOMES.values():
        if row.extension is extension and row.metric != NEW_USERS.metric:
            yield _sum(row.metric, row.column, row.unit, row.help, extension)


def _times() -> Iterator[Metric]:
    for column, stem, meaning in (
        ("waited", "totalTimeWaited", "time from the first sight of a queued visitor to admission"),
        (
            "origin",
            "timeOnOrigin",
            "time from admission to the last activity of visitors whose session ended",
        ),
    ):
        for percent in PERCENTS:
            raw = Share(f"{column}_p{percent}", per=1_000, digits=2)
            weighted = Share(
                f"{column}_p{percent}_weighted", f"{column}_weight", per=1_000, digits=2
            )
            merged = Share(f"{column}_p{percent}", per=1_000, digits=2)
            yield Metric(
                f"{stem}P{percent}",
                "seconds",
                f"{percent}th percentile of the {meaning}",
                raw,
                {"avgWeighted": weighted, "percentile": merged},
            )


def _metrics() -> Iterator[Metric]:
    yield _gauge("totalActiveUsers", "active", "users", "visitors with a living session")
    new_users = {
        "avg": Share("admitted_sum", "minutes", digits=4),
        "max": Share("admitted_max"),
        "min": Share("admitted_min"),
        "sum": Share("admitted_sum"),
    }
    yield Metric(
        NEW_USERS.metric,
        NEW_USERS.unit,
        NEW_USERS.help,
        Share("admitted"),
        new_users,
    )
    yield _gauge("totalQueuedUsers", "queued", "users", "visitors in line")
    yield _limit(
        "totalActiveUsersConfig",
        "limit_active",
        "users",
        "configured limit of active users, of the room or its event",
    )
    yield _limit(
        "newUsersPerMinuteConfig",
        "limit_rate",
        "users",
        "configured limit of new users per minute, of the room or its event",
    )
    yield _limit("sessionDurationConfig", "limit_session", "minutes", "configured session duration")
    yield _gauge(
        "estimatedWaitTime", "wait", "seconds", "median wait told to a visitor who joins the line"
    )
    yield from _outcomes(extension=False)
    yield from _times()
    yield _sum("sessionsEnded", "origin_count", "sessions", "sessions that ended, for any reason")
    yield _sum("usersWaited", "waited_count", "users", "visitors let in from the line")
    yield from _outcomes(extension=True)
    yield _limit(
        "capacityTarget",
        "target",
        "users",
        "active users that the origin takes, as greenroom found it; where `capacity` is not fixed",
        TARGETED,
    )
    yield _limit(
        "capacityLimit",
        "applied",
        "users",
        "limit of active users in force, where `capacity` is not fixed",
        TARGETED,
    )
    yield _sum(
        "minutesCapacityStopped",
        "target_stopped",
        "minutes",
        "minutes in which the origin was too slow, or failed, for anybody to be admitted",
    )
    yield _sum(
        "minutesCapacityUnmeasured",
        "target_unmeasured",
        "minutes",
        "minutes in which nothing measured the origin",
    )
    yield _sum(
        "minutesIncomplete",
        "incomplete",
        "minutes",
        "minutes in which a process was killed, so that something may be missing",
    )
    yield _sum(
        "minutesGenerated",
        "generated",
        "minutes",
        "minutes that no visitor made: generated for trying things out",
    )


METRICS: dict[str, Metric] = {metric.name: metric for metric in _metrics()}


class Dimension(NamedTuple):
    """`bucket_s` is 0 for the room."""

    name: str
    bucket_s: int
    kind: str  # string, Time or Date
    help: str


DIMENSIONS: dict[str, Dimension] = {
    found.name: found
    for found in (
        Dimension("waitingRoomId", 0, "string", "the room"),
        Dimension("datetime", MINUTE_S, "Time", "begin of the minute"),
        Dimension("datetimeMinute", MINUTE_S, "Time", "begin of the minute"),
        Dimension("datetimeFiveMinutes", 5 * MINUTE_S, "Time", "begin of the five minutes"),
        Dimension(
            "datetimeFifteenMinutes", 15 * MINUTE_S, "Time", "begin of the quarter of an hour"
        ),
        Dimension("datetimeHour", HOUR_S, "Time", "begin of the hour"),
        Dimension("date", DAY_S, "Date", "the day, in UTC"),
    )
}

ROOM = "waitingRoomId"
