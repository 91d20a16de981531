"""Charts of a run: active and waiting visitors, estimated and actual waits, waits by time of
arrival.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from math import floor, log10

from greenroom.simulator.origin_world import OriginWorld
from greenroom.simulator.report import quantile
from greenroom.simulator.scenario import START_MS
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import World

# Charts as SVG: panels with axes, lines, bands, dots and coloured cells.

INK, SOFT, FAINT, PAPER = "#1f2933", "#616e7c", "#e4e7eb", "#ffffff"
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 70, 46
HEAT = (
    (0.0, (247, 250, 252)),
    (0.15, (190, 227, 219)),
    (0.4, (86, 180, 172)),
    (0.7, (31, 119, 140)),
    (1.0, (13, 51, 89)),
)
"""Distinguishable without seeing colours."""

Point = tuple[float, float]


class Panel:
    def __init__(self, title: str, note: str, size: tuple[int, int], x: Point, y: Point) -> None:
        self.width, self.height = size
        self._x, self._y = x, (y[0], y[1] if y[1] > y[0] else y[0] + 1)
        self._parts = [
            (
                f"<text x='{LEFT}' y='22' font-size='15' font-weight='600'"
                f" fill='{INK}'>{escape(title)}</text>"
            ),
            f"<text x='{LEFT}' y='40' font-size='12' fill='{SOFT}'>{escape(note)}</text>",
        ]
        self._legend_x = LEFT

    def across(self, value: float) -> float:
        low, high = self._x
        return LEFT + (value - low) / (high - low) * (self.width - LEFT - RIGHT)

    def up(self, value: float) -> float:
        low, high = self._y
        return self.height - BOTTOM - (value - low) / (high - low) * (self.height - TOP - BOTTOM)

    def axes(self, x_name: str, y_name: str, grid: bool = True) -> None:
        base, right = self.height - BOTTOM, self.width - RIGHT
        for value in ticks(*self._y):
            place = self.up(value)
            if grid:
                self._parts.append(
                    f"<line x1='{LEFT}' x2='{right}' y1='{place:.1f}' y2='{place:.1f}'"
                    f" stroke='{FAINT}'/>"
                )
            self._parts.append(_text(LEFT - 8, place + 4, shown(value), "end"))
        for value in ticks(*self._x):
            self._parts.append(_text(self.across(value), base + 18, shown(value), "middle"))
        self._parts.append(
            f"<line x1='{LEFT}' x2='{right}' y1='{base}' y2='{base}' stroke='{SOFT}'/>"
        )
        self._parts.append(_text(right, base + 36, x_name, "end"))
        self._parts.append(_text(LEFT, TOP - 8, y_name, "start"))

    def line(
        self, points: Sequence[Point], colour: str, name: str = "", dashed: bool = False
    ) -> None:
        if not points:
            return
        path = " ".join(f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in thinned(points))
        dash = " stroke-dasharray='5 4'" if dashed else ""
        self._parts.append(
            f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='1.8'{dash}"
            " stroke-linejoin='round'/>"
        )
        self._named(colour, name, dash)

    def band(
        self, lower: Sequence[Point], upper: Sequence[Point], colour: str, name: str = ""
    ) -> None:
        if not lower:
            return
        path = " ".join(
            f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in [*lower, *reversed(upper)]
        )
        self._parts.append(
            f"<polygon points='{path}' fill='{colour}' fill-opacity='0.22' stroke='none'/>"
        )
        self._named(colour, name, " stroke-opacity='0.35' stroke-width='8'")

    def dots(self, points: Iterable[Point], colour: str, name: str = "") -> None:
        for x, y in points:
            self._parts.append(
                f"<circle cx='{self.across(x):.1f}' cy='{self.up(y):.1f}' r='1.6' fill='{colour}'"
                " fill-opacity='0.45'/>"
            )
        self._named(colour, name, " stroke-width='4'")

    def cells(self, counts: Sequence[Sequence[int]]) -> None:
        """`counts[column][row]`; cells divide both ranges evenly."""
        most = max((count for column in counts for count in column), default=0) or 1
        columns, rows = len(counts), len(counts[0])
        wide = (self.width - LEFT - RIGHT) / columns
        high = (self.height - TOP - BOTTOM) / rows
        for place, column in enumerate(counts):
            for row, count in enumerate(column):
                box = (
                    f"x='{LEFT + place * wide:.1f}'"
                    f" y='{self.height - BOTTOM - (row + 1) * high:.1f}' width='{wide + 0.2:.1f}'"
                )
                colour = heat((count / most) ** 0.6)
                self._parts.append(
                    f"<rect {box} height='{high + 0.2:.1f}'"
                    f" fill='{colour}'><title>{count:,}</title></rect>"
                )

    def _named(self, colour: str, name: str, style: str) -> None:
        if not name:
            return
        place, base = self._legend_x, self.height - 10
        style = style if "stroke-width" in style else f"{style} stroke-width='2.4'"
        self._parts.append(
            f"<line x1='{place}' x2='{place + 18}' y1='{base - 4}' y2='{base - 4}'"
            f" stroke='{colour}'{style}/>"
        )
        self._parts.append(_text(place + 24, base, name, "start"))
        self._legend_x += 44 + int(6.4 * len(name))

    def svg(self, top: int = 0) -> str:
        return f"<g transform='translate(0 {top})'>{''.join(self._parts)}</g>"


def page(panels: Sequence[Panel], heading: str) -> str:
    top, parts = 34, []
    for panel in panels:
        parts.append(panel.svg(top))
        top += panel.height + 10
    width = max(panel.width for panel in panels)
    title = (
        f"<text x='{LEFT}' y='24' font-size='17' font-weight='700'"
        f" fill='{INK}'>{escape(heading)}</text>"
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{top}' viewBox='0 0"
        f" {width} {top}' {FONT}><rect width='100%' height='100%'"
        f" fill='{PAPER}'/>{title}{''.join(parts)}</svg>\n"
    )


def heat(share: float) -> str:
    for (low, one), (high, other) in pairwise(HEAT):
        if share <= high:
            part = (share - low) / (high - low)
            red, green, blue = (
                round(start + (end - start) * part) for start, end in zip(one, other, strict=True)
            )
            return f"#{red:02x}{green:02x}{blue:02x}"
    return "#0d3359"


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    raw = (high - low) / wanted
    size = 10 ** floor(log10(raw)) if raw > 0 else 1.0
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
    first = int(-(-low // step))
    return [round(step * place, 10) for place in range(first, int(high / step + 1e-9) + 1)]


def shown(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


POINTS_MOST = 800


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    step = -(-len(points) // POINTS_MOST)
    return points if step <= 1 else [*points[::step], points[-1]]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='12' fill='{SOFT}'"
        f" text-anchor='{anchor}'>{escape(text)}</text>"
    )


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


# Charts of a law before a model of an origin: what it set, who was inside, how pages answered.


def origin_picture(world: OriginWorld) -> str:
    return page([_visitors(world), _latency(world)], f"{world.scenario.name}, limits that follow")


def _visitors(world: OriginWorld) -> Panel:
    rows = [(row[0] / 60, *map(float, row[1:5])) for row in world.rows]
    top = 1.08 * max(max(row[1:]) for row in rows)
    note = "the target, sessions, visitors who browse, and how many of those the origin can take"
    panel = Panel("Visitors", note, (WIDE, HIGH), (0, world.model.minutes), (0, top))
    panel.axes("minutes", "visitors")
    columns = ((4, GREY, "capacity"), (1, ORANGE, "target"), (2, BLUE, "sessions"),
               (3, GREEN, "browsing"))  # fmt: skip
    for column, colour, name in columns:
        panel.line([(row[0], row[column]) for row in rows], colour, name)
    return panel


def _latency(world: OriginWorld) -> Panel:
    points = [(row[0] / 60, row[5]) for row in world.rows]
    objective_s = world.model.objective_ms / 1000
    top = 1.08 * max(objective_s, min(4 * objective_s, max(p95_s for _, p95_s in points)))
    note = "p95 of the last 200 documents, cut off at the top; dashed: the objective"
    panel = Panel("Answers", note, (WIDE, HIGH), (0, world.model.minutes), (0, top))
    panel.axes("minutes", "seconds")
    panel.line([(0, objective_s), (world.model.minutes, objective_s)], GREY, dashed=True)
    panel.line([(at, min(p95_s, top)) for at, p95_s in points], BLUE, "p95")
    return panel
