"""What is around every page: layout, navigation, notices, tour, and the offer to undo."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from greenroom.configuration.dashboard.undo import number_of_change, offered
from greenroom.dashboard.assets import installed_assets
from greenroom.dashboard.navigation import NAMED, NOTICES, ROOM_TABS, current, visible
from greenroom.dashboard.slices import PACKAGES
from greenroom.dashboard.tour import tour_of
from greenroom.web.pages.rendering import environment
from greenroom.web.pages.request import PageFrame, PageRequest


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
    """Names the room of the page that was created or saved."""
    word = page.query("notice") if page.request.method == "GET" else ""
    room = page.known.rooms.get(page.request.path_params.get("room_id", ""))
    if word in NAMED and room and page.person.sees(room.parent) and not _below_room(page):
        return NAMED[word].format(name=room.record.name)
    return NOTICES.get(word, "")


def _below_room(page: PageRequest) -> bool:
    return not page.request.url.path.endswith(f"/rooms/{page.request.path_params['room_id']}")


def _undo_number(page: PageRequest, notice: str) -> str:
    return number_of_change(page.config, page.person, notice, page.known.revision)
