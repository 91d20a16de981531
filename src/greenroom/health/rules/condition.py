"""The state of one check over time. An undecided verdict changes nothing; one that stays undecided
makes the status unknown, which raises no alert. An incident opens with the first unhealthy verdict
and ends with the next healthy one, under one correlation id.
"""

import hashlib

import msgspec

from greenroom.health.rules.votes import (
    REPORT_SLACK_MS,
    SUSPENDED,
    UNHEALTHY,
    UNKNOWN,
    HealthVerdict,
)
from greenroom.model.health_check import HealthCheck

NO_FAILURES = "No failures"


class Condition(msgspec.Struct, frozen=True):
    """Kept over restarts. Times are Unix milliseconds, 0 for never."""

    status: str = UNKNOWN
    since_ms: int = 0
    reason: str = ""
    undecided_ms: int = 0  # since when the verdicts have been undecided
    incident: str = ""  # correlation id of the incident that is open
    failed_ms: int = 0  # when the verdict was unhealthy last
    failing: tuple[str, ...] = ()  # regions
    settled: str = UNKNOWN  # the last status that was decided: healthy or unhealthy


class Turn(msgspec.Struct, frozen=True):
    """`event`: start, end, or none if healthy from the start."""

    event: str
    old: str
    new: str
    incident: str
    since_failure_ms: int  # time since the last failure, 0 when there was none


def patience_ms(check: HealthCheck) -> int:
    return 2 * check.interval * 1000 + check.probe_longest_ms + REPORT_SLACK_MS


def advanced(
    condition: Condition, check: HealthCheck, verdict: HealthVerdict, now_ms: int
) -> tuple[Condition, Turn | None]:
    if check.suspended:
        return suspended(condition, now_ms)
    if verdict.status == UNKNOWN:
        return _undecided(condition, check, now_ms), None
    failed_ms = now_ms if verdict.status == UNHEALTHY else condition.failed_ms
    reason = verdict.vote.reason if verdict.status == UNHEALTHY else ""
    turn = _turn(condition, check, verdict.status, now_ms)
    same = condition.status == verdict.status
    after = Condition(
        status=verdict.status,
        since_ms=condition.since_ms if same else now_ms,
        reason=condition.reason if same and condition.reason and not reason else reason,
        incident=_incident_after(condition, turn),
        failed_ms=failed_ms,
        failing=verdict.failing if verdict.status == UNHEALTHY else (),
        settled=verdict.status,
    )
    return after, turn


def _turn(condition: Condition, check: HealthCheck, status: str, now_ms: int) -> Turn | None:
    if status == condition.settled:
        return None
    since = now_ms - condition.failed_ms if condition.failed_ms else 0
    if status == UNHEALTHY:
        incident = (
            condition.incident or hashlib.sha256(f"{check.id}/{now_ms}".encode()).hexdigest()[:32]
        )
        return Turn("start", condition.settled, status, incident, since)
    return Turn(
        "end" if condition.incident else "none",
        condition.settled,
        status,
        condition.incident,
        since,
    )


def _incident_after(condition: Condition, turn: Turn | None) -> str:
    return condition.incident if turn is None else turn.incident if turn.event == "start" else ""


def _undecided(condition: Condition, check: HealthCheck, now_ms: int) -> Condition:
    since_ms = condition.undecided_ms or now_ms
    if condition.status == UNKNOWN or now_ms - since_ms <= patience_ms(check):
        back = condition.status == SUSPENDED
        return msgspec.structs.replace(
            condition,
            undecided_ms=since_ms,
            **({"status": UNKNOWN, "since_ms": now_ms} if back else {}),
        )
    return msgspec.structs.replace(
        condition, status=UNKNOWN, since_ms=now_ms, reason="", undecided_ms=since_ms, failing=()
    )


def suspended(condition: Condition, now_ms: int) -> tuple[Condition, Turn | None]:
    """An open incident ends."""
    turn = (
        Turn("end", condition.settled, SUSPENDED, condition.incident, now_ms - condition.failed_ms)
        if condition.incident
        else None
    )
    since_ms = condition.since_ms if condition.status == SUSPENDED else now_ms
    return Condition(status=SUSPENDED, since_ms=since_ms, failed_ms=condition.failed_ms), turn


def shown_status(condition: Condition | None, check: HealthCheck) -> str:
    if check.suspended:
        return SUSPENDED
    return condition.status if condition and condition.status != SUSPENDED else UNKNOWN
