"""What the API asks of the health checks at work, whoever runs them."""

from collections.abc import Mapping
from typing import Protocol

from greenroom.core.health.condition import Condition


class HealthView(Protocol):
    """The state of every check, as it is known in this process."""

    def condition(self, check_id: str) -> Condition | None:
        """What is known of a check; None: nothing yet."""

    def regions(self, check_id: str) -> Mapping[str, str]:
        """What each region says; the empty name is greenroom's own agent for all regions together."""


class NoHealth:
    """Where no health checks run: nothing is known of any check."""

    def condition(self, check_id: str) -> Condition | None:
        """Nothing."""
        del check_id
        return None

    def regions(self, check_id: str) -> Mapping[str, str]:
        """None."""
        del check_id
        return {}
