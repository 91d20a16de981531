"""A visit for rules to judge, and what is wrong with an expression."""

from typing import Any

from greenroom.model.visit import Arrival
from greenroom.rules import (
    Place,
    RequestFacts,
    compile_rule,
    rule_problems,
)

NOW_MS = 1_484_063_800_123

HEADERS = (
    (b"host", b"example.com"),
    (b"accept", b"text/html"),
    (b"accept", b"application/json"),
    (b"accept-language", b"de;q=0.5, en, *;q=0.4, fr;q=0.9, pt;q=0"),
    (b"user-agent", b"Probe/1.0 (\xe9)"),
    (b"cookie", b"app=test; a%20b=1; app=again; flag"),
    (b"x-forwarded-for", b"203.0.113.9, 10.0.0.1"),
    (b"x-token", b'{"user": {"plan": "vip", "ids": [7, 8]}, "n": 5, "f": 1.5}'),
)


class Looked:
    """Lookups that count how often they were asked."""

    def __init__(self, place: Place | None = None, category: str = "") -> None:
        self.asked: list[str] = []
        self._place = place or Place()
        self._category = category

    def place(self, client: str) -> Place:
        self.asked.append(f"place of {client}")
        return self._place

    def crawler(self, client: str, user_agent: str) -> str:
        self.asked.append(f"crawler {user_agent}")
        return self._category


def arrival(path: str = "/", query: str = "", **more: Any) -> Arrival:
    given = {
        "method": "GET",
        "scheme": "https",
        "host": "example.com",
        "headers": HEADERS,
        "client": "192.0.2.7",
        **more,
    }
    return Arrival(path=path, query=query, **given)


def holds(source: str, visit: Arrival | None = None, lookups: Any = None) -> bool:
    return bool(compile_rule(source)(RequestFacts(visit or arrival(), NOW_MS, lookups or Looked())))


def reasons(source: str) -> list[str]:
    """The reason of each problem, without the drawing."""
    return [problem.reason.split("^ ", 1)[1] for problem in rule_problems(source)]
