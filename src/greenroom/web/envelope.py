"""The published envelope of responses: success or errors around a result."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.web.refusals import (
    CODES,
    ApiFault,
    Code,
    Refused,
)

JSON = "application/json"


NOTICE = 1000


def answered(
    result: Any, info: Mapping[str, Any] | None = None, messages: Sequence[str] = ()
) -> Response:
    """`info` is the `result_info` of lists; `messages` are for people."""
    notices = [{"code": NOTICE, "message": message} for message in messages]
    body = {"success": True, "errors": [], "messages": notices, "result": result}
    return Response(
        msgspec.json.encode(body if info is None else body | {"result_info": info}), media_type=JSON
    )


def answered_bare() -> Response:
    return Response(
        msgspec.json.encode({"success": True, "errors": [], "messages": []}), media_type=JSON
    )


def refused(refusal: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """The status is never 2xx, because clients look at nothing else."""
    body = {
        "success": False,
        "errors": [_error(fault) for fault in refusal.faults],
        "messages": [],
        "result": None,
    }
    return Response(
        msgspec.json.encode(body), refusal.status, headers=dict(headers or {}), media_type=JSON
    )


def _error(fault: ApiFault) -> dict[str, Any]:
    error: dict[str, Any] = {"code": int(fault.code), "message": fault.message}
    return error | ({"source": {"pointer": fault.pointer}} if fault.pointer else {})


def broken(error: Exception) -> Refused:
    if isinstance(error, (StorageFailed, InvalidConfig)):
        return Refused(
            ApiFault(
                Code.UNAVAILABLE,
                "the configuration store is not available at the moment; nothing was changed",
            )
        )
    return Refused(
        ApiFault(
            Code.UNEXPECTED, "internal error; the log has it under the CF-Ray of this response"
        )
    )


def no_route(status: int, method: str, path: str) -> Refused:
    if status == CODES[Code.NO_METHOD].status:
        return Refused(ApiFault(Code.NO_METHOD, f"Method {method} is not available for that URI."))
    return Refused(
        ApiFault(
            Code.NO_OBJECT,
            f"Could not route to {path[:200]}, perhaps your object identifier is invalid?",
        ),
        ApiFault(Code.NO_ROUTE, "No route for that URI"),
    )
