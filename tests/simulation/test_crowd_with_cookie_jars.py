"""Two thousand visitors with cookie jars against 100 inside and 120 a minute, through the real
reception, seen from outside only.

Everything a real visit has but the sockets: requests with headers, sealed tickets that come back,
the Refresh header obeyed, reloads that come too early, forged and lost cookies. The witness counts
as an origin would: by who gets through.
"""

from bisect import insort
from collections import deque
from heapq import heapify, heappop, heappush
from pathlib import Path

import pytest
from admission_world import small_room
from visitors import Browser, Site

from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer

VISITORS, INSIDE, MINUTE = 2_000, 100, 120
ARRIVING_MS = 5 * 60_000
SESSION_MS = 60_000
COME, TRY, BROWSE, RELOAD, NOISE, TICK = range(6)


class Crowd:
    """Who comes when, and what the origin sees of them."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(
            folder, small_room(total_active_users=INSIDE, new_users_per_minute=MINUTE), seed=7
        )
        self.draw = self.site.draw
        self.visitors = [
            Browser(self.site, client=f"198.51.{number >> 8 & 255}.{number & 255}")
            for number in range(VISITORS)
        ]
        self.began_ms = self.site.clock.ms
        self.came: dict[int, int] = {}
        self.impatient = {number for number in range(VISITORS) if self.draw.random() < 0.1}
        self.left: set[int] = set()
        self.entered: dict[int, int] = {}
        self.overtaken_ms: list[int] = []
        self.latest_ms = 0
        self.ends: dict[int, int] = {}
        self.endings: deque[tuple[int, int]] = deque()
        self.minute: deque[int] = deque()
        self.most_inside = self.most_in_a_minute = self.forged_in = 0
        start = self.began_ms
        self.events = [
            (start + self.draw.randrange(ARRIVING_MS), COME, number) for number in range(VISITORS)
        ]
        self.events += [
            (start + 60_000 + self.draw.randrange(ARRIVING_MS), NOISE, number)
            for number in range(VISITORS // 4)
        ]
        self.events.append((start, TICK, 0))
        heapify(self.events)

    def run(self) -> None:
        deeds = (self._come, self._try, self._browse, self._reload, self._noise, self._tick)
        while self.events:
            at_ms, kind, number = heappop(self.events)
            self.site.clock.ms = at_ms
            deeds[kind](number)

    def _after(self, ms: int, kind: int, number: int) -> None:
        heappush(self.events, (self.site.clock.ms + ms, kind, number))

    def _come(self, number: int) -> None:
        self.came[number] = self.site.clock.ms
        self._try(number)

    def _try(self, number: int) -> None:
        if number in self.impatient and self.draw.random() < 0.2:
            self.left.add(number)
            return
        visitor = self.visitors[number]
        reply = visitor.visit()
        if isinstance(reply, Forward):
            self._enters(number)
            return
        assert visitor.retry_s
        self._after(visitor.retry_s * 1000, TRY, number)
        if self.draw.random() < 0.02:
            self._after(visitor.retry_s * 500, RELOAD, number)

    def _reload(self, number: int) -> None:
        if number not in self.entered and number not in self.left:
            assert isinstance(self.visitors[number].visit(), Answer)

    def _enters(self, number: int) -> None:
        now_ms, came_ms = self.site.clock.ms, self.came[number]
        self.entered[number] = now_ms
        insort(self.overtaken_ms, max(0, self.latest_ms - came_ms))
        self.latest_ms = max(self.latest_ms, came_ms)
        self.minute.append(now_ms)
        while now_ms - self.minute[0] >= 60_000:
            self.minute.popleft()
        self.most_in_a_minute = max(self.most_in_a_minute, len(self.minute))
        self._seen(number)
        for _ in range(self.draw.choice((0, 1, 3))):
            self._after(self.draw.randrange(1_000, 40_000), BROWSE, number)

    def _seen(self, number: int) -> None:
        now_ms = self.site.clock.ms
        self.ends[number] = now_ms + SESSION_MS
        self.endings.append((now_ms + SESSION_MS, number))
        while self.endings[0][0] <= now_ms:
            ends_ms, one = self.endings.popleft()
            if self.ends.get(one) == ends_ms:
                del self.ends[one]
        self.most_inside = max(self.most_inside, len(self.ends))

    def _browse(self, number: int) -> None:
        assert isinstance(self.visitors[number].visit("/next"), Forward)
        self._seen(number)

    def _noise(self, number: int) -> None:
        """A visitor without a cookie, or with a forged one."""
        stranger = Browser(self.site)
        if number % 2:
            stranger.jar[b"__cfwaitingroom"] = self.draw.randbytes(40).hex().encode()
        self.forged_in += isinstance(stranger.visit(), Forward)

    def _tick(self, _: int) -> None:
        (ledger,) = self.site.ledgers.values()
        next_ms = ledger.tick()
        if self.events:
            heappush(self.events, (next_ms, TICK, 0))


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    crowd = Crowd(tmp_path_factory.mktemp("crowd"))
    crowd.run()
    return crowd


def test_never_more_inside_than_the_limit(crowd: Crowd) -> None:
    assert 0.8 * INSIDE < crowd.most_inside <= INSIDE


def test_never_more_in_any_minute_than_the_limit(crowd: Crowd) -> None:
    assert 0.66 * MINUTE < crowd.most_in_a_minute <= MINUTE


def test_everyone_who_stays_gets_in(crowd: Crowd) -> None:
    assert set(range(VISITORS)) - crowd.left == set(crowd.entered)


def test_they_get_in_in_the_order_in_which_they_came(crowd: Crowd) -> None:
    middle, late = (
        crowd.overtaken_ms[len(crowd.overtaken_ms) // 2],
        crowd.overtaken_ms[int(len(crowd.overtaken_ms) * 0.99)],
    )
    assert middle <= 2_500
    assert late <= 10_000


def test_no_one_with_a_forged_cookie_or_none_passes_the_line(crowd: Crowd) -> None:
    assert crowd.forged_in == 0


def test_nothing_went_wrong_in_there(crowd: Crowd) -> None:
    assert crowd.site.errors == []
