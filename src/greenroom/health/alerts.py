"""The alert of a changed health check, with the facts of both published generations."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from greenroom.health.rules.condition import NO_FAILURES, Turn
from greenroom.health.rules.roster import GLOBAL
from greenroom.health.rules.votes import UNHEALTHY, Vote
from greenroom.model.alert import Alert, AlertState
from greenroom.model.alert_types import make
from greenroom.model.health_check import HealthCheck
from greenroom.model.zone import ACCOUNT_ID

TYPE = "health_check_status_notification"
ACCOUNT_NAME = "greenroom"
STATES: dict[str, AlertState] = {"start": "start", "end": "end"}


PutAlerts = Callable[[Sequence[Alert]], object]
"""All or none; they survive kill -9 and are delivered at least once. A repeated alert
(`Alert.identity`) is ignored. Blocks. Raises StorageFailed, having kept nothing.
"""


class Placed(NamedTuple):
    check: HealthCheck
    zone_id: str = ""
    zone_name: str = ""


def status_alert(
    placed: Placed, turn: Turn, vote: Vote, failing: tuple[str, ...], now_ms: int
) -> Alert | None:
    """None for the first verdict on a healthy origin. `vote` is one that the verdict rests on."""
    if turn.event not in STATES:
        return None
    check, bad = placed.check, turn.new == UNHEALTHY
    data = {
        "time": f"{datetime.fromtimestamp(now_ms // 1000, UTC):%Y-%m-%d %H:%M:%S} +0000 UTC",
        "status": turn.new.capitalize(),
        "reason": vote.reason if bad else NO_FAILURES,
        "name": check.name,
        "expected_codes": (
            f"[{' '.join(check.http_config.codes)}]"
            if check.http_config and check.type != "TCP"
            else ""
        ),
        "actual_code": vote.code,
        "health_check_id": check.id,
        "account_name": ACCOUNT_NAME,
        "account_tag": ACCOUNT_ID,
        "failing_regions": ", ".join(region or GLOBAL for region in failing),
        "health_check_name": check.name,
        "new_health_status": turn.new,
        "new_status": turn.new.capitalize(),
        "old_status": turn.old.capitalize(),
        "origin_ip": vote.address,
        "status_change_time": f"{datetime.fromtimestamp(now_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "time_since_last_failure": in_words(turn.since_failure_ms),
        "zone_name": placed.zone_name,
        "zone_tag": placed.zone_id,
    }
    return make(
        TYPE,
        STATES[turn.event],
        now_ms,
        turn.incident,
        data,
        subject_id=check.id,
        subject_name=check.name,
        zone_id=placed.zone_id,
    )


def in_words(span_ms: int) -> str:
    if span_ms <= 0:
        return "none"
    minutes, seconds = divmod(span_ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours}h{minutes}m{seconds}s"
        if hours
        else f"{minutes}m{seconds}s"
        if minutes
        else f"{seconds}s"
    )
