"""The facts about one request that rules can use: the arrival, the time and lookups; derived values
are computed lazily.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from greenroom.model.visit import Arrival


class Place(msgspec.Struct, frozen=True):
    """Where an address is, as far as a local database knows; empty strings and 0 where it does not.

    `country` is ISO 3166-1 alpha-2, `continent` one of AF AN AS EU NA OC SA.
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
    """What must be asked of local data. Both answer at once, from memory: they stand in the path of
    a request.
    """

    def place(self, client: str) -> Place:
        """The location of this address; an empty Place when unknown."""

    def crawler(self, client: str, user_agent: str) -> str:
        """The category of a crawler that is VERIFIED (never by its User-Agent alone), or an empty
        string.
        """


class NothingKnown:
    """Lookups without any data: no place is known, no crawler is verified."""

    _NOWHERE = Place()

    def place(self, client: str) -> Place:  # noqa: ARG002
        """Unknown."""
        return self._NOWHERE

    def crawler(self, client: str, user_agent: str) -> str:  # noqa: ARG002
        """Not verified."""
        return ""


NOTHING_KNOWN = NothingKnown()


class RequestFacts(msgspec.Struct):
    """One request for as long as its rules are evaluated. `memo` keeps what was derived once
    (arguments, cookies, place).
    """

    arrival: Arrival
    now_ms: int
    lookups: Lookups = NOTHING_KNOWN
    memo: dict[str, Any] = {}  # msgspec gives every RequestFacts its own


ReadFact = Callable[[Any], Any]
"""How one value is read: from RequestFacts for a field, from an element for what stands behind
`[*]`. None is the missing value.
"""


def once(name: str, read: Callable[[RequestFacts], Any]) -> Callable[[RequestFacts], Any]:
    """`read`, at most once for each RequestFacts."""

    def remembered(facts: RequestFacts) -> Any:
        memo = facts.memo
        if name in memo:
            return memo[name]
        value = memo[name] = read(facts)
        return value

    return remembered
