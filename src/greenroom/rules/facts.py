"""What rules can read of a request; derived values are lazy."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from greenroom.model.visit import Arrival


class Place(msgspec.Struct, frozen=True):
    """`country` is ISO 3166-1 alpha-2, `continent` one of AF AN AS EU NA OC SA; unknown parts are
    empty or 0.
    """

    country: str = ""
    continent: str = ""
    region: str = ""
    region_code: str = ""
    city: str = ""
    postal_code: str = ""
    metro_code: str = ""
    latitude: str = ""
    longitude: str = ""
    subdivision_1: str = ""
    subdivision_2: str = ""
    timezone: str = ""
    in_european_union: bool = False
    as_number: int = 0


class Lookups(Protocol):
    """Local data, in memory: both methods stand in the path of a request."""

    def place(self, client: str) -> Place: ...

    def crawler(self, client: str, user_agent: str) -> str:
        """Of a VERIFIED crawler, or empty."""


class NothingKnown:
    _NOWHERE = Place()

    def place(self, client: str) -> Place:  # noqa: ARG002
        return self._NOWHERE

    def crawler(self, client: str, user_agent: str) -> str:  # noqa: ARG002
        return ""


NOTHING_KNOWN = NothingKnown()


class RequestFacts(msgspec.Struct):
    arrival: Arrival
    now_ms: int
    lookups: Lookups = NOTHING_KNOWN
    memo: dict[str, Any] = {}  # msgspec gives every RequestFacts its own


ReadFact = Callable[[Any], Any]
"""None is the missing value."""


def once(name: str, read: Callable[[RequestFacts], Any]) -> Callable[[RequestFacts], Any]:
    def remembered(facts: RequestFacts) -> Any:
        memo = facts.memo
        if name in memo:
            return memo[name]
        value = memo[name] = read(facts)
        return value

    return remembered
