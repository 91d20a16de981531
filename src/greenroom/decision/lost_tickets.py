"""Reports rooms whose tickets do not come back: several updates of a waiting page without a ticket
mean that the cookie is lost on the way. Admission is not affected.
"""

from collections.abc import Callable

from greenroom.admission.schedule import Effective
from greenroom.decision.observer import DecisionEvent, Observer
from greenroom.model.room import Room
from greenroom.model.visit import Arrival
from greenroom.request.admissible import UPDATE_HEADER

SUSPECT_AFTER = 3
"""One may be the first after a new ticket key."""

WITHIN_MS = 60_000
CLIENTS_MAX = 1_000
"""About 200 KB; cleared when full."""

TELL_AGAIN_MS = 600_000


def probable_cause(room: Room, arrival: Arrival) -> str:
    secure = room.cookie_attributes.secure
    if arrival.scheme == "http" and (
        secure == "always" or room.cookie_attributes.samesite == "none"
    ):
        return (
            "browsers do not send the room's Secure cookie over http: let the proxy in front send"
            " X-Forwarded-Proto and name it in trusted_proxies, or set cookie_attributes.secure"
        )
    if any(route.path != "/" for route in room.routes) and not arrival.prefix:
        return (
            "the cookie is valid below the room's path only: if a proxy in front takes a prefix off"
            " the path, let it send X-Forwarded-Prefix and name it in trusted_proxies"
        )
    return "something between browser and greenroom removes Set-Cookie or Cookie header lines"


class LostTickets:
    """Observes decisions (`decision.observer`) behind another observer."""

    def __init__(self, told: Callable[[Room, Arrival, bool], None]) -> None:
        """`told`: once in WITHIN_MS for each client; its last argument is true once in
        TELL_AGAIN_MS for each room.
        """
        self._told = told
        self._clients: dict[tuple[str, str], tuple[int, int]] = {}
        self._said_ms: dict[str, int] = {}

    def behind(self, first: Observer) -> Observer:
        """One observer, because a second one would cost each request."""
        count = self._count

        def both(event: DecisionEvent) -> None:
            first(event)
            if event.ticket is not None:
                return
            arrival, effective = event.arrival, event.effective
            if arrival is None or effective is None:
                return
            facts = arrival.facts  # `arrival.header` inlined: every newcomer comes by here
            if UPDATE_HEADER in facts if facts is not None else arrival.header(UPDATE_HEADER):
                count(effective, arrival, event.at_ms)

        return both

    def _count(self, effective: Effective, arrival: Arrival, now_ms: int) -> None:
        room = effective.room
        key = room.id, arrival.client
        since_ms, count = self._clients.get(key, (now_ms, 0))
        if now_ms - since_ms >= WITHIN_MS:
            since_ms, count = now_ms, 0
        if key not in self._clients and len(self._clients) >= CLIENTS_MAX:
            self._clients.clear()
        self._clients[key] = since_ms, count + 1
        if count + 1 == SUSPECT_AFTER:
            loud = now_ms - self._said_ms.get(room.id, now_ms - TELL_AGAIN_MS) >= TELL_AGAIN_MS
            if loud:
                self._said_ms[room.id] = now_ms
            self._told(room, arrival, loud)
