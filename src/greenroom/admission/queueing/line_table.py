"""Builds the table of the line: candidate ranks grow by an eighth each, and those that their
neighbours predict are dropped.
"""

from collections.abc import Callable, Iterator, Sequence
from math import ceil

from greenroom.admission.messages.room_summary import Elsewhere
from greenroom.model.line_table import KNOTS_MAX, LOOK_S, Knot, LineTable
from greenroom.model.visit import Estimate, make_key

GROWTH = 8

ERROR = 0.005
"""Part of the people ahead (at least 1 visitor); doubled until KNOTS_MAX are enough."""

RankedArrival = tuple[int, int]


def ranks(waiting: int) -> Iterator[int]:
    rank = 0
    while rank < waiting - 1:
        yield rank
        rank += max(1, rank // GROWTH)
    if waiting:
        yield waiting - 1


def due(waiting: int, permits: int, lookahead: float, pace: float) -> int:
    """Visitors called now or before their pages check in again. `pace`: admissions per second."""
    return min(waiting, permits + max(1, ceil(lookahead)) + ceil(pace * LOOK_S))


def table_of(
    places: Sequence[RankedArrival],
    waiting: int,
    open: bool,
    due: RankedArrival | None,
    made_ms: int,
    estimate: Callable[[int, int], Estimate | None],
    elsewhere: Elsewhere | None = None,
) -> LineTable:
    """`due`: the last visitor who should check in now; `estimate` takes people ahead here and the
    arrival time. Ranks here become places in the whole line.
    """
    here = {place: place[1] for place in places}
    if elsewhere:
        waiting += elsewhere.waiting
        here = {(at_ms, rank + elsewhere.ahead(make_key(at_ms, 0))): rank for at_ms, rank in places}
    knots = []
    for place in thinned(list(here)):
        arrival_ms, ahead = place
        found = estimate(here[place], arrival_ms) if open else None
        knots.append(Knot(arrival_ms, ahead, found.p50_s if found else -1.0))
    up_to_ms, count = (due[0], due[1] + 1) if due else (0, 0)
    return LineTable(made_ms, waiting, open, count, up_to_ms, tuple(knots))


def thinned(places: Sequence[RankedArrival]) -> list[RankedArrival]:
    error = ERROR
    while len(found := _within(places, error)) > KNOTS_MAX:
        error *= 2
    return found


def _within(places: Sequence[RankedArrival], error: float) -> list[RankedArrival]:
    """Straight lines between the kept places miss none by more than `error` of its rank, or 1."""
    if len(places) < 3:
        return list(places)
    found = [places[0]]
    (from_ms, from_rank), before = places[0], places[0]
    low, high = 0.0, float("inf")
    for place in places[1:]:
        passed_ms, rank = max(place[0] - from_ms, 0.001), place[1]
        slope, off = (rank - from_rank) / passed_ms, max(1.0, rank * error) / passed_ms
        if not low <= slope <= high:
            found.append(before)
            from_ms, from_rank = before
            passed_ms = max(place[0] - from_ms, 0.001)
            slope, off = (rank - from_rank) / passed_ms, max(1.0, rank * error) / passed_ms
            low, high = slope - off, slope + off
        else:
            low, high = max(low, slope - off), min(high, slope + off)
        before = place
    found.append(places[-1])
    return found
