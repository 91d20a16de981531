"""What operators do in the worlds of a campaign: in two of three worlds something, up to four
times, and it may overlap.
"""

from collections.abc import Callable

from greenroom.model.room import Room
from greenroom.simulator.chance import RandomDraw, between, choice
from greenroom.simulator.scenario import Fault

ACTIONS_MOST = 4
SHARE = 0.67
LASTING_S = (5, 30, 60, 120, 200)
LET_IN_S = 60

Chosen = tuple[Fault, ...]
Chooser = Callable[[RandomDraw, Room, int, int, int], Chosen]
"""(draw, room, data centers, from when, until when) -> what is done."""


def operator_actions(draw: RandomDraw, room: Room, centers: int, lasts_s: int) -> Chosen:
    """In this order of beginnings; all is over before the end."""
    if draw.random() >= SHARE:
        return ()
    found: Chosen = ()
    for _ in range(between(draw, 1, ACTIONS_MOST)):
        at_s = between(draw, 20, lasts_s - 100)
        until_s = min(at_s + choice(draw, LASTING_S), lasts_s - 5)
        found += CHOICES[choice(draw, tuple(CHOICES))](draw, room, centers, at_s, until_s)
    return found


def _limits(draw: RandomDraw, _: Room, centers: int, at_s: int, until_s: int) -> Chosen:
    """Lowered, often because something is about to fail."""
    amount = choice(draw, (1, 10, 30, 200, 1_000))
    found = (Fault(choice(draw, ("limits", "capacity", "rate")), at_s, until_s, amount=amount),)
    if amount > 100 or draw.random() < 0.5:
        return found
    cut_s = at_s + between(draw, 5, 40)
    return (*found, Fault("partition", cut_s, cut_s + choice(draw, (20, 90)), some(draw, centers)))


def _passthrough(draw: RandomDraw, _: Room, centers: int, at_s: int, until_s: int) -> Chosen:
    """Often because of a crowd that nothing is to hold up, while the room has more capacity than at
    other times.
    """
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
    """One of several; at least one is left."""
    struck = (between(draw, 0, centers - 1),)
    return (Fault("removed", at_s, until_s, struck, choice(draw, (0, 1))),) if centers > 1 else ()


def _event(draw: RandomDraw, _: Room, __: int, at_s: int, until_s: int) -> Chosen:
    """Its own limits and method, with a pre-queue before it, and a draw at its start."""
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
    """At least one data center."""
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
"""Each as likely as any other."""
