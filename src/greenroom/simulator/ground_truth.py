"""Who is active, who waits, who overtook whom: from visitors, never from a ledger. A visitor is
active until `session_duration` after the last page served; behind the fence, until the end which that
page promised. Unused, while visitors wait, is `min(1 - in use / L, 1 - entered within 60 s / N,
waiting / min(L, N))`. There was room for a visitor without a ticket only if the entries of the last
60 s and the refused requests of a flood are fewer than N: no rule could tell them apart.
"""

from collections import deque
from heapq import heappop, heappush

from greenroom.model.room import Room
from greenroom.simulator.operators import UNLIMITED, LimitsInForce, unlimited
from greenroom.simulator.scenario import START_MS, Scenario
from greenroom.simulator.visitor import SimulatedVisitor

SAMPLE_MS = 250
SERIES_MS = 5_000
WINDOW_MS = 60_000
BURST_MS = 5_000
ASKED_MS = 1_000
"""Visitors who only have to show their ticket are told to come back sooner, all others later."""


class GroundTruth:
    def __init__(self, scenario: Scenario) -> None:
        room = scenario.room
        self.total, self.per_minute = room.total_active_users, room.new_users_per_minute
        self._largest = (self.total, self.per_minute)
        self.limits = LimitsInForce(self.total, self.per_minute)
        self._session_ms = room.session_ms
        self._renews = not room.disable_session_renewal
        self._fenced = scenario.fence_s > 0
        self.active = self.most_active = self.over_active = 0
        self.on_trust = self.most_on_trust = self.over_beyond_trust = 0
        """Active visitors who moved without their unit, and how many exceeded the limit without
        them.
        """
        self.in_use = 0
        self.waiting = self.most_waiting = 0
        self.minute: deque[int] = deque()
        self.most_minute = self.over_minute = 0
        self.most_burst = 0
        """Most admissions within BURST_MS."""
        self._burst: deque[int] = deque()
        self.entered = 0
        self.early = self.asked = 0
        """Held on arrival although both limits had room for all who looked alike, and nobody waited
        but visitors asked to show their ticket. Those of them who were asked so too, with a page due
        within ASKED_MS, count as `asked`, or as `early` once held again.
        """
        self._asking = 0
        self.early_in_flood = 0
        """As `early`, but the limits had no room for all who looked alike."""
        self._refused: deque[int] = deque()
        self.waited_ms = self.unused_ms = 0.0
        self.series: list[tuple[int, int, int, int]] = []
        self._endings: list[tuple[int, int, SimulatedVisitor]] = []
        self._promises: list[tuple[int, int, SimulatedVisitor]] = []
        self._newest_came_ms = 0

    def held(self, visitor: SimulatedVisitor, refresh_ms: int, now_ms: int) -> None:
        if visitor.asked:
            self._showed(visitor)
            self.asked -= visitor.had_room
            self.early += visitor.had_room
        if visitor.waits:
            return
        if visitor.tries == 0:
            visitor.asked = 0 < refresh_ms < ASKED_MS
            if self.waiting == self._asking:
                self._look_for_room(visitor, now_ms)
            self._asking += visitor.asked
        visitor.waits = True
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)

    def refused(self, now_ms: int) -> None:
        self._refused.append(now_ms)
        self._trim(now_ms)

    def _look_for_room(self, visitor: SimulatedVisitor, now_ms: int) -> None:
        self._trim(now_ms)
        if self.in_use < self.total and len(self.minute) < self.per_minute:
            visitor.had_room = len(self.minute) + len(self._refused) < self.per_minute
            self.asked += visitor.had_room and visitor.asked
            self.early += visitor.had_room and not visitor.asked
            self.early_in_flood += not visitor.had_room

    def _showed(self, visitor: SimulatedVisitor) -> None:
        self._asking -= visitor.asked
        visitor.asked = False

    def gone(self, visitor: SimulatedVisitor) -> None:
        self._showed(visitor)
        if visitor.waits:
            visitor.waits = False
            self.waiting -= 1

    @property
    def largest(self) -> tuple[int, int]:
        return self._largest

    def entering(
        self, visitor: SimulatedVisitor, promised_ms: int, now_ms: int, lasts_ms: int = 0
    ) -> None:
        """`lasts_ms` `0`: a session's duration."""
        self.gone(visitor)
        self._trim(now_ms)
        if not visitor.entered_ms:
            visitor.entered_ms = now_ms
            if not visitor.pauses and not visitor.gap_ms:
                visitor.overtaken_ms = max(0, self._newest_came_ms - visitor.came_ms)
                self._newest_came_ms = max(self._newest_came_ms, visitor.came_ms)
        self.entered += 1
        self.minute.append(now_ms)
        self._burst.append(now_ms)
        while now_ms - self._burst[0] >= BURST_MS:
            self._burst.popleft()
        self.most_burst = max(self.most_burst, len(self._burst))
        self.most_minute = max(self.most_minute, len(self.minute))
        self.over_minute = max(self.over_minute, len(self.minute) - self.limits.most_per_minute)
        visitor.inside_until_ms = visitor.promised_ms = 0
        self._served(visitor, now_ms + (lasts_ms or self._session_ms), promised_ms, now_ms)

    def page(self, visitor: SimulatedVisitor, promised_ms: int, now_ms: int) -> None:
        self._trim(now_ms)
        until_ms = now_ms + self._session_ms if self._renews else 0
        self._served(
            visitor, min(until_ms, promised_ms) if self._fenced else until_ms, promised_ms, now_ms
        )

    def left(self, visitor: SimulatedVisitor, now_ms: int) -> None:
        self._trim(now_ms)
        self._inactive(visitor)
        self.in_use -= visitor.uses
        visitor.uses = False

    def _served(
        self, visitor: SimulatedVisitor, inside_until_ms: int, promised_ms: int, now_ms: int
    ) -> None:
        self.limits.ebb(self.in_use, now_ms)
        visitor.inside_until_ms = max(visitor.inside_until_ms, inside_until_ms)
        visitor.promised_ms = max(visitor.promised_ms, promised_ms)
        if not visitor.active and visitor.inside_until_ms > now_ms:
            visitor.active = True
            self.active += 1
            heappush(self._endings, (visitor.inside_until_ms, visitor.number, visitor))
        if visitor.on_trust != (visitor.active and visitor.trusted):
            visitor.on_trust = not visitor.on_trust
            self.on_trust += 1 if visitor.on_trust else -1
            self.most_on_trust = max(self.most_on_trust, self.on_trust)
        over = self.active - self.limits.most_active
        self.most_active = max(self.most_active, self.active)
        self.over_active = max(self.over_active, over)
        self.over_beyond_trust = max(self.over_beyond_trust, over - self.on_trust)
        if not visitor.uses and visitor.promised_ms > now_ms:
            visitor.uses = True
            self.in_use += 1
            heappush(self._promises, (visitor.promised_ms, visitor.number, visitor))

    def change(self, room: Room, now_ms: int) -> None:
        """Until `settle`, a session may last its old or its new duration."""
        self.total, self.per_minute = room.total_active_users, room.new_users_per_minute
        self._largest = (max(self._largest[0], self.total), max(self._largest[1], self.per_minute))
        self.limits.change(
            *((UNLIMITED, UNLIMITED) if unlimited(room) else (self.total, self.per_minute)), now_ms
        )
        self._session_ms, self._renews = (
            min(self._session_ms, room.session_ms),
            self._renews and not room.disable_session_renewal,
        )

    def settle(self, room: Room) -> None:
        self._session_ms, self._renews = room.session_ms, not room.disable_session_renewal

    def retime(self, center: int, life_ms: int, ended: bool, now_ms: int) -> None:
        """`ended`: all sessions were ended."""
        self._trim(now_ms)
        for visitor in {id(one[2]): one[2] for one in (*self._promises, *self._endings)}.values():
            if center not in (visitor.home, visitor.center) or not (visitor.uses or visitor.active):
                continue
            until_ms = now_ms if ended else visitor.renewed_ms + life_ms
            if visitor.center == visitor.home or until_ms < visitor.promised_ms:
                visitor.promised_ms = until_ms
            visitor.inside_until_ms = min(visitor.inside_until_ms, until_ms)
            heappush(self._promises, (visitor.promised_ms, visitor.number, visitor))
            heappush(self._endings, (visitor.inside_until_ms, visitor.number, visitor))
        self._trim(now_ms)

    def sample(self, now_ms: int) -> None:
        self._trim(now_ms)
        self.limits.ebb(self.in_use, now_ms)
        if self.waiting:
            free = min(
                1 - self.in_use / self.total,
                1 - len(self.minute) / self.per_minute,
                self.waiting / min(self.total, self.per_minute),
            )
            self.waited_ms += SAMPLE_MS
            self.unused_ms += SAMPLE_MS * max(0.0, free)
        if (now_ms - START_MS) % SERIES_MS == 0:
            self.series.append(
                ((now_ms - START_MS) // 1000, self.active, self.waiting, len(self.minute))
            )

    def _inactive(self, visitor: SimulatedVisitor) -> None:
        self.active -= visitor.active
        self.on_trust -= visitor.on_trust
        visitor.active = visitor.on_trust = False

    def _trim(self, now_ms: int) -> None:
        for minute in (self.minute, self._refused):
            while minute and now_ms - minute[0] > WINDOW_MS:
                minute.popleft()
        endings = self._endings
        while endings and endings[0][0] <= now_ms:
            _, number, visitor = heappop(endings)
            if visitor.active and visitor.inside_until_ms > now_ms:
                heappush(endings, (visitor.inside_until_ms, number, visitor))
            else:
                self._inactive(visitor)
        promises = self._promises
        while promises and promises[0][0] <= now_ms:
            _, number, visitor = heappop(promises)
            if visitor.uses and visitor.promised_ms > now_ms:
                heappush(promises, (visitor.promised_ms, number, visitor))
            else:
                self.in_use -= visitor.uses
                visitor.uses = False
