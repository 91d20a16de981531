"""What visitors of a room may still get."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import check_value, plain_type, spec, specs

OFFERS_MAX = 20
"""Per room: every one is on every waiting page."""

LEFT_MAX = 9_999_999
MANY, FEW, NONE = "many", "few", "none"
WORDS = (MANY, FEW, NONE)
_COUNT = re.compile(r"0|[1-9][0-9]{0,6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    name: str = spec(
        "what is offered, in the words that visitors know",
        low=1,
        high=100,
        one_line=True,
        example="Stalls, Friday",
    )
    price: str = spec(
        "price or range of prices with its currency, as visitors read it; empty: not shown",
        "",
        high=60,
        one_line=True,
        example="€45 to €95",
    )
    available: str = spec("how much is left: `many`, `few`, `none`, or a number", example="few")
    as_of_ms: int = 0

    def __post_init__(self) -> None:
        problems = offer_problems({item.name: getattr(self, item.name) for item in fields(self)})
        if problems:
            raise InvalidConfig(problems)

    @property
    def left(self) -> int | None:
        """None: many or few."""
        return (
            0
            if self.available == NONE
            else None
            if self.available in WORDS
            else int(self.available)
        )


def offer_problems(values: Mapping[str, Any]) -> list[Problem]:
    found = []
    for item in fields(Offer):
        rule = specs(Offer).get(item.name)
        if rule is not None and item.name in values:
            found.append(check_value(item.name, values[item.name], plain_type(item.type), rule))
    available = values.get("available")
    if isinstance(available, str) and available not in WORDS and not _COUNT.fullmatch(available):
        found.append(
            Problem(
                "available",
                f"must be many, few, none, or a number from 0 to {LEFT_MAX}, not {available!r:.60}",
            )
        )
    return [problem for problem in found if problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferSet:
    id: str = spec("the room's id", "", read_only=True)
    offers: tuple[Offer, ...] = spec("the offers in order", (), high=OFFERS_MAX)

    def __post_init__(self) -> None:
        problem = check_value("offers", self.offers, tuple, specs(OfferSet)["offers"])
        if problem:
            raise InvalidConfig([problem])


def left_of(offers: tuple[Offer, ...]) -> int | None:
    """Of all offers together; None: unknown, or no offers."""
    left = [offer.left for offer in offers]
    return sum(count for count in left if count is not None) if left and None not in left else None


def fewer_than(offers: tuple[Offer, ...], ahead: int) -> bool:
    """Whether `ahead` people would take everything that is left, one each."""
    left = left_of(offers)
    return left is not None and 0 < left <= ahead
