"""A web application with streams, served by uvicorn in a thread: `/socket` echoes, `/events` ticks,
`/revoke` ends the session.

`open` are the sockets that are open at this moment, `most` the most that ever were.
"""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket


class StreamingApp:
    """Runs until `close`."""

    def __init__(self) -> None:
        self.open = self.most = 0
        self.closed_with: list[int] = []
        routes = [
            WebSocketRoute("/socket", self._socket),
            Route("/events", self._events),
            Route("/revoke", self._revoke),
            Route("/", self._page),
        ]
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                Starlette(routes=routes), log_config=None, lifespan="off", ws="websockets-sansio"
            )
        )
        self._thread = threading.Thread(target=lambda: self._server.run([listening]), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the server."""
        self._server.force_exit = self._server.should_exit = True
        self._thread.join(10)

    async def _socket(self, ws: WebSocket) -> None:
        await ws.accept()
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            while (message := await ws.receive())["type"] == "websocket.receive":
                await ws.send_text(message.get("text") or "")
            self.closed_with.append(message["code"])
        finally:
            self.open -= 1

    async def _events(self, _: Request) -> Response:
        async def ticks() -> AsyncIterator[str]:
            while True:
                yield "data: tick\n\n"
                await asyncio.sleep(0.2)  # a stream

        return StreamingResponse(ticks(), media_type="text/event-stream")

    async def _revoke(self, _: Request) -> Response:
        return PlainTextResponse("over", headers={"Cf-Waiting-Room-Command": "revoke"})

    async def _page(self, _: Request) -> Response:
        return PlainTextResponse("page")
