"""The router of the API: a call is a function whose parameters declare where values come from.

    router = Router(tags=["events"], prefix="/zones/{zone_id}/events")

    @router.get("/{event_id}", **documented("Event", may="read"))
    def get_event(config_service: WithConfig, zone_id: str, event_id: str, times: Annotated[str,
    Query(max_length=9)] = "utc") -> Response:

A parameter is the `Request`, a name in the path, `Annotated[..., Query(...)]`, or `Annotated[...,
Depends(function)]`. What fits none of these raises TypeError at import, as does a call without
exactly one `RouteGuard`. The order: guard, query string (every wrong value at once), body, function.
Functions run in a thread, because the configuration store blocks; `async def` in the event loop.
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from greenroom.web.api_schema import ApiSchema
from greenroom.web.api_shapes import Json
from greenroom.web.refusals import ApiFault, Code, Refused

# Threads of its own for what takes long: the threads that all requests share stay free.

T = TypeVar("T")

WAITING_MAX = 30
"""More are told to come again."""

RETRY_S = 5


class SlowWork:
    """Belongs to one event loop."""

    def __init__(self, at_once: int, waiting: int = WAITING_MAX) -> None:
        self._at_once = at_once
        self._most = at_once + waiting
        self._begun = 0
        self._limiter: CapacityLimiter | None = None  # needs a running event loop

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Raises Refused when too many wait already."""
        if self._begun >= self._most:
            raise Refused(
                ApiFault(
                    Code.SLOW_DOWN, "too many requests of this kind; try again in a few seconds"
                ),
                retry_after_s=RETRY_S,
            )
        self._limiter = self._limiter or CapacityLimiter(self._at_once)
        self._begun += 1
        try:
            return await to_thread.run_sync(partial(function, *arguments), limiter=self._limiter)
        finally:
            self._begun -= 1


Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

VALUE_SHOWN_MAX = 80

NO_SCHEMAS: Mapping[str, ApiSchema | Json] = MappingProxyType({})

_WHOLE = re.compile(r"-?[0-9]{1,20}")

_REASONS = {
    "Expected `int` >=": "must be at least",
    "Expected `int` <=": "must be at most",
    "Expected `int` that's": "must be",
    "Expected `int`": "must be a whole number",
    "Expected `bool`": "must be true or false",
    "Expected `str` of length >=": "must have a length of at least",
    "Expected `str` of length <=": "must have a length of at most",
    "Expected `array` of length <=": "must have a length of at most",
}
"""msgspec's words, and those of the fields of a body."""


class RouteGuard(ABC):
    """Runs in a thread, before the request is read."""

    @abstractmethod
    def __call__(self, request: Request) -> Any:
        """Usually returns the caller. Raises Refused."""


@dataclass(frozen=True, slots=True)
class Depends:
    """An `async def` function may read the body, and takes the Request."""

    function: Function


@dataclass(frozen=True, slots=True)
class Query:
    """`alias` is its name there, if Python cannot spell it; `expected` is what a pattern allows,
    as errors say it.
    """

    alias: str = ""
    expected: str = ""
    ge: int | None = None
    le: int | None = None
    multiple_of: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    description: str | None = None

    @property
    def meta(self) -> msgspec.Meta:
        return msgspec.Meta(
            **{
                name: getattr(self, name)
                for name in self.__slots__
                if name not in ("alias", "expected")
            }
        )


