"""How calls of the API get their arguments, and in which order they are looked at."""

import asyncio
from typing import Annotated, Any, Literal

import httpx
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from greenroom.api.management import HANDLERS
from greenroom.web.openapi import documented
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.routing import (
    ApiRoute,
    Depends,
    Query,
    RouteGuard,
    Router,
)

Line = Annotated[str, msgspec.Meta(pattern="^[^:]+:")]


class Doorman(RouteGuard):
    """Lets everybody in who asks nicely, and notes what was called before."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def __call__(self, request: Request) -> str:
        self.calls.append("guard")
        if "nicely" not in request.headers:
            raise Refused(ApiFault(Code.DENIED, "no"))
        return "caller"


class World:
    """A router, a guard, and what was called in which order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.guard = Doorman(self.calls)
        self.router = Router(tags=["tests"], prefix="/tests/{test_id}")

    def ask(self, method: str = "GET", path: str = "/tests/7", *, nicely: bool = True) -> Any:
        app = Starlette(routes=list(self.router.routes), exception_handlers=HANDLERS)

        async def asked() -> Any:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://testserver"
            ) as client:
                headers = {"nicely": "1"} if nicely else {}
                return await client.request(
                    method, path, headers=headers, content=b"body" if method == "POST" else None
                )

        return asyncio.run(asked())


@pytest.fixture
def world() -> World:
    return World()


def told_by(*values: object) -> Response:
    return PlainTextResponse(" ".join(map(repr, values)))


def test_arguments_come_from_the_path_the_query_the_request_and_dependencies(world) -> None:
    @world.router.get("", guard=world.guard)
    def call(
        test_id: str,
        request: Request,
        inside: Annotated[str, Depends(lambda: "inside")],
        size: Annotated[int, Query(ge=1, le=9)] = 3,
        kind: Annotated[list[Literal["a", "b"]] | None, Query(alias="kind.of")] = None,
        loud: Annotated[bool, Query()] = False,
    ) -> Response:
        return told_by(test_id, request.method, inside, size, kind, loud)

    assert world.ask().text == "'7' 'GET' 'inside' 3 None False"
    assert (
        world.ask(path="/tests/8?size=4&kind.of=a&kind.of=b&loud=true").text
        == "'8' 'GET' 'inside' 4 ['a', 'b'] True"
    )
    assert (
        world.ask(path="/tests/8?size=4&size=5&other=x").text == "'8' 'GET' 'inside' 5 None False"
    )
    assert world.ask("HEAD").status_code == 405


def test_every_wrong_value_of_the_query_is_named_at_once_with_what_was_sent(world) -> None:
    @world.router.get("", guard=world.guard)
    def call(
        url: Annotated[str, Query(min_length=1)],
        size: Annotated[int, Query(ge=5, le=9, multiple_of=2)] = 6,
        lines: Annotated[list[Line] | None, Query(max_length=2, expected="`Name: value`")] = None,
        loud: Annotated[bool, Query()] = False,
        name: Annotated[str, Query(pattern="^[a-z]*$", expected="small letters")] = "",
    ) -> Response:
        raise AssertionError("never called")

    reply = world.ask(path="/tests/7?size=7&lines=a&loud=1")
    assert reply.status_code == 400
    assert [error["message"] for error in reply.json()["errors"]] == [
        "url: is required",
        "size: must be a multiple of 2, not '7'",
        "lines: must be `Name: value`, not 'a'",
        "loud: must be true or false, not '1'",
    ]
    for wrong, reason in (
        ("size=4", "size: must be at least 5, not '4'"),
        ("size=10", "size: must be at most 9, not '10'"),
        ("size=six", "size: must be a whole number, not 'six'"),
        ("name=1", "name: must be small letters, not '1'"),
        ("lines=a:,b:,c:", "lines: must have a length of at most 2, not 'a:, b:, c:'"),
    ):
        (error,) = world.ask(path=f"/tests/7?url=x&{wrong}").json()["errors"]
        assert error["message"] == reason
    for text in ("4", "10", "6.0", "6e0", "+6", " 6", "", "0x6", "1" * 5_000):
        assert world.ask(path=f"/tests/7?url=x&size={text}").status_code == 400, text
    assert (
        len(world.ask(path=f"/tests/7?url=x&size={'1' * 5_000}").json()["errors"][0]["message"])
        < 200
    )


