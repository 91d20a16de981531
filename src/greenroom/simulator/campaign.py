"""Random rooms, crowds and networks with random faults, one for each seed."""

from collections.abc import Callable
from dataclasses import replace

from greenroom.model.room import Room
from greenroom.simulator.arrivals import arrivals, shares
from greenroom.simulator.chance import RandomDraw, Streams, between, choice
from greenroom.simulator.progress import calm_s
from greenroom.simulator.scenario import (
    FAULTS,
    OPERATOR_ACTIONS,
    Behaviour,
    Fault,
    NetworkProfile,
    Scenario,
)

LASTS_S = 600
FAULTS_MOST = 6
WATCHED_S = 90
OF_THEIR_OWN = {
    "clock step",
    "flood",
    "follow",
    "origin down",
    "provisional flood",
    "pushes",
    "stop",
    *OPERATOR_ACTIONS,
}
KINDS = (*[kind for kind in FAULTS if kind not in OF_THEIR_OWN], "partition", "crash")
"""Faults that break more are more frequent."""


def random_scenario(streams: Streams) -> Scenario:
    draw = streams("campaign")
    centers = choice(draw, (1, 2, 2, 3, 3, 4, 5))
    total, per_minute = choice(draw, (1, 2, 5, 20, 60, 150)), choice(draw, (1, 3, 10, 40, 120, 300))
    room = Room(
        name="campaign",
        host="*",
        total_active_users=total,
        new_users_per_minute=per_minute,
        session_duration=1,
        queueing_method=choice(draw, ("fifo", "fifo", "random")),
        disable_session_renewal=draw.random() < 0.15,
        confirm_newcomers=True if draw.random() < 0.15 else "auto",
        strong_sessions=draw.random() < 0.5,
        pace_admissions=streams("pacing").random() < 0.7,
    )
    habits = Behaviour(
        visit_s=choice(draw, (10.0, 40.0, 90.0)),
        page_gap_s=choice(draw, (3.0, 10.0)),
        leaving=draw.random(),
        patience_s=choice(draw, (0.0, 60.0, 300.0)),
        once=0.1 * draw.random(),
        pausing=0.1 * draw.random(),
        reloading=0.1 * draw.random(),
        moving=choice(draw, (0.0, 0.02, 0.2)),
        sleeping=choice(streams("asleep"), (0.0, 0.0, 0.1, 0.5)),
        dropping=0.2,
    )
    network = NetworkProfile(
        loss=choice(draw, (0.0, 0.05, 0.3)),
        twice=choice(draw, (0.0, 0.1)),
        jitter=draw.random() * 3,
        skew_ms=30_000,
    )
    capacity = min(per_minute / 60, total / (habits.visit_s + 60))
    found = _arrivals(draw, centers, max(0.1, capacity))
    faults = (
        *[_fault(draw, centers) for _ in range(between(draw, 0, FAULTS_MOST))],
        *_clock_steps(streams("steps"), centers),
    )
    faults += (
        _floods(streams("flood"), centers)
        + _provisional_floods(streams("provisional flood"), centers)
        + _stops(streams("stop"), centers)
    )
    fence_s = choice(streams("fence"), (0, 10, 30, 120))
    faults += _long_faults(streams("long faults"), centers) + operator_actions(
        streams("operators"), room, centers, LASTS_S
    )
    faults += _pushes(streams("pushes"), _follows(streams("capacities"), centers))
    faults += _origin_failures(streams("origin failures"))
    # an old copy has places as they were before a draw
    if any(fault.kind == "old disk" for fault in faults):
        faults = tuple(
            replace(fault, amount=0) if fault.kind == "pre-queue" else fault for fault in faults
        )
    lasts_s = LASTS_S + calm_s(room, faults) + WATCHED_S
    return Scenario(
        "campaign",
        room,
        centers,
        found,
        lasts_s,
        habits,
        network,
        faults,
        laws_every_s=1,
        fence_s=fence_s,
    )


