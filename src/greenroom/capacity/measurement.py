"""What processes measured, merged into windows. Counters only grow, so a lost report or one that
comes late moves documents into the next window and loses none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType

from greenroom.capacity.histogram import Histogram
from greenroom.capacity.sources import ANSWERS, FORGOTTEN_MS, HEALTH_CHECK, Source
from greenroom.capacity.window import Window
from greenroom.model.probe import ProbeResult

PROBE_DOCUMENTS = 50
"""Documents that one probe counts as: enough for a judgement, since nothing else measures."""
PROBE_SLACK_MS = 15_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
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
    at_ms: int
    rooms: Mapping[str, Measurement]
    overloaded: bool = False
    source: str = ANSWERS.name
    """Empty: a process that sees no answers, and has sessions only."""


class ProbeFigures:
    """Where this process leads the health checks."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Measurement, int]] = {}
        """And when the last probe came."""

    def probed(self, room_id: str, result: ProbeResult, now_ms: int) -> None:
        """A probe that failed counts with the check's verdict, not by itself."""
        seen = self._seen.get(room_id, (Measurement(), 0))[0]
        if result.ok:
            documents = seen.documents + Histogram.of([result.ttfb_ms] * PROBE_DOCUMENTS)
            seen = replace(seen, documents=documents)
        self._seen[room_id] = seen, now_ms

    def report(
        self, room_id: str, interval_ms: int, unhealthy: bool, now_ms: int
    ) -> ProcessReport | None:
        """None: no probe has come for too long."""
        seen, probed_ms = self._seen.get(room_id, (Measurement(), 0))
        if now_ms - probed_ms > 2 * interval_ms + PROBE_SLACK_MS:
            return None
        if unhealthy:  # in every window, or the law would admit some to see
            seen = replace(seen, failed=seen.failed + PROBE_DOCUMENTS)
            self._seen[room_id] = seen, probed_ms
        return ProcessReport(at_ms=now_ms, rooms={room_id: seen}, source=HEALTH_CHECK.name)

    def keep(self, room_ids: set[str]) -> None:
        for room_id in self._seen.keys() - room_ids:
            del self._seen[room_id]


class WindowMeter:
    def __init__(self) -> None:
        self._before: dict[str, Mapping[str, ProcessReport]] = {}
        self.unchanged: set[str] = set()
        """Rooms whose source, not a process of ours, has reported nothing since the last window."""
        self.missing: dict[str, str] = {}
        """Why rooms have no window."""

    def windows(
        self,
        reports: Mapping[str, ProcessReport],
        now_ms: int,
        sources: Mapping[str, Source | None] = MappingProxyType({}),
    ) -> Mapping[str, Window | None]:
        """Since the last call. None: some process is silent, or the room's source is, so what is seen
        is not all there is. A process whose report was withdrawn has stopped, and is not silent.
        Rooms that are `unchanged` have no window.

        `sources`: of rooms for which it is not ANSWERS.
        """
        by_room: dict[str, dict[str, ProcessReport]] = {}
        for name, report in reports.items():
            if now_ms - report.at_ms < FORGOTTEN_MS:
                for room_id in report.rooms:
                    source = sources.get(room_id, ANSWERS)
                    if report.source in _PROCESSES or (source and report.source == source.name):
                        by_room.setdefault(room_id, {})[name] = report
        before, self._before, self.unchanged, self.missing = self._before, {}, set(), {}
        found: dict[str, Window | None] = {}
        for room_id, living in by_room.items():
            source, old = sources.get(room_id, ANSWERS), before.get(room_id, {})
            if source is None:
                found[room_id] = None
            elif missing := _missing(living, source, now_ms):
                found[room_id], self.missing[room_id] = None, missing
            elif source is not ANSWERS and old and not _has_news(living, old, source):
                self.unchanged.add(room_id)
                self._before[room_id] = old
                continue
            else:
                parts = [
                    _window(
                        report, old.get(name, report), room_id, own=report.source == source.name
                    )
                    for name, report in living.items()
                ]
                found[room_id] = reduce(_together, parts)
            self._before[room_id] = living
        return found


_PROCESSES = frozenset((ANSWERS.name, ""))


def _missing(living: Mapping[str, ProcessReport], source: Source, now_ms: int) -> str:
    """Which report is too old; empty when none is."""
    if not any(report.source == source.name for report in living.values()):
        return f"no figures of {source.name}"
    for name, report in living.items():
        age_ms = now_ms - report.at_ms
        if report.source in _PROCESSES:
            what, most_ms = f"process {name}" if name else "this process", ANSWERS.silent_ms
        elif source is HEALTH_CHECK:
            what, most_ms = "the health check", source.silent_ms
        else:
            what, most_ms = f"instance {name.split(':', 2)[-1]} ({source.name})", source.silent_ms
        if age_ms >= most_ms:
            return f"the newest figures of {what} are {age_ms // 1000} s old"
    return ""


def _has_news(
    living: Mapping[str, ProcessReport], old: Mapping[str, ProcessReport], source: Source
) -> bool:
    return any(
        name not in old or report.at_ms > old[name].at_ms
        for name, report in living.items()
        if report.source == source.name
    )


def _window(report: ProcessReport, before: ProcessReport, room_id: str, *, own: bool) -> Window:
    """A process that was restarted under the same name counts from 0 again. Not `own`: another
    source has the documents.
    """
    new = report.rooms[room_id]
    old = before.rooms.get(room_id, new)
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
