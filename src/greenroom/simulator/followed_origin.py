"""A room that follows a made-up origin. Every data center measures, and the law runs where the
coordinator is, as in `runtime.capacity`: with reports that are lost, and laws that begin again.
"""

from collections.abc import Callable

from greenroom.capacity import WINDOW_MS, Histogram
from greenroom.capacity.measurement import Measurement, ProcessReport, WindowMeter
from greenroom.capacity.room_capacity import CapacityState, RoomCapacity
from greenroom.model.room import Room
from greenroom.simulator.chance import Streams
from greenroom.simulator.lease_model import LeaseModel
from greenroom.simulator.links import Agenda, Links

REPORT_MS = 1_000
DOCUMENTS_MOST = 40
"""A second in one data center."""
WELL, STEEP, SLOWEST = 0.6, 3, 20
"""Share of the objective at the knee, and its power and largest share beyond."""
ROOM_ID = "room"


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
        self._capacity: RoomCapacity | None = None
        self._meter = WindowMeter()
        self._coordinator = system.coordinator

    def begin(self, knee: float, room: Callable[[], Room], apply: Callable[[], None]) -> None:
        """`room` has the operator's limits at any moment; `apply` is called after each step."""
        self._knee, self._room, self._apply = knee, room, apply
        self._report()
        self._agenda.after(WINDOW_MS, self._step)

    def end(self) -> None:
        self._room = self._capacity = self.state = None
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
            measured = Measurement(
                documents=seen,
                failed=failed,
                active=inside[number],
                admitted=center.ledger.lease.admitted,
            )
            report = ProcessReport(at_ms=self._agenda.now_ms, rooms={ROOM_ID: measured})
            self._links.send(number, self._receive, center.name, report)

    def _receive(self, name: str, report: ProcessReport) -> None:
        known = self._reports.get(name)
        if not self._system.coordinator_down and (known is None or known.at_ms < report.at_ms):
            self._reports[name] = report

    def _step(self) -> None:
        if self._room is None:
            return
        self._agenda.after(WINDOW_MS, self._step)
        if self._system.coordinator_down or self._coordinator is not self._system.coordinator:
            self._coordinator, self._capacity = self._system.coordinator, None
            self._meter = WindowMeter()
            return
        now_ms, last, room = self._agenda.now_ms, self.state, self._room()
        window = self._meter.windows(self._reports, now_ms).get(ROOM_ID)
        if self._capacity is None:
            self._capacity = RoomCapacity(room, last, window.active if window else 0, now_ms)
        self._capacity.configure(room)
        state = self.state = self._capacity.step(window, now_ms)
        if max(state.sessions, state.limit) > room.total_active_users:
            self.problems.append(f"{state} exceeds the operator's {room.total_active_users}")
        if window is None and last is not None and (
            state.sessions > last.sessions or state.limit > last.limit
            or state.stopped is not last.stopped
        ):  # fmt: skip
            self.problems.append(f"{last} became {state} on silence")
        self._apply()
