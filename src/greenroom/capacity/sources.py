"""Where the figures of a room's origin come from. The first row that a room has counts; when it is
silent the room holds, and no later row takes its place: what answers less often would let it grow.
"""

from dataclasses import dataclass

from greenroom.capacity.window import WINDOW_MS
from greenroom.model.room import ANY_PASS, PUSHED, Room


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    silent_ms: int
    """A report that is older leaves its rooms without a window."""


ANSWERS = Source("answers", 2 * WINDOW_MS)
"""The gateway or the middleware sees the answers."""
PUSH = Source("push", 30_000)
PROMETHEUS = Source("prometheus", 60_000)
HEALTH_CHECK = Source("health_check", 2 * WINDOW_MS)
SOURCES = (ANSWERS, PUSH, PROMETHEUS, HEALTH_CHECK)

FORGOTTEN_MS = 60_000
"""What has not reported for this long has stopped."""

NO_SOURCE = (
    "must be fixed: greenroom does not see how fast this room's origin answers (greenroom decide and"
    " native passes do not), and nothing else measures it; set capacity_metrics, or add a health"
    " check of the origin"
)


def source_of(room: Room, *, answers: bool, checked: bool) -> Source | None:
    """`answers`: a process forwards requests; `checked`: a health check is on the origin."""
    if answers and room.native_pass not in ANY_PASS:
        return ANSWERS
    if room.capacity_metrics:
        return PUSH if room.capacity_metrics == PUSHED else PROMETHEUS
    return HEALTH_CHECK if checked else None


def no_source_because(room: Room, *, answers: bool, checked: bool) -> str:
    """Why its capacity must be fixed; empty when not."""
    if room.capacity == "fixed" or source_of(room, answers=answers, checked=checked):
        return ""
    return NO_SOURCE
