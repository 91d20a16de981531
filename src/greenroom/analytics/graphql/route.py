"""The routes of GraphQL. The first query imports its library (0.25 s)."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from greenroom.analytics.graphql.datasets import Dataset, DatasetAnswer
from greenroom.model.clock import Clock
from greenroom.web.stores import ConfigStore

if TYPE_CHECKING:
    from greenroom.analytics.graphql.endpoint import GraphqlEndpoint

PATH = "/graphql"


def graphql_routes(
    store: ConfigStore,
    clock: Clock,
    datasets: Sequence[Dataset],
    answers: Mapping[str, DatasetAnswer],
) -> list[Route]:
    making = asyncio.Lock()
    made: list[GraphqlEndpoint] = []

    def make() -> None:
        from greenroom.analytics.graphql.endpoint import GraphqlEndpoint

        made.append(GraphqlEndpoint(store, clock, datasets, answers))

    async def graphql(request: Request) -> Response:
        async with making:
            if not made:
                await asyncio.to_thread(make)
        return await made[0](request)

    return [Route(PATH, graphql, methods=["POST"]), Route(PATH, explorer, methods=["GET"])]


async def explorer(request: Request) -> Response:
    """By a path that works behind a proxy."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("../../explorer", 303, headers={"Vary": "Accept"})
    raise HTTPException(405)
