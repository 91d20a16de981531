"""A room that follows a made-up origin. Every data center measures, and the law runs beside the
coordinator, as in a running process, with lost reports and restarted laws. Or the origin pushes its
figures, over a link that loses, delays, repeats and reorders.
"""

from collections import deque
from collections.abc import Callable

from greenroom.capacity import WINDOW_MS, Histogram
from greenroom.capacity.exported import Exported, FiguresRefused, reports_of_push
from greenroom.capacity.measurement import Measurement, ProcessReport
from greenroom.capacity.room_capacity import CapacityState
from greenroom.capacity.sources import ANSWERS, PUSH
from greenroom.capacity.steering import CapacitySteering
from greenroom.model.room import Room
from greenroom.simulator.chance import Streams, between
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.links import Agenda, Links

REPORT_MS = 1_000
DOCUMENTS_MOST = 40
"""A second in one data center."""
WELL, STEEP, SLOWEST = 0.6, 3, 20
"""Share of the objective at the knee, and its power and largest share beyond."""
ROOM_ID = "room"
PUSH_MS, PUSH_LATE_MS, KEPT_PUSHES = WINDOW_MS, 90_000, 12


class FollowedOrigin:
    def __init__(self, agenda: Agenda, links: Links, system: LeaseModel, streams: Streams) -> None:
        self.state: CapacityState | None = None
        self.problems: list[str] = []
        self.down = False
        self._agenda, self._links, self._system = agenda, links, system
        self._draw = streams("origin")
        self._knee = 0.0
        self._room: Callable[[], Room] | None = None
        self._apply: Callable[[], None] = lambda: None
        self._measured: dict[int, tuple[Histogram, int]] = {}
        self._reports: dict[str, ProcessReport] = {}
        self._steering = CapacitySteering()
        self._coordinator = system.coordinator
        self._pushes_draw = streams("push faults")
        self._push_faults: float | None = None
        """Share of pushes with each fault; None: data centers measure."""
        self._origin = Exported(Histogram(), 0)
        """All it has answered."""
        self._pushed: deque[Exported] = deque(maxlen=KEPT_PUSHES)
        self._push_ms = 0
        self._counted = 0
        """Documents in all windows."""

    def begin(self, knee: float, room: Callable[[], Room], apply: Callable[[], None]) -> None:
        """`room` returns the operator's current limits; `apply` is called after each step."""
        self._knee, self._room, self._apply = knee, room, apply
        self._report()
        self._agenda.after(WINDOW_MS, self._step)

    def pushes(self, faults: float | None) -> None:
        if self._room is None:
            self._push_faults = faults

    def end(self) -> None:
        self._room = self.state = None
        self._steering = CapacitySteering()
        self._reports.clear()
        self._apply()

    # -- inside ------------------------------------------------------------------------------------

    def _report(self) -> None:
        if self._room is None:
            return
        self._agenda.after(REPORT_MS, self._report)
        inside = [len(one.ledger.sessions.inside) for one in self._system.centers]
        load, objective_ms = sum(inside) / self._knee, self._room().objective_ms
        share = WELL * load if load < 1 else min(SLOWEST, WELL * load**STEEP)
        for number, center in enumerate(self._system.centers):
            if center.down:
                continue
            latencies = [
                share * objective_ms * (0.5 + self._draw.random())
                for _ in range(min(DOCUMENTS_MOST, 5 * inside[number]))
            ]
            seen, failed = self._measured.get(number, (Histogram(), 0))
            if self.down:
                failed += len(latencies)
            else:
                seen += Histogram.of(latencies)
            self._measured[number] = seen, failed
            if self._push_faults is not None:
                fresh = Histogram() if self.down else Histogram.of(latencies)
                self._origin = Exported(
                    self._origin.documents + fresh,
                    self._origin.failed + len(latencies) - fresh.total,
                    self._agenda.now_ms,
                )
                seen, failed = Histogram(), 0
            measured = Measurement(
                documents=seen,
                failed=failed,
                active=inside[number],
                admitted=center.ledger.lease.admitted,
            )
            source = ANSWERS.name if self._push_faults is None else ""
            report = ProcessReport(
                at_ms=self._agenda.now_ms, rooms={ROOM_ID: measured}, source=source
            )
            self._links.send(number, self._receive, center.name, report)
        if self._push_faults is not None and self._agenda.now_ms - self._push_ms >= PUSH_MS:
            self._push_ms = self._agenda.now_ms
            self._push(self._push_faults)

    def _push(self, faults: float) -> None:
        draw = self._pushes_draw
        # also without requests: a push without a time could not be recognised as late
        newest = self._origin._replace(at_ms=self._agenda.now_ms)
        self._pushed.append(newest)
        sent = [newest] if draw.random() >= faults else []
        sent += self._pushed if draw.random() < faults else []
        for one in sent:
            late_ms = PUSH_LATE_MS if draw.random() < faults else 1_000
            for _ in range(2 if draw.random() < faults else 1):
                self._agenda.after(between(draw, 10, late_ms), self._receive_push, one)

    def _receive_push(self, one: Exported) -> None:
        if self._room is None or self._system.coordinator_down:
            return
        now_ms = self._agenda.now_ms
        try:
            new = reports_of_push(ROOM_ID, {"origin": one}, self._reports, now_ms)
        except FiguresRefused:
            return
        self._reports.update(new)

    def _receive(self, name: str, report: ProcessReport) -> None:
        known = self._reports.get(name)
        if not self._system.coordinator_down and (known is None or known.at_ms < report.at_ms):
            self._reports[name] = report

    def _step(self) -> None:
        if self._room is None:
            return
        self._agenda.after(WINDOW_MS, self._step)
        if self._system.coordinator_down or self._coordinator is not self._system.coordinator:
            self._coordinator, self._steering = self._system.coordinator, CapacitySteering()
            return
        now_ms, last, room = self._agenda.now_ms, self.state, self._room()
        source = ANSWERS if self._push_faults is None else PUSH
        before = {ROOM_ID: last} if last else {}
        done = self._steering.step(
            {ROOM_ID: room}, self._reports, {ROOM_ID: source}, before, now_ms
        )
        state, window = done.states[ROOM_ID], done.windows.get(ROOM_ID)
        if state is last:
            return
        self.state = state
        if max(state.sessions, state.limit) > room.total_active_users:
            self.problems.append(f"{state} exceeds the operator's {room.total_active_users}")
        if window is None and last is not None and (
            state.sessions > last.sessions or state.limit > last.limit
            or state.stopped is not last.stopped
        ):  # fmt: skip
            self.problems.append(f"{last} became {state} on silence")
        if source is PUSH and window is not None:
            self._counted += window.documents.total + window.failed
            answered = self._origin.documents.total + self._origin.failed
            if self._counted > answered:
                self.problems.append(f"{self._counted} documents count of {answered} answered")
        self._apply()
