"""Verified crawlers: the User-Agent must name the crawler AND the address must belong to its
operator.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from greenroom.model.crawler import CRAWLERS, Crawler
from greenroom.rules.addresses import address_range, client_key
from greenroom.rules.compare import in_ranges

AGENT_MAX = 512

AGENTS_CACHED = 4_096
RANGES_FILE_MAX = 16 << 20


class UnusableRanges(ValueError): ...


def read_ranges(path: Path) -> tuple[str, ...]:
    """JSON with `prefixes`, or one network a line. Raises UnusableRanges."""
    try:
        with path.open("rb") as file:
            text = file.read(RANGES_FILE_MAX).decode()
        if not text.lstrip().startswith("{"):
            return tuple(
                line.partition("#")[0].strip()
                for line in text.splitlines()
                if line.partition("#")[0].strip()
            )
        prefixes = json.loads(text)["prefixes"]
        return tuple(str(entry.get("ipv4Prefix") or entry["ipv6Prefix"]) for entry in prefixes)
    except OSError as error:
        raise UnusableRanges(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnusableRanges(
            f"{path} is neither JSON with `prefixes` nor a list of networks"
        ) from None


Covers = Callable[[int], bool]
"""Takes an address as core.rules.addresses.client_key returns it."""


def networks(ranges: Iterable[str]) -> Covers:
    """Raises UnusableRanges."""
    spans = []
    for text in ranges:
        try:
            spans.append(address_range(text))
        except ValueError as error:
            raise UnusableRanges(f"{text[:60]!r}: {error}") from None
    members = in_ranges(spans)
    if isinstance(members, frozenset):
        return members.__contains__
    return lambda key: bisect_right(members, key) % 2 == 1


class Crawlers:
    def __init__(self, own: Iterable[Crawler], name_of: Callable[[str], str]) -> None:
        """`own` crawlers replace built-in ones of their name. Raises UnusableRanges."""
        table: Mapping[str, Crawler] = {crawler.name: crawler for crawler in (*CRAWLERS, *own)}
        self._known = [
            (crawler, networks(crawler.ranges) if crawler.ranges else None)
            for crawler in table.values()
        ]
        self._name_of = name_of
        words = [word.lower() for crawler, _ in self._known for word in crawler.user_agents]
        self._anybody = re.compile("|".join(map(re.escape, words)))
        self._claimed = lru_cache(AGENTS_CACHED)(self._claims)

    def category(self, client: str, user_agent: str) -> str:
        """Empty for others, and while the name is being looked up."""
        for crawler, covers in self._claimed(user_agent[:AGENT_MAX]):
            key = client_key(client)
            if covers is not None and key is not None and covers(key):
                return crawler.category
            if crawler.domains and _below(self._name_of(client), crawler.domains):
                return crawler.category
        return ""

    def _claims(self, user_agent: str) -> tuple[tuple[Crawler, Covers | None], ...]:
        agent = user_agent.lower()
        if not self._anybody.search(agent):
            return ()
        return tuple(
            known
            for known in self._known
            if any(word.lower() in agent for word in known[0].user_agents)
        )


def _below(name: str, domains: Iterable[str]) -> bool:
    return any(name.endswith(f".{domain}") for domain in domains)
