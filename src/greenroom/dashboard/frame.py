"""What is around every page: layout, navigation, notices, tour, and the offer to undo."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from greenroom.configuration.dashboard.undo import number_of_change, offered
from greenroom.dashboard.assets import installed_assets
from greenroom.dashboard.navigation import NOTICES, ROOM_TABS, current, visible
from greenroom.dashboard.slices import PACKAGES
from greenroom.dashboard.tour import tour_of
from greenroom.web.pages.rendering import environment
from greenroom.web.pages.request import PageFrame, PageRequest


@cache
def page_frame() -> PageFrame:
    shared = {"assets": installed_assets(), "room_tabs_of": ROOM_TABS, "current": current}
    return PageFrame(environment(PACKAGES, shared), _values, _undo_number)


def _values(page: PageRequest) -> Mapping[str, Any]:
    return {
        "navigation": visible(page.person),
        "notices": NOTICES,
        "tour": tour_of(page),
        "last_change": offered(page),
    }


def _undo_number(page: PageRequest, notice: str) -> str:
    return number_of_change(page.config, page.person, notice, page.known.revision)
