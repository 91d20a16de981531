"""Worlds in which laws of capacity are compared: one for each kind of trouble, and random ones."""

from greenroom.simulator.chance import RandomDraw, between
from greenroom.simulator.origin import Disturbance, OriginModel

WORLDS: dict[str, OriginModel] = {
    "plain": OriginModel(),
    "noise": OriginModel(noise=0.8),
    "hard knee": OriginModel(collapse=0.03),
    "slow pages": OriginModel(page_ms=400),
    "dip": OriginModel(disturbances=(Disturbance(at_s=900, until_s=1200, capacity=0.5),)),
    "dips": OriginModel(
        collapse=0.02,
        disturbances=tuple(
            Disturbance(at_s=at_s, until_s=at_s + 60, capacity=0.6)
            for at_s in range(400, 2_300, 400)
        ),
    ),
    "outage": OriginModel(disturbances=(Disturbance(at_s=900, until_s=1080, capacity=0),)),
    "leak": OriginModel(leak=0.5),
    "slow partner": OriginModel(disturbances=(Disturbance(at_s=600, until_s=1800, extra_ms=400),)),
    "autoscaler": OriginModel(scale_most=2, scale_above=0.8, demand=2.4),
    "long sessions": OriginModel(session_duration=5, leaving=0.3, minutes=60),
    "long visits": OriginModel(pages=40, minutes=90),
    "large": OriginModel(capacity=400, minutes=25),
}


def random_model(draw: RandomDraw) -> OriginModel:
    """Another origin, crowd and trouble: capacity as a random walk, dips, an outage in one of four.

    Visits last 1 to 6 minutes, and the knee is soft or hard.
    """

    def of(low: float, high: float) -> float:
        return low + (high - low) * draw.random()

    minutes, level = between(draw, 35, 60), 1.0
    troubles = []
    for minute in range(5, minutes, 5):
        level = min(1.4, max(0.5, level * of(0.88, 1.14)))
        troubles.append(Disturbance(at_s=minute * 60, until_s=minute * 60 + 300, capacity=level))
    for _ in range(between(draw, 0, 2)):
        at_s = of(400, minutes * 60 - 300)
        troubles.append(Disturbance(at_s=at_s, until_s=at_s + of(30, 180), capacity=of(0.5, 0.8)))
    if draw.random() < 0.25:
        at_s = of(600, minutes * 60 - 600)
        troubles.append(Disturbance(at_s=at_s, until_s=at_s + of(60, 180), capacity=0))
    if draw.random() < 0.25:
        at_s = of(300, minutes * 30)
        extra_ms = of(100, 400)
        troubles.append(Disturbance(at_s=at_s, until_s=at_s + of(300, 900), extra_ms=extra_ms))
    return OriginModel(
        name="random",
        minutes=minutes,
        capacity=between(draw, 80, 300),
        page_ms=of(60, 350),
        noise=of(0.1, 0.8),
        collapse=of(0, 0.01) if draw.random() < 0.4 else 0.0,
        leak=of(0, 0.4) if draw.random() < 0.25 else 0.0,
        reading_s=of(5, 15),
        pages=of(6, 24),
        leaving=of(0.2, 1),
        session_duration=between(draw, 1, 5),
        demand=of(1.3, 2.5),
        flash=of(0, 3),
        ceiling=of(3, 6),
        disturbances=tuple(troubles),
    )
