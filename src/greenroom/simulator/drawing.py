"""Charts as SVG: panels with axes, lines, bands, dots and coloured cells."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from math import floor, log10

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


def thinned(points: Sequence[Point], most: int = 800) -> Sequence[Point]:
    step = -(-len(points) // most)
    return points if step <= 1 else [*points[::step], points[-1]]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='12' fill='{SOFT}'"
        f" text-anchor='{anchor}'>{escape(text)}</text>"
    )
