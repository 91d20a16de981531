"""Data centers: which are silent, and giving one up. An extension: Cloudflare has no such calls."""

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration import data_centers
from greenroom.configuration.dependencies import WithConfig
from greenroom.web.dependencies import Editor
from greenroom.web.envelope import answered
from greenroom.web.openapi import told
from greenroom.web.routing import Router

router = Router(tags=["data centers"], prefix="/accounts/{account_id}/data_centers")
log = structlog.get_logger("greenroom.api")


@router.get("", **told("[DataCenter]", may="read"))
async def list_data_centers(request: Request, account_id: str) -> Response:
    """List the data centers that share the rooms; ask the process that is the coordinator to see
    which are silent.
    """
    del account_id  # there is one, and May has looked at it
    return answered(data_centers.listed(request.app.state.observed.state()))


@router.post("/{data_center}/give_up", **told("DataCenter", change=True))
async def give_up(
    caller: Editor,
    config_service: WithConfig,
    request: Request,
    account_id: str,
    data_center: str,
) -> Response:
    """Give up a data center in which nothing runs any more: others get its units when its last
    session must have ended.
    """
    del account_id
    known = request.app.state
    found = await data_centers.give_up(known.data_centers, known.observed.state(), data_center)
    log.warning("data_center_given_up", data_center=data_center, author=caller.author)
    await run_in_threadpool(data_centers.noted, config_service, caller.author, found)
    return answered(found)
