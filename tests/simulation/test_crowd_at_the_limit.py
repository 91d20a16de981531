"""Twenty thousand visitors in virtual time against 500 inside and 600 a minute, seen from outside
only.

Two in ten give up while waiting, a tenth comes back after a break, most leave the site when they
are done, some just stop; and requests without cookies pour in all the time.
"""

from bisect import insort
from collections import deque
from functools import cache
from heapq import heappop, heappush
from random import Random

import pytest
from admission_world import START_MS, HandClock, answer_of, small_room, ticket_id

from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import TIE_BITS, Estimate, Standing, make_key

SIZES = {"fifo": (20_000, 500, 600), "random": (10_000, 250, 300)}
"""Visitors, total_active_users and new_users_per_minute: half as many in a random room, where no
quantile of a long wait has to be learnt.
"""
ARRIVING_MS = 15 * 60_000
CAME, TRY, BROWSE, DONE, NOISE, TICK = range(6)


class Crowd:
    """The visitors, what they see, and what is true of them."""

    def __init__(self, method: str, seed: int) -> None:
        self.visitors, self.limit, self.limit_a_minute = SIZES[method]
        self.draw = Random(seed)
        self.clock = HandClock()
        self.room = small_room(
            total_active_users=self.limit,
            new_users_per_minute=self.limit_a_minute,
            queueing_method=method,
        )
        self.ledger = MemoryLedger(self.room, self.clock, self.draw.getrandbits)
        self.life_ms = self.room.session_ms + self.room.renewal_age_ms
        self.events: list[tuple[int, int, int]] = []
        self.keys: dict[int, int] = {}
        self.patience = {
            number: self.draw.choice((3, 8)) if self.draw.random() < 0.2 else 0
            for number in range(self.visitors)
        }
        self.on_a_break = {number for number in range(self.visitors) if self.draw.random() < 0.1}
        self.left: set[int] = set()
        self.entered: dict[int, int] = {}
        self.order: list[int] = []
        self.ends: dict[int, int] = {}
        self.endings: list[tuple[int, int]] = []  # heap of (when, who), entries may be stale
        self.minute: deque[int] = deque()
        self.most_inside = self.most_in_a_minute = 0
        self.idle = self.queueing = 0.0
        self.guesses: list[tuple[Estimate, int, int]] = []
        self.untold = 0
        self.strangers_past_the_line = 0
        self.took_a_break = frozenset(self.on_a_break)

    def run(self) -> None:
        for number in range(self.visitors):
            self._push(START_MS + self.draw.randrange(ARRIVING_MS), CAME, number)
        self._push(START_MS, TICK, 0)
        for number in range(self.visitors):
            self._push(
                START_MS + self.draw.randrange(60_000, 2 * ARRIVING_MS),
                NOISE,
                self.visitors + number,
            )
        deeds = (self._came, self._tries, self._browses, self._done, self._noise, self._tick)
        while self.events:
            at_ms, kind, number = heappop(self.events)
            self.clock.ms = at_ms
            deeds[kind](number)

    def _push(self, at_ms: int, kind: int, number: int) -> None:
        heappush(self.events, (at_ms, kind, number))

    def _came(self, number: int) -> None:
        self.keys[number] = make_key(self.clock.ms, self.draw.getrandbits(TIE_BITS))
        self._answered(number, answer_of(self.ledger.arrive, ticket_id(number), self.keys[number]))

    def _tries(self, number: int) -> None:
        if self.patience[number]:
            self.patience[number] -= 1
            if not self.patience[number]:
                self.left.add(number)
                return
        if number in self.on_a_break:
            self.on_a_break.discard(number)
            self._push(self.clock.ms + 60_000, TRY, number)
            return
        self._answered(number, answer_of(self.ledger.poll, ticket_id(number), self.keys[number]))

    def _answered(self, number: int, outcome) -> None:  # type: ignore[no-untyped-def]
        now_ms = self.clock.ms
        if outcome.standing is Standing.ADMITTED:
            self._count_entry(number, outcome.expires_ms)
            self.entered[number] = now_ms
            self.order.append(number)
            self._push(now_ms + self.draw.randrange(5_000, 30_000), BROWSE, number)
        else:
            assert outcome.standing is Standing.WAITING
            if outcome.estimate and outcome.position > 1 and self.draw.random() < 0.05:
                self.guesses.append((outcome.estimate, now_ms, number))
            self.untold += outcome.estimate is None and outcome.position > 1
            self._push(now_ms + outcome.refresh_ms, TRY, number)

    def _count_entry(self, number: int, ends_ms: int) -> None:
        now_ms = self.clock.ms
        self.ends[number] = ends_ms
        heappush(self.endings, (ends_ms, number))
        while self.endings and self.endings[0][0] <= now_ms:
            at_ms, one = heappop(self.endings)
            if self.ends.get(one) == at_ms:
                del self.ends[one]
        self.minute.append(now_ms)
        while now_ms - self.minute[0] > 60_000:
            self.minute.popleft()
        self.most_inside = max(self.most_inside, len(self.ends))
        self.most_in_a_minute = max(self.most_in_a_minute, len(self.minute))

    def _browses(self, number: int) -> None:
        outcome = answer_of(self.ledger.view, ticket_id(number))
        assert outcome.standing is Standing.ACTIVE
        if number < self.visitors:
            self.ends[number] = outcome.expires_ms
            heappush(self.endings, (outcome.expires_ms, number))
        if self.draw.random() < 0.4:
            self._push(self.clock.ms + self.draw.randrange(1_000, 20_000), BROWSE, number)
        elif self.draw.random() < 0.7:
            self._push(self.clock.ms + 1_000, DONE, number)

    def _done(self, number: int) -> None:
        self.ledger.leave(ticket_id(number))
        self.ends.pop(number, None)

    def _noise(self, number: int) -> None:
        outcome = answer_of(self.ledger.arrive, ticket_id(number), make_key(self.clock.ms, 0))
        if outcome.standing is Standing.ADMITTED:
            self.strangers_past_the_line += len(self.ledger.ledger.line) > 20
            self._count_entry(number, outcome.expires_ms)
        else:
            assert outcome.position == 0

    def _tick(self, _: int) -> None:
        if self.clock.ms % 60_000 < 250:
            assert self.ledger.problems() == []
        next_ms = self.ledger.tick()
        if self.clock.ms - START_MS > 90_000 and len(self.ledger.ledger.line) > 20:
            living = sum(1 for ends_ms in self.ends.values() if ends_ms > self.clock.ms)
            minute = sum(1 for at_ms in self.minute if self.clock.ms - at_ms <= 60_000)
            self.queueing += next_ms - self.clock.ms
            self.idle += (next_ms - self.clock.ms) * max(
                0.0, min(1 - living / self.limit, 1 - minute / self.limit_a_minute)
            )
        if self.events:
            self._push(next_ms, TICK, 0)

    def outcomes(self) -> list[tuple[Estimate, float]]:
        """What was told, and how long it took, for everybody who never took a break."""
        return [
            (guess, (self.entered[number] - at_ms) / 1000)
            for guess, at_ms, number in self.guesses
            if number in self.entered and number not in self.took_a_break
        ]

    def overtaken_s(self) -> list[float]:
        """For everybody who never took a break: by how much later a visitor came who entered
        before; ascending.
        """
        latest, waits = 0, []
        for number in self.order:
            if number in self.took_a_break:
                continue
            key = self.keys[number]
            insort(waits, max(0, (latest - key) >> 22) / 1000)
            latest = max(latest, key)
        return waits


