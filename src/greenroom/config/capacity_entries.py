"""Rooms whose capacity is not fixed: what measures their origin."""

from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote

from greenroom.capacity.sources import no_source_because
from greenroom.config.config import Config
from greenroom.health.rules.origin import OriginChecks
from greenroom.model.health_check import HealthCheck
from greenroom.model.room import PUSHED, Room
from greenroom.outbound.policy import OutboundRefused, OutboundTarget, read_target

RANGE = "[1m]"
"""Samples have the time of their scrape only in an answer about a range."""
_QUERY = "?query="


def prometheus_base(written: str) -> str:
    """What a room's `capacity_metrics` has before its query, as `prometheus_target` reads it."""
    return read_target(written.partition(_QUERY)[0]).url


def prometheus_target(written: str) -> OutboundTarget:
    """The URL of a room's `capacity_metrics`, to ask for. Raises OutboundRefused."""
    base, found, selector = written.partition(_QUERY)
    target = read_target(base)
    if not found or not selector or "&" in selector:
        raise OutboundRefused(f"a URL of Prometheus must end in {_QUERY} and a selector of buckets")
    query = quote(unquote(selector) + RANGE, safe="")
    return read_target(f"{target.url}{_QUERY}{query}")


def sees_answers(config: Config) -> bool:
    """Not a process that only decides for proxies."""
    return bool(
        config.decide is None
        or config.origin
        or config.origins
        or any(zone.origin for zone in config.stored_zones)
    )


def capacity_problems(
    rooms: Iterable[Room], checks: Iterable[HealthCheck], answers: bool
) -> Iterator[tuple[Room, str, str]]:
    """(room, field, reason)"""
    known: OriginChecks | None = None
    for room in rooms:
        if room.capacity_metrics not in ("", PUSHED):
            try:
                prometheus_target(room.capacity_metrics)
            except OutboundRefused as error:
                yield room, "capacity_metrics", str(error)
        if room.capacity != "fixed":
            known = known or OriginChecks(checks)
            checked = bool(known.of(room, None))
            if reason := no_source_because(room, answers=answers, checked=checked):
                yield room, "capacity", reason
