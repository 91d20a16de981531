"""Explains a request with the running greenroom. An extension: Cloudflare has no such call."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from greenroom.configuration.explain_request import (
    CLIENT,
    CLIENT_MAX,
    HEADER_MAX,
    HEADERS_MAX,
    METHOD_MAX,
    URL_MAX,
    ExplainRequest,
    Explains,
    as_plain,
    explanation_schemas,
)
from greenroom.web.envelope import answered
from greenroom.web.openapi import documented
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.routing import Query, Router

router = Router(tags=["route tester"], schemas=explanation_schemas("#/components/schemas/{name}"))

HeaderLine = Annotated[str, msgspec.Meta(pattern=r"^[^:]+:", max_length=HEADER_MAX)]


@router.get("/explain", **documented("Explanation", may="read"))
async def explain_request(
    request: Request,
    url: Annotated[
        str,
        Query(
            min_length=1,
            max_length=URL_MAX,
            description="URL of the request, as a visitor would enter it.",
        ),
    ],
    method: Annotated[
        str, Query(min_length=1, max_length=METHOD_MAX, description="The HTTP method.")
    ] = "GET",
    header: Annotated[
        list[HeaderLine] | None,
        Query(
            max_length=HEADERS_MAX,
            expected="`Name: value`",
            description="Headers, each as `Name: value`.",
        ),
    ] = None,
    client: Annotated[
        str, Query(min_length=1, max_length=CLIENT_MAX, description="The visitor's address.")
    ] = CLIENT,
) -> Response:
    """Explain a request: which room covers it and why, which rule matches, which settings apply,
    and what the visitor would get.
    """
    explains: Explains | None = request.app.state.explains
    if explains is None:
        raise Refused(ApiFault(Code.UNAVAILABLE, "no gateway is running"))
    pairs = (line.partition(":") for line in header or ())
    asked = ExplainRequest(
        url, method, tuple((name.strip(), value.strip()) for name, _, value in pairs), client
    )
    return answered(as_plain(explains.explain(asked)))
