"""The interface of running health checks for the API."""

from collections.abc import Collection, Mapping
from typing import Protocol

from greenroom.health.previews import PreviewChecks
from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import EventQuestion, Uptime
from greenroom.health.rules.roster import Agent
from greenroom.model.probe import AgentOrders, AgentReport, CheckEvent
from greenroom.web.pages.parts import PagePart


class HealthStates(Protocol):
    def condition(self, check_id: str) -> Condition | None: ...

    def regions(self, check_id: str) -> Mapping[str, str]:
        """The empty name is greenroom's own agent for all regions."""


class HealthView(HealthStates, Protocol):
    @property
    def previews(self) -> PreviewChecks: ...

    def hear(self, name: str, report: AgentReport) -> AgentOrders:
        """Raises AgentRefused. Belongs to the event loop."""

    def leave(self, name: str) -> None:
        """Belongs to the event loop."""

    def agents(self) -> list[tuple[Agent, bool]]: ...

    def events(self, question: EventQuestion) -> list[CheckEvent]:
        """Newest first. Blocks; raises StorageFailed."""

    def counts(
        self, check_id: str, since_ms: int, until_ms: int
    ) -> list[tuple[str, str, str, int]]:
        """(region, scope, reason, events). Blocks; raises StorageFailed."""

    def uptimes(self, check_ids: Collection[str], since_day: str) -> list[Uptime]:
        """Blocks; raises StorageFailed."""


HEALTH_VIEW = PagePart[HealthView]("health")


class NoStates:
    def condition(self, check_id: str) -> Condition | None:
        del check_id
        return None

    def regions(self, check_id: str) -> Mapping[str, str]:
        del check_id
        return {}
