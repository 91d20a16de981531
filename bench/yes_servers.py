"""The least that can answer Envoy's question with a yes, over HTTP and over gRPC (grpc_floor.py).

    python bench/yes_servers.py http|grpcio|grpclib PORT

Nothing of greenroom is imported, so that it runs where the libraries for gRPC are: they are not
among greenroom's dependencies. What the question says is not read, and its message is not even
parsed.
"""

import asyncio
import sys
from typing import Any

import uvloop

CHECK = "/envoy.service.auth.v3.Authorization/Check"
OK = b"\x0a\x00\x1a\x00"
"""A CheckResponse: status OK, an empty ok_response."""


async def http(port: int) -> None:
    """What greenroom's own way of asking costs at least, in the same event loop."""

    class Yes(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def data_received(self, _data: bytes) -> None:
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    await (
        await asyncio.get_running_loop().create_server(Yes, "127.0.0.1", port, backlog=1024)
    ).serve_forever()


async def grpcio(port: int) -> None:
    """The gRPC project's own library: C, with HTTP/2 of its own."""
    import grpc.aio  # type: ignore[import-not-found, import-untyped, unused-ignore]

    async def check(_question: bytes, _context: object) -> bytes:
        return OK

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc, unused-ignore]
        def service(self, _call: object) -> object:
            return handler

    handler = grpc.unary_unary_rpc_method_handler(check)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Handler(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


async def grpclib(port: int) -> None:
    """Pure Python over hyper-h2."""
    from grpclib.const import Cardinality, Handler  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from grpclib.encoding.base import CodecBase  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from grpclib.server import Server  # type: ignore[import-not-found, import-untyped, unused-ignore]

    class Bytes(CodecBase):  # type: ignore[misc, unused-ignore]
        __content_subtype__ = "proto"

        def encode(self, message: bytes, _message_type: object) -> bytes:
            return message

        def decode(self, data: bytes, _message_type: object) -> bytes:
            return data

    async def check(stream: Any) -> None:
        await stream.recv_message()
        await stream.send_message(OK)

    class Authorization:
        def __mapping__(self) -> dict[str, Any]:
            return {CHECK: Handler(check, Cardinality.UNARY_UNARY, bytes, bytes)}

    server = Server([Authorization()], codec=Bytes())
    await server.start("127.0.0.1", port)
    await server.wait_closed()


SERVERS = {"http": http, "grpcio": grpcio, "grpclib": grpclib}

if __name__ == "__main__":
    uvloop.run(SERVERS[sys.argv[1]](int(sys.argv[2])))
