"""Times in the API: ISO 8601 with a zone."""

import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

TIME_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
_TIME = re.compile(TIME_PATTERN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def milliseconds(text: Any) -> int | None:
    """None for other text, or before 1970."""
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        return None
    try:
        since = datetime.fromisoformat(text.upper()) - _EPOCH
    except (ValueError, OverflowError):
        return None
    found = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    return found if found >= 0 else None


def moment(unix_ms: int) -> str:
    """`2021-01-01T11:00:00.123000Z`: six digits as published."""
    at = datetime.fromtimestamp(unix_ms // 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{unix_ms % 1000:03d}000Z"


def plain_moment(unix_ms: int) -> str:
    """`2021-01-01T11:00:00Z`, with `.123` only when there are milliseconds."""
    at = datetime.fromtimestamp(unix_ms // 1000, UTC)
    fraction = f".{unix_ms % 1000:03d}" if unix_ms % 1000 else ""
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z"


# As forms of browsers write them: `2030-11-29T18:00`.


def local_input(unix_ms: int | None, zone: str) -> str:
    """Seconds only where there are some; empty for None."""
    if unix_ms is None:
        return ""
    at = datetime.fromtimestamp(unix_ms // 1000, ZoneInfo(zone)).replace(
        tzinfo=None, microsecond=unix_ms % 1000 * 1000
    )
    return at.isoformat(
        timespec="milliseconds" if at.microsecond else "seconds" if at.second else "minutes"
    )


def from_input(text: str, zone: str) -> int | None:
    """None for no time. An hour that the clock shows twice is the first of the two; a skipped one
    is as long after the jump.
    """
    try:
        at = datetime.fromisoformat(text)
        since = (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC) - _EPOCH
    except (ValueError, OverflowError):
        return None
    found = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    return found if found >= 0 else None
