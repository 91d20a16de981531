"""The coordinator's loop while this process holds the leader lease: collects sync batches, saves the
new state, and answers. When the term ends all state here is dropped: the next leader continues from
what was saved.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from greenroom.admission.lease import CUT_OFF_MS
from greenroom.errors import StorageFailed
from greenroom.ledgers.coordination import TERM_MS, LeaderLease, LeaseTerm, SavedState
from greenroom.ledgers.sync.coordinator_registry import CoordinatorRegistry, LostUnits
from greenroom.model.room import Room
from greenroom.notifier import ended

WAIT_S = 0.5
"""A quarter of a term."""
GIVE_UP_MS = 2 * TERM_MS
RETRY_S = 0.1
WORK_MS = 5
"""Visitors are served in between."""


class LeaderLoop:
    def __init__(
        self,
        leader_lease: LeaderLease,
        rooms: Callable[[], Sequence[Room]],
        data_centers: Callable[[], Sequence[str]],
        getrandbits: Callable[[int], int],
        on_error: Callable[[BaseException], None],
        fence_ms: int = 0,
    ) -> None:
        """`rooms` and `data_centers` return the same object as long as nothing changed."""
        self.term: LeaseTerm | None = None
        self.registry: CoordinatorRegistry | None = None
        self.answers = 0
        self._leader_lease = leader_lease
        self._rooms, self._data_centers = rooms, data_centers
        self._getrandbits = getrandbits
        self._on_error = on_error
        self._fence_ms = fence_ms
        self._seen: tuple[Sequence[Room], Sequence[str]] | None = None
        self._ahead_ms = self._begun_ms = 0
        self._serving: asyncio.Task[None] | None = None

    def begin(self, term: LeaseTerm) -> None:
        """If an earlier term has not ended here, this one expires."""
        if self._serving is None or self._serving.done():
            self.term = term
            self._serving = asyncio.create_task(self._serve(term))

    async def resign(self) -> None:
        """First answers the reports already collected: a farewell among them is not sent again."""
        term, self.term = self.term, None  # `_work` ends with the next reports
        if self._serving is not None:
            if term is not None:
                await asyncio.wait([self._serving], timeout=2 * WAIT_S)
            await ended([self._serving])
        if term is not None:
            try:
                await self._leader_lease.release(term)
            except StorageFailed as error:
                self._on_error(error)

    async def _serve(self, term: LeaseTerm) -> None:
        try:
            saved = await self._load(term)
            if saved is not None:
                self.registry = self._begin(saved)
                await self._work(term, self.registry)
        finally:
            self.term = self.registry = None

    def silent_s(self) -> dict[str, float]:
        registry = self.registry
        if self.term is None or registry is None:
            return {}
        now_ms = self._now_ms()
        return {
            name: max(0, now_ms - registry.heard_ms.get(name, self._begun_ms)) / 1000
            for name in self._data_centers()
        }

    def lost(self) -> dict[str, LostUnits]:
        """`free_ms` is relative."""
        registry, now_ms = self.registry, self._now_ms()
        found: dict[str, LostUnits] = {}
        for name, seconds in self.silent_s().items():
            if registry is not None and seconds * 1000 >= CUT_OFF_MS:
                units = registry.lost(name)
                found[name] = units._replace(free_ms=max(0, units.free_ms - now_ms))
        return found

    def _now_ms(self) -> int:
        """Steady during a term, and never behind what earlier ones saved."""
        return time.monotonic_ns() // 1_000_000 + self._ahead_ms

    async def _load(self, term: LeaseTerm) -> SavedState | None:
        until = time.monotonic() + TERM_MS / 1000
        while time.monotonic() < until:
            try:
                return await self._leader_lease.load(term)
            except StorageFailed as error:
                self._on_error(error)
                await asyncio.sleep(RETRY_S)
        return None

    def _begin(self, saved: SavedState) -> CoordinatorRegistry:
        registry = CoordinatorRegistry(self._getrandbits)
        damaged = registry.restore(saved.rows, saved.now_ms, saved.life)
        if damaged:
            self._on_error(
                StorageFailed(
                    f"the saved state of the coordinator is damaged: {', '.join(sorted(damaged))}"
                )
            )
        self._ahead_ms = registry.now_ms - time.monotonic_ns() // 1_000_000
        self._begun_ms = registry.now_ms
        self._seen = None
        return registry

    async def _work(self, term: LeaseTerm, registry: CoordinatorRegistry) -> None:
        reached, wait_s = time.monotonic(), 0.0  # reports may precede the term
        while self.term is term:
            try:
                batches = await self._leader_lease.collect(term, wait_s)
                if batches is None or not await self._answer(term, registry, batches):
                    return
                reached, wait_s = time.monotonic(), WAIT_S
            except StorageFailed as error:
                self._on_error(error)
                if (time.monotonic() - reached) * 1000 > GIVE_UP_MS:
                    return
                await asyncio.sleep(RETRY_S)

    async def _answer(
        self, term: LeaseTerm, registry: CoordinatorRegistry, batches: list[tuple[str, bytes]]
    ) -> bool:
        """False: the term is over."""
        self._configure(registry)
        answers: list[tuple[str, bytes]] = []
        began = time.monotonic()
        for data_center, batch in batches:
            answer = registry.answer(data_center, batch, self._now_ms())
            if answer is not None:
                answers.append((data_center, answer))
            if (time.monotonic() - began) * 1000 > WORK_MS:
                if not await self._commit(term, registry, answers):
                    return False
                answers, began = [], time.monotonic()
        return await self._commit(term, registry, answers)

    def _configure(self, registry: CoordinatorRegistry) -> None:
        rooms, data_centers = self._rooms(), self._data_centers()
        if self._seen is None or self._seen[0] is not rooms or self._seen[1] is not data_centers:
            registry.configure(rooms, data_centers, self._now_ms(), self._fence_ms)
            self._seen = rooms, data_centers

    async def _commit(
        self, term: LeaseTerm, registry: CoordinatorRegistry, answers: list[tuple[str, bytes]]
    ) -> bool:
        if not await self._leader_lease.commit(
            term, registry.rows(), registry.forgotten(), answers
        ):
            return False
        registry.written()
        self.answers += len(answers)
        return True