def test_the_guard_is_asked_before_the_query_and_the_query_is_read_before_the_body(world) -> None:
    async def body(request: Request) -> bytes:
        world.calls.append("body")
        return await request.body()

    def document(content: Annotated[bytes, Depends(body)]) -> str:
        world.calls.append("document")
        return content.decode()

    @world.router.post("", guard=world.guard)
    def call(
        first: Annotated[str, Depends(document)],
        second: Annotated[str, Depends(document)],
        size: Annotated[int, Query()] = 1,
    ) -> Response:
        return told_by(first, second, size)

    assert (world.ask("POST", "/tests/7?size=x", nicely=False).status_code, world.calls) == (
        403,
        ["guard"],
    )
    assert (world.ask("POST", "/tests/7?size=x").status_code, world.calls) == (
        400,
        ["guard", "guard"],
    )
    world.calls.clear()
    assert (world.ask("POST").text, world.calls) == (
        "'body' 'body' 1",
        ["guard", "body", "document"],
    )


def test_a_guard_among_the_parameters_is_asked_once_and_its_value_is_the_argument(world) -> None:
    @world.router.get("")
    async def call(caller: Annotated[str, Depends(world.guard)]) -> Response:
        return told_by(caller)

    assert (world.ask().text, world.calls) == ("'caller'", ["guard"])


def test_a_call_without_exactly_one_guard_cannot_be_written_down(world) -> None:
    def call() -> Response:
        return told_by()

    def guarded(caller: Annotated[str, Depends(world.guard)]) -> Response:
        return told_by(caller)

    with pytest.raises(TypeError, match="GET /x must have exactly one guard, not 0"):
        ApiRoute("GET", "/x", call)
    with pytest.raises(TypeError, match="exactly one guard, not 2"):
        ApiRoute("GET", "/x", guarded, **documented("Room", may="read"))


def test_a_parameter_without_a_source_cannot_be_written_down(world) -> None:
    def call(other_id: str) -> Response:
        return told_by(other_id)

    with pytest.raises(
        TypeError, match="other_id is neither in the path nor Query, Depends or Request"
    ):
        world.router.get("", guard=world.guard)(call)


@pytest.mark.parametrize(
    "kind", [Annotated[str, Query(pattern="^x")], Annotated[list[Line], Query()]]
)
def test_a_pattern_without_words_for_errors_cannot_be_written_down(world, kind) -> None:
    def call(name: kind = "x") -> Response:  # type: ignore[valid-type]
        return told_by(name)

    with pytest.raises(TypeError, match="name has a pattern and no words for it"):
        world.router.get("", guard=world.guard)(call)


def test_the_document_describes_the_bounds_that_are_checked(world) -> None:
    @world.router.get("", guard=world.guard)
    def call(
        size: Annotated[int, Query(ge=1, description="How many.")] = 3,
        kind: Annotated[list[Literal["a"]] | None, Query(max_length=2)] = None,
        name: Annotated[str, Query(pattern="^x", expected="x")] = ...,  # type: ignore[assignment]
    ) -> Response:
        return told_by(size, kind, name)

    shown = [query.described() for query in world.router.routes[0].queries]
    assert shown[0] == {
        "name": "size",
        "in": "query",
        "required": False,
        "description": "How many.",
        "schema": {"type": "integer", "minimum": 1, "description": "How many.", "default": 3},
    }
    assert shown[1]["schema"] == {
        "type": "array",
        "maxItems": 2,
        "items": {"type": "string", "enum": ["a"]},
    }
