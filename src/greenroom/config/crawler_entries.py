"""Reads `[[crawlers]]`, with their network files."""

from dataclasses import replace
from typing import Any

from greenroom.config.entries import tables
from greenroom.config.named_files import NamedFiles
from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.lookups.crawlers import UnusableRanges, networks, read_ranges
from greenroom.model.crawler import CRAWLERS_MAX, Crawler
from greenroom.model.fields import Unique
from greenroom.web.api_shapes import read_nested


def read_crawlers(raw: Any, files: NamedFiles, problems: list[Problem]) -> tuple[Crawler, ...]:
    """With what their files say in `ranges`."""
    read: list[Crawler] = []
    names = Unique("crawler")
    for at, entry in tables(raw, "crawlers", CRAWLERS_MAX, problems):
        crawler = read_nested(Crawler, at, entry, problems)
        if crawler is None:
            continue
        problems += names.problems(step(at, "name"), crawler.name)
        found = _text_problems(crawler, at)
        if not (crawler.domains or crawler.ranges or crawler.ranges_file):
            found.append(
                Problem(
                    at, "needs domains, ranges or ranges_file, because a User-Agent proves nothing"
                )
            )
        if not found:
            try:
                if crawler.ranges_file:
                    listed = read_ranges(files.path(crawler.ranges_file))
                    crawler = replace(crawler, ranges=(*crawler.ranges, *listed))
                networks(crawler.ranges)
                read.append(crawler)
            except UnusableRanges as error:
                found.append(
                    Problem(
                        step(at, "ranges_file" if crawler.ranges_file else "ranges"), str(error)
                    )
                )
        problems += found
    return tuple(read)


def _text_problems(crawler: Crawler, at: str) -> list[Problem]:
    """Words so short that they match half of all user agents."""
    problems = [
        Problem(step(step(at, key), place), "must be text of at least 3 characters")
        for key in ("user_agents", "domains", "ranges")
        for place, text in enumerate(getattr(crawler, key))
        if len(text) < 3
    ]
    return (
        problems
        if crawler.user_agents
        else [*problems, Problem(step(at, "user_agents"), "must not be empty")]
    )
