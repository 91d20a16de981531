"""The interface of running health checks for the API."""

from collections.abc import Collection, Mapping
from typing import Protocol

from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import EventQuestion, Uptime
from greenroom.health.rules.roster import Agent
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import AgentOrders, AgentReport, CheckEvent


class PreviewView(Protocol):
    """Checks that are tried and not saved. Belongs to the event loop."""

    def add(self, check: HealthCheck, zone_id: str) -> int:
        """Begins; when that was."""

    def get(self, check_id: str, zone_id: str) -> tuple[int, HealthCheck] | None:
        """When it began, and the check; None when there is none of this id in this zone."""

    def remove(self, check_id: str) -> None:
        """Ends it."""


class HealthStates(Protocol):
    """The state of every check, as it is known in this process."""

    def condition(self, check_id: str) -> Condition | None:
        """What is known of a check; None: nothing yet."""

    def regions(self, check_id: str) -> Mapping[str, str]:
        """What each region says; the empty name is greenroom's own agent for all regions together."""


class HealthView(HealthStates, Protocol):
    """Everything that the API asks."""

    @property
    def previews(self) -> PreviewView:
        """Those of this process."""

    def hear(self, name: str, report: AgentReport) -> AgentOrders:
        """An agent reports; what it is to do. Raises AgentRefused. Belongs to the event loop."""

    def leave(self, name: str) -> None:
        """An agent ends. Belongs to the event loop."""

    def agents(self) -> list[tuple[Agent, bool]]:
        """Every agent, and whether it is lost."""

    def events(self, question: EventQuestion) -> list[CheckEvent]:
        """Newest first. Blocks; raises StorageFailed."""

    def counts(
        self, check_id: str, since_ms: int, until_ms: int
    ) -> list[tuple[str, str, str, int]]:
        """(region, scope, reason, events). Blocks; raises StorageFailed."""

    def uptimes(self, check_ids: Collection[str], since_day: str) -> list[Uptime]:
        """By check and day. Blocks; raises StorageFailed."""


class NoStates:
    """For documents in which the state of a check is of no concern: nothing is known of any check."""

    def condition(self, check_id: str) -> Condition | None:
        """Nothing."""
        del check_id
        return None

    def regions(self, check_id: str) -> Mapping[str, str]:
        """None."""
        del check_id
        return {}
