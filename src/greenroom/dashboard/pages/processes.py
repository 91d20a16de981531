"""What is wrong with the configuration, and how the processes, the store and the data centers are
doing.
"""

from typing import NamedTuple

import structlog
from anyio import from_thread
from starlette.responses import Response

from greenroom.configuration import data_centers
from greenroom.configuration.dashboard.parts import LIVE, process_state
from greenroom.model.account import Role
from greenroom.web.pages.forms import Faults
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import ApiFault, Code, Refused, not_found

log = structlog.get_logger("greenroom.dashboard")


class ConfigProblem(NamedTuple):
    source: str
    pointer: str
    reason: str


def problems(page: PageRequest) -> Response:
    state = process_state(page)
    found = [
        ConfigProblem(
            f"{state.config.file}, line {one.line}" if one.line else state.config.file,
            one.pointer,
            one.reason,
        )
        for one in state.config.problems
    ]
    found += [
        ConfigProblem(f"{state.store.name}, revision {state.store.tried}", one.pointer, one.reason)
        for one in state.store.problems
    ]
    unusable = [ConfigProblem("in use", one.pointer, one.reason) for one in state.faults]
    return page.render("problems.html", found=found, unusable=unusable, state=state)


def processes(page: PageRequest) -> Response:
    state = process_state(page)
    return page.render(
        "processes.html",
        state=state,
        sync=state.sync,
        centers=data_centers.listed(state),
        gateway=sorted(state.gateway),
        operator=Role.OPERATOR,
    )


def ask(page: PageRequest) -> Response:
    return _asked(page, Faults())


def give_up(page: PageRequest) -> Response:
    name, observed = page.path("name"), page.parts[LIVE].observed
    try:
        if not page.field("sure"):
            raise Refused(
                ApiFault(Code.INVALID, "confirm that nothing runs there any more", "/sure")
            )
        found = from_thread.run(data_centers.give_up, observed, name)
    except Refused as refused:
        if refused.status == 404:
            raise
        return _asked(page, Faults(refused.faults), status=refused.status)
    log.warning("data_center_given_up", data_center=name, author=page.person.author)
    data_centers.noted(page.config, page.person.author, found)
    return page.redirect("/processes", notice="given-up")


def _asked(page: PageRequest, faults: Faults, status: int = 200) -> Response:
    name, state = page.path("name"), process_state(page)
    found = next((one for one in data_centers.listed(state) if one["name"] == name), None)
    if found is None:
        raise not_found("data center", name)
    after_s = data_centers.longest_ms(room.room for room in state.rooms) / 1000
    return page.render("give_up.html", status, center=found, after_s=after_s, faults=faults)


PAGES = (
    view("/problems", problems),
    view("/processes", processes),
    view("/processes/{name}/give-up", ask, Role.OPERATOR),
    action("/processes/{name}/give-up", give_up),
)
