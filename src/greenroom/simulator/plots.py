"""Charts of a run: active and waiting visitors, estimated and actual waits, waits by time of
arrival.
"""

from collections.abc import Sequence

from greenroom.simulator.drawing import Panel, page
from greenroom.simulator.report import quantile
from greenroom.simulator.scenario import START_MS
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import World

WIDE, HIGH = 900, 320
BLUE, ORANGE, GREEN, GREY = "#1f778c", "#d9730d", "#4c8f3a", "#9aa5b1"
BINS = 30
DOTS = 1_500
GROUPS = 120


def picture(world: World) -> str:
    return page(
        [inside(world), waiting(world), told(world), heatmap(world)],
        f"{world.scenario.name}, {world.algorithm}",
    )


def inside(world: World) -> Panel:
    series, room = world.ground_truth.series, world.scenario.room
    minutes = [(second / 60, active, minute) for second, active, _, minute in series]
    top = 1.08 * max(
        room.total_active_users, room.new_users_per_minute, *[max(one[1:]) for one in minutes]
    )
    panel = Panel(
        "Inside",
        "active visitors, and admissions within the last 60 seconds",
        (WIDE, HIGH),
        (0, _end(minutes)),
        (0, top),
    )
    panel.axes("minutes", "visitors")
    for limit, colour in ((room.total_active_users, BLUE), (room.new_users_per_minute, ORANGE)):
        panel.line([(0, limit), (_end(minutes), limit)], colour, dashed=True)
    panel.line([(at, active) for at, active, _ in minutes], BLUE, "active")
    panel.line([(at, minute) for at, _, minute in minutes], ORANGE, "let in within 60 s")
    return panel


def waiting(world: World) -> Panel:
    points = [(second / 60, float(count)) for second, _, count, _ in world.ground_truth.series]
    top = 1.08 * max([count for _, count in points], default=1)
    panel = Panel(
        "Waiting",
        "visitors who were told to wait and are still there",
        (WIDE, HIGH - 60),
        (0, _end(points)),
        (0, top),
    )
    panel.axes("minutes", "visitors")
    panel.line(points, GREEN, "waiting")
    return panel


def told(world: World) -> Panel:
    guesses = sorted(
        (
            (
                (guess[0] - START_MS) / 60_000,
                (visitor.entered_ms - guess[0]) / 60_000,
                *[one / 60 for one in guess[1:]],
            )
            for visitor in world.crowd.visitors
            if visitor.entered_ms and (guess := visitor.guess)
        ),
        key=lambda one: one[0],
    )
    note = (
        "when joining the line: the middle half that was told, its median, and the wait that came"
        " of it"
    )
    top = 1.1 * max(
        [quantile(sorted(one[column] for one in guesses), 0.995) for column in (1, 4)]
        if guesses
        else [1]
    )
    panel = Panel("Told and true", note, (WIDE, HIGH), (0, _end(guesses)), (0, top))
    panel.axes("minute of joining", "minutes of waiting")
    panel.dots(
        [(one[0], min(one[1], top)) for one in guesses[:: max(1, len(guesses) // DOTS)]],
        GREY,
        "waited",
    )
    size = max(1, len(guesses) // GROUPS)
    groups = [guesses[start : start + size] for start in range(0, len(guesses), size)]
    middle = [
        tuple(quantile(sorted(one[column] for one in group), 0.5) for column in (0, 2, 3, 4))
        for group in groups
    ]
    low, high = ([(one[0], min(one[column], top)) for one in middle] for column in (1, 3))
    panel.band(low, high, ORANGE, "told: middle half")
    panel.line([(at, min(median, top)) for at, _, median, _ in middle], ORANGE, "told: median")
    return panel


def heatmap(world: World) -> Panel:
    """The published check of fairness."""
    last_ms = START_MS + (
        world.scenario.arrivals[-1][0] if world.scenario.arrivals else 0
    )  # not those who come again after a session
    counts, arrivals_min, longest_min = bins(
        [one for one in world.crowd.visitors if one.entered_ms and one.came_ms <= last_ms]
    )
    note = f"{BINS} by {BINS} cells; the darker, the more visitors"
    panel = Panel(
        "Waits by time of arrival", note, (WIDE, 520), (0, arrivals_min), (0, longest_min)
    )
    panel.cells(counts)
    panel.axes("minute of arrival", "minutes of waiting", grid=False)
    return panel


def bins(visitors: Sequence[SimulatedVisitor]) -> tuple[list[list[int]], float, float]:
    last_min = (
        max([(visitor.came_ms - START_MS) / 60_000 for visitor in visitors], default=0.0) or 1.0
    )
    longest_min = max([visitor.wait_s / 60 for visitor in visitors], default=0.0) or 1.0
    counts = [[0] * BINS for _ in range(BINS)]
    for visitor in visitors:
        column = int((visitor.came_ms - START_MS) / 60_000 / last_min * BINS)
        row = int(visitor.wait_s / 60 / longest_min * BINS)
        counts[min(column, BINS - 1)][min(row, BINS - 1)] += 1
    return counts, last_min, longest_min


def _end(points: Sequence[Sequence[float]]) -> float:
    return points[-1][0] if points and points[-1][0] > 0 else 1.0
