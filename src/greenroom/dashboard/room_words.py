"""A room's settings in sentences that need no manual."""

from collections.abc import Callable, Mapping
from typing import Any

from greenroom.dashboard.parts import ExampleWait
from greenroom.web.pages.rendering import duration


def meaning(room: Mapping[str, Any], number: Callable[[float], str]) -> list[str]:
    active, rate, minutes = (
        room["total_active_users"],
        room["new_users_per_minute"],
        room["session_duration"],
    )
    if room.get("suspended"):
        return [
            "The room is suspended: every visitor goes straight to your application, and nothing is"
            " counted."
        ]
    said = [
        (
            f"At most {number(active)} people are in your application at once, and at most"
            f" {number(rate)} are let in during any minute."
        ),
        (
            f"Visitors keep their place on the site for {duration(minutes * 60)} after their last"
            " click."
            if not room.get("disable_session_renewal")
            else (
                f"A visit ends {duration(minutes * 60)} after the visitor was let in, even in the"
                " middle of it."
            )
        ),
    ]
    said += _METHODS.get(room["queueing_method"], ())
    if room.get("queue_all"):
        said.append("At the moment all new visitors are held, however much room there is.")
    return said


_METHODS = {
    "fifo": ("Everyone else waits, first come, first served.",),
    "random": ("Everyone else waits, and the next visitors are drawn at random.",),
    "passthrough": ("No one waits: every visitor is let in and counted.",),
    "reject": ("No one is let in: new visitors are told that it is closed.",),
}


LONG_S = 2 * 86_400


def has_example(room: Mapping[str, Any]) -> bool:
    return (
        not room.get("suspended")
        and not room.get("queue_all")
        and room["queueing_method"] in ("fifo", "random")
    )


def example_words(example: ExampleWait, number: Callable[[float], str]) -> str:
    people = (
        f"With {number(example.visitors)} people arriving within {example.minutes} minutes, each"
        f" for {duration(example.visit_s)}"
    )
    wait_s = example.wait_s
    if wait_s is None:
        return (
            f"{people}: how long the last waits is not known."
            if example.ended
            else f"{people}: how long the last waits is being simulated."
        )
    if wait_s > LONG_S:
        return f"{people}, the last would wait for more than {duration(LONG_S)}."
    if example.least:
        return f"{people}, the last would wait for more than {duration(wait_s)}."
    return (
        f"{people}, the last waits about {_rounded(wait_s)}."
        if wait_s >= 60
        else f"{people}, no one waits for more than a minute."
    )


def _rounded(wait_s: float) -> str:
    # The example is not more exact than 5%.
    step_s = 60 if wait_s < 1_800 else 300 if wait_s < 7_200 else 900 if wait_s < 36_000 else 3_600
    return duration(max(60, round(wait_s / step_s) * step_s))
