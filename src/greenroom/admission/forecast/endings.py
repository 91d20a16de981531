"""At what age sessions end: a survival estimate from ended and living sessions.

Theory. The hazard of step k (five seconds) is the share of sessions reaching it that end in it. A
living session is *censored*: it is exposed in each step it has passed, so a room that has just
filled up does not look like one with only short visits.

    hazard(k) = (ended(k) + w * prior(k)) / (exposed(k) + w)
    survival(k) = product of (1 - hazard) before k

The current step counts by the part that has passed. Prior: no session ends before the session
duration S, then half of the rest every 42 s (S + Exp(60 s)). Observations halve in 20 minutes.
"""

from collections.abc import Mapping
from math import exp

from greenroom.admission.messages.line_counts import AGE_CELL_MS, AGE_CELLS

PRIOR_WEIGHT = 2.0
PRIOR_MEAN_S = 60.0
STEPS_PER_FADE = 12
FADE = 0.5 ** (1 / 20)
"""Per minute."""
LEAST_PASSED = 0.2
"""Earlier in a step, chance decides which reports have come."""
SURE = 0.999
"""Survival stays positive."""
SILENT_STEPS = 2
"""Silent for longer, neither ends nor survival count."""
GAP_STEPS = 720


class Endings:
    """`cell` is a time in steps of 5 s, `where` a data center."""

    __slots__ = (
        "_alive",
        "_cell",
        "_early",
        "_ended",
        "_entering",
        "_exposed",
        "_heard",
        "_prior",
        "_session_ms",
    )

    def __init__(self, session_ms: int, cell: int) -> None:
        # in each data center, by step in which they began
        self._alive: dict[str, dict[int, float]] = {}
        self._heard: dict[str, int] = {}
        self._cell = cell
        self._entering: dict[int, float] = {}  # sessions that entered the current step, by age
        self._session_ms = 0
        self.configure(session_ms)

    def configure(self, session_ms: int) -> None:
        if session_ms == self._session_ms:
            return
        self._session_ms = session_ms
        first = session_ms // AGE_CELL_MS
        self._prior = [0.0] * min(first, AGE_CELLS) + [
            1 - exp(-AGE_CELL_MS / 1000 / PRIOR_MEAN_S)
        ] * max(0, AGE_CELLS - first)
        self._ended = [0.0] * AGE_CELLS
        self._exposed = [0.0] * AGE_CELLS
        # ended in a step that is not over: by when it is over for all who began then, and age
        self._early: dict[int, dict[int, float]] = {}

    @property
    def seen(self) -> float:
        return sum(self._ended) + sum([sum(counts.values()) for counts in self._early.values()])

    def hear(self, where: str, cell: int) -> bool:
        """Returns whether no report was missed, so each end is in its step."""
        before = self._heard.get(where, cell)
        self._heard[where] = max(before, cell)
        if cell - before <= SILENT_STEPS:
            return True
        self._survive(where, before + SILENT_STEPS, cell)
        return False

    def forget(self, where: str) -> None:
        self._alive.pop(where, None)

    def begin(self, where: str, cell: int, count: int) -> None:
        alive = self._alive.setdefault(where, {})
        alive[cell] = alive.get(cell, 0) + count
        if self._cell - self._heard.get(where, self._cell) <= SILENT_STEPS:
            for age in range(min(max(0, self._cell - cell), AGE_CELLS)):
                self._exposed[age] += count

    def end(self, where: str, age: int, count: int) -> None:
        """`age` is in steps, and may be one off, as machines differ. Unknown sessions are ignored."""
        last = AGE_CELLS - 1
        age = min(max(0, age), last)
        alive, begun = self._alive.get(where, {}), self._cell - age
        left = float(count)
        older = sorted([cell for cell in alive if cell < begun]) if age == last else []
        for cell in (begun, begun - 1, begun + 1, begun - 2, begun + 2, *older):
            found = min(left, alive.get(cell, 0))
            if found:
                alive[cell] -= found
                left -= found
                self._count(cell, age, found)
            if not left:
                return

    def step(self, cell: int) -> None:
        if cell - self._cell > GAP_STEPS:
            self._alive.clear()
            self._early.clear()
            self._entering.clear()
            self._cell = cell
        while self._cell < cell:
            self._cell += 1
            if self._cell % STEPS_PER_FADE == 0:
                self._fade()
            exposed, now = self._exposed, self._cell
            entering: dict[int, float] = {}
            for where, alive in self._alive.items():
                if now - self._heard.get(where, now) > SILENT_STEPS:
                    continue
                for begun, count in alive.items():
                    if 0 < now - begun <= AGE_CELLS:
                        exposed[now - begun - 1] += count
                        entering[now - begun] = entering.get(now - begun, 0.0) + count
            self._entering = entering
            for age, count in self._early.pop(now, {}).items():
                exposed[age] += count
                self._ended[age] += count

    def reconcile(self, sessions: Mapping[str, int]) -> None:
        """Removes sessions that would never end because their end was counted in another step."""
        for where, most in sessions.items():
            alive = self._alive.get(where, {})
            excess = sum(alive.values()) - most
            if excess <= 0:
                continue
            for begun in sorted(alive):
                gone = min(excess, alive[begun])
                alive[begun] -= gone
                excess -= gone
                if not excess:
                    break

    def survival(self, passed: float = 0.0) -> list[float]:
        """By step, as far as it is known. `passed`: the reported part of the current step."""
        ended, exposed = self._ended, self._exposed
        if passed >= LEAST_PASSED:
            ended, exposed = ended.copy(), exposed.copy()
            for age, count in self._entering.items():
                if age < AGE_CELLS:
                    exposed[age] += passed * count
            for age, count in self._early.get(self._cell + 1, {}).items():
                ended[age] += count
        left, shares = 1.0, [1.0]
        for gone, danger, prior in zip(ended, exposed, self._prior, strict=True):
            left *= 1 - min(SURE, (gone + PRIOR_WEIGHT * prior) / (danger + PRIOR_WEIGHT))
            shares.append(left)
            if left < 1e-4:
                break
        return shares

    def living(self, sessions: Mapping[str, int], survival: list[float]) -> list[float]:
        """Sessions by age in steps; those of unknown age are assumed to be like the others."""
        ages = [0.0] * (len(survival) - 1)
        oldest = len(ages) - 1
        for where in sessions:
            for begun, count in self._alive.get(where, {}).items():
                if count:
                    ages[min(max(0, self._cell - begun), oldest)] += count
        known = sum(ages)
        if not known:
            ages, known = survival[:-1], sum(survival[:-1])
        share = sum(sessions.values()) / known
        return [count * share for count in ages]

    def _count(self, begun: int, age: int, count: float) -> None:
        over = begun + age + 1
        if over <= self._cell:
            self._ended[age] += count
            return
        for step in range(self._cell - begun, age):
            self._exposed[step] += count
        early = self._early.setdefault(over, {})
        early[age] = early.get(age, 0) + count

    def _survive(self, where: str, since: int, cell: int) -> None:
        survival = self.survival()
        last = len(survival) - 1
        for begun, count in self._alive.get(where, {}).items():
            then, now = (
                survival[min(max(0, since - begun), last)],
                survival[min(max(0, cell - begun), last)],
            )
            self._alive[where][begun] = count * now / then if then else 0.0

    def _fade(self) -> None:
        self._ended = [count * FADE for count in self._ended]
        self._exposed = [count * FADE for count in self._exposed]
        for where, alive in self._alive.items():
            self._alive[where] = {
                begun: count
                for begun, count in alive.items()
                if count and self._cell - begun < 4 * AGE_CELLS
            }
