"""The middleware as a server calls it, without sockets: a request becomes a scope or an environ,
what is sent becomes what a visitor is given.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from plain_front_end import Given, Origin, Pairs

from greenroom.asgi import WaitingRoom as AsgiWaitingRoom
from greenroom.decision.service import DecisionService
from greenroom.model.answer import Answer
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.runtime.embedded import AppRequest, AppRequests, Passed
from greenroom.wsgi import WaitingRoom as WsgiWaitingRoom

EMPTY = {"data": ".", "rooms": []}
NAME = b"__cfwaitingroom="


class Inside:
    """The part of `Embedded` that requests meet, around the decisions of a test."""

    def __init__(
        self, decisions: DecisionService, errors: list[BaseException], policy: ForwardedPolicy
    ) -> None:
        self.own_requests = AppRequests(decisions, policy, errors.append)

    async def decide(self, request: AppRequest) -> Passed | Answer:
        return await self.own_requests.decide(request)


class InsideThread(Inside):
    def decide(self, request: AppRequest) -> Passed | Answer:  # type: ignore[override]
        found: list[Passed | Answer] = []
        self.own_requests.receive(request, found.append)
        return found[0]

    def answered(self, passed: Passed, status: int, began_s: float) -> bytes:
        return self.own_requests.answered(passed, status, began_s)

    def obey(self, forward: Any, command: bytes) -> bytes:
        return self.own_requests.obey(forward, command)


def _given(status: int, headers: Pairs, body: bytes) -> Given:
    cookies = [
        value for name, value in headers if name.lower() == b"set-cookie" and value.startswith(NAME)
    ]
    assert len(cookies) <= 1
    return Given(status, headers, body, *cookies)


class NoBody:
    def __getattr__(self, _name: str) -> Any:
        raise AssertionError("a body is never read for a decision")


@dataclass
class AsgiFront:
    """An application behind `greenroom.asgi`; `served` are the headers of each request that reached
    it.
    """

    decisions: DecisionService
    origin: Origin
    policy: ForwardedPolicy = field(default_factory=ForwardedPolicy)
    errors: list[BaseException] = field(default_factory=list)
    served: list[Pairs] = field(default_factory=list)
    body: Callable[[], Any] | None = None
    """Makes the next message."""

    def __post_init__(self) -> None:
        self.room = AsgiWaitingRoom(self._app, EMPTY)
        self.room.embedded = Inside(self.decisions, self.errors, self.policy)  # type: ignore[assignment]

    async def _app(self, scope: Any, _receive: Any, send: Any) -> None:
        self.served.append(tuple(scope["headers"]))
        status, headers, body = self.origin(scope["method"], scope["path"])
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(name.lower(), value) for name, value in headers],
            }
        )
        await send(
            {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body}
        )

    def request(self, method: str, target: str, headers: Pairs, client: str = "127.0.0.1") -> Given:
        raw, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "scheme": "http",
            "http_version": "1.1",
            "client": (client, 1),
            "server": ("127.0.0.1", 80),
            "headers": [(name.lower(), value) for name, value in headers],
        }
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            assert self.body, "a body is never read for a decision"
            return self.body()

        asyncio.run(self.room(scope, receive, send))
        start, *pieces = sent
        assert all(name == name.lower() for name, _ in start["headers"]), "as ASGI wants it"
        return _given(
            start["status"],
            tuple(start["headers"]),
            b"".join(piece.get("body", b"") for piece in pieces),
        )


@dataclass
class WsgiFront:
    """An application behind `greenroom.wsgi`."""

    decisions: DecisionService
    origin: Origin
    policy: ForwardedPolicy = field(default_factory=ForwardedPolicy)
    errors: list[BaseException] = field(default_factory=list)
    served: list[Pairs] = field(default_factory=list)
    body: Any = field(default_factory=NoBody)
    length: str = ""

    def __post_init__(self) -> None:
        self.room = WsgiWaitingRoom(self._app, EMPTY)
        self.room.embedded = InsideThread(self.decisions, self.errors, self.policy)  # type: ignore[assignment]

    def _app(self, environ: Any, start_response: Callable[..., Any]) -> list[bytes]:
        cookie = environ.get("HTTP_COOKIE")
        self.served.append(((b"cookie", cookie.encode("latin-1")),) if cookie is not None else ())
        status, headers, body = self.origin(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        start_response(
            f"{status} OK", [(name.decode(), value.decode("latin-1")) for name, value in headers]
        )
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def request(self, method: str, target: str, headers: Pairs, client: str = "127.0.0.1") -> Given:
        raw, _, query = target.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(raw).decode("latin-1"),
            "QUERY_STRING": query,
            "RAW_URI": target,
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": client,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "wsgi.input": self.body,
            "CONTENT_LENGTH": self.length,
        }
        for name, value in headers:
            key = "HTTP_" + name.decode().upper().replace("-", "_")
            environ[key] = (
                f"{environ[key]},{value.decode('latin-1')}"
                if key in environ
                else value.decode("latin-1")
            )
        started: list[Any] = []
        body = b"".join(self.room(environ, lambda *given: started.append(given)))
        ((status, lines),) = started
        pairs = tuple((name.encode(), value.encode("latin-1")) for name, value in lines)
        return _given(int(status.split(" ")[0]), pairs, body)
