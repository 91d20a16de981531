"""Servers that do nothing but what cannot be left out, in the event loop of greenroom: the floor
under its figures.

    python bench/floors.py json PORT            # 600 bytes of JSON to every request
    python bench/floors.py page PORT            # a page as long as the waiting page
    python bench/floors.py proxy PORT ORIGIN    # bytes there and back, over one connection to the
    origin for each of a client's

They parse nothing: a read that ends with an empty line is a request.
"""

import asyncio
import sys

import uvloop

END = b"\r\n\r\n"
BODIES = {"json": b'{"cfWaitingRoom":{"inWaitingRoom":true}}'.ljust(600), "page": b"x" * 8_800}


class Answering(asyncio.Protocol):
    """The same answer to every request."""

    answer = b""
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if data.endswith(END):
            self.transport.write(self.answer)


class Towards(asyncio.Protocol):
    """The origin's side of a proxy."""

    def __init__(self, client: asyncio.Transport) -> None:
        self.client = client

    def data_received(self, data: bytes) -> None:
        self.client.write(data)


class Proxying(asyncio.Protocol):
    """The client's side of a proxy."""

    port = 0
    transport: asyncio.Transport
    origin: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self.origin is None:
            self.connecting = asyncio.ensure_future(self.connect(data))
        else:
            self.origin.write(data)

    async def connect(self, data: bytes) -> None:
        self.origin, _ = await asyncio.get_running_loop().create_connection(
            lambda: Towards(self.transport), "127.0.0.1", self.port
        )
        self.origin.write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self.origin is not None:
            self.origin.close()


async def main() -> None:
    kind, port, *origin = sys.argv[1:]
    made: type[asyncio.Protocol] = Proxying if kind == "proxy" else Answering
    Proxying.port = int(origin[0]) if origin else 0
    body = BODIES.get(kind, b"")
    Answering.answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    server = await asyncio.get_running_loop().create_server(
        made, "127.0.0.1", int(port), backlog=1024
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
