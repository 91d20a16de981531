"""Summaries of the other data centers for each (`messages.room_summary`). Made for all at once, and
rarely enough that the coordinator's cost does not grow with their number.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter

from greenroom.admission.coordinator.data_center import DataCenter
from greenroom.admission.lease import CUT_OFF_MS
from greenroom.admission.ledger.refresh import CALLED_REFRESH_MS
from greenroom.admission.messages.room_summary import CenterFigures, RoomSummary, period_ms
from greenroom.admission.queueing.line import GRACE_MS

JOIN_MS = CALLED_REFRESH_MS * 5 // 4 + GRACE_MS
"""By then a visitor who comes back in time has taken the place."""
NAMED_MAX = 32
"""Silent ones first, then by name; the others are one sum."""
EXACT_SECONDS = 128
"""Arrivals in more different seconds are summarised in steps."""
FINER = 16
"""A step is a sixteenth more visitors."""

Waiters = Mapping[int, int]
"""Visitors in line by arrival second."""
Ahead = tuple[tuple[int, int], ...]


class Summaries:
    def __init__(self, now_ms: int) -> None:
        self._begun_ms = now_ms
        self._made_ms = -1
        self.due_ms = now_ms
        self._count = 0
        self._named: list[CenterFigures] = []
        self._others: dict[str, CenterFigures] = {}
        self._rest: CenterFigures | None = None
        self._ahead: dict[str, Ahead] = {}
        self._settled: list[tuple[str, int]] = []
        """The two with the oldest reports: at least one is not the recipient."""

    def of(
        self, center: DataCenter, centers: Mapping[str, DataCenter], ranked: bool, now_ms: int
    ) -> RoomSummary | None:
        """None: the center has the newest, or a new coordinator has not heard from everybody."""
        if now_ms >= self.due_ms:
            known = [one for one in centers.values() if not one.retired]
            self.due_ms = now_ms + period_ms(len(known))
            if now_ms - self._begun_ms < CUT_OFF_MS and any(
                one.contact_ms is None for one in known
            ):
                return None
            self._make(known, ranked, now_ms)
        if center.summary_ms == self._made_ms:
            return None
        center.summary_ms, name = self._made_ms, center.name
        others = [row for row in self._named if row.name != name]
        if rest := self._rest:
            own = self._others.get(name)
            others.append(_less(rest, own) if own else rest)
        settled_ms = self._settled[1][1] if self._settled[0][0] == name else self._settled[0][1]
        ahead = self._ahead.get(name, ())
        return RoomSummary(self._made_ms, tuple(others), ahead, self._count, settled_ms)

    def _make(self, known: Sequence[DataCenter], ranked: bool, now_ms: int) -> None:
        self._made_ms = now_ms
        self._count = len(known)
        rows = sorted(
            [_figures(center, now_ms) for center in known],
            key=lambda row: (not row.silent, row.name),
        )
        self._named, others = rows[:NAMED_MAX], rows[NAMED_MAX:]
        self._others = {row.name: row for row in others}
        self._rest = _together(others) if others else None
        self._ahead = (
            ahead_elsewhere({center.name: center.seconds for center in known}) if ranked else {}
        )
        self._settled = sorted(
            [
                # reports to a new coordinator may be of changes only
                (center.name, center.contact_ms - JOIN_MS if center.whole else 0)
                for center in known
                if center.reachable and center.contact_ms is not None
            ]
            + 2 * [("", now_ms)],
            key=itemgetter(1),
        )[:2]


def _figures(center: DataCenter, now_ms: int) -> CenterFigures:
    center.trim(now_ms)
    lost = 0 if center.reachable else center.orphans
    return CenterFigures(
        center.name,
        max(0, center.sessions) + lost,
        center.waiting,
        center.minute,
        max(0, center.outstanding),
        center.contact_ms or 0,
        not center.reachable,
    )


def _together(rows: Sequence[CenterFigures]) -> CenterFigures:
    return CenterFigures(
        "",
        sum([row.active for row in rows]),
        sum([row.waiting for row in rows]),
        sum([row.last_minute for row in rows]),
        sum([row.permits for row in rows]),
        min([row.heard_ms for row in rows]),
    )


def _less(rest: CenterFigures, own: CenterFigures) -> CenterFigures:
    return CenterFigures(
        "",
        rest.active - own.active,
        rest.waiting - own.waiting,
        rest.last_minute - own.last_minute,
        rest.permits - own.permits,
        rest.heard_ms,
    )


def ahead_elsewhere(lines: Mapping[str, Waiters]) -> dict[str, Ahead]:
    """For each data center. In even seconds data centers follow each other by name, in odd ones in
    reverse.
    """
    total = Counter[int]()
    for line in lines.values():
        total.update(line)
    seconds = sorted(total)
    if not seconds:
        return {}
    marks = _marks(seconds, total)
    everybody = _before(marks, seconds, total)
    # neighbours where nobody waits share one answer: most data centers of most rooms
    like: dict[str, str] = {}
    empty = ""
    for name in sorted(lines):
        empty = "" if lines[name] else empty or name
        like[name] = empty or name
    names = [name for name, first in like.items() if name == first]
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    rows = [
        (found[name], _before(marks, sorted(lines[name]), lines[name]), lines[name])
        for name in names
    ]
    backwards = rows[::-1]
    for index, mark in enumerate(marks):
        same_second = 0
        for points, own, line in backwards if mark % 2 else rows:
            point = (mark, everybody[index] - own[index] + same_second)
            if len(points) > 1 and points[-1][1] == points[-2][1] == point[1]:
                points[-1] = point  # of a flat part only both ends are kept
            else:
                points.append(point)
            same_second += line.get(mark, 0)
    told = {name: tuple(points) for name, points in found.items()}
    return {name: told[first] for name, first in like.items()}


def _before(marks: Iterable[int], seconds: Sequence[int], line: Waiters) -> list[int]:
    """How many waiters came before each mark."""
    passed = [0, *accumulate([line[second] for second in seconds])]
    return [passed[bisect_left(seconds, mark)] for mark in marks]


def _marks(seconds: Sequence[int], total: Waiters) -> list[int]:
    """Seconds to interpolate between; exact for few seconds."""
    if len(seconds) <= EXACT_SECONDS:
        return sorted({at for second in seconds for at in (second - 1, second, second + 1)})
    marks, passed, next_at = [], 0, 0
    for second in seconds:
        if passed >= next_at:
            marks.append(second)
            next_at = passed + 1 + passed // FINER
        passed += total[second]
    return [*marks, seconds[-1] + 1]
