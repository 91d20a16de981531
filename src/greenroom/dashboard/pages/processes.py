"""What is wrong with the configuration, and how the processes, the store and the data centers are doing."""

from typing import NamedTuple

from starlette.responses import Response

from greenroom.dashboard.request import PageRequest
from greenroom.dashboard.routing import view


class ConfigProblem(NamedTuple):
    """One thing that keeps a configuration from being used: where it is written, the field, and what is wrong."""

    source: str
    pointer: str
    reason: str


def problems(page: PageRequest) -> Response:
    """Everything that keeps the newest configuration from running."""
    state = page.state
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
    """The process that answers, and what it knows of the others."""
    state = page.state
    sync = state.sync
    silent = sorted(sync.silent_s.items()) if sync else []
    return page.render(
        "processes.html", state=state, sync=sync, silent=silent, gateway=sorted(state.gateway)
    )


PAGES = (view("/problems", problems), view("/processes", processes))
