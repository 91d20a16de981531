"""What a room's settings mean, beside the form while it is filled in, with a simulated example."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from greenroom.configuration import rooms
from greenroom.dashboard.parts import DRY_RUNS
from greenroom.dashboard.room_words import example_words, has_example, meaning
from greenroom.model.account import Role
from greenroom.model.room import room_problems
from greenroom.web.pages.forms import document_of, flat
from greenroom.web.pages.rendering import grouped
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view

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
    """`again`: the address to poll while the example is simulated, else empty."""

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
