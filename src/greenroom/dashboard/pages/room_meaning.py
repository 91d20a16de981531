"""What a room's settings mean, beside the form while it is filled in, with a simulated example."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from greenroom.configuration import rooms
from greenroom.dashboard.parts import DRY_RUNS, ExampleWait
from greenroom.model.account import Role
from greenroom.model.fields import plural, with_unit
from greenroom.model.room import room_problems
from greenroom.web.pages.forms import document_of, flat
from greenroom.web.pages.rendering import duration, grouped
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view

# A room's settings in sentences that need no manual.


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
            f"At most {number(active)} {plural(active, 'person is', 'people are')} in your"
            f" application at once, and at most {number(rate)} {plural(rate, 'is', 'are')} let in"
            " during any minute."
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
        f"With {number(example.visitors)} {plural(example.visitors, 'person', 'people')} arriving"
        f" within {with_unit(example.minutes, 'minutes')}, each"
        f" staying {duration(example.visit_s)}"
    )
    wait_s = example.wait_s
    if wait_s is None:
        return (
            f"{people}: the longest wait is not known."
            if example.ended
            else f"Simulating the wait for {number(example.visitors)}"
            f" {plural(example.visitors, 'person', 'people')}…"
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


MEANING = "/zones/{zone_id}/rooms/meaning"
SIMULATED = (
    "total_active_users",
    "new_users_per_minute",
    "session_duration",
    "disable_session_renewal",
    "queueing_method",
)
FLAGS = ("disable_session_renewal", "queue_all", "suspended")
MEANS = (*SIMULATED, "queue_all", "suspended")


class ExampleLine(NamedTuple):
    """`again`: address to poll while the example is simulated, else empty."""

    text: str
    again: str = ""


def sentences(room: Mapping[str, Any]) -> list[str]:
    return meaning(room, grouped)


def example_of(page: PageRequest, room: Mapping[str, Any]) -> ExampleLine | None:
    dry_runs = page.part(DRY_RUNS)
    if not has_example(room) or dry_runs is None:
        return None
    example = dry_runs.example({name: room[name] for name in SIMULATED})
    settings = {
        name: str(room[name]).lower() if name in FLAGS else str(room[name]) for name in SIMULATED
    }
    again = (
        ""
        if example.ended
        else page.url(f"/zones/{page.zone.id}/rooms/meaning/example", **settings)
    )
    return ExampleLine(example_words(example, grouped), again)


def show(page: PageRequest) -> Response:
    room, zone = _asked(page), page.zone
    if room and room["new_users_per_minute"] > room["total_active_users"]:
        room = None  # the form refuses it; a configuration file does not, so a room may be such
    template = "room_meaning.html" if page.is_fragment else "room_meaning_page.html"
    return page.render(
        template,
        zone=zone,
        said=sentences(room) if room else [],
        example=example_of(page, room) if room else None,
    )


def example(page: PageRequest) -> Response:
    room = _asked(page)
    found = example_of(page, room) if room else None
    if found is None:
        raise HTTPException(404)
    template = "room_example.html" if page.is_fragment else "room_meaning_page.html"
    return page.render(template, zone=page.zone, said=[], example=found)


def _asked(page: PageRequest) -> dict[str, Any] | None:
    query = page.request.query_params
    sent = {name: [page.query(name)] for name in MEANS if name in query}
    room = {one.name: one.default for one in rooms.ROOM.fields if one.name in MEANS} | flat(
        document_of(rooms.ROOM, list(sent), sent)
    )
    if any(name not in room for name in MEANS):
        return None
    wrong = room_problems({"name": "room", "host": "*", **room})
    return None if wrong else room


PAGES = (view(MEANING, show, Role.OPERATOR), view(f"{MEANING}/example", example))
