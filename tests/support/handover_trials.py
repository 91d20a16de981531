"""Trials of a coordinator that changes hands: what it remembers is all there, or older, or gone,
and data centers come and go meanwhile.

Reports and answers travel as they do with a real leader lease: an answer goes out only after its
rows have been written, a data center reads no report while an answer is on its way to its ledgers,
and when the server that keeps the rows loses its memory, batches there are lost too. `late`:
nothing of that is certain, and what is on its way then comes when it comes.
"""

from heapq import heappop
from random import Random

from admission_trials import Astray
from admission_world import small_room

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.laws import problems
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.ledgers.sync.batch import ReportBatch, answer_of, encode
from greenroom.ledgers.sync.coordinator_registry import CoordinatorRegistry
from greenroom.model.room import Room

OVER_MS = 70_000
"""By then sessions and the minute are over, regardless of what was forgotten before."""


class Handover(Astray):
    """As its base, and the coordinator is replaced every now and then."""

    def __init__(
        self, seed: int, room: Room, centers: int, losses: bool, late: bool = False
    ) -> None:
        super().__init__(seed, room, centers)
        self.names = [ledger.data_center for ledger in self.ledgers]
        self.losses, self.late = losses, late
        self.rows: dict[str, bytes] = {}
        self.older: list[dict[str, bytes]] = [{}]
        self.life = 0
        self.handovers = 0
        self.crashed_ms = self.aged_ms = 0
        self._take_over()

    @property
    def coordinator(self) -> Coordinator:
        return self.registry.coordinators[self.room.id]

    @coordinator.setter
    def coordinator(self, _: Coordinator) -> None:
        """It is the registry's."""

    def _problems(self) -> list[str]:
        """Ledgers of data centers that a coordinator without memory has not heard of yet say more
        than it knows; so may a single one of which it has only a late report.
        """
        coordinator = self.coordinator

        def is_known(ledger: Ledger) -> bool:
            center = coordinator.data_centers[ledger.data_center]
            alone = len(coordinator.data_centers) == 1
            return ledger.data_center not in coordinator.doubted and (
                not alone or center.has_heard(ledger.lease.applied)
            )

        return problems(coordinator, [ledger for ledger in self.ledgers if is_known(ledger)])

    def _report(self, index: int) -> None:
        chance = self.draw.random()
        if chance < 0.01:
            self._take_over()
        elif chance < 0.02 and self.losses and self._witnesses():
            self._forget()
        elif chance < 0.023:
            self._limits()
        super()._report(index)

    def _crash(self, index: int) -> None:
        """Not the last that knew of an earlier coordinator, nor while this one knows older things:
        nobody could tell.
        """
        coordinator, name = self.coordinator, self.ledgers[index].data_center
        heard = name not in coordinator.doubted or coordinator.forgotten.certain
        if self.now_ms > self.aged_ms + OVER_MS and (heard or self._witnesses(index)):
            self.crashed_ms = self.now_ms
            super()._crash(index)

    def _witnesses(self, but: int = -1) -> bool:
        """Whether a ledger was answered by a coordinator."""
        return any(
            ledger.lease.applied for index, ledger in enumerate(self.ledgers) if index != but
        )

    def _take_over(self) -> None:
        self.handovers += 1
        self.registry = CoordinatorRegistry(self.draw.getrandbits)
        clock_ms = self.now_ms + self.draw.choice((-400, 0, 900))
        self.registry.restore(self.rows, clock_ms, f"life {self.life}")
        self.ahead_ms = self.registry.now_ms - self.now_ms
        self.registry.configure([self.room], self.names, self.registry.now_ms)
        self._write()

    def _forget(self) -> None:
        """The server restarts from an older state, or from nothing; what had left it already
        arrives now or never.
        """
        self.life += 1
        known = self.older if self.now_ms > self.crashed_ms + OVER_MS else []
        self.rows = dict(self.draw.choice(({}, *known)))
        if self.rows:
            self.aged_ms = self.now_ms
        if not self.late:
            self._arrive_now_or_never()
        self._take_over()

    def _arrive_now_or_never(self) -> None:
        for _, _, index, message in sorted(self.flying):
            if isinstance(message, SyncDown) and self.draw.random() < 0.5:
                self.ledgers[index].apply(message, self._local(index))
        self.flying.clear()

    def _limits(self) -> None:
        """Only upwards: after lowering them no visitor is expelled, so the test could not tell."""
        if self.room.total_active_users > 200:
            return
        self.room = small_room(
            total_active_users=self.room.total_active_users + 1,
            new_users_per_minute=self.room.new_users_per_minute,
            queueing_method=self.draw.choice(("fifo", "random")),
        )
        self.registry.configure([self.room], self.names, self.now_ms + self.ahead_ms)
        for index, ledger in enumerate(self.ledgers):
            ledger.configure(self.room, self._local(index))
            ledger.log.clear()

    def _write(self) -> bool:
        """Rows first; False when the process dies before that, and the next one goes on from what
        was written.
        """
        if self.draw.random() < 0.003 and self.handovers > 1:
            self._take_over()
            return False
        self.rows |= self.registry.rows()
        for name in self.registry.forgotten():
            self.rows.pop(name, None)
        self.registry.written()
        if self.draw.random() < 0.1:
            self.older = [*self.older[-3:], dict(self.rows)]
        return True

    def _deliver(self) -> None:
        while self.flying and self.flying[0][0] <= self.now_ms:
            _, _, index, message = heappop(self.flying)
            if isinstance(message, SyncDown):
                self.ledgers[index].apply(message, self._local(index))
                continue
            assert isinstance(message, SyncUp)
            batch = encode(ReportBatch(1, {self.room.id: message}))
            answer = self.registry.answer(message.data_center, batch, self.now_ms + self.ahead_ms)
            if answer is not None and self._write():
                self._send(index, answer_of(answer).rooms[self.room.id])


def handovers(
    seeds: range = range(24), steps: int = 1_500, losses: bool = True, late: bool = False
) -> list[str]:
    """Regardless of who coordinates and of what was forgotten: no visitor is let in beyond the
    limits.
    """
    found, admitted, changed = [], 0, 0
    for seed in seeds:
        draw = Random(seed)
        room = small_room(
            total_active_users=draw.choice((1, 4, 20, 60)),
            new_users_per_minute=draw.choice((1, 5, 40)),
            queueing_method=draw.choice(("fifo", "random")),
        )
        world = Handover(seed, room, draw.choice((1, 2, 3)), losses, late)
        found += [f"seed {seed}: {problem}" for problem in world.run(steps)]
        admitted, changed = admitted + world.admitted, changed + world.handovers
    if admitted < 10 * len(seeds) or changed < 2 * len(seeds):
        found.append(f"{admitted} admissions and {changed} handovers are too few to say anything")
    return found
