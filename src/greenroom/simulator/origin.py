"""A model of an origin: connections that each serve one document at a time, and a line before them.

Theory. N connections with service time S serve N/S documents a second, and a visitor requests one
every Z seconds (reading) plus the time of the answer. `capacity` is the number of visitors with which
the 95th percentile reaches the objective: Erlang's C gives the part of the connections that may then
be busy, with Kingman's correction for service times that vary less or more than exponential ones.
With `collapse` each answer also takes longer, the longer the line is.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from math import cos, exp, log, pi, sqrt
from typing import Any

from greenroom.errors import InvalidConfig, Problem
from greenroom.simulator.chance import RandomDraw
from greenroom.simulator.links import Agenda
from greenroom.simulator.scenario import START_MS

OnDocument = Callable[[int, bool], None]
"""Receives the latency in milliseconds, and whether it was answered well."""

REFUSED_MS = 5
COLLAPSE_MOST = 4.0
SCALE_EVERY_MS = 15_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """From `at_s` to `until_s` the capacity is multiplied by `capacity` (0: down), and `share` of the
    documents take `extra_ms` more, whatever the load.
    """

    at_s: float
    until_s: float
    capacity: float = 1.0
    extra_ms: float = 0.0
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginModel:
    name: str = "origin"
    minutes: float = 40.0
    capacity: float = 150.0
    """Visitors who browse at the same time."""
    page_ms: float = 150.0
    """Service time of a document."""
    noise: float = 0.3
    """Standard deviation of the logarithm of the service time."""
    collapse: float = 0.0
    """How much longer a document takes for each document in line per connection."""
    timeout_s: float = 20.0
    leak: float = 0.0
    """Share of the capacity that is lost in an hour."""
    scale_most: float = 1.0
    """Most instances of the autoscaler, relative to the start; 1: none."""
    scale_above: float = 0.7
    """Utilisation above which it adds a quarter."""
    scale_delay_s: float = 120.0
    disturbances: tuple[Disturbance, ...] = ()
    reading_s: float = 8.0
    pages: float = 12.0
    """Mean number of documents of a visit."""
    leaving: float = 0.5
    """Share of visitors whose session ends with their visit; others stay active for
    `session_duration`.
    """
    session_duration: int = 1
    demand: float = 1.4
    """Arrivals, relative to what the undisturbed origin could serve."""
    flash: float = 1.0
    """Visitors who come in the first minute, relative to its capacity."""
    patience_s: float = 300.0
    objective_ms: int = 1_000
    ceiling: float = 4.0
    """The operator's limit of sessions, relative to the capacity."""

    @property
    def visit_s(self) -> float:
        return self.pages * (self.reading_s + 1.5 * self.page_ms / 1000)


_BOUNDS: dict[type, dict[str, tuple[float, float]]] = {
    OriginModel: {
        "minutes": (1, 1_440), "capacity": (5, 100_000), "page_ms": (1, 30_000), "noise": (0, 3),
        "collapse": (0, 10), "timeout_s": (1, 600), "leak": (0, 1), "scale_most": (1, 100),
        "scale_above": (0, 1), "scale_delay_s": (0, 3_600), "reading_s": (0.5, 3_600),
        "pages": (1, 1_000), "leaving": (0, 1), "session_duration": (1, 1_440), "demand": (0, 100),
        "flash": (0, 100), "patience_s": (1, 86_400), "objective_ms": (50, 30_000),
        "ceiling": (0.1, 100),
    },
    Disturbance: {
        "at_s": (0, 86_400), "until_s": (0, 86_400), "capacity": (0, 100), "share": (0, 1),
        "extra_ms": (0, 600_000),
    },
}  # fmt: skip


def read_model(document: Mapping[str, Any], name: str) -> OriginModel:
    """The model of a parsed TOML file. Raises InvalidConfig with every problem."""
    problems: list[Problem] = []
    given = dict(document)
    entries = given.pop("disturbances", [])
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        problems.append(Problem("disturbances", "must be [[disturbances]] tables"))
        entries = []
    values = _values(OriginModel, {"name": name, **given}, "", problems)
    found = [
        _values(Disturbance, one, f"disturbances[{place}].", problems)
        for place, one in enumerate(entries)
    ]
    if problems:
        raise InvalidConfig(problems)
    return OriginModel(**values, disturbances=tuple(Disturbance(**one) for one in found))


def _values(
    record: type, given: Mapping[str, Any], at: str, problems: list[Problem]
) -> dict[str, Any]:
    known = {one.name: one for one in fields(record) if one.name != "disturbances"}
    for key, value in given.items():
        if key not in known:
            problems.append(Problem(f"{at}{key}", f"unknown; one of {', '.join(sorted(known))}"))
        elif key == "name":
            if not isinstance(value, str):
                problems.append(Problem(f"{at}{key}", f"must be a string, not {value!r}"))
        elif isinstance(value, bool) or not isinstance(value, int | float):
            problems.append(Problem(f"{at}{key}", f"must be a number, not {value!r}"))
        elif known[key].type in (int, "int") and not isinstance(value, int):
            problems.append(Problem(f"{at}{key}", f"must be a whole number, not {value!r}"))
        else:
            low, high = _BOUNDS[record][key]
            if not low <= value <= high:
                problems.append(Problem(f"{at}{key}", f"must be {low} to {high}, not {value}"))
    problems += [
        Problem(f"{at}{key}", "is required")
        for key, one in known.items()
        if one.default is MISSING and key not in given
    ]
    return dict(given)


