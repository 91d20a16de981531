"""Applications for real servers: each says what it was sent, streams, echoes a body, and speaks
over a WebSocket.

`uvicorn plain_apps:asgi`, `gunicorn plain_apps:wsgi`; the configuration is the file that
GREENROOM_CONFIG names.
"""

import json
import os
from typing import Any

from greenroom.asgi import WaitingRoom as AsgiWaitingRoom
from greenroom.wsgi import WaitingRoom as WsgiWaitingRoom

STARTED: list[str] = []
JSON = (b"content-type", b"application/json")


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        STARTED.append("app")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("the application ends", flush=True)
        await send({"type": "lifespan.shutdown.complete"})
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send(
                {
                    "type": "websocket.send",
                    **{
                        key: message[key]
                        for key in ("text", "bytes")
                        if message.get(key) is not None
                    },
                }
            )
    else:
        pieces = []
        while True:
            message = await receive()
            pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        headers = [
            [name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]
        ]
        said = {
            "method": scope["method"],
            "path": scope["path"],
            "headers": headers,
            "length": len(b"".join(pieces)),
        }
        command = [(b"cf-waiting-room-command", b"revoke")] if scope["path"] == "/revoke" else []
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"x-origin", b"yes"), JSON, *command],
            }
        )
        await send(
            {"type": "http.response.body", "body": json.dumps(said).encode(), "more_body": True}
        )
        await send({"type": "http.response.body", "body": b"\n"})


def wsgi_app(environ: Any, start_response: Any) -> list[bytes]:
    length = len(environ["wsgi.input"].read())
    headers = [
        [key[5:].replace("_", "-").lower(), value]
        for key, value in environ.items()
        if key.startswith("HTTP_")
    ]
    said = {
        "method": environ["REQUEST_METHOD"],
        "path": environ["PATH_INFO"],
        "headers": headers,
        "length": length,
    }
    command = [("Cf-Waiting-Room-Command", "revoke")] if environ["PATH_INFO"] == "/revoke" else []
    start_response("200 OK", [("X-Origin", "yes"), ("Content-Type", "application/json"), *command])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [json.dumps(said).encode()]


if "GREENROOM_CONFIG" in os.environ:
    asgi = AsgiWaitingRoom(app, os.environ["GREENROOM_CONFIG"])
    wsgi = WsgiWaitingRoom(wsgi_app, os.environ["GREENROOM_CONFIG"])
