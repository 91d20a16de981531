"""A FastAPI application with a waiting room in its own process."""

from pathlib import Path

from fastapi import FastAPI, WebSocket
from fastapi.responses import HTMLResponse, StreamingResponse

from greenroom.asgi import WaitingRoom

shop = FastAPI()


@shop.get("/")
async def home() -> HTMLResponse:
    """A page."""
    return HTMLResponse("<title>Shop</title><h1>Welcome to the shop</h1>")


@shop.get("/news")
async def news() -> StreamingResponse:
    """Server-sent events: streams pass as the application sends them."""

    async def events():  # noqa: ANN202
        for number in range(3):
            yield f"data: {number}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


@shop.websocket("/chat")
async def chat(socket: WebSocket) -> None:
    """A WebSocket that says everything back."""
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(text)


app = WaitingRoom(shop, Path(__file__).with_name("greenroom.toml"))
