"""The interface of running health checks for the API."""

from collections.abc import Mapping
from typing import Protocol

from greenroom.health.previews import PreviewChecks
from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import HealthHistory
from greenroom.health.rules.roster import Agent
from greenroom.model.probe import AgentOrders, AgentReport
from greenroom.web.pages.request import PagePart


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

    @property
    def history(self) -> HealthHistory: ...


HEALTH_VIEW = PagePart[HealthView]("health")


class NoStates:
    def condition(self, check_id: str) -> Condition | None:
        del check_id
        return None

    def regions(self, check_id: str) -> Mapping[str, str]:
        del check_id
        return {}
