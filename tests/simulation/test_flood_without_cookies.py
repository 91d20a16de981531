"""A flood of requests that keep no cookies and cannot wait: it fills no more than a quarter of a
room, and no visitor waits for it.
"""

from collections.abc import Callable

import pytest
import redis
from admission_world import START_MS, HandClock, answer_of, bits, small_room, ticket_id
from redis_flood import flooded_provisionally
from redis_world import broken_library
from tests.simulation.test_simulated_worlds import streams_of

from greenroom.admission.lease import Lease
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.provisional import CALLS as PROVISIONAL_CALLS
from greenroom.admission.ledger.provisional import Provisional
from greenroom.admission.sync_schedule import BORROW_MS
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.visit import Outcome, Standing, make_key
from greenroom.simulator.checks import Watch, verdict
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Behaviour, Fault, Scenario
from greenroom.simulator.traces import room
from greenroom.simulator.world import World

FLOOD_PER_S = 10_000
STEP_MS = 20
SECONDS = 75
LONGEST_WAIT_S = 10


@pytest.mark.parametrize(
    ("active", "per_minute", "per_s"),
    [
        (200, 200, FLOOD_PER_S),
        (1000, 200, 1_000),
        (600, 40, 1_000),
        (40, 600, 1_000),
        (4, 4, 1_000),
        (1, 1, 1_000),
    ],
)
def test_a_flood_takes_a_quarter_at_most_and_an_honest_visitor_waits_ten_seconds_at_most(
    active: int, per_minute: int, per_s: int
) -> None:
    clock = HandClock()
    ledger = MemoryLedger(
        small_room(total_active_users=active, new_users_per_minute=per_minute, session_duration=5),
        clock,
        bits(1),
    )
    begun_ms, number, passed, most = clock.ms, 0, [], 0
    waits: list[int] = []
    honest: tuple[bytes, int, int] | None = None  # id, key, when it came
    due_ms = 0
    while clock.ms < begun_ms + SECONDS * 1000:
        for _ in range(per_s * STEP_MS // 1000):
            number += 1
            found: list[Outcome] = []
            ledger.arrive_provisionally(ticket_id(number), 0, found.append)
            if found[0].standing is Standing.ADMITTED:
                passed.append(clock.ms)
        most = max(most, sum(1 for at_ms in passed if at_ms > clock.ms - 10_000))
        if (
            honest is None and not waits and clock.ms > begun_ms + 20_000
        ):  # the flood has all that it can have
            number += 1
            honest, due_ms = (ticket_id(number), make_key(clock.ms, number), clock.ms), clock.ms
        if honest is not None and clock.ms >= due_ms:
            one, key, came_ms = honest
            answers: list[Outcome] = []
            if due_ms == came_ms:
                ledger.arrive(one, key, answers.append)
            else:
                ledger.poll(one, key, answers.append)
            if answers[0].standing is Standing.ADMITTED:
                waits.append(clock.ms - came_ms)
                honest = None
            else:
                due_ms = clock.ms + max(500, answers[0].refresh_ms)
        clock.ms += STEP_MS
        ledger.tick()
        assert ledger.problems() == []
    per_60_s = max(
        sum(1 for at_ms in passed if start <= at_ms < start + 60_000) for start in passed
    )
    if per_minute <= active:
        assert per_60_s == max(1, per_minute // 4), (
            "a quarter of the rate, however many units the room holds"
        )
    assert most <= max(1, active // 4)
    assert per_60_s <= max(1, per_minute // 4)
    if (active, per_minute) != (1, 1):
        assert waits, "the honest visitor is let in"
        assert waits[0] <= LONGEST_WAIT_S * 1000


def sixty_images_at_once() -> list[str]:
    """In an empty room, half of them before twelve visitors, whom they do not delay, and half of
    them after.
    """
    ledger = MemoryLedger(
        small_room(total_active_users=200, new_users_per_minute=200), HandClock(), bits(1)
    )
    ledger.tick()
    images = [
        answer_of(ledger.arrive_provisionally, ticket_id(number), 0).standing
        for number in range(30)
    ]
    visitors = [
        answer_of(ledger.arrive, ticket_id(number), make_key(0, number)).standing
        for number in range(100, 112)
    ]
    images += [
        answer_of(ledger.arrive_provisionally, ticket_id(number), 0).standing
        for number in range(30, 60)
    ]
    passed, entered = images.count(Standing.ADMITTED), visitors.count(Standing.ADMITTED)
    return (
        [f"{passed} images passed"] * (passed != 50)
        + [f"{entered} of 12 visitors were let in"] * (entered != 10)
        + ledger.problems()
    )


def test_a_quarter_of_an_empty_room_is_for_requests_that_come_in_one_moment_and_delays_no_visitor() -> (
    None
):
    assert sixty_images_at_once() == []


def paces_them(patch: pytest.MonkeyPatch) -> None:
    source = Lease.source
    patch.setattr(
        Lease, "source", lambda self, now_ms, overdraws, paced=True: source(self, now_ms, overdraws)
    )


def lets_visitors_wait_for_them(patch: pytest.MonkeyPatch) -> None:
    spend = Lease.spend
    patch.setattr(
        Lease, "spend", lambda self, source, now_ms, paced=True: spend(self, source, now_ms)
    )


@pytest.mark.needs("patching")
@pytest.mark.parametrize("build", [paces_them, lets_visitors_wait_for_them])
def test_sixty_images_at_once_find_out_a_build_that(
    build: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(monkeypatch)
    assert sixty_images_at_once() != []


def test_an_image_that_could_not_be_written_down_changes_no_pace() -> None:
    ledger, now_ms = (
        Ledger(
            small_room(total_active_users=200, new_users_per_minute=200), "here", START_MS, START_MS
        ),
        START_MS,
    )
    ledger.lease.permits = ledger.lease.granted_seen = 50
    ledger.lease.gap_us = 100_000
    before = ledger.lease.spent_until_us
    assert ledger.arrive_provisionally(ticket_id(1), now_ms).standing is Standing.ADMITTED
    ledger.undo(now_ms, 0)
    assert (ledger.lease.spent_until_us, ledger.lease.permits) == (before, 50)


# -- simulated: several data centers with their messages, and visitors who come back with their tick


def flood(
    active: int, per_minute: int, centers: int, per_s: float = FLOOD_PER_S, lasts_s: int = 50
) -> Watch:
    """An empty room; the flood, and from its fifteenth second on now and then a visitor."""
    come = [
        (20_000 + number * 6_000, number % centers)
        for number in range(min(per_minute, (lasts_s - 20) // 6))
    ]
    faults = (Fault("provisional flood", 5, lasts_s - 1, tuple(range(centers)), per_s),)
    habits = Behaviour(visit_s=20, page_gap_s=5, leaving=1.0)
    scenario = Scenario(
        "requests that cannot wait",
        room(active, per_minute),
        centers,
        come,
        lasts_s,
        habits,
        faults=faults,
        laws_every_s=1,
    )
    watch = Watch(World(scenario, streams_of(1)))
    watch.world.run()
    return watch


def wrong(watch: Watch) -> list[str]:
    """What must not be after a flood."""
    visitors, found = watch.world.crowd.visitors, report(watch.world)
    late = [
        visitor.wait_s
        for visitor in visitors
        if not visitor.entered_ms or visitor.wait_s > LONGEST_WAIT_S
    ]
    told = verdict(watch) + [
        f"{len(late)} of {len(visitors)} visitors waited too long: {late}"
    ] * bool(late or not visitors)
    return told + ["a limit was exceeded"] * (found.over_active + found.over_minute > 0)


@pytest.mark.parametrize(
    ("active", "per_minute", "centers", "per_s"),
    [(200, 200, 1, 1_000), (1000, 200, 4, FLOOD_PER_S), (8, 12, 4, 1_000)],
)
def test_in_every_data_center_limits_are_exact_and_no_visitor_waits_longer_than_ten_seconds(
    active: int, per_minute: int, centers: int, per_s: int
) -> None:
    watch = flood(active, per_minute, centers, per_s)
    assert watch.world.provisional.sent > 40 * per_s
    assert watch.world.provisional.passed > 0
    assert wrong(watch) == []


@pytest.mark.parametrize(
    ("active", "per_minute", "centers"),
    [(200, 200, 1), (200, 200, 4), (1000, 200, 4), (600, 40, 1)],
)
def test_while_a_room_has_space_every_request_passes_in_every_data_center(
    active: int, per_minute: int, centers: int
) -> None:
    """A tenth of the rate from visitors, and a tenth from requests that cannot wait."""
    come = [
        (number * 600_000 // per_minute, number % centers) for number in range(per_minute * 4 // 10)
    ]
    faults = (Fault("provisional flood", 10, 230, tuple(range(centers)), per_minute / 600),)
    scenario = Scenario(
        "quiet",
        room(active, per_minute),
        centers,
        come,
        240,
        Behaviour(visit_s=20, page_gap_s=5),
        faults=faults,
    )
    watch = Watch(World(scenario, streams_of(1)))
    watch.world.run()
    provisional = watch.world.provisional
    assert provisional.sent >= 10
    assert provisional.passed == provisional.sent
    assert provisional.kept > 0 or provisional.sent < 50, "some bring their tickets back"
    assert wrong(watch) == []


@pytest.mark.parametrize(
    ("active", "per_minute", "a_second"), [(200, 200, 20), (200, 40, 5), (40, 1000, 4), (8, 12, 1)]
)
def test_where_the_lease_ran_dry_requests_that_cannot_wait_pass_too(
    active: int, per_minute: int, a_second: int
) -> None:
    """All visitors are in the first data center, so the other one is leased nothing ahead; its part
    of the quarter is free.
    """
    come = [(number * 1_000, 0) for number in range(min(30, per_minute // 4))]
    faults = (Fault("provisional flood", 35, 36, (1,), a_second),)
    scenario = Scenario(
        "dry there",
        room(active, per_minute),
        2,
        come,
        60,
        Behaviour(visit_s=20, page_gap_s=5, leaving=1.0),
        faults=faults,
    )
    watch = Watch(World(scenario, streams_of(1)))
    watch.world.run()
    provisional = watch.world.provisional
    assert provisional.passed == provisional.sent == a_second
    assert provisional.slowest_ms <= PROVISIONAL_CALLS * BORROW_MS
    assert wrong(watch) == []


def lets_any_number_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Provisional, "has_room", lambda self, *_: True)


def gives_every_data_center_the_whole_share(patch: pytest.MonkeyPatch) -> None:
    has_room = Provisional.has_room
    patch.setattr(
        Provisional,
        "has_room",
        lambda self, now_ms, data_centers, *limits: has_room(self, now_ms, 1, *limits),
    )


@pytest.mark.needs("patching")
@pytest.mark.parametrize("build", [lets_any_number_pass, gives_every_data_center_the_whole_share])
def test_a_flood_finds_out_a_build_that(
    build: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(monkeypatch)
    assert wrong(flood(200, 200, 4, per_s=500)) != []


# -- in Redis, beside the ledger in memory ---------------------------------------------------------


@pytest.mark.parametrize(("active", "per_minute"), [(200, 200), (4, 40)])
def test_the_ledger_in_redis_bounds_a_flood_as_the_one_in_memory_does(
    client: redis.Redis, active: int, per_minute: int
) -> None:
    found, passed, wait_ms = flooded_provisionally(client, active, per_minute, FLOOD_PER_S)
    assert found == []
    assert 0 < passed <= max(1, per_minute // 4)
    assert wait_ms <= LONGEST_WAIT_S * 1000


def test_a_ledger_in_redis_without_the_bound_is_found(client: redis.Redis) -> None:
    with broken_library(client, "minute_most - call('ZCARD', k.passed))", "minute_most)"):
        found, _, _ = flooded_provisionally(client, 200, 200, 1_000)
    assert found != []
