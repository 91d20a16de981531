"""Requests without cookies that ask for pages: they do not fill an empty room, and a room without a
flood stays as it is.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.simulation.test_simulated_worlds import streams_of

from greenroom.admission.ledger import newcomers
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.newcomers import Newcomers
from greenroom.simulator.arrivals import arrivals
from greenroom.simulator.checks import Watch, verdict
from greenroom.simulator.report import SimulationReport, report
from greenroom.simulator.scenario import START_MS, Behaviour, Fault, Scenario
from greenroom.simulator.traces import room
from greenroom.simulator.world import World

WITH_PARTS, WITHOUT_PARTS = (
    Behaviour(parts=True, visit_s=40, page_gap_s=30),
    Behaviour(visit_s=40, page_gap_s=30),
)
"""Without parts in the room a ticket comes back with the next page only, and every second visitor
looks at a single page.
"""


def shop(
    per_s: float,
    flood_per_s: float = 0.0,
    behaviour: Behaviour = WITH_PARTS,
    lasts_s: int = 300,
    centers: int = 1,
) -> Scenario:
    """Room for 600, sessions of five minutes; a flood from the second minute on, to the last but
    one.
    """
    faults = (
        (Fault("flood", 60, lasts_s - 60, tuple(range(centers)), flood_per_s),)
        if flood_per_s
        else ()
    )
    found = arrivals(streams_of(1)("crowd"), lasts_s, lambda _: [per_s / centers] * centers)
    return Scenario(
        "shop", room(600, 600, minutes=5), centers, found, lasts_s + 30, behaviour, faults=faults
    )


def figures(scenario: Scenario, confirm: bool | str = "auto") -> tuple[SimulationReport, float]:
    """And the share of visitors who saw the waiting page."""
    world = World(
        replace(scenario, room=replace(scenario.room, confirm_newcomers=confirm)), streams_of(1)
    )
    world.run()
    found = report(world)
    assert (found.over_active, found.over_minute, found.broken_laws) == (0, 0, [])
    visitors = world.crowd.visitors
    return found, sum(visitor.tries > 0 for visitor in visitors) / len(visitors)


def quiet() -> list[str]:
    """In an empty shop, and in one that is a third full, no visitor sees the waiting page, though
    half of them never come back.
    """
    cases = {
        "empty": shop(0.1, 0.05),
        "empty, no parts": shop(0.2, 0.05, WITHOUT_PARTS),
        "a third full": shop(0.6),
    }
    return [
        f"{name}: {held:.1%} saw the waiting page"
        for name, one in cases.items()
        if (held := figures(one)[1])
    ]


def flooded(centers: int = 1) -> list[str]:
    found, _ = figures(shop(0.3, 100, centers=centers))
    assert found.flood is not None
    wrong = [f"the flood held {found.flood:.0%} of the room"] * (found.flood > 0.25)
    return wrong + [f"19 of 20 visitors waited {found.waits_p95_s:.1f} s at most"] * (
        found.waits_p95_s > 3
    )


def mixed() -> list[str]:
    """Three of four newcomers are of the flood."""
    found, _ = figures(shop(1.2, 4, lasts_s=420))
    wrong = [f"the flood held {found.flood:.0%} of the room"] * ((found.flood or 0) > 0.25)
    return wrong + [f"a visitor waited {found.waits_p95_s:.1f} s"] * (found.waits_p95_s > 2)


def without_parts() -> list[str]:
    """A crowd whose second request comes late looks like a flood: those beyond the share wait a
    second.
    """
    found, held = figures(shop(1.6, behaviour=WITHOUT_PARTS, lasts_s=600))
    wrong = [f"{held:.1%} saw the waiting page"] * (held > 0.75)
    return wrong + [f"a visitor waited {found.waits_p95_s:.1f} s"] * (found.waits_p95_s > 2)


def sudden_crowd() -> list[str]:
    """A genuine crowd comes to an empty shop within seconds: its tickets come back at once."""
    found = [(number * 75, 0) for number in range(300)]  # within 1.5 times the even pace
    world = World(replace(shop(0.1), arrivals=found, lasts_s=60), streams_of(1))
    world.run()
    held = sum(visitor.tries > 0 for visitor in world.crowd.visitors)
    return [f"{held} of a crowd saw the waiting page"] * (held > 0)


def pausing() -> list[str]:
    """Floods of seconds, again and again."""
    faults = tuple(Fault("flood", at_s, at_s + 8, (0,), 100) for at_s in range(30, 330, 75))
    found, _ = figures(replace(shop(0.3), faults=faults))
    wrong = [f"the flood held {found.flood:.0%} of the room"] * ((found.flood or 0) > 0.25)
    return wrong + [f"19 of 20 visitors waited {found.waits_p95_s:.1f} s at most"] * (
        found.waits_p95_s > 2
    )


def trickle(active: int, per_s: float, lasts_s: float) -> tuple[int, list[float], list[str]]:
    """Requests without cookies into a small room, and browsers: the most places that the former
    held, and how long the latter waited.
    """
    come = [(30_000 + number * 25_000, 0) for number in range(6)]
    scenario = Scenario(
        "trickle",
        room(active, 3 * active, minutes=5),
        1,
        come,
        200,
        Behaviour(parts=True, visit_s=20),
        faults=(Fault("flood", 1, 1 + lasts_s, (0,), per_s),),
    )
    watch = Watch(World(scenario, streams_of(1)))
    watch.world.run()
    crowd = watch.world.crowd
    waits = [visitor.wait_s if visitor.entered_ms else 999.0 for visitor in crowd.visitors]
    return crowd.most_flood, waits, verdict(watch)


SMALL_ROOMS = {
    "room of 20, 20 at once": (20, 40, 0.5),
    "room of 20, 20 within 20 s": (20, 1, 20),
    "room of 30, 30 within 9 s": (30, 3.4, 9),
    "room of 200, 200 within 20 s": (200, 10, 20),
    "room of 200, a monitor every 5 s": (200, 0.2, 199),
    "room of 10, a check every second": (10, 1, 199),
    "room of 2": (2, 1, 199),
    "room of 1": (1, 1, 199),
}


def small_rooms() -> list[str]:
    wrong: list[str] = []
    for name, (active, per_s, lasts_s) in SMALL_ROOMS.items():
        held, waits, broken = trickle(active, per_s, lasts_s)
        wrong += broken
        most = max(1, active // 4)
        wrong += [f"{name}: they hold {held} places"] * (held > most)
        if active > 6:
            wrong += [f"{name}: a browser waited {max(waits)} s"] * (max(waits) > 2)
    return wrong


def after_the_flood() -> list[str]:
    """Half a minute after the last of it, when the sessions are over that it had got, new visitors
    are let in at once again.
    """
    world = World(
        replace(shop(0.3, lasts_s=420), faults=(Fault("flood", 30, 330, (0,), 50),)), streams_of(1)
    )
    world.run()
    late = [
        visitor
        for visitor in world.crowd.visitors
        if visitor.tries and visitor.came_ms > START_MS + 365_000
    ]
    return [f"{len(late)} saw the waiting page long after the flood"] * bool(late)


def test_a_flood_without_cookies_does_not_fill_an_empty_room() -> None:
    assert flooded() == []
    found, _ = figures(shop(0.3, 100), False)
    assert (found.flood or 0) > 0.8, "without the step the room is full of it"


def test_every_data_center_sees_its_part_of_a_flood() -> None:
    assert flooded(centers=4) == []


def test_a_visitor_of_a_flood_was_queued_early_only_if_there_was_room_for_all_who_look_alike() -> (
    None
):
    """What was one figure is two: together they are what both limits had room for."""
    scenario = shop(0.3, 100)
    confirmed, _ = figures(scenario, True)
    assert confirmed.asked_for_ticket > 0.1, (
        "before and after the flood the step is in the way of visitors for whom there was room"
    )
    assert confirmed.queued_in_flood > 0.2
    calm, _ = figures(shop(0.1), True)
    assert (calm.asked_for_ticket, calm.queued_early, calm.queued_in_flood) == (1, 0, 0), (
        "without a flood each of them is asked, and let in as soon as the ticket is there"
    )
    slow, _ = figures(shop(0.3, 5), True)
    assert slow.queued_in_flood == 0, "a limit of 600 a minute has room for five a second"


@pytest.mark.parametrize(
    "case",
    [quiet, mixed, pausing, without_parts, sudden_crowd, after_the_flood, small_rooms],
)
def test_newcomers_are_confirmed_only_while_it_helps(case: Callable[[], list[str]]) -> None:
    assert case() == []


def never_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Newcomers, "confirms", lambda *_: False)


def on_for_a_handful(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(newcomers, "PART", 1_000)


def never_sees_a_ticket_come_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "see", lambda *_: None)


def counts_a_minute_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Newcomers,
        "confirms",
        lambda self, _, centers, now_ms, ask=Newcomers.confirms: ask(self, 0, centers, now_ms),
    )


def counts_the_active_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Newcomers, "admit", lambda *_: None)
    patch.setattr(Newcomers, "see", lambda *_: None)


def gives_every_data_center_the_whole_share(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Newcomers,
        "confirms",
        lambda self, count, _, now_ms, ask=Newcomers.confirms: ask(self, count, 1, now_ms),
    )


def scarce_minute() -> list[str]:
    """Places enough, but twelve admissions a minute: three of them without a ticket that came back."""
    faults = (Fault("flood", 1, 199, (0,), 5),)
    scenario = replace(shop(0.05), room=room(600, 12, minutes=1), lasts_s=200, faults=faults)
    watch = Watch(World(scenario, streams_of(1)))
    watch.world.run()
    return verdict(watch)


def flooded_everywhere() -> list[str]:
    return flooded(centers=4)


def test_of_twelve_admissions_a_minute_a_flood_gets_three() -> None:
    assert scarce_minute() == []


@pytest.mark.needs("patching")
@pytest.mark.parametrize(
    ("build", "case"),
    [
        (never_on, flooded),
        (never_on, small_rooms),
        (on_for_a_handful, quiet),
        (never_sees_a_ticket_come_back, sudden_crowd),
        (counts_a_minute_only, small_rooms),
        (counts_the_active_only, scarce_minute),
        (gives_every_data_center_the_whole_share, flooded_everywhere),
    ],
)
def test_the_cases_find_out_a_build_that_is(
    build: Callable[[pytest.MonkeyPatch], None],
    case: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build(monkeypatch)
    assert case() != []
