"""Liveness of the line in any simulated world.

While units are free, the minute has room and a visitor waits, a visitor enters within the sum of

    two syncs      a unit is freed and reported, and granted: 1.5 s each; more with losses
    one refresh    the visitor in front may have asked just now: 20 s and a tenth
    one ghost      the called visitor may not come: refresh and grace, 6 s; not in a random room
    the pace       60 s / (N + 1): the coordinator hands permits out evenly

That holds for the connected data centers, for each that is cut off with the units that its own
sessions free, and `calm_s` after the last fault by the ground truth.
"""

from collections.abc import Callable, Iterable
from math import ceil, log

from greenroom.admission.coordinator.coordinator import ORPHAN_SLACK_MS
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.model.room import Room
from greenroom.simulator.lease_model import HEARS_MOST_MS, SYNC_MOST_MS, LeaseModel
from greenroom.simulator.operators import admits
from greenroom.simulator.scenario import Fault
from greenroom.simulator.visitor import Center
from greenroom.simulator.world import World

SOON_MS = {"fifo": 28_000, "random": 70_000}
PLAIN_MS = 31_000
LOST_AT_ONCE = 1e-6
LOSS_MOST = 0.5
MOVING_FACTOR = 5
"""A visitor who changes data centers leaves a ghost behind."""


def calm_s(room: Room, faults: Iterable[Fault]) -> int:
    """The longest session plus the slack of its orphans."""
    minutes = max(
        [
            room.session_duration,
            *(int(fault.amount) for fault in faults if fault.kind == "session duration"),
        ]
    )
    return minutes * 60 + (5_000 + ORPHAN_SLACK_MS + 4 * SYNC_MOST_MS) // 1_000


class LineProgress:
    def __init__(self, world: World, note: Callable[[str], None]) -> None:
        self.world = world
        self._note = note
        self._calm_ms = world.calm_ms + 1_000 * calm_s(world.scenario.room, world.scenario.faults)
        self._since: dict[str, tuple[int, tuple[int, ...]]] = {}

    @property
    def calm(self) -> bool:
        return self.world.agenda.now_ms >= self._calm_ms

    def sample(self, now_ms: int) -> None:
        self._as_people_see_it(now_ms)
        if isinstance(self.world.system, LeaseModel):
            self._in_touch(self.world.system, now_ms)
            for center in self.world.system.centers:
                self._cut_off(self.world.system, center, now_ms)

    @property
    def _tries(self) -> int:
        loss = min(self.world.links.loss, 0.99)
        return 1 if not loss else ceil(log(LOST_AT_ONCE) / log(1 - (1 - loss) ** 2))

    @property
    def told_within_ms(self) -> int:
        """When other data centers have a report: after a sync of each, perhaps after a lost answer."""
        return 4 * self._tries * SYNC_MOST_MS

    def _bound_ms(self) -> int:
        scenario, loss, tries = self.world.scenario, self.world.links.loss, self._tries
        if not scenario.faults and not loss:
            return PLAIN_MS
        factor = 1 + MOVING_FACTOR * scenario.behaviour.moving
        soon_ms = SOON_MS.get(self.world.room.queueing_method, 0)
        return int(
            factor
            * (
                soon_ms
                + 2 * tries * SYNC_MOST_MS
                + 60_000 // (self.world.room.new_users_per_minute + 1)
            )
        )

    def _as_people_see_it(self, now_ms: int) -> None:
        truth = self.world.ground_truth
        able = (
            truth.in_use < truth.total
            and len(truth.minute) < truth.per_minute
            and truth.waiting > 0
        )
        if now_ms < self._calm_ms and self.world.scenario.faults:
            able = False
        if self._stands("everywhere", able, (truth.entered,), now_ms):
            self._note(
                f"no visitor entered for {self._bound_ms() / 1000:.0f} s although there was room"
                f" and {truth.waiting} waited"
            )

    def _in_touch(self, system: LeaseModel, now_ms: int) -> None:
        coordinator = system.coordinator
        centers = [
            one
            for one in system.centers
            if one.listed and not one.down and one.ledger.lease.connected(system.local_ms(one))
        ]
        heard = bool(centers) and not system.coordinator_down and not coordinator.doubting
        spare = (
            min(coordinator.pool, coordinator.per_minute - coordinator.sums.value)
            - coordinator.sums.owed
        )
        held = (
            sum(max(0, coordinator.data_centers[one.name].outstanding) for one in centers)
            if heard
            else 0
        )
        able = heard and spare >= 0 and spare + held > 0
        mark = (
            *(one.ledger.lease.admitted for one in centers),
            *(one.ledger.epoch for one in centers),
        )
        if self._stands("in touch", able, mark, now_ms) and (
            waiting := self._present(centers, now_ms)
        ):
            self._note(
                f"{spare} and {held} permits were of no use to {waiting} in line for"
                f" {self._bound_ms() / 1000:.0f} s"
            )

    def _cut_off(self, system: LeaseModel, center: Center, now_ms: int) -> None:
        lease, local_ms = center.ledger.lease, system.local_ms(center)
        cut_off = not center.down and not lease.connected(local_ms) and not lease.fenced(local_ms)
        if cut_off:
            lease.trim(local_ms)
        able = cut_off and (
            lease.permits > 0 or (lease.freed > 0 and len(lease.window) < lease.disconnected_rate)
        )
        mark = lease.admitted, center.ledger.epoch
        if self._stands(center.name, able, mark, now_ms) and (
            waiting := self._present([center], now_ms)
        ):
            self._note(
                f"{center.name}, cut off, has {lease.permits} permits and {lease.freed} units, of"
                f" no use to {waiting} in line for {self._bound_ms() / 1000:.0f} s"
            )

    def _stands(self, what: str, able: bool, mark: tuple[int, ...], now_ms: int) -> bool:
        mark = (*mark, int(1_000 * self.world.links.loss))
        since_ms, before = self._since.get(what, (now_ms, mark))
        if (
            not able
            or before != mark
            or since_ms < self.world.configured_ms + HEARS_MOST_MS
            or not admits(self.world.room)
            or self._excused
        ):
            self._since[what] = now_ms, mark
            return False
        self._since[what] = since_ms, mark
        if now_ms - since_ms <= self._bound_ms():
            return False
        self._since[what] = now_ms, mark
        return True

    @property
    def _excused(self) -> bool:
        system = self.world.system
        kept = isinstance(system, LeaseModel) and any(
            center.ledger.line.kept for center in system.centers
        )
        return kept or self.world.links.loss > LOSS_MOST

    def _present(self, centers: list[Center], now_ms: int) -> int:
        found, visitors, came_ms = 0, self.world.crowd.visitors, now_ms - self._bound_ms()
        for center in centers:
            for ticket_id in center.ledger.line.slots:
                one = visitors[int.from_bytes(ticket_id, "big") - 1]
                ghost = now_ms - one.attempted_ms > one.refresh_ms + GRACE_MS
                found += one.waits and not ghost and not one.gap_ms and one.came_ms < came_ms
        return found
