"""Bypass rules and named lists as configured; `rules` checks expressions."""

from dataclasses import dataclass

from greenroom.errors import InvalidConfig
from greenroom.model.fields import FormSpec, field_problems, spec, vars_of

EXPRESSION_MAX = 4096

RULES_MAX = 200
"""All enabled ones may be evaluated for every request."""

LIST_ITEMS_MAX = 100_000
"""About 20 MB while compiled."""

ITEM_MAX = 255

BYPASS = "bypass_waiting_room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    id: str = spec("opaque identifier, unique in the room", "", read_only=True)
    version: str = spec("version; it increases with every change", "1", read_only=True)
    action: str = spec(
        "what happens to a request that matches the expression", BYPASS, choices=(BYPASS,)
    )
    expression: str = spec(
        "condition in the rules language",
        low=1,
        high=EXPRESSION_MAX,
        example="ip.src in {10.20.30.40}",
    )
    description: str = spec("only your team sees it", "", high=500)
    enabled: bool = spec("whether the rule is active", True)
    last_updated: str = spec("time of the last change, RFC 3339", "", read_only=True)

    def __post_init__(self) -> None:
        problems = field_problems(Rule, vars_of(self))
        if problems:
            raise InvalidConfig(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleList:
    """The store keeps items apart (ListItem), and `items` empty."""

    id: str = spec("opaque identifier, unique", "", read_only=True)
    name: str = spec(
        "name behind the `$`",
        example="staff",
        low=1,
        high=50,
        pattern=r"[a-z0-9_]+",
        pattern_words="have only lower-case letters (a to z), digits and _",
        form=FormSpec("list", "Name"),
    )
    kind: str = spec(
        "what the items are: addresses and networks, host names, or autonomous system numbers",
        choices=("ip", "hostname", "asn"),
        form=FormSpec(
            "list",
            "Holds",
            choices=("Addresses and networks", "Host names", "Autonomous systems"),
        ),
    )
    items: tuple[str, ...] = spec("the items, as text", (), high=LIST_ITEMS_MAX)
    description: str = spec("only your team sees it", "", high=500, form=FormSpec("list", "Note"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem:
    id: str = spec("opaque identifier, unique", "", read_only=True)
    value: str = spec("address, network, host name or number, as text", low=1, high=ITEM_MAX)
    comment: str = spec("only your team sees it", "", high=500)

    def __post_init__(self) -> None:
        problems = field_problems(ListItem, vars_of(self))
        if problems:
            raise InvalidConfig(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    id: str = spec("the room's id", "", read_only=True)
    rules: tuple[Rule, ...] = spec("the rules in order", (), high=RULES_MAX)

    def __post_init__(self) -> None:
        problems = field_problems(RuleSet, {"id": self.id, "rules": self.rules})
        if problems:
            raise InvalidConfig(problems)
