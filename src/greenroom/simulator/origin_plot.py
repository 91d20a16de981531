"""Charts of a law before a model of an origin: what it set, who was inside, how pages answered."""

from greenroom.simulator.drawing import Panel, page
from greenroom.simulator.origin_world import OriginWorld
from greenroom.simulator.plots import BLUE, GREEN, GREY, HIGH, ORANGE, WIDE


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
