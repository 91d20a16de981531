"""Requests that cannot wait (images, webhooks, HEAD), nearly all without cookies."""

from collections import deque

from greenroom.admission.lease import WINDOW_MS
from greenroom.admission.ledger.provisional import PROVISIONAL_MS, SHARE
from greenroom.model.visit import Outcome, Standing
from greenroom.simulator.chance import Streams, between
from greenroom.simulator.ground_truth import GroundTruth
from greenroom.simulator.links import Agenda
from greenroom.simulator.scenario import Scenario
from greenroom.simulator.visitor import SimulatedVisitor, SystemUnderTest

PROVISIONAL_FROM = 1 << 41
COMING_BACK = 0.05


class ProvisionalFlood:
    def __init__(
        self,
        scenario: Scenario,
        agenda: Agenda,
        system: SystemUnderTest,
        ground_truth: GroundTruth,
        streams: Streams,
    ) -> None:
        self.sent = self.passed = self.kept = 0
        """Requests; those that reached the origin; those whose session became a full one."""
        self.most_active = self.most_minute = 0
        self.slowest_ms = 0
        self.over_share = 0
        self._agenda, self._system, self._ground_truth = agenda, system, ground_truth
        self._centers = scenario.centers
        self._draw = streams("provisional flood")
        self._active: dict[
            int, int
        ] = {}  # number -> when it was admitted; those that are not full sessions
        self._minute: deque[int] = deque()
        self._made = 0
        self._one = self._another()
        """A refused one leaves nothing behind, so the same one tries again."""
        self._answered_at_once = False

    def request(self, center: int) -> None:
        self.sent += 1
        if self._system.open(center):
            one, self._answered_at_once = self._one, False
            one.center, one.latency_ms = center, 0
            self._system.arrive_provisionally(one, self._answered)
            if not self._answered_at_once:
                self._one = self._another()

    def _another(self) -> SimulatedVisitor:
        one = SimulatedVisitor(PROVISIONAL_FROM + self._made, 0, self._agenda.now_ms)
        one.pauses = True  # it overtakes no visitor
        self._made += 1
        return one

    def _answered(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        self._answered_at_once = visitor is self._one
        self.slowest_ms = max(self.slowest_ms, visitor.latency_ms)
        if outcome.standing is not Standing.ADMITTED:
            return
        now_ms = self._agenda.now_ms
        self.passed += 1
        if self._answered_at_once:
            self._one = self._another()
        self._ground_truth.entering(
            visitor,
            outcome.expires_ms - self._system.skew_ms(visitor.center),
            now_ms,
            PROVISIONAL_MS,
        )
        self._count(visitor, now_ms)
        if self._draw.random() < COMING_BACK:
            self._agenda.after(
                between(self._draw, 50, PROVISIONAL_MS - 500), self._comes_back, visitor
            )

    def _count(self, one: SimulatedVisitor, now_ms: int) -> None:
        active, minute = self._active, self._minute
        active[one.number] = now_ms
        minute.append(now_ms)
        while active[oldest := next(iter(active))] <= now_ms - PROVISIONAL_MS:
            del active[oldest]
        while minute[0] <= now_ms - WINDOW_MS:
            minute.popleft()
        self.most_active, self.most_minute = (
            max(self.most_active, len(active)),
            max(self.most_minute, len(minute)),
        )
        total, per_minute = self._ground_truth.largest
        over = max(
            len(active) - share_of(total, self._centers),
            len(minute) - share_of(per_minute, self._centers),
        )
        self.over_share = max(self.over_share, over)

    def _comes_back(self, one: SimulatedVisitor) -> None:
        if self._system.open(one.center):
            self._system.view(one, self._seen)

    def _seen(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        if outcome.standing is not Standing.ACTIVE:
            return
        self.kept += 1
        self._active.pop(visitor.number, None)
        self._ground_truth.page(
            visitor, outcome.expires_ms - self._system.skew_ms(visitor.center), self._agenda.now_ms
        )


def share_of(limit: int, centers: int) -> int:
    """Each data center may have one."""
    return max(centers, limit // SHARE)
