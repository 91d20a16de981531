"""Counts decisions by room and result."""

from collections.abc import Iterator

from greenroom.decision.observer import Decided, DecisionEvent

RESULTS = tuple(decided.name.lower() for decided in sorted(Decided))

_NONE = [0] * len(RESULTS)


class DecisionCounts:
    def __init__(self) -> None:
        self._by_room: dict[str, list[int]] = {}
        self._failed_rules: dict[str, int] = {}
        self._lost_tickets: dict[str, int] = {}
        self._given: dict[str, list[int]] | None = None
        """What `added` has returned; None until its first call."""
        self._forgotten: list[tuple[str, Decided, int]] = []

    def observe(self, event: DecisionEvent) -> None:
        effective = event.effective
        if effective is None:
            return
        try:
            self._by_room[effective.room.id][event.decided] += 1
        except KeyError:
            counts = self._by_room[effective.room.id] = _NONE.copy()
            counts[event.decided] += 1

    def rule_failed(self, room_id: str) -> None:
        self._failed_rules[room_id] = self._failed_rules.get(room_id, 0) + 1

    def ticket_lost(self, room_id: str) -> None:
        self._lost_tickets[room_id] = self._lost_tickets.get(room_id, 0) + 1

    def of(self, room_id: str) -> dict[str, int]:
        counts = self._by_room.get(room_id, ())
        found = {name: count for name, count in zip(RESULTS, counts, strict=False) if count}
        for name, counted in (
            ("rule_failed", self._failed_rules),
            ("ticket_lost", self._lost_tickets),
        ):
            if room_id in counted:
                found[name] = counted[room_id]
        return found

    def added(self) -> list[tuple[str, Decided, int]]:
        """Additions since the last call, without zeros; for one reader."""
        given = self._given or {}
        found = self._forgotten + [
            more
            for room_id, counts in self._by_room.items()
            for more in _more(room_id, counts, given)
        ]
        self._given, self._forgotten = (
            {room_id: counts.copy() for room_id, counts in self._by_room.items()},
            [],
        )
        return found

    def keep(self, room_ids: set[str]) -> None:
        if self._given is not None:
            for room_id in self._by_room.keys() - room_ids:
                self._forgotten += _more(room_id, self._by_room[room_id], self._given)
        for counted in (self._by_room, self._failed_rules, self._lost_tickets):
            for room_id in counted.keys() - room_ids:
                del counted[room_id]
        if self._given is not None:
            self._given = {
                room_id: counts for room_id, counts in self._given.items() if room_id in room_ids
            }


def _more(
    room_id: str, counts: list[int], given: dict[str, list[int]]
) -> Iterator[tuple[str, Decided, int]]:
    before = given.get(room_id, _NONE)
    for decided in Decided:
        if counts[decided] > before[decided]:
            yield room_id, decided, counts[decided] - before[decided]
