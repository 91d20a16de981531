"""A timer wheel: finds overdue entries among many whose deadlines keep moving. The owner files an
entry again when its old cell comes up. Entries are returned never early and at most one cell late.
"""

from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")

CELL_BITS = 8
"""256 ms."""


class Wheel(Generic[Item]):
    __slots__ = ("_cells", "_order")

    def __init__(self) -> None:
        self._cells: dict[int, list[Item]] = {}
        self._order: list[int] = []  # heap of the cells that exist

    def file(self, when_ms: int, item: Item) -> None:
        number = when_ms >> CELL_BITS
        cell = self._cells.get(number)
        if cell is None:
            self._cells[number] = [item]
            heappush(self._order, number)
        else:
            cell.append(item)

    def due(self, now_ms: int, limit: int) -> list[Item]:
        edge = now_ms >> CELL_BITS
        found: list[Item] = []
        while self._order and self._order[0] < edge and len(found) < limit:
            cell = self._cells[self._order[0]]
            room = limit - len(found)
            found += cell[-room:]
            del cell[-room:]
            if not cell:
                del self._cells[heappop(self._order)]
        return found

    def overdue(self, now_ms: int) -> bool:
        return bool(self._order) and self._order[0] < now_ms >> CELL_BITS
