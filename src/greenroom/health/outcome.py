"""Health data that still has to be written."""

from collections import deque
from collections.abc import Callable, Sequence

from greenroom.health.rules.condition import Condition
from greenroom.health.rules.memory import HealthBatch
from greenroom.health.rules.roster import Agent
from greenroom.model.alert import Alert
from greenroom.model.probe import CheckEvent

EVENTS_WAITING_MAX = 50_000
"""About 25 MB; the oldest are dropped."""


class Pending:
    """`hurry` is called when data must not wait for the next regular write."""

    def __init__(self, hurry: Callable[[], None] = lambda: None) -> None:
        self._hurry = hurry
        self._conditions: dict[str, Condition | None] = {}
        self._events: deque[CheckEvent] = deque(maxlen=EVENTS_WAITING_MAX)
        self._alerts: list[Alert] = []
        self._agents: Sequence[Agent] | None = None
        self.lost = 0

    def condition(self, check_id: str, condition: Condition | None) -> None:
        """None: the check is gone."""
        self._conditions[check_id] = condition

    def event(self, event: CheckEvent) -> None:
        self.lost += len(self._events) == EVENTS_WAITING_MAX
        self._events.append(event)

    def alert(self, alert: Alert | None) -> None:
        # An alert must not get lost.
        if alert:
            self._alerts.append(alert)
            self._hurry()

    def agents(self, agents: Sequence[Agent]) -> None:
        self._agents = agents

    def take(self) -> HealthBatch | None:
        if not (self._conditions or self._events or self._alerts or self._agents is not None):
            return None
        batch = HealthBatch(
            self._conditions, tuple(self._events), tuple(self._alerts), self._agents
        )
        self._conditions, self._alerts, self._agents = {}, [], None
        self._events.clear()
        return batch

    def give_back(self, batch: HealthBatch) -> None:
        self._conditions = {**batch.conditions, **self._conditions}
        self._alerts = [*batch.alerts, *self._alerts]
        self._agents = batch.agents if self._agents is None else self._agents
        newer = list(self._events)
        self._events.clear()
        for event in (*batch.events, *newer):
            self.event(event)


class Nothing(Pending):
    def condition(self, check_id: str, condition: Condition | None) -> None: ...

    def event(self, event: CheckEvent) -> None: ...

    def alert(self, alert: Alert | None) -> None: ...

    def agents(self, agents: Sequence[Agent]) -> None: ...