class SimulatedOrigin:
    def __init__(self, model: OriginModel, agenda: Agenda, draw: RandomDraw) -> None:
        self._model, self._agenda, self._draw = model, agenda, draw
        self.connections, self._serve_ms = _pool(model)
        self._line: deque[tuple[int, OnDocument]] = deque()
        self._serving = 0
        self.asked: dict[int, int] = {}
        self._number = 0
        self.instances = 1.0
        self.scaling_until_ms = 0
        self._busy_ms = self._looked_ms = 0
        for one in model.disturbances:
            for at_s in (one.at_s, one.until_s):
                agenda.at(START_MS + int(at_s * 1000), self._disturbed)
        if model.scale_most > 1:
            agenda.at(START_MS, self._scale)

    # -- what it can take --------------------------------------------------------------------------

    def capacity(self) -> float:
        """Visitors it can take now."""
        return self._model.capacity * self._factor()

    def line_ms(self) -> int:
        return self._agenda.now_ms - self.asked[self._line[0][0]] if self._line else 0

    def _factor(self) -> float:
        second = (self._agenda.now_ms - START_MS) / 1000
        factor = self.instances * max(0.05, 1 - self._model.leak * second / 3600)
        for one in self._model.disturbances:
            if one.at_s <= second < one.until_s:
                factor *= one.capacity
        return factor

    def _extra_ms(self) -> int:
        second, extra_ms = (self._agenda.now_ms - START_MS) / 1000, 0.0
        for one in self._model.disturbances:
            if one.extra_ms and one.at_s <= second < one.until_s:
                extra_ms += one.extra_ms if self._draw.random() < one.share else 0
        return int(extra_ms)

    def _scale(self) -> None:
        model, now_ms = self._model, self._agenda.now_ms
        self._agenda.after(SCALE_EVERY_MS, self._scale)
        used = self._busy_ms / max(1.0, SCALE_EVERY_MS * self.connections * self._factor())
        self._busy_ms = 0
        if now_ms < self.scaling_until_ms:
            return
        wanted = self.instances
        if used > model.scale_above:
            wanted = min(model.scale_most, self.instances + 0.25)
        elif used < model.scale_above / 2:
            wanted = max(1.0, self.instances - 0.25)
        if wanted != self.instances:
            self.scaling_until_ms = now_ms + int(model.scale_delay_s * 1000)
            self._agenda.at(self.scaling_until_ms, self._scaled, wanted)

    def _scaled(self, instances: float) -> None:
        self.instances = instances
        self._fill()

    # -- documents ---------------------------------------------------------------------------------

    def request(self, then: OnDocument) -> None:
        factor = self._factor()
        if factor <= 0:
            self._agenda.after(REFUSED_MS, then, REFUSED_MS, False)
            return
        self._number += 1
        self.asked[self._number] = self._agenda.now_ms
        self._line.append((self._number, then))
        self._fill()

    def _disturbed(self) -> None:
        """An origin that goes down breaks the connections of those in line."""
        if self._factor() <= 0:
            line, self._line = self._line, deque()
            for number, then in line:
                then(self._agenda.now_ms - self.asked.pop(number), False)
        self._fill()

    def _fill(self) -> None:
        factor = self._factor()
        if factor <= 0:
            return
        # A part of a connection: all serve, and each is as much slower.
        places = max(1, round(self.connections * factor))
        while self._line and self._serving < places:
            number, then = self._line.popleft()
            now_ms, asked_ms = self._agenda.now_ms, self.asked[number]
            if now_ms - asked_ms > self._model.timeout_s * 1000:
                del self.asked[number]
                then(now_ms - asked_ms, False)
                continue
            crowding = self._model.collapse * len(self._line) / places
            serve_ms = self._serve_ms * places / (self.connections * factor)
            serve_ms *= _noise(self._draw, self._model.noise) * min(COLLAPSE_MOST, 1 + crowding)
            self._serving += 1
            self._busy_ms += int(serve_ms)
            self._agenda.after(max(1, int(serve_ms)), self._served, number, then)

    def _served(self, number: int, then: OnDocument) -> None:
        self._serving -= 1
        extra_ms = self._extra_ms()
        if extra_ms:
            self._agenda.after(extra_ms, self._answered, number, then)
        else:
            self._answered(number, then)
        self._fill()

    def _answered(self, number: int, then: OnDocument) -> None:
        latency_ms = self._agenda.now_ms - self.asked.pop(number)
        then(latency_ms, self._factor() > 0 and latency_ms <= self._model.timeout_s * 1000)


def _pool(model: OriginModel) -> tuple[int, float]:
    """The number of connections, and the service time with which they are worth `capacity`."""
    a_second = model.capacity / (model.reading_s + 2 * model.page_ms / 1000)
    connections = max(2, round(a_second * model.page_ms / 1000 / 0.85))
    variation = exp(model.noise**2) / 2
    low, high = 0.05, 0.995
    for _ in range(30):
        used = (low + high) / 2
        serve_s = connections * used / a_second
        most_wait_s = max(
            0.2 * model.objective_ms / 1000, model.objective_ms / 1000 - 1.5 * serve_s
        )
        queued = _erlang_c(connections, used * connections)
        tail = log(max(1.0, queued / 0.05)) * variation
        wait_s = tail * serve_s / (connections * (1 - used))
        low, high = (used, high) if wait_s < most_wait_s else (low, used)
    return connections, 1000 * connections * low / a_second


def _erlang_c(servers: int, load: float) -> float:
    """The share of requests that wait, with `load` busy servers on average."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    used = load / servers
    return blocked / (1 - used * (1 - blocked))


def _noise(draw: RandomDraw, sigma: float) -> float:
    if not sigma:
        return 1.0
    normal = sqrt(-2 * log(1 - draw.random())) * cos(2 * pi * draw.random())
    return exp(sigma * normal - sigma * sigma / 2)
