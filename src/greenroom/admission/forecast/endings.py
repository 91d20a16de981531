"""At what age sessions end, learnt from those that ended and those that are still there.

Theory. Time is cut into steps of five seconds. Of the sessions that reach step k of their life some end in it: that share is the hazard.
Every session that is still alive counts as exposed in each step it has passed, so one whose end has not been seen yet (it is
*censored*) teaches as much as one that ended, and a room that has just filled up does not look like one with only short visits.

    hazard(k) = (ended(k) + w * prior(k)) / (exposed(k) + w)        survival(k) = product of (1 - hazard) before k

The prior: no session ends before the session duration, and then half of the rest every 42 s (S + Exp(60 s)). Observations count half
after twenty minutes, so a crowd that behaves differently is believed soon.
"""

from math import exp

from greenroom.admission.messages.census import AGE_CELL_MS, AGE_CELLS

PRIOR_WEIGHT = 2.0
"""The prior counts like this many sessions in each step."""
PRIOR_MEAN_S = 60.0
STEPS_PER_FADE = 12
FADE = 0.5 ** (1 / 20)
"""Each minute (12 steps) everything seen counts this much less: half after 20 minutes."""
SURE = 0.999
"""No hazard is above: survival stays positive."""
GAP_STEPS = 720
"""After an hour without a word the living are not known any more."""


class Endings:
    """What is known of the ages at which sessions of one room end. `cell` is a moment in steps of 5 s."""

    __slots__ = ("_alive", "_cell", "_ended", "_exposed", "_prior", "_session_ms")

    def __init__(self, session_ms: int, cell: int) -> None:
        self._alive: dict[int, int] = {}  # by step of the beginning
        self._cell = cell
        self._session_ms = 0
        self.configure(session_ms)

    def configure(self, session_ms: int) -> None:
        """Another session duration: what was learnt under the old one says nothing about the new one."""
        if session_ms == self._session_ms:
            return
        self._session_ms = session_ms
        first = session_ms // AGE_CELL_MS
        self._prior = [0.0] * min(first, AGE_CELLS) + [1 - exp(-AGE_CELL_MS / 1000 / PRIOR_MEAN_S)] * max(0, AGE_CELLS - first)
        self._ended = [0.0] * AGE_CELLS
        self._exposed = [0.0] * AGE_CELLS

    @property
    def seen(self) -> float:
        """How many ended sessions were seen, old ones counting less."""
        return sum(self._ended)

    def begin(self, cell: int, count: int) -> None:
        """So many sessions began."""
        self._alive[cell] = self._alive.get(cell, 0) + count
        for age in range(min(max(0, self._cell - cell) + 1, AGE_CELLS)):
            self._exposed[age] += count

    def end(self, age: int, count: int) -> None:
        """So many sessions ended just now at this age, in steps. Steps of two machines differ by one, so a neighbour will do."""
        age = min(max(0, age), AGE_CELLS - 1)
        self._ended[age] += count
        begun = self._cell - age
        for cell in (begun, begun - 1, begun + 1):
            found = min(count, self._alive.get(cell, 0))
            if found:
                self._alive[cell] -= found
                count -= found
            if not count:
                return

    def step(self, cell: int) -> None:
        """Time has passed: living sessions have reached the next step."""
        if cell - self._cell > GAP_STEPS:
            self._alive.clear()
            self._cell = cell
        while self._cell < cell:
            self._cell += 1
            if self._cell % STEPS_PER_FADE == 0:
                self._fade()
            exposed, now = self._exposed, self._cell
            for begun, count in self._alive.items():
                if 0 < now - begun < AGE_CELLS:
                    exposed[now - begun] += count

    def reconcile(self, sessions: int) -> None:
        """Limits the number of living sessions: an end counted in a neighbouring step would leave one that never ends."""
        excess = sum(self._alive.values()) - sessions
        if excess <= 0:
            return
        for begun in sorted(self._alive):
            gone = min(excess, self._alive[begun])
            self._alive[begun] -= gone
            excess -= gone
            if not excess:
                return

    def survival(self) -> list[float]:
        """Share of sessions that reach each step, from 1 on; as long as it says something."""
        left, shares = 1.0, [1.0]
        for ended, exposed, prior in zip(self._ended, self._exposed, self._prior, strict=True):
            left *= 1 - min(SURE, (ended + PRIOR_WEIGHT * prior) / (exposed + PRIOR_WEIGHT))
            shares.append(left)
            if left < 1e-4:
                break
        return shares

    def living(self, sessions: float, survival: list[float]) -> list[float]:
        """How many of `sessions` are in each step of their life; those whose age is not known are taken to be like the others."""
        ages = [0.0] * (len(survival) - 1)
        oldest = len(ages) - 1
        for begun, count in self._alive.items():
            if count:
                ages[min(max(0, self._cell - begun), oldest)] += count
        known = sum(ages)
        if not known:
            ages, known = survival[:-1], sum(survival[:-1])
        share = sessions / known
        return [count * share for count in ages]

    def _fade(self) -> None:
        self._ended = [count * FADE for count in self._ended]
        self._exposed = [count * FADE for count in self._exposed]
        self._alive = {begun: count for begun, count in self._alive.items() if count and self._cell - begun < 4 * AGE_CELLS}
