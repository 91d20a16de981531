import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog
from graphql import ExecutionResult, GraphQLError, execute_sync, validate
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from greenroom.analytics.graphql.datasets import Dataset, DatasetAnswer
from greenroom.analytics.graphql.lenient import (
    check_size,
    chosen,
    read,
    without_variables,
)
from greenroom.analytics.graphql.resolve import Context, make_schema
from greenroom.errors import StorageFailed
from greenroom.model.clock import Clock
from greenroom.model.fields import with_unit
from greenroom.web.authenticator import Authenticator, Caller
from greenroom.web.dependencies import JsonBody, credentials_of
from greenroom.web.envelope import CALLER, JSON
from greenroom.web.refusals import CODES, Code, Refused
from greenroom.web.stores import ConfigStore

BODY_MAX = 1 << 20

ANSWER_S = 1.8

AT_ONCE = 2

_RUNNING = threading.BoundedSemaphore(AT_ONCE)

WAITING_MAX = 100
"""Each up to BODY_MAX bytes; more are refused with a retry time."""

CALLS_MAX, CALLS_MS = 300, 300_000
"""Per token, as published."""

log = structlog.get_logger(__name__)


class CallBudget:
    def __init__(self, clock: Clock) -> None:
        self._now_ms = clock.now_ms
        self._windows: dict[str, tuple[int, int]] = {}
        self._guard = threading.Lock()

    def take(self, token_id: str) -> int:
        """Seconds until the token may query again, or 0."""
        now_ms = self._now_ms()
        with self._guard:
            began_ms, count = self._windows.get(token_id, (now_ms, 0))
            if not 0 <= now_ms - began_ms < CALLS_MS:
                began_ms, count = now_ms, 0
            if count >= CALLS_MAX:
                return -(-(began_ms + CALLS_MS - now_ms) // 1_000)
            self._windows[token_id] = began_ms, count + 1
        return 0


class GraphqlEndpoint:
    def __init__(
        self,
        store: ConfigStore,
        clock: Clock,
        datasets: Sequence[Dataset],
        answers: Mapping[str, DatasetAnswer],
    ) -> None:
        self._store = store
        self._answers = answers
        self._schema = make_schema(datasets)
        self._budget = CallBudget(clock)
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def __call__(self, request: Request) -> Response:
        try:
            caller = await run_in_threadpool(_caller, request)
        except Refused as refused:
            return _failed(str(refused), refused.status, code="authz")
        wait_s = self._budget.take(caller.token.id)
        if wait_s:
            message = (
                f"rate limit budget exhausted: {CALLS_MAX} queries in 5 minutes; try again after"
                f" {with_unit(wait_s, 'seconds')}"
            )
            return _failed(
                message, CODES[Code.SLOW_DOWN].status, headers={"Retry-After": str(wait_s)}
            )
        if self._waiting >= WAITING_MAX:
            message = f"{WAITING_MAX} queries are waiting for an answer; try again in a second"
            return _failed(message, CODES[Code.SLOW_DOWN].status, headers={"Retry-After": "1"})
        self._waiting += 1
        try:
            query, variables, name = _parsed(await JsonBody(BODY_MAX)(request))
            await self._turn.acquire()
        except Refused as refused:
            return _failed(str(refused), refused.status)
        except ValueError as error:
            return _failed(str(error), 400)
        finally:
            self._waiting -= 1
        try:
            return await asyncio.to_thread(self._answer, caller, query, variables, name)
        finally:
            self._turn.release()

    def ask(self, caller: Caller, body: bytes) -> Response:
        """Blocks: call it in one of few threads (`Threads.QUERIES`), or waiting queries take all of
        them.
        """
        if self._budget.take(caller.token.id):
            return _failed(
                f"{CALLS_MAX} queries in 5 minutes are enough; try again later",
                CODES[Code.SLOW_DOWN].status,
            )
        try:
            query, variables, name = _parsed(body)
        except ValueError as error:
            return _failed(str(error), 400)
        return self._answer(caller, query, variables, name)

    def _answer(
        self, caller: Caller, query: str, variables: Mapping[str, Any], name: str | None
    ) -> Response:
        """Runs in a worker thread, and waits while AT_ONCE queries run."""
        with _RUNNING:
            return self._result(caller, query, variables, name)

    def _result(
        self, caller: Caller, query: str, variables: Mapping[str, Any], name: str | None
    ) -> Response:
        try:
            context = Context(
                caller, self._store.read(), self._answers, time.monotonic() + ANSWER_S
            )
            document = chosen(read(query), name)
            check_size(document)
            document = without_variables(self._schema, document, variables)
            errors = validate(self._schema, document, max_errors=20)
            result = (
                ExecutionResult(None, errors)
                if errors
                else execute_sync(self._schema, document, context_value=context)
            )
        except GraphQLError as error:
            return _errors([error])
        except RecursionError:
            return _errors([GraphQLError("the query is nested too deeply")])
        except StorageFailed:
            return _failed(
                "the configuration cannot be read at the moment", CODES[Code.UNAVAILABLE].status
            )
        if result.errors:
            return _errors(result.errors)
        body: dict[str, Any] = {"data": result.data, "errors": None}
        if context.incomplete_minutes or context.generated_minutes:
            notes = {
                "incompleteMinutes": context.incomplete_minutes,
                "generatedMinutes": context.generated_minutes,
            }
            body["extensions"] = {"greenroom": notes}
        return Response(msgspec.json.encode(body), media_type=JSON)


def _caller(request: Request) -> Caller:
    authenticator: Authenticator = request.app.state.authenticator
    caller = authenticator.open(
        credentials_of(request), request.client.host if request.client else ""
    )
    request.scope[CALLER] = caller.author
    return caller


def _parsed(body: bytes) -> tuple[str, dict[str, Any], str | None]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("query"), str):
        raise ValueError("the body must be a JSON object with the text of a query in `query`")
    variables, name = document.get("variables"), document.get("operationName")
    if not isinstance(variables, dict | None):
        raise ValueError("`variables` must be an object")
    if not isinstance(name, str | None):
        raise ValueError("`operationName` must be a string")
    return document["query"], variables or {}, name


def _errors(found: Sequence[GraphQLError]) -> Response:
    """Status 200, because clients look at `errors`."""
    for error in found:
        if error.original_error is not None and not isinstance(
            error.original_error, (GraphQLError, ValueError)
        ):
            log.error(
                "graphql_query_failed",
                reason=str(error.original_error),
                exc_info=error.original_error,
            )
    shown = [
        _shown(_message(error), error.path, (error.extensions or {}).get("code", ""))
        for error in found
    ]
    return Response(msgspec.json.encode({"data": None, "errors": shown}), media_type=JSON)


def _message(error: GraphQLError) -> str:
    known = error.original_error is None or isinstance(
        error.original_error, (GraphQLError, ValueError)
    )
    return error.message if known else "internal error; the log says why"


def _failed(
    message: str, status: int, *, code: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    body = {"data": None, "errors": [_shown(message, None, code)]}
    return Response(msgspec.json.encode(body), status, headers=dict(headers or {}), media_type=JSON)


def _shown(message: str, path: Sequence[str | int] | None, code: str) -> dict[str, Any]:
    extensions = {"timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    if code:
        extensions["code"] = code
    return {
        "message": message,
        "path": None if path is None else [str(part) for part in path],
        "extensions": extensions,
    }
