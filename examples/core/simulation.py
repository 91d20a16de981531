"""A crowd in three data centers, one of which is cut off and one of which crashes."""

from random import Random

from greenroom.model.room import Room
from greenroom.simulator.report import report
from greenroom.simulator.scenario import Behaviour, Fault, NetworkProfile, Scenario
from greenroom.simulator.world import World

crowd = [
    (second * 1000, second % 3) for second in range(120)
]  # one a second, in three data centers
scenario = Scenario(
    name="mine",
    room=Room(
        name="shop",
        host="*",
        total_active_users=20,
        new_users_per_minute=30,
        session_duration=1,
        strong_sessions=True,
    ),
    centers=3,
    arrivals=crowd,
    lasts_s=600,
    behaviour=Behaviour(visit_s=30, moving=0.1),
    network=NetworkProfile(loss=0.2, twice=0.1, skew_ms=30_000),
    faults=(
        Fault("partition", at_s=60, until_s=90, centers=(1,)),
        Fault("crash", at_s=200, until_s=210, centers=(2,)),
    ),
)
world = World(scenario, lambda name: Random(f"seed 1, {name}"))
world.run()
figures = report(world)
assert figures.over_active == figures.over_minute == 0
assert figures.broken_laws == []