class QueryParameter:
    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        base, *marks = get_args(annotation)
        queries = [mark for mark in marks if isinstance(mark, Query)]
        kinds = [kind for kind in get_args(base) if kind is not type(None)]
        self.name = next((query.alias for query in queries if query.alias), name)
        self.default = default
        self.kind = kinds[0] if type(None) in get_args(base) else base
        self.many = get_origin(self.kind) is list
        for query in queries:
            self.kind = Annotated[self.kind, query.meta]
        item = get_args(_bare(self.kind))[0] if self.many else self.kind
        self._item = _bare(item)
        self._expected = next((query.expected for query in queries if query.expected), "")
        if "pattern" in msgspec.json.schema(item) and not self._expected:
            raise TypeError(f"{self.name} has a pattern and no words for it")

    def value(self, request: Request, faults: list[ApiFault]) -> Any:
        """The request's value or the default; adds a wrong value to the faults."""
        sent = request.query_params.getlist(self.name)
        if not sent:
            if self.default is inspect.Parameter.empty:
                faults.append(ApiFault(Code.BAD_QUERY, f"{self.name}: is required"))
            return self.default
        if self.many:
            sent = [part for text in sent for part in text.split(",")]
        found = [self._read(text) for text in sent]
        try:
            return msgspec.convert(found if self.many else found[-1], self.kind)
        except msgspec.ValidationError as error:
            shown = ", ".join(sent)[:VALUE_SHOWN_MAX]
            faults.append(
                ApiFault(Code.BAD_QUERY, f"{self.name}: {self._reason(str(error))}, not {shown!r}")
            )
            return self.default

    def _reason(self, error: str) -> str:
        if get_origin(self._item) is Literal:
            return f"must be one of {', '.join(filter(None, get_args(self._item)))}"
        told = error.partition(" - at ")[0].partition(", got")[0]
        if "matching regex" in told:
            return f"must be {self._expected}"
        for theirs, ours in _REASONS.items():
            told = told.replace(theirs, ours)
        return told

    def _read(self, text: str) -> Any:
        if self._item is int and _WHOLE.fullmatch(text):
            return int(text)
        return {"true": True, "false": False}.get(text, text) if self._item is bool else text

    def described(self) -> dict[str, Any]:
        schema = msgspec.json.schema(self.kind)
        for values in (schema, schema.get("items", {})):
            if "enum" in values:
                values["type"] = "string"
        required = self.default is inspect.Parameter.empty
        if not required and self.default is not None:
            schema["default"] = self.default
        shown = {"name": self.name, "in": "query", "required": required, "schema": schema}
        return shown | ({"description": schema["description"]} if "description" in schema else {})


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


@dataclass
class _Given:
    request: Request
    made: dict[Function, Any] = field(default_factory=dict)
    query: dict[QueryParameter, Any] = field(default_factory=dict)


class _Call:
    def __init__(self, function: Function, path_names: Iterable[str]) -> None:
        self.function = function
        self.waits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - a class's own
        )
        self.sources = {
            name: _source(parameter, path_names, function)
            for name, parameter in inspect.signature(function, eval_str=True).parameters.items()
        }

    def inner(self) -> "Iterator[_Call]":
        for source in self.sources.values():
            if isinstance(source, _Call):
                yield source
                yield from source.inner()

    def queries(self) -> Iterator[QueryParameter]:
        for source in self.sources.values():
            if isinstance(source, QueryParameter):
                yield source
            elif isinstance(source, _Call):
                yield from source.queries()

    def result(self, given: _Given) -> Any:
        """Each dependency runs once in a request."""
        made = given.made
        if self.function not in made:
            made[self.function] = self.function(
                **{name: _argument(source, given) for name, source in self.sources.items()}
            )
        return made[self.function]


_Source = type[Request] | str | QueryParameter | _Call


def _source(parameter: inspect.Parameter, path_names: Iterable[str], function: Function) -> _Source:
    annotation = parameter.annotation
    if annotation is Request:
        return Request
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    for mark in marks:
        if isinstance(mark, Depends):
            return _Call(mark.function, path_names)
    if any(isinstance(mark, Query) for mark in marks):
        return QueryParameter(parameter.name, annotation, parameter.default)
    if parameter.name in path_names:
        return parameter.name
    raise TypeError(
        f"{getattr(function, '__qualname__', function)}: {parameter.name} is neither in the path "
        "nor Query, Depends or Request"
    )