def _arrivals(draw: RandomDraw, centers: int, capacity: float) -> list[tuple[int, int]]:
    """Waves of a quarter to four times the room's capacity."""
    part = shares(draw, centers)
    loads = [capacity * choice(draw, (0.25, 0.8, 1.2, 2.0, 4.0)) for _ in range(10)]
    spots = [between(draw, 0, 2 * centers) for _ in range(10)]

    def rates(second: float) -> list[float]:
        load, spot = loads[int(second // 60)], spots[int(second // 60)]
        return [
            load * (0.9 * (center == spot) + 0.1 * one if spot < centers else one)
            for center, one in enumerate(part)
        ]

    return arrivals(draw, LASTS_S, rates)


def _clock_steps(draw: RandomDraw, centers: int) -> list[Fault]:
    """Steps the clocks of some servers by up to an hour, in every third world."""
    if draw.random() >= 0.33:
        return []
    at_s = between(draw, 20, LASTS_S - 60)
    amount = choice(draw, (-3_600, -60, -5, 5, 60, 3_600))
    return [
        Fault(
            "clock step",
            at_s,
            between(draw, at_s, LASTS_S - 10),
            (between(draw, 0, centers - 1),),
            amount,
        )
    ]


def _floods(draw: RandomDraw, centers: int) -> tuple[Fault, ...]:
    """Floods of requests without cookies, in every fifth world."""
    if draw.random() >= 0.2:
        return ()
    at_s = between(draw, 20, LASTS_S - 150)
    struck = tuple(range(centers)) if draw.random() < 0.5 else (between(draw, 0, centers - 1),)
    return (
        Fault("flood", at_s, at_s + choice(draw, (20, 120)), struck, choice(draw, (1, 10, 50))),
    )


def _provisional_floods(draw: RandomDraw, centers: int) -> tuple[Fault, ...]:
    """Requests that cannot wait, a few or a flood, in every third world."""
    if draw.random() >= 0.33:
        return ()
    at_s = between(draw, 5, LASTS_S - 150)
    struck = tuple(range(centers)) if draw.random() < 0.5 else (between(draw, 0, centers - 1),)
    return (
        Fault(
            "provisional flood",
            at_s,
            at_s + choice(draw, (20, 120)),
            struck,
            choice(draw, (0.2, 2, 50, 500)),
        ),
    )


def _stops(draw: RandomDraw, centers: int) -> tuple[Fault, ...]:
    """Stops a data center cleanly, for up to minutes, perhaps twice, in every third world."""
    if centers == 1 or draw.random() >= 0.33:
        return ()
    struck, at_s = (between(draw, 0, centers - 1),), between(draw, 20, LASTS_S - 300)
    first = Fault("stop", at_s, at_s + choice(draw, (1, 5, 60, 150)), struck)
    return (
        (first, Fault("stop", first.until_s + 5, first.until_s + 65, struck))
        if draw.random() < 0.3
        else (first,)
    )


def _long_faults(draw: RandomDraw, centers: int) -> tuple[Fault, ...]:
    """Faults of minutes, often before there is a line, in every fourth world."""
    if centers == 1 or draw.random() >= 0.25:
        return ()
    at_s = between(draw, 20, 200)
    return (
        Fault(
            choice(draw, ("partition", "outage", "coordinator down")),
            at_s,
            at_s + choice(draw, (200, 300)),
            some(draw, centers),
        ),
    )


def _follows(draw: RandomDraw, centers: int) -> tuple[Fault, ...]:
    """A room that follows its origin, mostly with lost measurements, in every fifth world."""
    if draw.random() >= 0.2:
        return ()
    at_s, until_s = between(draw, 10, 100), between(draw, 300, LASTS_S - 60)
    found = (Fault("follow", at_s, until_s, amount=choice(draw, (20, 50, 80, 120, 400))),)
    kind = choice(draw, ("partition", "outage", "coordinator down", "coordinator loss", ""))
    if not kind:
        return found
    lost_s = between(draw, at_s + 30, until_s - 60)
    lasts_s = choice(draw, (3, 20, 90))
    return (*found, Fault(kind, lost_s, lost_s + lasts_s, some(draw, centers)))


def _pushes(draw: RandomDraw, follows: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Pushed figures, in half of the worlds that follow, from before the first measurement."""
    if not follows or draw.random() < 0.5:
        return follows
    at_s, until_s = follows[0].at_s - 1, follows[0].until_s + 1
    return (Fault("pushes", at_s, until_s, amount=choice(draw, (0, 5, 20, 40))), *follows)


def _origin_failures(draw: RandomDraw) -> tuple[Fault, ...]:
    """In every sixth world, once or twice."""
    if draw.random() >= 0.16:
        return ()
    found: tuple[Fault, ...] = ()
    for _ in range(between(draw, 1, 2)):
        at_s = between(draw, 30, LASTS_S - 160)
        found += (Fault("origin down", at_s, at_s + choice(draw, (20, 60, 150))),)
    return found


def _fault(draw: RandomDraw, centers: int) -> Fault:
    kind = choice(draw, KINDS)
    at_s = between(draw, 20, LASTS_S - 60)
    until_s = at_s + choice(draw, (2, 8, 15, 60, 150))
    struck = some(draw, centers)
    if kind in ("outage", "crash", "old disk"):
        struck = struck[:1]
    amount = {"loss": between(draw, 5, 60), "limits": choice(draw, (30, 60, 150, 300))}.get(kind, 0)
    return Fault(kind, at_s, min(until_s, LASTS_S - 5), struck, amount)


ACTIONS_MOST = 4
SHARE = 0.67
LASTING_S = (5, 30, 60, 120, 200)
LET_IN_S = 60

Chosen = tuple[Fault, ...]
Chooser = Callable[[RandomDraw, Room, int, int, int], Chosen]
"""(draw, room, data centers, from second, until second) -> faults."""


def operator_actions(draw: RandomDraw, room: Room, centers: int, lasts_s: int) -> Chosen:
    """Sorted; all are over before the end."""
    if draw.random() >= SHARE:
        return ()
    found: Chosen = ()
    for _ in range(between(draw, 1, ACTIONS_MOST)):
        at_s = between(draw, 20, lasts_s - 100)
        until_s = min(at_s + choice(draw, LASTING_S), lasts_s - 5)
        found += CHOICES[choice(draw, tuple(CHOICES))](draw, room, centers, at_s, until_s)
    return found


def _limits(draw: RandomDraw, _: Room, centers: int, at_s: int, until_s: int) -> Chosen:
    amount = choice(draw, (1, 10, 30, 200, 1_000))
    found = (Fault(choice(draw, ("limits", "capacity", "rate")), at_s, until_s, amount=amount),)
    if amount > 100 or draw.random() < 0.5:
        return found
    cut_s = at_s + between(draw, 5, 40)
    return (*found, Fault("partition", cut_s, cut_s + choice(draw, (20, 90)), some(draw, centers)))


def _passthrough(draw: RandomDraw, _: Room, centers: int, at_s: int, until_s: int) -> Chosen:
    found: Chosen = (Fault("passthrough", at_s, until_s),)
    if draw.random() < 0.5:
        found += (
            Fault(
                "flood",
                at_s,
                at_s + choice(draw, (20, 60)),
                tuple(range(centers)),
                choice(draw, (10, 50)),
            ),
        )
        found += (Fault("limits", at_s, until_s + 80, amount=1_000),) * (draw.random() < 0.7)
    return found


def _let_in(draw: RandomDraw, room: Room, _: int, at_s: int, __: int) -> Chosen:
    return (
        Fault("let in", at_s, at_s + LET_IN_S, amount=between(draw, 1, room.total_active_users)),
    )


def _end_sessions(_: RandomDraw, __: Room, ___: int, at_s: int, ____: int) -> Chosen:
    return (Fault("end sessions", at_s),)


def _session_duration(draw: RandomDraw, _: Room, __: int, at_s: int, until_s: int) -> Chosen:
    return (Fault("session duration", at_s, until_s, amount=choice(draw, (2, 3))),)


def _confirm(draw: RandomDraw, _: Room, __: int, at_s: int, until_s: int) -> Chosen:
    return (Fault("confirm newcomers", at_s, until_s, amount=choice(draw, (0, 1))),)


def _removed(draw: RandomDraw, _: Room, centers: int, at_s: int, until_s: int) -> Chosen:
    struck = (between(draw, 0, centers - 1),)
    return (Fault("removed", at_s, until_s, struck, choice(draw, (0, 1))),) if centers > 1 else ()


def _event(draw: RandomDraw, _: Room, __: int, at_s: int, until_s: int) -> Chosen:
    found: Chosen = (
        (Fault("limits", at_s, until_s, amount=choice(draw, (30, 150, 300))),)
        if draw.random() < 0.7
        else ()
    )
    if draw.random() < 0.4:
        found += (Fault(choice(draw, ("method", "passthrough", "reject")), at_s, until_s),)
    start_s = at_s + (until_s - at_s) // 2
    return (
        *found,
        *(Fault("pre-queue", at_s, start_s, amount=choice(draw, (0, 1))),) * (draw.random() < 0.6),
    )


def some(draw: RandomDraw, centers: int) -> tuple[int, ...]:
    return tuple(center for center in range(centers) if draw.random() < 0.5) or (
        between(draw, 0, centers - 1),
    )


def _plain(kind: str) -> Chooser:
    return lambda draw, room, centers, at_s, until_s: (Fault(kind, at_s, until_s),)  # noqa: ARG005


CHOICES: dict[str, Chooser] = {
    "limits": _limits,
    "passthrough": _passthrough,
    "let in": _let_in,
    "end sessions": _end_sessions,
    "session duration": _session_duration,
    "confirm newcomers": _confirm,
    "removed": _removed,
    "event": _event,
    **{
        kind: _plain(kind)
        for kind in (
            "method",
            "reject",
            "queue all",
            "suspended",
            "renewal",
            "pacing",
            "provisional sessions",
        )
    },
}
