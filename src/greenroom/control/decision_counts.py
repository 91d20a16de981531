"""Counts decisions by room and result, for metrics: a subscriber of the decision service's events."""

from greenroom.decision.observer import Decided, DecisionEvent

RESULTS = tuple(decided.name.lower() for decided in Decided)
"""Names of the results by their number."""


class DecisionCounts:
    """All rooms of one process since its start; a room that is taken out is forgotten with `keep`."""

    def __init__(self) -> None:
        self._by_room: dict[str, list[int]] = {}
        self._failed_rules: dict[str, int] = {}

    def observe(self, event: DecisionEvent) -> None:
        """See `Observer`."""
        effective = event.effective
        if effective is None:
            return
        try:
            self._by_room[effective.room.id][event.decided] += 1
        except KeyError:
            counts = self._by_room[effective.room.id] = [0] * len(RESULTS)
            counts[event.decided] += 1

    def rule_failed(self, room_id: str) -> None:
        """A bypass rule of this room could not be evaluated."""
        self._failed_rules[room_id] = self._failed_rules.get(room_id, 0) + 1

    def of(self, room_id: str) -> dict[str, int]:
        """Result -> count, for the results that there were; `rule_failed` counts rules that could not be evaluated."""
        counts = self._by_room.get(room_id, ())
        found = {name: count for name, count in zip(RESULTS, counts, strict=False) if count}
        failed = self._failed_rules.get(room_id)
        return {**found, "rule_failed": failed} if failed else found

    def keep(self, room_ids: set[str]) -> None:
        """Forgets all other rooms."""
        for counted in (self._by_room, self._failed_rules):
            for room_id in counted.keys() - room_ids:
                del counted[room_id]
