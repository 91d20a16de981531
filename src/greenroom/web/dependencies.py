"""Dependencies of API calls: the caller, the JSON body, and pagination."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from greenroom.model.zone import ACCOUNT_ID
from greenroom.web.authenticator import Authenticator, Caller, Credentials
from greenroom.web.envelope import CALLER, answered
from greenroom.web.refusals import ApiFault, Code, Refused, not_found
from greenroom.web.routing import (
    ApiRoute,
    Depends,
    Query,
    RouteGuard,
)

BODY_MAX = 8 << 20
"""A page of one megabyte in which every character is escaped."""

ITEMS_BODY_MAX = 32 << 20
"""The largest list with a comment on each item."""

PER_PAGE = 25
PER_PAGE_MAX = 1_000
PAGE_MAX = 1_000_000_000

T = TypeVar("T")


def check_account(account_id: str) -> None:
    """Raises Refused for any account but the one there is."""
    if account_id != ACCOUNT_ID:
        raise not_found("account", account_id)


class May(RouteGuard):
    """Without a zone in the path, a token for single zones is refused unless `filtered`: then the
    answer shows only those zones. The path's account must exist.
    """

    def __init__(self, scope: str, filtered: bool = False) -> None:
        self.scope = scope
        self.filtered = filtered

    def __call__(self, request: Request) -> Caller:
        authenticator: Authenticator = request.app.state.authenticator
        client = request.client.host if request.client else ""
        caller = authenticator.open(credentials_of(request), client)
        request.scope[CALLER] = caller.author
        zone_id = request.path_params.get("zone_id")
        caller.require(
            self.scope,
            caller.token.zone_ids[0] if self.filtered and caller.token.zone_ids else zone_id,
        )
        if "account_id" in request.path_params:
            check_account(request.path_params["account_id"])
        return caller


def permission_of(route: ApiRoute) -> May:
    if not isinstance(route.guard, May):
        raise TypeError(
            f"the guard of {route.path} must be a May, not {type(route.guard).__name__}"
        )
    return route.guard


FilteredReader = Annotated[Caller, Depends(May("read", filtered=True))]
AnyCaller = Annotated[Caller, Depends(May("any", filtered=True))]
Editor = Annotated[Caller, Depends(May("edit"))]


def credentials_of(request: Request) -> Credentials | Refused:
    """A bearer token, or the older pair of e-mail and key."""
    authorization = request.headers.get("authorization")
    key, email = request.headers.get("x-auth-key"), request.headers.get("x-auth-email")
    if authorization is not None:
        word, _, secret = authorization.partition(" ")
        if word.lower() != "bearer" or not secret.strip():
            return Refused(
                ApiFault(
                    Code.BAD_HEADERS,
                    "Invalid request headers: Authorization must be `Bearer TOKEN`",
                )
            )
        return Credentials(secret.strip())
    if key and email:
        return Credentials(key, email)
    return Refused(
        ApiFault(
            Code.NO_CREDENTIALS, "Missing Authorization header, or X-Auth-Key and X-Auth-Email"
        )
    )


class JsonBody:
    def __init__(self, largest: int) -> None:
        self.largest = largest

    async def __call__(self, request: Request) -> bytes:
        """Raises Refused as soon as more bytes arrive or are announced."""
        large = ApiFault(Code.TOO_LARGE, f"the body is larger than {self.largest} bytes")
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self.largest:
            raise Refused(large)
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self.largest:
                raise Refused(large)
            parts.append(part)
        return b"".join(parts)


def parsed(body: bytes) -> Any:
    """Strict JSON, without characters that no database can keep."""
    try:
        document = msgspec.json.decode(body)
        has_nul = b"\\u0000" in body and _has_nul(document)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(ApiFault(Code.BAD_BODY, f"the body is not JSON: {error}")) from None
    except RecursionError:
        raise Refused(ApiFault(Code.BAD_BODY, "the body is nested too deeply")) from None
    if has_nul:
        raise Refused(ApiFault(Code.BAD_BODY, "the body contains the character U+0000"))
    return document


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(map(_has_nul, value.keys())) or any(map(_has_nul, value.values()))
    return isinstance(value, list) and any(map(_has_nul, value))


def _document(body: Annotated[bytes, Depends(JsonBody(BODY_MAX))]) -> Any:
    return parsed(body)


def _items(body: Annotated[bytes, Depends(JsonBody(ITEMS_BODY_MAX))]) -> Any:
    return parsed(body)


def _named_items(body: Annotated[bytes, Depends(JsonBody(ITEMS_BODY_MAX))]) -> Any:
    return parsed(body) if body.strip() else {}


NamedItems = Annotated[Any, Depends(_named_items)]
"""Some clients send no body with a DELETE that names nothing."""
Document = Annotated[Any, Depends(_document)]
JsonItems = Annotated[Any, Depends(_items)]


class PageQuery:
    """Pages after the last one are empty: clients look for that."""

    def __init__(
        self,
        page: Annotated[
            int, Query(ge=1, le=PAGE_MAX, description="Page number, starting at 1.")
        ] = 1,
        per_page: Annotated[
            int, Query(ge=5, le=PER_PAGE_MAX, multiple_of=5, description="Entries per page.")
        ] = PER_PAGE,
    ) -> None:
        self.page = page
        self.per_page = per_page

    def cut(self, everything: Sequence[T]) -> tuple[Sequence[T], dict[str, int]]:
        begin = (self.page - 1) * self.per_page
        shown = everything[begin : begin + self.per_page]
        return shown, self.info(len(shown), len(everything))

    def answer(self, everything: Sequence[T], show: Callable[[T], Any]) -> Response:
        shown, info = self.cut(everything)
        return answered([show(each) for each in shown], info)

    def info(self, count: int, total: int) -> dict[str, int]:
        return page_info(self.page, self.per_page, count, total)


def page_info(page: int, per_page: int, count: int, total: int) -> dict[str, int]:
    return {
        "page": page,
        "per_page": per_page,
        "count": count,
        "total_count": total,
        "total_pages": -(-total // per_page),
    }


Paged = Annotated[PageQuery, Depends(PageQuery)]