@cache
def crowd_under(method: str) -> Crowd:
    crowd = Crowd(method, seed=20)
    crowd.run()
    return crowd


@pytest.fixture(params=["fifo", "random"])
def crowd(request: pytest.FixtureRequest) -> Crowd:
    return crowd_under(request.param)


@pytest.fixture
def line() -> Crowd:
    return crowd_under("fifo")


def test_never_more_inside_than_allowed(crowd: Crowd) -> None:
    assert crowd.most_inside <= crowd.limit
    assert crowd.most_inside > 0.7 * crowd.limit or crowd.most_in_a_minute == crowd.limit_a_minute


def test_never_more_in_any_sixty_seconds_than_allowed(crowd: Crowd) -> None:
    assert crowd.most_in_a_minute <= crowd.limit_a_minute


def test_everyone_who_stays_gets_in(crowd: Crowd) -> None:
    assert set(range(crowd.visitors)) - crowd.left == set(crowd.entered)
    assert len(crowd.left) > crowd.visitors / 20


def test_those_present_enter_in_the_order_in_which_they_came(line: Crowd) -> None:
    overtaken = line.overtaken_s()
    assert overtaken[len(overtaken) // 2] <= 2.5
    assert overtaken[int(len(overtaken) * 0.99)] <= 10


def test_little_is_unused_while_someone_waits(crowd: Crowd) -> None:
    assert crowd.idle / crowd.queueing <= 0.03


def test_requests_without_cookies_get_nothing_while_people_wait(crowd: Crowd) -> None:
    assert crowd.strangers_past_the_line == 0


def test_the_median_that_is_told_is_near_what_comes_of_it(line: Crowd) -> None:
    errors = [abs(guess.p50_s - wait_s) / max(10, wait_s) for guess, wait_s in line.outcomes()]
    assert len(errors) > 1_000
    assert sum(errors) / len(errors) <= 0.1


def test_intervals_hold_about_as_often_as_they_say(crowd: Crowd) -> None:
    """One crowd teaches the long waits late, so an interval may hold more often; not much less
    often. Between the quartiles were 0.44 to 0.55 of the waits, and 0.89 to 0.96 within the most,
    by the seed (1, 2, 3, 20).
    """
    outcomes = crowd.outcomes()
    by = {
        name: sum(wait_s <= getattr(guess, name) for guess, wait_s in outcomes) / len(outcomes)
        for name in ("p25_s", "p75_s", "most_s")
    }
    assert by["p75_s"] - by["p25_s"] >= 0.42
    assert 0.02 <= by["p25_s"] <= 0.4
    assert 0.55 <= by["p75_s"] <= 0.95
    assert by["most_s"] >= 0.87


def test_nearly_everybody_in_line_is_told_something(crowd: Crowd) -> None:
    assert crowd.untold <= 0.001 * 20 * len(crowd.guesses)
