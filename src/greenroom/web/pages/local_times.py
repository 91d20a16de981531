"""As forms of browsers write them: `2030-11-29T18:00`."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        since = (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC) - EPOCH
    except (ValueError, OverflowError):
        return None
    found = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    return found if found >= 0 else None
