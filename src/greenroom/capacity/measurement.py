"""What processes measured, merged into windows. Counters only grow, so a lost report or one that
comes late moves documents into the next window and loses none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from greenroom.capacity.histogram import Histogram
from greenroom.capacity.sources import ANSWERS, FORGOTTEN_MS, Source
from greenroom.capacity.window import Window


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
    """All rooms of one process, or what another source says of some."""

    at_ms: int
    rooms: Mapping[str, Measurement]
    overloaded: bool = False
    source: str = ANSWERS.name
    """Empty: a process that sees no answers, and has sessions only."""


class WindowMeter:
    """Windows of all rooms from the newest report of every process."""

    def __init__(self) -> None:
        self._before: dict[str, ProcessReport] = {}

    def windows(
        self,
        reports: Mapping[str, ProcessReport],
        now_ms: int,
        sources: Mapping[str, Source | None] = MappingProxyType({}),
    ) -> Mapping[str, Window | None]:
        """Since the last call. None: some process is silent, or the room's source is, so what is seen
        is not all there is. A process whose report was withdrawn has stopped, and is not silent.

        `sources`: of rooms for which it is not ANSWERS.
        """
        living = {
            name: report for name, report in reports.items() if now_ms - report.at_ms < FORGOTTEN_MS
        }
        before, self._before = self._before, living
        found: dict[str, Window | None] = {}
        measured: set[str] = set()
        for name, report in living.items():
            age_ms = now_ms - report.at_ms
            for room_id, new in report.rooms.items():
                source = sources.get(room_id, ANSWERS)
                own = source is not None and source.name == report.source
                process = report.source in _PROCESSES
                if not own and not process:
                    continue
                if own:
                    measured.add(room_id)
                silent_ms = source.silent_ms if own and source else ANSWERS.silent_ms
                if age_ms >= silent_ms:
                    found[room_id] = None
                    continue
                old = before[name].rooms.get(room_id) if name in before else None
                window = _window(report, new, old or new, own=own)
                together = found.get(room_id, _NOTHING)
                found[room_id] = together and _together(together, window)
        return {
            room_id: window if room_id in measured else None for room_id, window in found.items()
        }


_PROCESSES = frozenset((ANSWERS.name, ""))
_NOTHING = Window()


def _window(report: ProcessReport, new: Measurement, old: Measurement, *, own: bool) -> Window:
    """A process that was restarted under the same name counts from 0 again. Not `own`: another
    source has the documents.
    """
    sessions = Window(
        active=new.active,
        admitted=max(0, new.admitted - old.admitted),
        waiting=new.waiting,
        overloaded=report.overloaded,
        scaling=new.scaling,
    )
    if not own:
        return sessions
    counts = tuple(
        max(0, now - before)
        for now, before in zip(new.documents.counts, old.documents.counts, strict=True)
    )
    return replace(
        sessions,
        documents=Histogram(counts, max(0.0, new.documents.sum_ms - old.documents.sum_ms)),
        pending=new.pending,
        failed=max(0, new.failed - old.failed),
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
