"""What the law is told, and what it says."""

from dataclasses import dataclass

from greenroom.capacity.histogram import Histogram
from greenroom.model.room import LIMITS, OBJECTIVE_LEAST_MS, OBJECTIVE_MOST_MS

WINDOW_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    documents: Histogram = Histogram()
    """Time to the first byte of documents of admitted visitors, of answers below 500."""
    pending: Histogram = Histogram()
    failed: int = 0
    """Documents answered with 5xx or not at all: refused, broken or timed out."""
    active: int = 0
    admitted: int = 0
    waiting: int = 0
    overloaded: bool = False
    """Whether the measuring process itself is too busy to measure."""
    scaling: bool = False
    """Whether the number of the origin's instances is changing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorLimits:
    """What the operator set. Raises ValueError with every problem."""

    objective_ms: int = 1_000
    """The 95th percentile of `Window.documents` that the origin should keep."""
    floor: int = 1
    total_active_users: int
    new_users_per_minute: int

    def __post_init__(self) -> None:
        problems = []
        if not OBJECTIVE_LEAST_MS <= self.objective_ms <= OBJECTIVE_MOST_MS:
            problems.append(
                f"objective_ms: must be {OBJECTIVE_LEAST_MS} to {OBJECTIVE_MOST_MS},"
                f" not {self.objective_ms}"
            )
        problems += [
            f"{name}: must be at least 1, not {getattr(self, name)}"
            for name in LIMITS
            if getattr(self, name) < 1
        ]
        if not 1 <= self.floor <= self.total_active_users:
            problems.append(
                f"floor: must be 1 to total_active_users, {self.total_active_users},"
                f" not {self.floor}"
            )
        if problems:
            raise ValueError("; ".join(problems))


@dataclass(frozen=True, slots=True)
class CapacityTarget:
    """Limits to apply until the next step."""

    sessions: int
    """How many the origin can take: at least the floor, at most total_active_users."""
    per_minute: int
    """Admissions a minute, at most new_users_per_minute; 0: admit nobody."""
    limit: int
    """Both as one number, to apply as total_active_users until the next step: `sessions`, or as
    many as are inside and `per_minute` adds to them."""
    reason: str
