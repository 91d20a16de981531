"""The checks of a room's origin: those that serve the room's host, or connect to the address and
port of its origin. One unhealthy check makes the origin unhealthy. A room holds until the origin
has not been unhealthy for RELEASE_MS, so that an origin that flaps does not get a crowd each time.
"""

from collections.abc import Iterable
from typing import NamedTuple

from greenroom.health.rules.votes import HEALTHY, UNHEALTHY, UNKNOWN
from greenroom.model.health_check import HealthCheck
from greenroom.model.room import Room

RELEASE_MS = 10_000

HOLD = "hold"


class OriginChecks:
    def __init__(self, checks: Iterable[HealthCheck]) -> None:
        self._by_host: dict[str, list[str]] = {}
        self._by_address: dict[tuple[str, int], list[str]] = {}
        for check in checks:
            if not check.suspended:
                self._by_host.setdefault(check.served_host, []).append(check.id)
                self._by_address.setdefault((check.address.lower(), check.port), []).append(
                    check.id
                )

    def of(self, room: Room, origin: tuple[str, int] | None) -> tuple[str, ...]:
        found: list[str] = []
        for route in room.routes:
            if route.host.startswith("*."):
                found += [
                    key
                    for host, keys in self._by_host.items()
                    if host.endswith(route.host[1:])
                    for key in keys
                ]
            else:
                found += self._by_host.get(route.host, [])
        if origin is not None:
            found += self._by_address.get((origin[0].lower(), origin[1]), [])
        return tuple(dict.fromkeys(found))


def origin_status(statuses: Iterable[str]) -> str:
    known = set(statuses)
    return next((status for status in (UNHEALTHY, HEALTHY, UNKNOWN) if status in known), "")


class OriginHold(NamedTuple):
    """Since when its origin has not been unhealthy (0: it is)."""

    held: bool = False
    well_since_ms: int = 0


def held_after(hold: OriginHold, status: str, now_ms: int) -> OriginHold:
    if status == UNHEALTHY:
        return OriginHold(True, 0)
    if not hold.held:
        return hold
    since_ms = hold.well_since_ms or now_ms
    return OriginHold(now_ms - since_ms < RELEASE_MS, since_ms)
