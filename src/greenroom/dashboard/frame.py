"""The frame of every page: layout, navigation, notices, tour, and the offer to undo."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from greenroom.configuration.dashboard.undo import number_of_change, offered
from greenroom.dashboard.assets import installed_assets
from greenroom.dashboard.navigation import NAMED, NOTICES, ROOM_TABS, current, visible
from greenroom.dashboard.slices import PACKAGES
from greenroom.model.account import Role
from greenroom.web.pages.rendering import environment
from greenroom.web.pages.request import PageFrame, PageRequest


class TourStep(NamedTuple):
    """`path` is below that of a room when it begins with a dot."""

    path: str
    title: str
    text: str
    role: Role = Role.VIEWER


TOUR = (
    TourStep(
        "/rooms",
        "Is everything all right?",
        "All your rooms, live: how full they are and how many people are waiting. Rooms that need"
        " you come first.",
    ),
    TourStep(
        "./live",
        "What can I change now?",
        "Run the sale from here. See what's holding people back, and act on it. You confirm every"
        " action, and can undo most of them.",
    ),
    TourStep(
        "./dry-run",
        "What will happen on Friday?",
        "Enter the crowd you expect and see how long people would wait, and what different limits"
        " would do.",
        Role.OPERATOR,
    ),
    TourStep(
        "./analytics",
        "What happened?",
        "Any span of time: drag over a chart to look closer, compare with an earlier time, download"
        " what you see.",
    ),
)


class ShownStep(NamedTuple):
    number: int
    of: int
    title: str
    text: str
    next: str
    end: str


def tour_of(page: Any) -> ShownStep | None:
    wanted = page.query("tour")
    steps = [step for step in TOUR if page.person.may(step.role)]
    if not page.session or wanted not in {str(number) for number in range(1, len(steps) + 1)}:
        return None
    room = next(
        iter(sorted(page.person.rooms(page.known), key=lambda entry: entry.record.name)), None
    )
    if room is None:
        return None
    number = int(wanted)
    base = f"/zones/{room.parent}/rooms/{room.id}"
    paths = [step.path.replace(".", base, 1) for step in steps]
    if page.request.url.path.removeprefix(page.prefix) != paths[number - 1]:
        return None
    step = steps[number - 1]
    following = page.url(paths[number], tour=str(number + 1)) if number < len(steps) else ""
    return ShownStep(
        number, len(steps), step.title, step.text, following, page.url(paths[number - 1])
    )


@cache
def page_frame() -> PageFrame:
    shared = {
        "assets": installed_assets(),
        "room_tabs_of": ROOM_TABS,
        "current": current,
        "notice_of": _notice,
    }
    return PageFrame(environment(PACKAGES, shared), _values, _undo_number)


def _values(page: PageRequest) -> Mapping[str, Any]:
    return {
        "navigation": visible(page.person),
        "tour": tour_of(page),
        "last_change": offered(page),
    }


def _notice(page: PageRequest) -> str:
    """The notice, with the name of the room where one was created or saved."""
    word = page.query("notice") if page.request.method == "GET" else ""
    room = page.known.rooms.get(page.request.path_params.get("room_id", ""))
    if word in NAMED and room and page.person.sees(room.parent) and not _below_room(page):
        return NAMED[word].format(name=room.record.name)
    return NOTICES.get(word, "")


def _below_room(page: PageRequest) -> bool:
    return not page.request.url.path.endswith(f"/rooms/{page.request.path_params['room_id']}")


def _undo_number(page: PageRequest, notice: str) -> str:
    return number_of_change(page.config, page.person, notice, page.known.revision)
