"""The coordinator's side of moves to another device (`messages.places`)."""

from collections.abc import Collection

from greenroom.admission.messages.places import FREE, PlacesDown, PlacesUp


class PlaceRelay:
    """Of one room: the newest report of each data center."""

    __slots__ = ("_heard",)

    def __init__(self) -> None:
        self._heard: dict[str, PlacesUp] = {}

    def hear(self, name: str, up: PlacesUp | None) -> None:
        if up is not None:
            self._heard[name] = up

    def forget(self, name: str) -> None:
        """The ledger lost its state."""
        self._heard.pop(name, None)

    @property
    def heard(self) -> bool:
        return bool(self._heard)

    def answer(self, name: str, others: Collection[str]) -> PlacesDown:
        asks = [
            (old, new, other, serial, phase)
            for other in others
            for old, new, serial, phase in self._of(other).asks
        ]
        mine = self._of(name).asks
        if not mine:
            return PlacesDown(tuple(asks))
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
        return PlacesDown(tuple(asks), tuple(said))

    def _of(self, name: str) -> PlacesUp:
        return self._heard.get(name) or PlacesUp()
