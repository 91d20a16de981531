"""Analytics against what the crowd itself saw: three data centers with two processes each, in
virtual time, through the real pipeline.

Visitors note when they came, when they got in and when they were last there. Their requests go
through the real decision service; each process records for itself; its messages reach the store
late, twice, out of order, or only after the collector was killed and opened again.
"""

import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from admission_world import small_room
from analytics_material import nearest_rank
from visitors import Browser, Site, header

from greenroom.analytics.collector.decisions import recording
from greenroom.analytics.collector.sampler import RoomLook, sample, wait_seconds
from greenroom.analytics.metrics import METRICS
from greenroom.analytics.question import Question, Wanted
from greenroom.analytics.recorder import Recorder
from greenroom.analytics.rollup import PERCENTS, SLOT_MS, Part
from greenroom.analytics.store.duck import DuckEngine
from greenroom.analytics.store.keeper import Keeper
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.observer import Observer
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.visit import Estimate

MINUTES = 14
STEP_MS = 1_000
LIMITS = {"total_active_users": 12, "new_users_per_minute": 20, "session_duration": 1}
LEAVE = ((b"greenroom-update", b"leave"),)
ENDS = ("leaves", "revoked", "gives up", "stays away", "closes the page", "comes back")
LOST = ("gives up", "stays away", "closes the page")
ABSENT_MS = 45_000
"""Longer than a place stays in line without check-ins, shorter than `claim_minutes`."""


@dataclass
class Person:
    """A visitor with a browser, who notes what happens."""

    browser: Browser
    comes_ms: int
    stays_ms: int
    ends: str = "fades"
    """What it does at last: fades away, leaves, or is put out by the application; or, in line,
    gives up, stays away, or takes a calendar entry and closes the page, for good or until later.
    """
    first_ms: int = 0
    in_ms: int = 0
    seen_ms: int = 0
    held: int = 0
    waited: bool = False
    gone: bool = False
    absent: bool = False


@dataclass
class Center:
    """A data center: one ledger, two processes, and the people in front of it."""

    name: str
    site: Site
    recorders: list[Recorder]
    people: list[Person] = field(default_factory=list)
    active: list[int] = field(default_factory=list)
    queued: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    passed: int = 0
    held: int = 0


NEVER_HERE = (
    "usersReentered",
    "minutesCapacityStopped",
    "minutesCapacityUnmeasured",
    "minutesIncomplete",
    "minutesGenerated",
)


def a_center(name: str, folder: Path, seed: int) -> Center:
    folder.mkdir()
    rng = random.Random(seed)
    observers: list[Observer] = []
    room = small_room(
        **LIMITS, enabled_origin_commands=("revoke",), calendar_after_minutes=1, claim_minutes=1
    )
    site = Site(folder, room, seed=seed, observe=lambda event: observers[rng.randrange(2)](event))
    recorders = [Recorder(f"{name}-{process}", name, site.clock.ms) for process in range(2)]
    observers += [recording(recorder, DecisionCounts()) for recorder in recorders]
    center = Center(name, site, recorders)
    for number in range(45):
        comes_ms = site.clock.ms + rng.randrange(5 * 60_000)
        stays_ms = rng.randrange(5_000, 90_000)
        ends = rng.choice(ENDS) if number % 3 else "fades"
        center.people.append(
            Person(Browser(site, client=f"192.0.2.{number}"), comes_ms, stays_ms, ends)
        )
    return center


