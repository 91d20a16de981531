"""The coordinator's side of moves to another device (`messages.places`)."""

from collections.abc import Collection
from dataclasses import dataclass

from greenroom.admission.messages.places import FREE, PlacesDown, PlacesUp

LEARNS_MS = 15_000
"""How long to wait for a data center that does not report what has moved because it is cut off."""


@dataclass(slots=True)
class _Learner:
    since_ms: int
    number: int = 0
    """Answers after this one name what all others reported."""


class PlaceRelay:
    """The newest report of each data center, of one room."""

    __slots__ = ("_heard", "_learners")

    def __init__(self) -> None:
        self._heard: dict[str, PlacesUp] = {}
        self._learners: dict[str, _Learner] = {}

    def hear(self, name: str, up: PlacesUp | None) -> None:
        if up is not None:
            self._heard[name] = up

    def forget(self, name: str, now_ms: int) -> None:
        """The ledger lost its state, is new, or counted as lost."""
        self._heard.pop(name, None)
        if self._heard:  # else nothing has moved
            self._learners[name] = _Learner(now_ms)

    def has_learned(
        self, name: str, others: Collection[str], answered: int, applied: int, now_ms: int
    ) -> bool:
        """Whether the answer after `answered`, which names all that has moved, may have permits."""
        learner = self._learners.get(name)
        if learner is None:
            return True
        if learner.number and applied > learner.number:
            del self._learners[name]
        elif not learner.number and (
            now_ms - learner.since_ms >= LEARNS_MS
            or all(
                self._heard[one].told >= learner.since_ms for one in others if one in self._heard
            )
        ):
            learner.number = answered
        return learner.number > 0

    @property
    def heard(self) -> bool:
        return bool(self._heard)

    def answer(self, name: str, others: Collection[str]) -> PlacesDown:
        asks = [
            (old, new, other, serial, phase)
            for other in others
            for old, new, serial, phase in self._of(other).asks
        ]
        learning = {one: self._learners[one] for one in others if one in self._learners}
        tell = max([learner.since_ms for learner in learning.values()], default=0)
        moved = {}
        if name in self._learners:
            for other in others:
                for old, new, source, serial in self._of(other).moved:
                    moved[old] = old, new, "" if source == name else source or other, serial
        told = tell, tuple(learning), tuple(moved.values())
        mine = self._of(name).asks
        if not mine:
            return PlacesDown(tuple(asks), (), *told)
        answers = [
            {
                (old, serial, phase): answer
                for old, source, serial, phase, answer in self._of(other).said
                if source == name
            }
            for other in others
        ]
        said = []
        for old, _, serial, phase in mine:
            found = [known.get((old, serial, phase)) for known in answers]
            given = [answer for answer in found if answer is not None]
            if len(given) == len(found):
                said.append((old, serial, phase, max(given, default=FREE)))
        return PlacesDown(tuple(asks), tuple(said), *told)

    def _of(self, name: str) -> PlacesUp:
        return self._heard.get(name) or PlacesUp()
