"""When visitors arrive, and at which data center: by rates, a curve, or a table."""

from collections.abc import Callable, Iterable, Sequence
from math import exp, pi, sin, sqrt

from greenroom.errors import Problem
from greenroom.simulator.chance import RandomDraw, between, weighted

VISITORS_MAX = 2_000_000
"""About 1 GB."""
LASTS_MAX_S = 7 * 24 * 3600
CENTERS_MAX = 1_000


def arrivals(
    draw: RandomDraw, lasts_s: float, rates: Callable[[float], Sequence[float]], step_s: float = 1.0
) -> list[tuple[int, int]]:
    """Poisson; `rates(second)`: arrivals per second in each data center."""
    found: list[tuple[int, int]] = []
    second = 0.0
    while second < lasts_s:
        now = rates(second)
        sums, total = [], 0.0
        for rate in now:
            total += rate
            sums.append(total)
        count = poisson(draw, total * step_s)
        found += [
            (int((second + draw.random() * step_s) * 1000), weighted(draw, sums))
            for _ in range(count)
        ]
        second += step_s
    found.sort()
    return found


def poisson(draw: RandomDraw, mean: float) -> int:
    """Above 50 a rounded normal."""
    if mean > 50:
        normal = sum(draw.random() for _ in range(12)) - 6
        return max(0, round(mean + normal * sqrt(mean)))
    count, product, limit = 0, draw.random(), exp(-mean)
    while product > limit:
        count += 1
        product *= draw.random()
    return count


def shares(draw: RandomDraw, centers: int, tail: float = 0.8) -> list[float]:
    weights = [1 / (rank + 1) ** tail for rank in range(centers)]
    for index in range(centers - 1, 0, -1):
        other = between(draw, 0, index)
        weights[index], weights[other] = weights[other], weights[index]
    total = sum(weights)
    return [weight / total for weight in weights]


def flat(_: float) -> float:
    return 1.0


def rush(part: float) -> float:
    return exp(-7 * part)


def bell(part: float) -> float:
    return max(0.0, sin(pi * part)) ** 2


CURVES: dict[str, Callable[[float], float]] = {"flat": flat, "rush": rush, "bell": bell}


def from_curve(
    draw: RandomDraw, curve: str, visitors: int, minutes: float, centers: int
) -> list[tuple[int, int]]:
    slices = max(1, min(3600, int(minutes * 60)))
    shape = [CURVES[curve]((place + 0.5) / slices) for place in range(slices)]
    rows = spread([visitors * one / sum(shape) for one in shape])
    wide_s = minutes * 60 / slices
    return from_rows(
        draw, [(place * wide_s, count, -1) for place, count in enumerate(rows)], wide_s, centers
    )


def spread(counts: Iterable[float]) -> list[int]:
    """Rounds and keeps the sum."""
    found, due = [], 0.0
    given = 0
    for count in counts:
        due += count
        found.append(round(due) - given)
        given = round(due)
    return found


ArrivalRow = tuple[float, int, int]
"""Seconds from the start, visitors until the next row, data center (-1: all of them)."""


def from_rows(
    draw: RandomDraw, rows: Sequence[ArrivalRow], last_s: float, centers: int
) -> list[tuple[int, int]]:
    """Visitors of the last row are spread over `last_s` seconds."""
    part = shares(draw, centers)
    sums = [sum(part[: place + 1]) for place in range(centers)]
    moments = sorted({second for second, _, _ in rows})
    until = dict(zip(moments, [*moments[1:], moments[-1] + last_s], strict=True)) if moments else {}
    found = []
    for second, count, center in rows:
        for _ in range(count):
            at_s = second + draw.random() * (until[second] - second)
            found.append((int(at_s * 1000), weighted(draw, sums) if center < 0 else center))
    found.sort()
    return found


def read_rows(text: str, centers: int) -> tuple[list[ArrivalRow], list[Problem]]:
    """Lines of `second,visitors` or `second,visitors,data center`, after an optional heading."""
    rows: list[ArrivalRow] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or (number == 1 and not _number(cells[0])):
            continue
        reason = _wrong(cells, centers)
        if reason:
            problems.append(Problem(f"line {number}", reason))
        else:
            rows.append((float(cells[0]), int(cells[1]), int(cells[2]) if len(cells) > 2 else -1))
    if not problems and not rows:
        problems.append(Problem("line 1", "there are no arrivals in it"))
    if sum(count for _, count, _ in rows) > VISITORS_MAX:
        problems.append(Problem("visitors", f"are more than {VISITORS_MAX:,} altogether"))
    return rows, problems


def _wrong(cells: Sequence[str], centers: int) -> str:
    if len(cells) not in (2, 3):
        return (
            f"must be second,visitors or second,visitors,data center, and has {len(cells)} columns"
        )
    if not _number(cells[0]) or not 0 <= float(cells[0]) <= LASTS_MAX_S:
        return f"second must be a number from 0 to {LASTS_MAX_S}, not {cells[0][:40]!r}"
    if not cells[1].isdecimal() or int(cells[1]) > VISITORS_MAX:
        return f"visitors must be a whole number from 0 to {VISITORS_MAX}, not {cells[1][:40]!r}"
    if len(cells) > 2 and not (cells[2].isdecimal() and int(cells[2]) < centers):
        return f"data center must be a whole number from 0 to {centers - 1}, not {cells[2][:40]!r}"
    return ""


def _number(text: str) -> bool:
    try:
        return float(text) == float(text)  # not a number is not equal to itself
    except ValueError:
        return False
