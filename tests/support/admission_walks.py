"""Random stretches of the life of a small room, under the laws of `admission_laws`."""

from random import Random

from admission_laws import GroundTruth
from admission_world import small_room, ticket_id

METHODS = ("fifo", "fifo", "random", "passthrough", "reject")
PAUSES_MS = (
    *(0, 1, 255, 256, 1_000, 2_000, 5_001, 20_000),
    *(59_999, 60_000, 60_001, 61_000, 66_000, 300_000, 331_000),
)
"""Around the terms of sessions, places and permits."""


def walk(seed: int, steps: int, **start: object) -> list[str]:
    """A random stretch of life of a small room; the laws that broke, with the step. Stops at the
    first.
    """
    draw, passing = (
        Random(seed),
        Random(f"{seed} passing"),
    )  # of its own, so that the rest of a seed's life stays as it is
    ending = Random(f"{seed} ending")
    limits = {
        "total_active_users": draw.choice((1, 2, 5, 9)),
        "new_users_per_minute": draw.choice((1, 3, 6, 30)),
        "confirm_newcomers": "auto" if seed % 2 else False,
    }
    ground_truth = GroundTruth(
        small_room(**{**limits, "queueing_method": draw.choice(("fifo", "random")), **start}), seed
    )
    for step in range(steps):
        _step(ground_truth, draw, passing, step)
        if ending.random() < 0.01:
            ground_truth.end_all_sessions()
        if ground_truth.found:
            return [f"seed {seed}, step {step}: {problem}" for problem in ground_truth.found]
    return []


def _step(ground_truth: GroundTruth, draw: Random, passing: Random, step: int) -> None:
    """One thing happens: mostly visitors, sometimes operators, rarely disasters."""
    ground_truth.advance(
        draw.choice(
            (0, 0, 1, 40, 100, 300, 900, 2_000, 2_000, 5_000, 20_000)
            if draw.random() < 0.98
            else (61_000, 400_000)
        )
    )
    if passing.random() < 0.15:
        ground_truth.arrive_provisionally(ticket_id(10**6 + step))
        if passing.random() < 0.3 and ground_truth.provisional:
            ground_truth.view(passing.choice(list(ground_truth.provisional)))
    kind = draw.random()
    ready = [
        one
        for one, place in ground_truth.places.items()
        if ground_truth.now_ms >= place.attempted_ms + place.refresh_ms - 100
    ]
    if kind < 0.22:
        one = ticket_id(step)
        ground_truth.arrive(one)
        if draw.random() < 0.8 and one not in ground_truth.inside:
            ground_truth.advance(draw.choice((1_800, 2_400)))
            ground_truth.poll(one)
    elif kind < 0.65 and ready:
        ground_truth.poll(draw.choice(ready))
    elif kind < 0.70 and ground_truth.places:
        ground_truth.peek(draw.choice(list(ground_truth.places)))
    elif kind < 0.82 and ground_truth.inside:
        ground_truth.view(draw.choice(list(ground_truth.inside)))
    elif kind < 0.86 and ground_truth.tickets:
        one = draw.choice(list(ground_truth.tickets))
        (ground_truth.peek if draw.random() < 0.3 else ground_truth.poll)(
            one
        ) if one not in ground_truth.places else None
    elif kind < 0.88:
        ground_truth.view(ticket_id(10**9 + step))
        if ground_truth.inside or ground_truth.places:
            ground_truth.leave(draw.choice([*ground_truth.inside, *ground_truth.places]))
    elif kind < 0.94:
        ground_truth.tick()
    elif kind < 0.97:
        ground_truth.configure(**draw.choice(_changes(draw)))
    elif kind < 0.98:
        ground_truth.journal.failing = not ground_truth.journal.failing
    elif kind < 0.99:
        ground_truth.journal.failing = False
        ground_truth.advance(1_000)
        ground_truth.tick()
        ground_truth.law(
            not ground_truth.ledger.storage_failed, "the disk is back, but nobody noticed"
        )
    else:
        ground_truth.restart()


def _changes(draw: Random) -> list[dict[str, object]]:
    return [
        {"total_active_users": draw.choice((1, 2, 5, 9, 20))},
        {"new_users_per_minute": draw.choice((1, 3, 6, 30, 100))},
        {"queueing_method": draw.choice(METHODS)},
        {"queueing_method": draw.choice(("fifo", "random"))},
        {"queue_all": draw.random() < 0.3},
        {"queue_all": False, "confirm_newcomers": draw.choice((False, True, "auto"))},
        {"session_duration": draw.choice((1, 1, 2, 5))},
        {"disable_session_renewal": draw.random() < 0.4},
    ]