def _argument(source: _Source, given: _Given) -> Any:
    if isinstance(source, str):
        return given.request.path_params[source]
    if isinstance(source, QueryParameter):
        return given.query[source]
    return source.result(given) if isinstance(source, _Call) else given.request


class ApiRoute(Route):
    def __init__(
        self,
        method: str,
        path: str,
        function: Function,
        *,
        tags: Sequence[str] = (),
        guard: RouteGuard | None = None,
        responses: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        outbound: bool = False,
        known_only: bool = False,
    ) -> None:
        """`outbound`: the function waits for another server. `known_only`: other parameters in the
        query string are refused. Raises TypeError when a parameter has no source.
        """
        super().__init__(path, self.answer, methods=[method])
        self.methods = {method}  # HEAD is not offered
        self.function, self.tags, self.responses, self.body = (
            function,
            tuple(tags),
            responses or {},
            body,
        )
        self._call = _Call(function, self.param_convertors)
        calls = [*self._call.inner()]
        guards = {call.function for call in calls if isinstance(call.function, RouteGuard)} | (
            {guard} if guard else set()
        )
        if len(guards) != 1:
            raise TypeError(f"{method} {path} must have exactly one guard, not {len(guards)}")
        self.guard: RouteGuard = guards.pop()
        self.outbound, self.known_only = outbound, known_only
        self.queries = tuple(dict.fromkeys(self._call.queries()))
        self._reads: list[Callable[[Request], Awaitable[Any]]] = [
            *dict.fromkeys(call.function for call in calls if call.waits)
        ]

    async def answer(self, request: Request) -> Response:
        """The guard, the query, the body, the function. Raises Refused."""
        given = _Given(request, {self.guard: await run_in_threadpool(self.guard, request)})
        faults = self._unknown(request) if self.known_only else []
        given.query = {query: query.value(request, faults) for query in self.queries}
        if faults:
            raise Refused(*faults)
        for read in self._reads:
            given.made[read] = await read(request)
        if self.outbound:
            work: SlowWork = request.app.state.outbound
            answered: Response = await work.run(self._call.result, given)
            return answered
        done: Response = (
            await self._call.result(given)
            if self._call.waits
            else await run_in_threadpool(self._call.result, given)
        )
        return done

    def _unknown(self, request: Request) -> list[ApiFault]:
        known = [query.name for query in self.queries]
        return [
            ApiFault(
                Code.BAD_QUERY,
                f"{name[:VALUE_SHOWN_MAX]}: unknown parameter; known are {', '.join(known)}",
            )
            for name in dict.fromkeys(request.query_params)
            if name not in known
        ]


class Router:
    """Calls of one kind of thing, and by name the schemas of what they take and return."""

    def __init__(
        self,
        *,
        tags: Sequence[str],
        prefix: str = "",
        schemas: Mapping[str, ApiSchema | Json] = NO_SCHEMAS,
    ) -> None:
        self.tags = tuple(tags)
        self.prefix = prefix
        self.schemas = schemas
        self.routes: list[ApiRoute] = []

    def add(self, method: str, path: str, **keywords: Any) -> Callable[[F], F]:
        """`keywords` are those of ApiRoute."""

        def taken(function: F) -> F:
            self.routes.append(
                ApiRoute(method, self.prefix + path, function, tags=self.tags, **keywords)
            )
            return function

        return taken

    def get(self, path: str, **keywords: Any) -> Callable[[F], F]:
        return self.add("GET", path, **keywords)

    def post(self, path: str, **keywords: Any) -> Callable[[F], F]:
        return self.add("POST", path, **keywords)

    def put(self, path: str, **keywords: Any) -> Callable[[F], F]:
        return self.add("PUT", path, **keywords)

    def patch(self, path: str, **keywords: Any) -> Callable[[F], F]:
        return self.add("PATCH", path, **keywords)

    def delete(self, path: str, **keywords: Any) -> Callable[[F], F]:
        return self.add("DELETE", path, **keywords)
