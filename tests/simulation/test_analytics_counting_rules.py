"""What is counted, and what is not: each rule of docs/explanation/analytics.md with real decisions,
a ledger and a store.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from admission_world import small_room
from visitors import NAVIGATES, Browser, Site, header

from greenroom.analytics.collector.decisions import OUTCOMES_OF, recording
from greenroom.analytics.collector.sampler import RoomLook, WithTargets, sample
from greenroom.analytics.metrics import METRICS
from greenroom.analytics.question import Question, Wanted
from greenroom.analytics.recorder import Recorder
from greenroom.analytics.rollup import SLOT_MS
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper
from greenroom.capacity.room_capacity import CapacityState
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.observer import Decided, Observer
from greenroom.decision.verdict import Forward
from greenroom.lookups import Crawlers, LocalLookups, Places
from greenroom.model.rule import Rule
from greenroom.rules import NO_LISTS
from greenroom.runtime.room_compiler import SEARCH_ENGINES, bypass

MINUTE_S = 60
LIMITS = ("totalActiveUsersConfig", "newUsersPerMinuteConfig", "sessionDurationConfig")
WANTED = tuple(
    Wanted(aggregate, metric.name)
    for metric in METRICS.values()
    if metric.name not in LIMITS
    for aggregate in metric.aggregates
)


@dataclass
class Recorded:
    """A site whose decisions are recorded as in a process, and looked at every five seconds."""

    site: Site
    recorder: Recorder
    folder: Path

    def pass_time(self, seconds: float, visits: Callable[[], object] = lambda: None) -> None:
        """Time passes; `visits` is called every five seconds."""
        for _ in range(int(seconds * 1_000) // SLOT_MS):
            visits()
            self.site.advance(SLOT_MS)
            (ledger,) = self.site.ledgers.values()
            gauges = ledger.gauges()
            sample(
                self.recorder,
                [RoomLook(ledger.room, gauges.active, gauges.waiting, None, ledger.tally())],
                self.site.clock.ms,
            )

    def total(self) -> dict[tuple[str, str], Any]:
        """Every metric over all that was recorded, but for the limits."""
        self.recorder.finish()
        keeper = Keeper(DuckEngine(self.folder / "analytics.duckdb"))
        keeper.write(
            [part for minute in self.recorder.fetch() for part in minute.parts()],
            self.site.clock.ms // 1_000,
        )
        (row,) = keeper.answer(Question(0, 1 << 32, metrics=WANTED)).rows
        keeper.close()
        return {tuple(wanted): row[wanted] for wanted in WANTED}


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Recorded]:
    def make(bypass: Any = None, **changes: Any) -> Recorded:
        observers: list[Observer] = []
        site = Site(
            tmp_path,
            small_room(**changes),
            bypass=bypass,
            observe=lambda event: observers[0](event),
        )
        assert site.clock.ms % SLOT_MS == 0
        recorder = Recorder("process", "here", site.clock.ms)
        observers.append(recording(recorder, DecisionCounts()))
        return Recorded(site, recorder, tmp_path)

    return make


def people(site: Site, count: int) -> list[Browser]:
    return [Browser(site, client=f"192.0.2.{number}") for number in range(1, count + 1)]


def visit(browsers: Iterable[Browser], path: str = "/") -> list[bool]:
    """Who was sent on to the application."""
    return [isinstance(browser.visit(path), Forward) for browser in browsers]


def nothing(total: dict[tuple[str, str], Any]) -> bool:
    return not any(total.values())


def test_time_waited_is_recorded_when_the_application_is_reached_and_only_then(
    recorded: Callable[..., Recorded],
) -> None:
    """Two wait; the session inside ends after a minute; one of them comes back in time, the other
    one never.
    """
    found = recorded(total_active_users=1, new_users_per_minute=1)
    first, second, third = people(found.site, 3)
    assert visit([first, second, third]) == [True, False, False]
    found.pass_time(20)
    visit([second, third])
    entered_after_s: list[int] = []
    begun_ms = found.site.clock.ms - 20_000

    def come_back() -> None:
        if not entered_after_s and visit([second]) == [True]:
            entered_after_s.append((found.site.clock.ms - begun_ms) // 1_000)

    found.pass_time(600, come_back)
    assert entered_after_s
    total = found.total()
    assert total["sum", "newUsersPerMinute"] == 2
    assert total["sum", "usersWaited"] == 1
    assert total["sum", "usersAbandoned"] == 1
    assert total["sum", "requestsHeld"] >= 4
    exact_s = entered_after_s[0]
    for percent in (50, 99):
        assert (
            exact_s <= total["percentile", f"totalTimeWaitedP{percent}"] <= exact_s * 1.001 + 0.01
        )


@pytest.mark.parametrize(
    ("lasts_s", "returns_after_s", "abandoned"), [(90, None, 0), (400, None, 1), (400, 95, 0)]
)
def test_who_may_close_the_page_abandons_a_place_when_it_can_no_longer_be_taken_up(
    recorded: Callable[..., Recorded],
    lasts_s: int,
    returns_after_s: int | None,
    abandoned: int,
) -> None:
    """The first in line goes away; the turn comes after a minute, and the place waits for one more.
    The others come back so seldom that they lose their places for moments.
    """
    found = recorded(
        total_active_users=100, new_users_per_minute=1, calendar_after_minutes=1, claim_minutes=1
    )
    inside, away, *others = people(found.site, 6)
    assert visit([inside, away]) == [True, False]
    found.pass_time(5)
    visit([away, *others])
    found.pass_time(5)
    visit([away, *others])
    for browser in (away, *others):
        reply = browser.visit(query="greenroom=calendar")
        assert header(reply, b"Content-Type").startswith(b"text/calendar")  # type: ignore[arg-type]
    begun_ms = found.site.clock.ms

    def come() -> None:
        visit(others)
        if returns_after_s and found.site.clock.ms >= begun_ms + returns_after_s * 1_000:
            visit([away])

    found.pass_time(lasts_s, come)
    assert found.total()["sum", "usersAbandoned"] == abandoned


def test_whom_a_rule_lets_by_is_in_no_metric(recorded: Callable[..., Recorded]) -> None:
    rule = Rule(id="1" * 32, expression='http.request.uri.path eq "/feed"')
    found = recorded(lambda arrival, _: rule if arrival.path == "/feed" else None)
    assert visit(people(found.site, 9), "/feed") == [True] * 9
    found.pass_time(MINUTE_S)
    assert nothing(found.total())


def test_a_verified_crawler_is_in_no_metric_and_one_that_only_says_so_is_a_visitor(
    recorded: Callable[..., Recorded],
) -> None:
    """The setting search_engine_crawler_bypass, the built-in crawlers, and names of addresses as a
    resolver has confirmed them.
    """
    names = {"192.0.2.1": "crawl-192-0-2-1.googlebot.com"}
    known = LocalLookups(Places(), Crawlers((), lambda client: names.get(client, "")))
    found = recorded(
        bypass(SEARCH_ENGINES, NO_LISTS, known, pytest.fail),
        total_active_users=1,
        new_users_per_minute=1,
    )
    agent = (
        *NAVIGATES,
        (
            b"user-agent",
            b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        ),
    )
    crawler, liar, visitor = people(found.site, 3)

    def crawls(browser: Browser) -> bool:
        return isinstance(browser.visit(headers=agent), Forward)

    found.pass_time(30, lambda: [crawls(crawler) for _ in range(9)])
    assert crawls(crawler)
    assert (crawls(liar), crawls(visitor)) == (True, False), (
        "the room was still free, and then it was not"
    )
    assert crawls(crawler), "past the line"
    found.pass_time(MINUTE_S)
    total = found.total()
    counted = ("newUsersPerMinute", "requestsHeld", "requestsPassed", "usersWaited")
    assert {name: total["sum", name] for name in counted} == dict(
        zip(counted, (1, 1, 0, 0), strict=True)
    )
    assert total["max", "totalActiveUsers"] == 1


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_provisional_session_is_active_and_no_new_user(
    recorded: Callable[..., Recorded], comes_back: bool
) -> None:
    """An image for a page of elsewhere is let in for seconds, on a unit and a permit; its ticket
    may come back and stay.
    """
    found = recorded(total_active_users=8, new_users_per_minute=8)
    image = Browser(found.site, client="192.0.2.1")
    assert isinstance(image.visit("/a.png", headers=((b"sec-fetch-dest", b"image"),)), Forward)
    found.pass_time(5)
    if comes_back:
        assert visit([image]) == [True]
    found.pass_time(2 * MINUTE_S)
    total = found.total()
    assert total["max", "totalActiveUsers"] == 1
    assert (
        total["sum", "newUsersPerMinute"],
        total["sum", "requestsHeld"],
        total["sum", "sessionsEnded"],
    ) == (0, 0, 0)
    assert total["sum", "requestsPassed"] == comes_back


def test_a_path_outside_the_room_and_a_suspended_room_are_in_no_metric(
    recorded: Callable[..., Recorded],
) -> None:
    found = recorded(path="/shop")
    assert visit(people(found.site, 9), "/elsewhere") == [True] * 9
    found.site.configure(small_room(path="/shop", suspended=True))
    assert visit(people(found.site, 9), "/shop") == [True] * 9
    found.pass_time(MINUTE_S)
    assert nothing(found.total())


def test_the_decisions_that_are_in_no_metric_are_these() -> None:
    assert set(Decided) - set(OUTCOMES_OF) == {
        Decided.UNCOVERED, Decided.SUSPENDED, Decided.BYPASSED, Decided.PLACELESS, Decided.RECEIPT, Decided.FAILED, Decided.PROVISIONAL,
        Decided.UNKNOWN_HOST, Decided.SEVERAL_ROOMS, Decided.LINE_TABLE, Decided.PREFLIGHT, Decided.NOT_HERE, Decided.MOVE,
        Decided.CALENDAR, Decided.SESSION, Decided.CALL,
    }  # fmt: skip


def test_passthrough_records_users_and_their_time_and_no_line(
    recorded: Callable[..., Recorded],
) -> None:
    found = recorded(queueing_method="passthrough", total_active_users=1, new_users_per_minute=1)
    browsers = people(found.site, 7)
    assert visit(browsers) == [True] * 7
    found.pass_time(30)
    assert visit(browsers) == [True] * 7
    found.pass_time(2 * MINUTE_S)
    total = found.total()
    assert (
        total["max", "totalActiveUsers"]
        == total["sum", "newUsersPerMinute"]
        == total["sum", "sessionsEnded"]
        == 7
    )
    assert 30 <= total["percentile", "timeOnOriginP50"] <= 30.04
    assert (
        total["max", "totalQueuedUsers"],
        total["sum", "usersWaited"],
        total["sum", "requestsHeld"],
    ) == (0, 0, 0)


@pytest.mark.parametrize("renewed", [True, False])
def test_without_renewal_no_time_on_origin_is_above_the_session_duration(
    recorded: Callable[..., Recorded], renewed: bool
) -> None:
    """A visitor who comes back every five seconds for five minutes; sessions take one."""
    found = recorded(
        disable_session_renewal=not renewed, total_active_users=1, new_users_per_minute=60
    )
    browser, other = people(found.site, 2)

    def both() -> None:
        visit([browser, other])

    found.pass_time(5 * MINUTE_S, both)
    found.pass_time(2 * MINUTE_S)
    total = found.total()
    if renewed:
        assert 290 <= total["percentile", "timeOnOriginP99"] <= 300
        assert total["sum", "newUsersPerMinute"] == 1, "the other one waits all the time"
    else:
        assert (
            50
            <= total["percentile", "timeOnOriginP50"]
            <= total["percentile", "timeOnOriginP99"]
            <= MINUTE_S * 1.001
        )
        assert total["sum", "sessionsEnded"] >= 3, "they take turns"


def test_a_cookie_that_is_sent_again_is_counted_once(recorded: Callable[..., Recorded]) -> None:
    """A waiting ticket in two tabs and in a copied jar, and the ticket of a session that is over."""
    found = recorded(total_active_users=1, new_users_per_minute=1)
    first, second = people(found.site, 2)
    assert visit([first, second]) == [True, False]
    copies = [Browser(found.site, client="192.0.2.2") for _ in range(3)]
    spent = Browser(found.site, client="192.0.2.1")
    spent.jar = dict(first.jar)
    entered: list[int] = []

    def come_back() -> None:
        if entered:
            return
        for copy in copies:
            copy.jar = dict(second.jar)
        if visit([second]) == [True]:
            visit(copies)
            entered.append(found.site.clock.ms)

    found.pass_time(4 * MINUTE_S, come_back)
    assert entered
    total = found.total()
    assert (
        total["sum", "newUsersPerMinute"],
        total["sum", "usersWaited"],
        total["max", "totalActiveUsers"],
    ) == (2, 1, 1)


def test_what_the_origin_takes_is_recorded_where_the_capacity_is_not_fixed(
    recorded: Callable[..., Recorded],
) -> None:
    """The last of a minute counts, a stop whenever it was, and only `follow` applies its limit."""
    found = recorded(total_active_users=50)
    told = CapacityState(
        mode="observe", sessions=30, limit=20, stopped=False, reason="", measured_ms=0
    )
    states: list[CapacityState | None] = [None, replace(told, mode="fixed")]
    states += [replace(told, stopped=True), told, replace(told, mode="follow", sessions=40)]
    for state in states:
        now_ms = found.site.clock.ms
        shown = state and replace(state, measured_ms=now_ms)
        (ledger,) = found.site.ledgers.values()
        looks = SimpleNamespace(looks=lambda _now_ms, room=ledger.room: [RoomLook(room)])
        capacity_of = lambda _room_id, shown=shown: (shown, 0)  # noqa: E731
        sample(found.recorder, WithTargets(looks, capacity_of).looks(now_ms), now_ms)  # type: ignore[arg-type]
        found.site.advance(MINUTE_S * 1_000)
    total = found.total()
    target = {aggregate: total[aggregate, "capacityTarget"] for aggregate in ("min", "max")}
    limit = {aggregate: total[aggregate, "capacityLimit"] for aggregate in ("min", "max")}
    assert (target, limit) == ({"min": 30, "max": 40}, {"min": 20, "max": 50})
    assert total["sum", "minutesCapacityStopped"] == 1
    assert total["sum", "minutesCapacityUnmeasured"] == 0
    assert total["avg", "capacityTarget"] == pytest.approx(100 / 3, abs=1e-3)