def second(center: Center, rng: random.Random) -> None:
    """What the people of one data center do in this second."""
    now_ms = center.site.clock.ms
    for person in center.people:
        if person.gone or now_ms < person.comes_ms:
            continue
        if person.in_ms and now_ms - person.in_ms > person.stays_ms:
            person.gone = True
            end_session(center, person, now_ms)
            continue
        if not person.in_ms and person.held > 1 and person.ends in ("gives up", "stays away"):
            person.gone = True
            if person.ends == "gives up":
                person.browser.visit(method="POST", headers=LEAVE)
            continue
        if not person.in_ms and person.held > 1 and person.ends in ENDS[4:] and not person.absent:
            closes_the_page(person, now_ms)
            continue
        due = not person.first_ms or (
            not person.in_ms and now_ms >= person.seen_ms + person.browser.retry_s * 1_000
        )
        if not due and not (person.in_ms and rng.random() < 0.2):
            continue
        reply = person.browser.visit()
        person.first_ms = person.first_ms or now_ms
        person.seen_ms = now_ms
        if isinstance(reply, Forward):
            center.passed += bool(person.in_ms)
            person.waited = person.waited or (not person.in_ms and now_ms > person.first_ms)
            person.in_ms = person.in_ms or now_ms
        else:
            center.held += 1
            person.held += 1
            assert not person.in_ms, "a session is renewed with every request, so nobody is put out"


def closes_the_page(person: Person, now_ms: int) -> None:
    """If there is an entry to take: the wait may not be known."""
    reply = person.browser.visit(query="greenroom=calendar")
    if isinstance(reply, Answer) and header(reply, b"Content-Type").startswith(b"text/calendar"):
        person.absent, person.gone = True, person.ends == "closes the page"
        person.seen_ms = now_ms + ABSENT_MS
    else:
        person.ends = "fades"


def end_session(center: Center, person: Person, now_ms: int) -> None:
    """As the visitor or the application wants it to end; the rest ends by itself."""
    if person.ends == "leaves":
        person.browser.visit(method="POST", headers=LEAVE)
    elif person.ends == "revoked":
        reply = person.browser.visit()
        assert isinstance(reply, Forward)
        center.passed += 1
        person.seen_ms = now_ms
        assert center.site.decisions.obey(reply, b"revoke")


def looks(center: Center) -> None:
    """Every five seconds; one process of the data center tells the gauges and takes the tallies."""
    now_ms = center.site.clock.ms
    (ledger,) = center.site.ledgers.values()
    gauges = ledger.gauges()
    center.active.append(gauges.active)
    center.queued.append(gauges.waiting)
    wait_s = wait_seconds(
        Estimate(0.0, len(center.queued) * 7 % 60 + int(center.name[-1]) + 0.5, 999.0)
    )
    assert wait_s is not None
    center.waits.append(wait_s)
    look = RoomLook(ledger.room, gauges.active, gauges.waiting, wait_s, ledger.tally())
    sample(center.recorders[0], [look], now_ms)
    sample(center.recorders[1], [RoomLook(ledger.room)], now_ms)


