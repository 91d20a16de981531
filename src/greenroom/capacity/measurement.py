"""What processes measured, merged into windows. Counters only grow, so a lost report or one that
comes late moves documents into the next window and loses none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from greenroom.capacity.histogram import Histogram
from greenroom.capacity.window import WINDOW_MS, Window

SILENT_MS = 2 * WINDOW_MS
"""A process that has not reported for this long is silent."""
FORGOTTEN_MS = 60_000
"""A silent process is counted as gone after this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One room in one process."""

    documents: Histogram = Histogram()
    """Since the start of the process, as `failed` and `admitted`."""
    failed: int = 0
    admitted: int = 0
    pending: Histogram = Histogram()
    active: int = 0
    """Sessions and visitors in line of the data center; 0 where another process of it reports
    them."""
    waiting: int = 0
    scaling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReport:
    """All rooms of one process."""

    at_ms: int
    rooms: Mapping[str, Measurement]
    overloaded: bool = False
    measures: bool = True
    """Whether it forwards requests, so that it sees the answers."""


class WindowMeter:
    """Windows of all rooms from the newest report of every process."""

    def __init__(self) -> None:
        self._before: dict[str, ProcessReport] = {}

    def windows(
        self, reports: Mapping[str, ProcessReport], now_ms: int
    ) -> Mapping[str, Window] | None:
        """Since the last call. None: some process is silent, so what is seen is not all there is.
        A process whose report was withdrawn has stopped, and is not silent.
        """
        living = {
            name: report for name, report in reports.items() if now_ms - report.at_ms < FORGOTTEN_MS
        }
        before, self._before = self._before, living
        if not living or any(now_ms - one.at_ms >= SILENT_MS for one in living.values()):
            return None
        found: dict[str, Window] = {}
        for name, report in living.items():
            for room_id, new in report.rooms.items():
                old = before[name].rooms.get(room_id) if name in before else None
                window = _window(report, new, old or new)
                found[room_id] = _together(found[room_id], window) if room_id in found else window
        return found


def _window(report: ProcessReport, new: Measurement, old: Measurement) -> Window:
    """A process that was restarted under the same name counts from 0 again."""
    counts = tuple(
        max(0, now - before)
        for now, before in zip(new.documents.counts, old.documents.counts, strict=True)
    )
    return Window(
        documents=Histogram(counts, max(0.0, new.documents.sum_ms - old.documents.sum_ms)),
        pending=new.pending,
        failed=max(0, new.failed - old.failed),
        active=new.active,
        admitted=max(0, new.admitted - old.admitted),
        waiting=new.waiting,
        overloaded=report.overloaded,
        scaling=new.scaling,
    )


def _together(one: Window, other: Window) -> Window:
    return Window(
        documents=one.documents + other.documents,
        pending=one.pending + other.pending,
        failed=one.failed + other.failed,
        active=one.active + other.active,
        admitted=one.admitted + other.admitted,
        waiting=one.waiting + other.waiting,
        overloaded=one.overloaded or other.overloaded,
        scaling=one.scaling or other.scaling,
    )
