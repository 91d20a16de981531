"""A scenario for a sale, from limits and an expected crowd, with defaults for everything else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from greenroom.analytics.metrics import METRICS
from greenroom.errors import InvalidConfig
from greenroom.model.room import Room, room_problems
from greenroom.simulator.arrivals import LASTS_MAX_S
from greenroom.simulator.scenario import Behaviour, NetworkProfile, Scenario

VISIT_S = 120.0


def sale(
    limits: Mapping[str, Any], arrivals: list[tuple[int, int]], centers: int, behaviour: Behaviour
) -> Scenario:
    """Ends when all visitors have arrived and none waits, or after a week. Raises InvalidConfig."""
    problems = room_problems({"name": "sale", "host": "*", **limits})
    if problems:
        raise InvalidConfig(problems)
    room = Room(name="sale", host="*", **limits)
    return Scenario(
        "sale",
        room,
        centers,
        arrivals,
        LASTS_MAX_S,
        behaviour,
        NetworkProfile(),
        ends_with_crowd=True,
    )


def changed(scenario: Scenario, changes: Mapping[str, Any]) -> Scenario:
    """Raises InvalidConfig."""
    return replace(scenario, room=replace(scenario.room, **changes)) if changes else scenario


def bottleneck(room: Room, behaviour: Behaviour) -> tuple[str, float]:
    stays_s = behaviour.visit_s + room.session_ms / 1000 * (1 - behaviour.leaving)
    if room.disable_session_renewal:
        stays_s = room.session_ms / 1000
    by_capacity = room.total_active_users * 60 / stays_s
    if by_capacity < room.new_users_per_minute:
        return "total_active_users", by_capacity
    return "new_users_per_minute", float(room.new_users_per_minute)


RECORDED_LINES: Sequence[tuple[str, str, str]] = (
    ("sum", "newUsersPerMinute", "let in"),
    ("max", "newUsersPerMinute", "most let in within a minute of the clock"),
    ("max", "totalActiveUsers", "most active at once"),
    ("max", "totalQueuedUsers", "longest line"),
    ("max", "estimatedWaitTime", "longest estimated wait"),
    ("sum", "usersWaited", "let in from the line"),
    ("percentile", "totalTimeWaitedP50", "their wait, median"),
    ("percentile", "totalTimeWaitedP95", "their wait, p95"),
    ("sum", "sessionsEnded", "sessions ended"),
    ("percentile", "timeOnOriginP50", "their length, median"),
    ("percentile", "timeOnOriginP95", "their length, p95"),
    ("sum", "usersLeft", "visitors who left"),
    ("sum", "usersAbandoned", "places in line lost because the visitor stayed away"),
)


LINES: Sequence[tuple[str, str]] = (
    ("visitors", "visitors"),
    ("waits_p50_s", "wait of all let in, median"),
    ("waits_p95_s", "wait of all let in, p95"),
    ("peak_minute", "most let in within any 60 s"),
    ("over_active", "beyond total_active_users"),
    ("over_minute", "beyond new_users_per_minute"),
    ("unconfirmed", "of those, served while their old data center was unreachable"),
    ("burst", "most let in within 5 s, times an even pace"),
    ("unused", "unused while visitors waited"),
    ("queued_early", "queued although there was room"),
    ("asked_for_ticket", "asked to show the ticket, then let in"),
    ("queued_in_flood", "queued in a flood that would have used up the room"),
    ("overtaking_p50_s", "overtaken by a later visitor by, median"),
    ("overtaking_p99_s", "overtaken by a later visitor by, p99"),
    ("error_joining", "error of the estimate when joining"),
    ("error_polls", "error of the estimate later on"),
    ("inside_quartiles", "waits between the quartiles of the estimate (50 % is right)"),
    ("unknown", "shown that the wait is unknown"),
    ("latency_mean_ms", "delay of a new visitor, mean"),
    ("latency_p99_ms", "delay of a new visitor, p99"),
    ("calls_per_admission", "calls to the coordinator per admission"),
    ("messages_per_center_s", "background messages per data center and second"),
    ("lost_sessions", "came back after their session had ended"),
    ("flood", "largest share of the room that requests without cookies held"),
)


def recorded_figure(metric: str, value: float | None) -> str:
    if value is None:
        return "-"
    return duration(value) if METRICS[metric].unit == "seconds" else f"{value:,}"


def figure(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name.endswith("_ms"):
        return f"{value:.1f} ms"
    if name.endswith("_s") and not name.startswith("messages"):
        return duration(value)
    if name in (
        "unused",
        "queued_early",
        "asked_for_ticket",
        "queued_in_flood",
        "error_joining",
        "error_polls",
        "inside_quartiles",
        "unknown",
        "flood",
    ):
        return f"{100 * value:.2f} %"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if value < 1 else f"{value:.2f}"
    )


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