def deliver(folder: Path, messages: list[Part], rng: random.Random, now_s: int) -> Keeper:
    """Every message arrives at last: in batches, some twice, some late; the collector is killed in
    between, more than once.
    """
    late = [part for part in messages if rng.random() < 0.2]
    queue = [part for part in messages if part not in late]
    queue += rng.sample(messages, len(messages) // 3)
    rng.shuffle(queue)
    keeper = Keeper(DuckEngine(folder / "analytics.duckdb"))
    for begin in range(0, len(queue), 9):
        keeper.write(queue[begin : begin + 9], now_s)
        if rng.random() < 0.3:
            # killed between two writes; within one is what test_analytics_store_survives tries
            keeper.close()
            keeper = Keeper(DuckEngine(folder / "analytics.duckdb"))
            keeper.write(
                queue[max(0, begin - 9) : begin + 9], now_s
            )  # does not know what was heard
    keeper.tend(now_s)
    keeper.write(late + late, now_s)
    return keeper


@pytest.mark.parametrize("seed", range(3))
def test_analytics_say_what_the_crowd_saw(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    centers = [
        a_center(f"center-{number}", tmp_path / str(number), seed * 10 + number)
        for number in range(3)
    ]
    begin_ms = centers[0].site.clock.ms
    for center in centers:
        assert center.site.clock.ms == begin_ms
    for _ in range(MINUTES * 60_000 // STEP_MS):
        for center in centers:
            second(center, rng)
            if center.site.clock.ms % SLOT_MS == 0:
                looks(center)
            center.site.advance(STEP_MS)
    for center in centers:
        looks(center)
        assert not center.site.errors
    messages: list[Part] = []
    for center in centers:
        for recorder in center.recorders:
            recorder.finish()
            messages += [part for minute in recorder.fetch() for part in minute.parts()]
    keeper = deliver(tmp_path, messages, rng, centers[0].site.clock.ms // 1_000)
    wanted = tuple(
        Wanted(aggregate, metric.name)
        for metric in METRICS.values()
        for aggregate in metric.aggregates
    )
    (row,) = keeper.answer(Question(0, 1 << 32, metrics=wanted)).rows

    people = [person for center in centers for person in center.people]
    inside = [person for person in people if person.in_ms]
    exact = {
        "newUsersPerMinute": len(inside),
        "usersWaited": sum(person.waited for person in inside),
        "sessionsEnded": len(inside),
        "sessionsRevoked": sum(person.ends == "revoked" for person in inside),
        "usersLeft": sum(
            person.ends == ("leaves" if person.in_ms else "gives up") for person in people
        ),
        "sessionsLeft": sum(person.ends == "leaves" for person in inside),
        "usersAbandoned": sum(person.ends in LOST[1:] for person in people if not person.in_ms),
        "requestsPassed": sum(center.passed for center in centers),
        "requestsHeld": sum(center.held for center in centers),
        **dict.fromkeys(NEVER_HERE, 0),
    }
    assert {name: row["sum", name] for name in exact} == exact
    assert {name for aggregate, name in wanted if aggregate == "sum"} == set(exact), (
        "every sum that there is"
    )
    assert all(person.in_ms or person.ends in LOST for person in people)
    assert {person.ends for person in people if person.absent} == set(ENDS[4:])
    assert all(exact[name] for name in exact if name not in NEVER_HERE), exact
    by_minute = Counter(person.in_ms // 60_000 for person in inside)
    minutes = range(begin_ms // 60_000, -(-centers[0].site.clock.ms // 60_000) + 1)
    spread(row, "newUsersPerMinute", [by_minute[minute] for minute in minutes][: row["", "count"]])
    spread(
        row,
        "totalActiveUsers",
        [sum(moment) for moment in zip(*[center.active for center in centers], strict=True)],
    )
    spread(
        row,
        "totalQueuedUsers",
        [sum(moment) for moment in zip(*[center.queued for center in centers], strict=True)],
    )
    spread(
        row,
        "estimatedWaitTime",
        [max(moment) for moment in zip(*[center.waits for center in centers], strict=True)],
    )
    for name, limit in LIMITS.items():
        name = {
            "total_active_users": "totalActiveUsers",
            "new_users_per_minute": "newUsersPerMinute",
        }.get(name, "sessionDuration")
        spread(row, f"{name}Config", [limit])
    percentiles(
        row,
        "totalTimeWaited",
        [person.in_ms - person.first_ms for person in inside if person.waited],
    )
    percentiles(row, "timeOnOrigin", [person.seen_ms - person.in_ms for person in inside])
    keeper.close()


def spread(row: Any, name: str, values: list[int]) -> None:
    """Highest, lowest and average."""
    found = row["max", name], row["min", name], row["avg", name]
    assert found == (
        max(values),
        min(values),
        pytest.approx(sum(values) / len(values), abs=0.0001),
    ), name


def percentiles(row: Any, stem: str, truth_ms: list[int]) -> None:
    """Within the precision of the histogram, and of two decimals."""
    for percent in PERCENTS:
        exact_s = nearest_rank(sorted(truth_ms), percent) / 1_000
        assert exact_s - 0.01 <= row["percentile", f"{stem}P{percent}"] <= exact_s * 1.001 + 0.01, (
            stem,
            percent,
        )
