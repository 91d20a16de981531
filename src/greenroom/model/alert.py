"""Alerts as their source raises them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.zone import ACCOUNT_ID

AlertState = Literal["start", "end", "none"]

STATES: tuple[AlertState, ...] = ("start", "end", "none")

TEXT_MAX = 2_000
"""Chat services cut longer messages."""

INCIDENTS_KEPT_MS = 90 * 86_400_000

ID_MAX = 200

TEST_IDS = "test-"
"""Prefix of the correlation ids of policy tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Start and end of an incident share a `correlation_id`. A repeated type, correlation id and state
    is ignored.
    """

    type: str
    time_ms: int
    correlation_id: str
    text: str
    state: AlertState = "none"
    account_id: str = ACCOUNT_ID
    zone_id: str = ""
    subject_id: str = ""
    subject_name: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    """JSON values, listed by each alert type. Never a secret."""

    def __post_init__(self) -> None:
        problems = [
            Problem(name, f"must be 1 to {most} characters, not {len(getattr(self, name))}")
            for name, most in (("type", ID_MAX), ("correlation_id", ID_MAX), ("text", TEXT_MAX))
            if not 1 <= len(getattr(self, name)) <= most
        ]
        problems += [
            Problem(name, f"must be at most {ID_MAX} characters, not {len(getattr(self, name))}")
            for name in ("account_id", "zone_id", "subject_id", "subject_name")
            if len(getattr(self, name)) > ID_MAX
        ]
        if self.state not in STATES:
            problems.append(
                Problem("state", f"must be one of {', '.join(STATES)}, not {self.state!r}")
            )
        if self.time_ms < 0:
            problems.append(Problem("time_ms", f"must be at least 0, not {self.time_ms}"))
        if problems:
            raise InvalidConfig(problems)

    @property
    def identity(self) -> tuple[str, str, str]:
        return (self.type, self.correlation_id, self.state)


@dataclass(frozen=True, slots=True)
class Incident:
    start: Alert
    end: Alert | None = None
