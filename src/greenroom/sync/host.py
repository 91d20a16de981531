"""Holds the coordinator's office, while this process has it: collects letters, answers them, and has everything written down first.

A term ends when another one has begun (the office refuses whatever is done in an old one), or when the office cannot be reached for
long enough that another process will have taken it. Then everything here is thrown away: who holds office next goes on from what was
written, and so does this process if it is its turn again.

What was written is complete when it was written in this life of the server. After a restart or a failover newer rows may be missing.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from greenroom.errors import StorageFailed
from greenroom.model.room import Room
from greenroom.stores.redis.office import TERM_MS, Memory, RedisOffice, Term
from greenroom.sync.switchboard import Switchboard

WAIT_S = 0.5
"""A term is renewed at least this often: four times before it ends."""
GIVE_UP_MS = 2 * TERM_MS
RETRY_S = 0.1
WORK_MS = 5
"""Answers go out after this much work, and requests of visitors get their turn."""


class Host:
    """At most one term at a time."""

    def __init__(
        self,
        office: RedisOffice,
        rooms: Callable[[], Sequence[Room]],
        data_centers: Callable[[], Sequence[str]],
        getrandbits: Callable[[int], int],
        on_error: Callable[[BaseException], None],
    ) -> None:
        """`rooms` and `data_centers` give what is configured now: the same object as long as it is the same."""
        self.term: Term | None = None
        self.switchboard: Switchboard | None = None
        self.answers = 0
        """Since the start."""
        self._office = office
        self._rooms, self._data_centers = rooms, data_centers
        self._getrandbits = getrandbits
        self._on_error = on_error
        self._seen: tuple[Sequence[Room], Sequence[str]] | None = None
        self._ahead_ms = self._begun_ms = 0

    async def serve(self, term: Term) -> None:
        """One term, to its end."""
        self.term = term
        try:
            memory = await self._remembered(term)
            if memory is not None:
                self.switchboard = self._begin(memory)
                await self._work(term, self.switchboard)
        finally:
            self.term = self.switchboard = None

    def silent_s(self) -> dict[str, float]:
        """As the coordinator: how long each data center has been silent, at most since the term began."""
        board = self.switchboard
        if self.term is None or board is None:
            return {}
        now_ms = self._now_ms()
        return {name: max(0, now_ms - board.heard_ms.get(name, self._begun_ms)) / 1000 for name in self._data_centers()}

    async def resign(self) -> None:
        """Ends the term, if there is one, so that another process can go on at once."""
        if self.term:
            term, self.term = self.term, None
            try:
                await self._office.resign(term)
            except StorageFailed as error:
                self._on_error(error)

    def _now_ms(self) -> int:
        """The coordinator's clock: steady during a term, and never behind what was written in earlier ones."""
        return time.monotonic_ns() // 1_000_000 + self._ahead_ms

    async def _remembered(self, term: Term) -> Memory | None:
        until = time.monotonic() + TERM_MS / 1000
        while time.monotonic() < until:
            try:
                return await self._office.remember(term)
            except StorageFailed as error:
                self._on_error(error)
                await asyncio.sleep(RETRY_S)
        return None

    def _begin(self, memory: Memory) -> Switchboard:
        switchboard = Switchboard(self._getrandbits)
        switchboard.recall(memory.rows, memory.now_ms, memory.life)
        self._ahead_ms = switchboard.now_ms - time.monotonic_ns() // 1_000_000
        self._begun_ms = switchboard.now_ms
        self._seen = None
        return switchboard

    async def _work(self, term: Term, switchboard: Switchboard) -> None:
        reached, wait_s = time.monotonic(), 0.0  # reports may have been brought before we came
        while self.term is term:
            try:
                letters = await self._office.collect(term, wait_s)
                if letters is None or not await self._answer(term, switchboard, letters):
                    return
                reached, wait_s = time.monotonic(), WAIT_S
            except StorageFailed as error:
                self._on_error(error)
                if (time.monotonic() - reached) * 1000 > GIVE_UP_MS:
                    return
                await asyncio.sleep(RETRY_S)

    async def _answer(self, term: Term, switchboard: Switchboard, letters: list[tuple[str, bytes]]) -> bool:
        """False when the term is over. Renews it, even when there is nothing to answer."""
        self._configure(switchboard)
        answers: list[tuple[str, bytes]] = []
        began = time.monotonic()
        for data_center, letter in letters:
            answer = switchboard.answer(data_center, letter, self._now_ms())
            if answer is not None:
                answers.append((data_center, answer))
            if (time.monotonic() - began) * 1000 > WORK_MS:
                if not await self._commit(term, switchboard, answers):
                    return False
                answers, began = [], time.monotonic()
        return await self._commit(term, switchboard, answers)

    def _configure(self, switchboard: Switchboard) -> None:
        rooms, data_centers = self._rooms(), self._data_centers()
        if self._seen is None or self._seen[0] is not rooms or self._seen[1] is not data_centers:
            switchboard.configure(rooms, data_centers, self._now_ms())
            self._seen = rooms, data_centers

    async def _commit(self, term: Term, switchboard: Switchboard, answers: list[tuple[str, bytes]]) -> bool:
        if not await self._office.commit(term, switchboard.rows(), switchboard.forgotten(), answers):
            return False
        switchboard.written()
        self.answers += len(answers)
        return True
