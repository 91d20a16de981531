"""An origin for benches that answers 200 with two bytes, as fast as asyncio can, in a process of its own."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\nX-Origin: yes\r\nContent-Length: 2\r\n\r\nok"


class Site(asyncio.Protocol):
    """One connection; requests have no body."""

    def connection_made(self, transport: Any) -> None:
        """Keeps where the answers go."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """An answer for each head that ends here."""
        self._transport.write(ANSWER * data.count(b"\r\n\r\n"))


@contextmanager
def quick_origin() -> Iterator[str]:
    """Its address, while it runs."""
    process = subprocess.Popen([sys.executable, Path(__file__)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Site, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
