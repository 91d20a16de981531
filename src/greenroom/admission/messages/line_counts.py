"""A ledger's counts for the forecast, absolute since the epoch began. No decision uses them."""

from greenroom.model.visit import arrival_ms_of

AGE_CELL_MS = 5_000
AGE_CELLS = 1_440
"""The last step includes everything beyond two hours."""

SOON_MS = 10_000
"""A visitor who takes a place later than this after arriving was in line before; one who never tried
after it is a stray.
"""


class Ages:
    __slots__ = ("_told", "_untold", "counts")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self._untold: set[int] = set()
        self._told: set[int] = set()

    def count(self, cell: int) -> None:
        cell = min(max(0, cell), AGE_CELLS - 1)
        self.counts[cell] = self.counts.get(cell, 0) + 1
        self._untold.add(cell)

    def report(self, whole: bool) -> tuple[tuple[int, int], ...]:
        """All, or what changed since the last acknowledged report."""
        if whole:
            self._untold |= self.counts.keys()
        self._told |= self._untold
        self._untold.clear()
        return tuple([(cell, self.counts[cell]) for cell in self._told])

    def acknowledge(self) -> None:
        self._told.clear()


class LineCounts:
    __slots__ = ("front_s", "joined", "lost", "strays")

    def __init__(self) -> None:
        self.joined = 0
        self.lost = 0
        """Places given up, less those taken again: may fall."""
        self.strays = 0
        """Lost places whose visitor never tried again after joining."""
        self.front_s = 0
        """Arrival second of the visitor last admitted from the line."""

    def begin_epoch(self) -> None:
        self.joined = self.lost = self.strays = 0

    def place_taken(self, key: int, line_ms: int) -> None:
        if line_ms - arrival_ms_of(key) > SOON_MS:
            self.lost -= 1
        else:
            self.joined += 1

    def place_lost(self, key: int, attempted_ms: int) -> None:
        self.lost += 1
        self.strays += attempted_ms - arrival_ms_of(key) <= SOON_MS
